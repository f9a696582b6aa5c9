//! A call as it is asked for.

use std::{fmt, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{CallEvent, Caller, CallerRef, RegisteredTool, TraceContext, current_trace};

/// The id of a call: `tc_` and a UUIDv7.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// A new id, later than every earlier one of this process.
    pub fn new() -> Self {
        Self(format!("tc_{}", uuid::Uuid::now_v7().simple()))
    }

    /// What was typed, when it can be an id at all. It names a folder, so nothing else may pass.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.strip_prefix("tc_")?;
        let fits = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        fits.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for CallId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What may happen without asking: the confirmation modes `none`, `safe` and `all`. Ordered: a later one asks less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum AutoApprove {
    /// Everything is asked, reads too.
    #[serde(rename = "none")]
    Nothing,
    /// What only reads runs; the rest is asked.
    #[default]
    #[serde(rename = "safe")]
    Reads,
    /// Everything runs, except what must be asked in every mode.
    #[serde(rename = "all")]
    Everything,
}

/// Hears what happens to a call while it happens.
pub type CallListener = Arc<dyn Fn(&CallEvent) + Send + Sync>;

/// An input that an approver gave in the place of the one that was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputEdit {
    /// Who gave it.
    pub by: CallerRef,
    /// The paths that the card of the first input showed.
    pub shown: Vec<String>,
}

/// One wish to use a tool, as a door makes it.
#[derive(Clone)]
pub struct CallRequest {
    /// The id it will be known by.
    pub id: CallId,
    /// Who asks.
    pub caller: Caller,
    /// The tool's name or one of its aliases.
    pub tool: String,
    /// A tool of that name that is saved nowhere, in the place of whatever there is.
    pub draft: Option<Arc<RegisteredTool>>,
    /// The arguments.
    pub input: Value,
    /// The call that this one comes from.
    pub parent: Option<CallId>,
    /// Who gave this input in the place of another; that was the yes to it.
    pub edited: Option<InputEdit>,
    /// What may happen without asking.
    pub auto_approve: AutoApprove,
    /// How long to wait for an answer before handing back `pending`.
    pub wait: Duration,
    /// Ends that wait: a call that waits for a yes or a result is handed back at once, and its question stays open.
    pub hand_back: CancellationToken,
    /// How long a form stays open that the tool puts in the middle of its work; as long as the house lets it when absent.
    pub form_wait: Option<Duration>,
    /// The caller's own limit for the work.
    pub timeout: Option<Duration>,
    /// Whether the work must be done anew, not answered from the cache.
    pub fresh: bool,
    /// Stops the call.
    pub cancel: CancellationToken,
    /// Told of every event.
    pub listener: Option<CallListener>,
    /// The span that it was asked for in.
    pub trace: Option<TraceContext>,
}

impl CallRequest {
    /// A request with no wishes but the tool and its input.
    pub fn new(caller: Caller, tool: impl Into<String>, input: Value) -> Self {
        Self {
            id: CallId::new(),
            caller,
            tool: tool.into(),
            draft: None,
            input,
            parent: None,
            edited: None,
            auto_approve: AutoApprove::default(),
            wait: Duration::ZERO,
            hand_back: CancellationToken::new(),
            form_wait: None,
            timeout: None,
            fresh: false,
            cancel: CancellationToken::new(),
            listener: None,
            trace: current_trace(),
        }
    }
}
