//! Recorded calls, decided again: the very same decision on what the journal kept of the evidence.

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    Bounds, CallFacts, CallRecord, Case, ChangeList, Decision, Described, Effect, End, ErrorCode, Evidence, Grant,
    Isolation, Policy, Reach, RegisteredTool, Step, ToolOutput, Turn, explain, stage::resolve::translate,
};

/// A recorded call with what is left of the evidence that it was decided on.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The call.
    pub record: CallRecord,
    /// Whether somebody was asked about it.
    pub asked: bool,
    /// What it would have changed.
    pub staged: Option<(ChangeList, Turn)>,
    /// Whether it could only be described, and staged that when it ran after the yes.
    pub staged_late: bool,
    /// The rung of the processes it started, as its question holds it.
    pub isolation: Option<Isolation>,
    /// The host that it reaches, as its question holds it.
    pub reach: Option<Reach>,
}

/// What was decided then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastDecision {
    /// It went on by itself.
    Yes,
    /// A person was asked.
    Ask,
    /// A rule refused it.
    No,
}

/// Why a recorded call cannot be decided again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// It never got as far as a decision.
    Undecided,
    /// Its tool is not here.
    NoTool,
    /// Its list of changes is gone.
    NoEvidence,
}

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undecided => "it ended before anything was decided",
            Self::NoTool => "its tool is not here any more",
            Self::NoEvidence => "its evidence is gone: the list of what it would have changed is no longer kept",
        })
    }
}

/// A recorded call that can be decided again.
pub struct Replay<'a> {
    past: &'a Past,
    tool: &'a RegisteredTool,
    was: PastDecision,
    input: Value,
    evidence: Evidence,
    effect: Effect,
}

impl Past {
    /// What was decided then; `None` when the call did not get that far.
    fn was(&self) -> Option<PastDecision> {
        if self.asked {
            return Some(PastDecision::Ask);
        }
        let outcome = self.record.outcome.as_ref()?;
        if outcome.approved_by.is_some() {
            return Some(PastDecision::Yes);
        }
        let refused = matches!(&outcome.end, End::Error { error } if error.code == ErrorCode::Forbidden);
        refused.then_some(PastDecision::No)
    }

    /// A call that ran unasked has its rung in its outcome, where `none` also means that it started nothing.
    fn rung(&self) -> Option<Isolation> {
        let ran = self.record.outcome.as_ref().map(|outcome| outcome.isolation);
        self.isolation.or(ran.filter(|rung| *rung != Isolation::None))
    }

    /// The call with its evidence, as the decision saw it.
    pub fn replay<'a>(&'a self, tool: Option<&'a RegisteredTool>) -> Result<Replay<'a>, Unjudged> {
        let was = self.was().ok_or(Unjudged::Undecided)?;
        let tool = tool.ok_or(Unjudged::NoTool)?;
        let mut input = self.record.opening.input.clone();
        translate(&mut input, tool.spec(), &self.record.opening.tool).map_err(|_| Unjudged::Undecided)?;
        let (evidence, effect) = match &self.staged {
            Some((changes, turn)) if !self.staged_late => {
                let (changes, turn, effect) = (changes.clone(), turn.clone(), changes.effect());
                let output = ToolOutput::default();
                (Evidence::Staged { output, changes, turn, isolation: self.rung() }, effect)
            }
            None if self.record.turn.is_some() => return Err(Unjudged::NoEvidence),
            Some(_) | None => {
                let (isolation, reach) = (self.isolation, self.reach.clone());
                let described = Described { isolation, reach, ..Described::default() };
                (Evidence::Plain(described), tool.tool().effect(&input))
            }
        };
        Ok(Replay { past: self, tool, was, input, evidence, effect })
    }
}

impl Replay<'_> {
    /// What was decided then.
    pub fn was(&self) -> PastDecision {
        self.was
    }

    /// What it did, as far as that could be seen before.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// What would be decided now, with everything that is looked at on the way. Nothing is run and no grant is spent.
    pub fn decide(&self, policy: &Policy, grants: &[Grant]) -> (Decision, Vec<Step>) {
        let opening = &self.past.record.opening;
        let case = Case {
            spec: self.tool.spec(),
            input: &self.input,
            effect: self.effect,
            evidence: &self.evidence,
            mode: opening.auto_approve,
            caller: &opening.caller.who.id,
            grants,
            now: Timestamp::now(),
        };
        explain(policy, &case)
    }

    /// Whether all that it did lies within.
    pub fn is_within(&self, bounds: &Bounds) -> bool {
        bounds.contain(&CallFacts::new(&self.input, &self.evidence)).is_ok()
    }
}
