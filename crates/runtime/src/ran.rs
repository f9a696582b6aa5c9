//! What a tool says of its work: how it will be done, what came of it, what is left when it was cut short.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChangeList, ErrorCode, Isolation, Prepared, RegisteredTool, Stamp, ToolError, Turn, WaitFor};

/// What a tool's `run` came to.
#[derive(Clone, Debug)]
pub enum Ran<O> {
    /// It came to its end.
    Done {
        /// What the caller gets.
        output: O,
        /// The rung of the processes it started; `None` when it started none.
        isolation: Option<Isolation>,
        /// What it changed aside and what brings that into the workspace; the yes to the run is a yes to it, but for
        /// what is flagged.
        staged: Option<(ChangeList, Turn)>,
    },
    /// It did not, and says what it leaves behind.
    CutShort(PartialWork),
    /// Somebody outside gives the result. The work is over; the call waits.
    Waits(WaitFor),
}

impl<O> Ran<O> {
    /// It came to its end without a process and changed no files.
    pub fn plain(output: O) -> Self {
        Self::Done { output, isolation: None, staged: None }
    }

    /// What came out, for using a tool by hand.
    pub fn into_output(self) -> Result<O, ToolError> {
        match self {
            Self::Done { output, .. } => Ok(output),
            Self::CutShort(cut) => Err(cut.error),
            Self::Waits(wait) => Err(ToolError::new(ErrorCode::Unavailable, wait.message)),
        }
    }
}

/// What is known of a call that can only be described before it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Described {
    /// What the approver is shown.
    #[serde(default)]
    pub preview: Option<String>,
    /// The rung that its processes would run on; `None` when it starts none that matter to the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Whether it runs aside, so that the files that it changes can be brought back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_aside: bool,
    /// Whether a yes may be remembered.
    #[serde(default, skip_serializing_if = "Rememberable::is_yes")]
    pub lasting: Rememberable,
    /// Why it is asked for in every mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_ask: Option<String>,
    /// The host that haft itself would reach for it; `None` when it reaches none, or nobody can tell which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
}

impl Described {
    /// A call that starts no process, with what the approver is shown of it.
    pub fn showing(preview: impl Into<String>) -> Self {
        Self { preview: Some(preview.into()), ..Self::default() }
    }
}

/// The one host that a call reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reach {
    /// Its name or address.
    pub host: String,
    /// Whether the user has put it on the list of hosts that are read from unasked.
    pub listed: bool,
    /// Whether the call sends something there that may change it; bounds on hosts cover only what is read.
    pub sends: bool,
}

/// Whether the yes to a call that could only be described may be remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rememberable {
    /// For exactly the same input.
    #[default]
    ThisInput,
    /// It is asked each time.
    No {
        /// Why, in words that follow "always is withheld:".
        why: String,
    },
}

impl Rememberable {
    fn is_yes(&self) -> bool {
        *self == Self::ThisInput
    }
}

/// Work that was stopped, or ran into a limit, and leaves what it had changed staged. Everything it started is dead.
#[derive(Clone, Debug)]
pub struct PartialWork {
    /// Why. Where the line stopped the work, its reason takes the place of this one, unless this one is
    /// `OUTCOME_UNKNOWN`.
    pub error: ToolError,
    /// What it had changed aside; may be empty.
    pub changes: ChangeList,
    /// What would commit that.
    pub turn: Turn,
    /// The rung of the processes it started.
    pub isolation: Option<Isolation>,
}

impl PartialWork {
    /// The line stopped the work, and this is what was left of it.
    pub(crate) fn stopped_by(&mut self, stop: ToolError) {
        let said = std::mem::replace(&mut self.error, stop);
        if said.code == ErrorCode::OutcomeUnknown {
            let message = format!("{}; {}", self.error.message, said.message);
            self.error = ToolError::new(said.code, message);
        }
        self.error.details.extend(said.details);
    }
}

/// Why a call did not succeed, and what it leaves staged.
#[derive(Clone, Debug)]
pub(crate) enum CallFailure {
    Error(ToolError),
    /// It failed behind this fence.
    Behind(Isolation, ToolError),
    CutShort(PartialWork),
}

impl CallFailure {
    /// The same, where what was done was done behind a fence.
    pub(crate) fn behind(self, isolation: Option<Isolation>) -> Self {
        match (self, isolation) {
            (Self::Error(error), Some(isolation)) if !error.nothing_done() => Self::Behind(isolation, error),
            (failure, _) => failure,
        }
    }
}

impl From<ToolError> for CallFailure {
    fn from(error: ToolError) -> Self {
        Self::Error(error)
    }
}

impl From<PartialWork> for CallFailure {
    fn from(cut: PartialWork) -> Self {
        Self::CutShort(cut)
    }
}

/// What a piece of work gives. Some of it is worth hearing although the work was stopped.
pub(crate) trait MayBePartial {
    /// What was left when it was cut short.
    fn cut_short(&mut self) -> Option<&mut PartialWork> {
        None
    }
}

impl MayBePartial for () {}

impl MayBePartial for Option<Stamp> {}

impl MayBePartial for Arc<RegisteredTool> {}

impl<O> MayBePartial for Prepared<O> {
    fn cut_short(&mut self) -> Option<&mut PartialWork> {
        match self {
            Self::CutShort(cut) => Some(cut),
            Self::Staged { .. } | Self::Plain(_) => None,
        }
    }
}

impl<O> MayBePartial for Ran<O> {
    fn cut_short(&mut self) -> Option<&mut PartialWork> {
        match self {
            Self::CutShort(cut) => Some(cut),
            Self::Done { .. } | Self::Waits(_) => None,
        }
    }
}
