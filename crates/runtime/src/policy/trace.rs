//! What a decision looked at, for whoever asks why.

use serde::Serialize;

use super::Rule;
use crate::{AutoApprove, Grant};

/// One thing that was looked at on the way to a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What was looked at.
    pub looked_at: String,
    /// What was found.
    pub found: String,
}

/// What can be looked at.
#[derive(Clone, Copy)]
pub(super) enum TraceSubject<'a> {
    Rule(&'a Rule),
    /// What is asked in every mode.
    EveryMode,
    /// Whether a person asks by their own form.
    OwnForm,
    Mode(AutoApprove),
    /// Whether it only reads.
    Effect,
    /// What whoever wrote the tool has said.
    Author,
    Grant(&'a Grant),
    /// What holds when nothing else does.
    Otherwise,
}

impl TraceSubject<'_> {
    /// What people know it by.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Rule(rule) => rule.name.clone(),
            Self::EveryMode => "must it ask in every mode?".to_owned(),
            Self::OwnForm => "asked for in a person's own form".to_owned(),
            Self::Mode(AutoApprove::Nothing) => "mode `none`".to_owned(),
            Self::Mode(AutoApprove::Reads) => "mode `safe`".to_owned(),
            Self::Mode(AutoApprove::Everything) => "mode `all`".to_owned(),
            Self::Effect => "it only reads".to_owned(),
            Self::Author => "its author lets it run".to_owned(),
            Self::Grant(grant) => format!("grant {}", grant.id),
            Self::Otherwise => "nothing allows it, so it asks".to_owned(),
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Rule(rule) => format!("{} ({})", rule.name, rule.verdict.word()),
            Self::EveryMode
            | Self::OwnForm
            | Self::Mode(_)
            | Self::Effect
            | Self::Author
            | Self::Grant(_)
            | Self::Otherwise => self.name(),
        }
    }
}

/// Keeps the steps when somebody wants them; a decision that nobody asked about writes no words.
pub(super) struct Trace(Option<Vec<Step>>);

impl Trace {
    pub(super) fn silent() -> Self {
        Self(None)
    }

    pub(super) fn telling() -> Self {
        Self(Some(Vec::new()))
    }

    pub(super) fn note(&mut self, looked_at: TraceSubject<'_>, found: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.0 {
            steps.push(Step { looked_at: looked_at.title(), found: found() });
        }
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.0.unwrap_or_default()
    }
}
