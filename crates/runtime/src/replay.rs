//! Recorded calls, decided again: the very same decision on what the journal kept of the evidence.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Bounds, CallFacts, CallId, CallRecord, Case, ChangeList, Decision, Described, Effect, End, ErrorCode, Evidence,
    Grant, Isolation, Policy, Reach, RegisteredTool, Step, ToolOutput, Turn, explain, references,
    stage::resolve::translate,
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

impl PastDecision {
    /// The decision in a word, as one of now is told.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Ask => "ask",
            Self::No => "no",
        }
    }
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
    /// Its input took values from other results.
    NoInput,
}

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undecided => "it ended before anything was decided",
            Self::NoTool => "its tool is not here any more",
            Self::NoInput => "its input took values from the results of other calls, which are not kept with it",
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
        if references::has_any(&input) {
            return Err(Unjudged::NoInput);
        }
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
            own_form: opening.caller.own_form(),
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

/// What became of calls that were decided again.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// How many would be decided as they were.
    pub same: usize,
    /// Those that would not.
    pub differing: Vec<DifferingCall>,
    /// Why some could not be decided again, and how many.
    pub unjudged: BTreeMap<String, usize>,
}

/// A call that would be decided otherwise now.
#[derive(Debug)]
pub struct DifferingCall {
    /// The call.
    pub call: CallId,
    /// Its tool's own name.
    pub tool: String,
    /// When it was asked for.
    pub at: Timestamp,
    /// What was decided then.
    pub was: PastDecision,
    /// What would be decided now.
    pub now: Decision,
}

impl ReplayReport {
    /// Decides one more call again. Nothing is run.
    pub fn add(&mut self, past: &Past, tool: Option<&RegisteredTool>, policy: &Policy, grants: &[Grant]) {
        let opening = &past.record.opening;
        match past.replay(tool) {
            Err(why) => *self.unjudged.entry(why.to_string()).or_default() += 1,
            Ok(replay) => {
                let (now, _) = replay.decide(policy, grants);
                if now.word() == replay.was().word() {
                    self.same += 1;
                    return;
                }
                let (call, tool, at) = (past.record.call.clone(), opening.tool.clone(), opening.at);
                self.differing.push(DifferingCall { call, tool, at, was: replay.was(), now });
            }
        }
    }

    /// The report for programs.
    pub fn document(&self) -> Value {
        let differing: Vec<Value> = self.differing.iter().map(DifferingCall::document).collect();
        let unjudged: Vec<Value> =
            self.unjudged.iter().map(|(why, count)| json!({"why": why, "count": count})).collect();
        json!({"same": self.same, "differing": differing, "unjudged": unjudged})
    }
}

impl DifferingCall {
    fn document(&self) -> Value {
        json!({"callId": self.call, "tool": self.tool, "at": self.at, "was": self.was.word(),
            "now": self.now.word(), "because": self.now.because()})
    }
}

/// How many of the last calls a grant would have covered.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Coverage {
    covered: usize,
    of: usize,
}

impl Coverage {
    /// Holds a grant against recorded calls; nothing is run.
    pub fn of(grant: &Grant, tool: Option<&RegisteredTool>, past: &[Past]) -> Self {
        let is_within = |past: &&Past| {
            let same_tool = past.record.opening.tool == grant.tool;
            same_tool && past.replay(tool).is_ok_and(|replay| replay.is_within(&grant.bounds))
        };
        Self { covered: past.iter().filter(is_within).count(), of: past.len() }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            0 => f.write_str("no earlier calls to compare with"),
            1 if self.covered == 1 => f.write_str("would have covered the last call"),
            1 => f.write_str("would not have covered the last call"),
            of => write!(f, "would have covered {} of the last {of} calls", self.covered),
        }
    }
}
