//! A standing verdict on what calls do.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Case;
use crate::{Bounds, CallFacts, Change, ClosestMiss, Evidence, Question, ToolSpec};

/// A rule on what a call does.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What people know it by, such as `rule 2 of your settings`.
    pub name: String,
    /// For which tool; `None` means every tool.
    pub tool: Option<String>,
    /// What it matches.
    pub bounds: Bounds,
    /// What it says.
    pub verdict: Verdict,
    /// Why, for the person who reads the card.
    pub reason: Option<String>,
}

/// What a rule says; what is stricter is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Go on.
    Allow,
    /// Ask, in every mode.
    Ask,
    /// Never.
    Deny,
}

impl Verdict {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Why a rule does not match.
pub(super) enum RuleMismatch<'a, 'r> {
    OtherTool(&'r str),
    /// It allows, but not all of this.
    ClosestMiss(ClosestMiss<'a>),
    /// It asks or denies, but nothing of this.
    Untouched,
    /// It asks or denies by changes, and there are none to see.
    Unseen,
    /// It asks or denies for other hosts.
    OtherHost(&'a str),
}

impl<'a> RuleMismatch<'a, '_> {
    pub(super) fn missed(&self) -> Option<ClosestMiss<'a>> {
        match self {
            Self::ClosestMiss(missed) => Some(*missed),
            Self::OtherTool(_) | Self::Untouched | Self::Unseen | Self::OtherHost(_) => None,
        }
    }
}

impl fmt::Display for RuleMismatch<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTool(tool) => write!(f, "it is for `{tool}`"),
            Self::ClosestMiss(missed) => missed.fmt(f),
            Self::Untouched => f.write_str("nothing that it changes lies within"),
            Self::Unseen => f.write_str("it is about changes, and what this does cannot be seen before"),
            Self::OtherHost(host) => write!(f, "it is about other hosts than `{host}`"),
        }
    }
}

impl Rule {
    pub(super) fn is_for(&self, tool: &ToolSpec) -> bool {
        self.tool.as_ref().is_none_or(|name| *name == tool.name)
    }

    /// Whether it asks for a change that only shows after the yes, or denies it.
    pub(super) fn objects_to(&self, tool: &ToolSpec, change: &Change) -> bool {
        // One without bounds has been heard before the call ran.
        let has_bounds = !self.bounds.are_unlimited();
        self.verdict != Verdict::Allow && self.is_for(tool) && has_bounds && self.bounds.touch(change)
    }

    /// A permission needs all of what a call does within its bounds, a refusal needs one change.
    pub(super) fn meets<'a, 'r>(&'r self, case: &Case<'a>, seen: &CallFacts<'a>) -> Result<(), RuleMismatch<'a, 'r>> {
        if let Some(tool) = self.tool.as_ref().filter(|_| !self.is_for(case.spec)) {
            return Err(RuleMismatch::OtherTool(tool));
        }
        match self.verdict {
            // A rule has no input to compare, so that what could not be staged is within one that allows only when it
            // reads from a host that the rule names.
            Verdict::Allow => self.bounds.contain(seen).map_err(RuleMismatch::ClosestMiss),
            Verdict::Ask | Verdict::Deny => self.touched_by(case.evidence),
        }
    }

    /// Whether one that asks or denies is about what a call did.
    fn touched_by<'a, 'r>(&'r self, evidence: &'a Evidence) -> Result<(), RuleMismatch<'a, 'r>> {
        match evidence {
            _ if self.bounds.are_unlimited() => Ok(()),
            Evidence::Plain(described) => match &described.reach {
                Some(reach) if self.bounds.reach(&reach.host) => Ok(()),
                Some(reach) if self.bounds.written().hosts.is_some() => Err(RuleMismatch::OtherHost(&reach.host)),
                Some(_) | None => Err(RuleMismatch::Unseen),
            },
            Evidence::Staged { changes, .. } => {
                let touched = changes.0.iter().any(|change| self.bounds.touch(change));
                if touched { Ok(()) } else { Err(RuleMismatch::Untouched) }
            }
        }
    }

    /// Whether one that asks is about this question.
    pub fn asks_about(&self, question: &Question) -> bool {
        let is_for = self.tool.as_ref().is_none_or(|name| *name == question.tool);
        is_for && question.evidence().is_some_and(|evidence| self.touched_by(evidence).is_ok())
    }

    /// What it says to a call, and why.
    pub(super) fn sentence(&self, says: &str) -> String {
        let why = self.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        format!("{} {says}{why}", self.name)
    }

    /// What it is known by, and why it is there.
    pub(super) fn name_and_reason(&self) -> String {
        self.reason.as_ref().map_or_else(|| self.name.clone(), |reason| format!("{}: {reason}", self.name))
    }
}
