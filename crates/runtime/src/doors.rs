//! The doors of the runtime. A house is built by choosing who stands behind each.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AutoApprove, AwaitedResult, CallEvent, CallId, CalledAs, Caller, CallerRecord, CallerRef, CallsInHand, ChangeList,
    Described, Direction, Effect, End, ErrorCode, Form, FormValues, Grant, GrantId, HouseWide, Isolation, LateResult,
    Outcome, Permissions, PermittedAnswer, Policy, RegisteredTool, Scope, Source, ToolError, ToolListing, ToolOutput,
    ToolSpec, Turn, Via, Within, WorkspaceId,
};

/// Which tools exist, and for whom.
pub trait Catalog: Send + Sync {
    /// The tool that a name or an alias stands for.
    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, Result<Arc<RegisteredTool>, ToolError>>;

    /// Every tool, what a model is shown of them, and how it finds the rest.
    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Arc<ToolListing>, ToolError>>;
}

/// May this caller use this tool, answer this question, and let how much happen unasked. A guard that errors, refuses.
pub trait Guard: Send + Sync {
    /// Whether the caller may use the tool; refuses by an error.
    fn permit<'a>(&'a self, caller: &'a Caller, tool: &'a ToolSpec) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Counts a new call of the caller's tenant; refuses by an error where it has made as many as it may.
    fn begin<'a>(&'a self, _caller: &'a Caller) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether the caller may answer the question; refuses by an error.
    fn may_answer<'a>(&'a self, caller: &'a Caller, question: &'a Question) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Whether the yes or no of somebody who may answer is theirs to say, which it refuses by an error, and whether it is
    /// enough or others have to agree. Whoever has agreed is remembered.
    fn agree<'a>(
        &'a self,
        _caller: &'a Caller,
        _question: &'a Question,
        _said: &'a Answer,
    ) -> BoxFuture<'a, Result<Agreement, ToolError>> {
        Box::pin(std::future::ready(Ok(Agreement::Enough)))
    }

    /// The most that the caller may let happen without asking, whatever a request says.
    fn most_unasked(&self, caller: &Caller) -> AutoApprove;

    /// What a caller of the journal may do now; an error when they may no longer act at all.
    fn permissions_of<'a>(
        &'a self,
        scope: &'a Scope,
        recorded: &'a CallerRecord,
    ) -> BoxFuture<'a, Result<Permissions, ToolError>>;
}

/// Which rules are in force somewhere. Without them nothing is decided, so that a failure refuses.
pub trait Policies: Send + Sync {
    /// The rules of a scope.
    fn of<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Arc<Policy>, ToolError>>;
}

/// What is staged under a call id, for whoever may see the scope.
pub trait Workbench: Send + Sync {
    /// Everything the call staged, with diffs, wherever it stands now.
    fn show<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<ChangeList, ToolError>>;

    /// What a turn would do, checked for conflicts; nothing is touched.
    fn preview<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<ChangeList, ToolError>>;

    /// Takes the turn, whole or not at all, and says what it did.
    fn take<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<ChangeList, ToolError>>;

    /// Drops what is staged and was never committed.
    fn discard<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Brings a turn that a crash cut short to its beginning or its end, and says in a sentence which.
    fn recover<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<Recovered, ToolError>>;
}

/// What recovery found.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// What is in the workspace because of the turn; empty when it was taken back.
    pub done: ChangeList,
    /// What happened, for the journal and the caller.
    pub sentence: String,
}

/// Anything that is waited for from outside, with all that is needed to carry the call on in another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The call that waits.
    pub call: CallId,
    /// Which of its questions, from 1.
    pub number: u32,
    /// The tool's own name.
    pub tool: String,
    /// The exact input.
    pub input: Value,
    /// The other name by which it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_as: Option<CalledAs>,
    /// How far it reaches.
    pub effect: Effect,
    /// Why it is asked.
    pub reason: String,
    /// Which bound of which grant nearly matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearly: Option<String>,
    /// What is wanted.
    #[serde(rename = "evidence")]
    pub about: About,
    /// Who asked for the call.
    pub asked_by: CallerRef,
    /// The workspace that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
    /// When it was put.
    pub asked_at: Timestamp,
    /// When an answer comes too late.
    pub expires_at: Timestamp,
}

impl Question {
    /// What it is answered by.
    pub fn id(&self) -> QuestionId {
        QuestionId { call: self.call.clone(), number: self.number }
    }

    /// Where it belongs, for whoever found it within this scope.
    pub fn scope(&self, found_within: &Scope) -> Scope {
        found_within.beside(self.workspace.as_ref())
    }

    /// What kind of answer it wants, in a word.
    pub fn kind(&self) -> &'static str {
        match self.about {
            About::Approval(_) => "approval",
            About::Form(_) => "form",
            About::Result(ref awaited) if awaited.is_a_form() => "form",
            About::Result(_) => "result",
        }
    }

    /// Whether the call waits for a result from outside.
    pub fn wants_a_result(&self) -> bool {
        matches!(self.about, About::Result(_))
    }

    /// What its tool wants to know in the middle of its work, where that is what it waits for.
    pub fn form(&self) -> Option<&Form> {
        match &self.about {
            About::Form(form) => Some(form),
            About::Approval(_) | About::Result(_) => None,
        }
    }

    /// What the call does, where it waits for a yes.
    pub fn evidence(&self) -> Option<&Evidence> {
        match &self.about {
            About::Approval(evidence) => Some(evidence),
            About::Form(_) | About::Result(_) => None,
        }
    }
}

/// One question of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuestionId {
    /// The call.
    pub call: CallId,
    /// Which of its questions, from 1.
    pub number: u32,
}

/// What a question wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// What the tool wants to know in the middle of its work. Only the process that does the work can go on with it.
    Form(Form),
    /// The result of a call that was approved and done but for what somebody outside does. Any process can end it.
    Result(AwaitedResult),
    /// A yes to what the call does, as far as that could be seen before.
    #[serde(untagged)]
    Approval(Evidence),
}

/// What is known of a call before the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// It is done but for the commit.
    Staged {
        /// What the caller gets after the commit.
        output: ToolOutput,
        /// What it would change.
        changes: ChangeList,
        /// What a yes does.
        turn: Turn,
        /// The rung of the processes it started.
        isolation: Option<Isolation>,
    },
    /// It can only be described.
    Plain(Described),
}

/// What somebody answered, and who.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub by: CallerRef,
    /// Through which door.
    pub source: Source,
    /// When.
    pub at: Timestamp,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// Yes, to all or to some of the changes.
    Approve {
        /// Which changes; `None` means all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paths: Option<Vec<String>>,
    },
    /// Yes, and a yes to what is like it. The answer and the grant are one transaction.
    Always {
        /// What is remembered.
        grant: Box<Grant>,
    },
    /// Not this, but the same tool with another input.
    Edit {
        /// The other input.
        input: Value,
    },
    /// A form is filled in.
    Fill {
        /// What fits it.
        values: FormValues,
    },
    /// The result that a call waits for.
    Result {
        /// What fits its schema.
        value: Value,
    },
    /// What was waited for could not be done.
    Failed {
        /// What whoever tried it calls this failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Why.
        message: String,
    },
    /// No.
    Reject {
        /// In the person's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Nobody wants it any more.
    Cancel,
    /// Nobody answered in time; the house says so itself.
    Expire,
    /// Nobody gave the result while its caller could wait for it; the house says so itself.
    TimedOut {
        /// How long that was.
        after_ms: u64,
    },
}

/// A question, and the answer once there is one.
pub type QuestionAndAnswer = (Question, Option<Answered>);

/// Whether a yes is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// It is.
    Enough,
    /// So many others have to say the same.
    MoreNeeded(u32),
}

/// What became of an attempt to answer. The first answer wins.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerReceipt {
    /// It counts.
    Taken,
    /// It was heard, and so many others have to say the same before it counts.
    MoreNeeded(u32),
    /// Somebody was earlier.
    TooLate(Answered),
    /// The call waits for nothing.
    NoQuestion,
}

/// Questions put to people, their answers, and the answers that are remembered.
pub trait Questions: Send + Sync {
    /// The time by which questions and grants expire. Whoever shares them goes by the same clock.
    fn now(&self) -> Timestamp;

    /// Puts the question. The question, the call's row and its events are one transaction.
    fn ask<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a Question,
        entry: Entry,
    ) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Waits for the answer, at most this long. `None` means that there is none yet.
    fn wait<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a QuestionId,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Option<Answered>, ToolError>>;

    /// Writes an answer; the first one counts. `Pipeline::answer` is how one is given.
    fn answer<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a QuestionId,
        answer: &'a PermittedAnswer,
    ) -> BoxFuture<'a, Result<AnswerReceipt, ToolError>>;

    /// The last question of one call, open or answered.
    fn find<'a>(
        &'a self,
        scope: &'a Scope,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<QuestionAndAnswer>, ToolError>>;

    /// The open questions, oldest first.
    fn open<'a>(&'a self, scope: &'a Scope, within: &'a Within) -> BoxFuture<'a, Result<Vec<Question>, ToolError>>;

    /// The open questions that nobody answered in time, of calls that this process can carry on.
    fn overdue<'a>(&'a self, house: &'a HouseWide) -> BoxFuture<'a, Result<Vec<(Scope, QuestionId)>, ToolError>>;

    /// The calls that still wait although their question was answered, and that this process can carry on.
    fn answered<'a>(&'a self, house: &'a HouseWide) -> BoxFuture<'a, Result<Vec<(Scope, CallId)>, ToolError>>;

    /// The caller's request is no longer held, so that the result goes to its inbox. `false` means that the answer is there
    /// already, and goes to whoever has waited.
    fn stop_waiting<'a>(&'a self, scope: &'a Scope, question: &'a QuestionId)
    -> BoxFuture<'a, Result<bool, ToolError>>;

    /// Keeps a result that came after its call had timed out. The result, its event and the item in the caller's inbox are
    /// one transaction; the call itself stays as it is. `false` means that there is one already.
    fn keep_late<'a>(&'a self, call: &'a CallRecord, late: &'a LateResult) -> BoxFuture<'a, Result<bool, ToolError>>;

    /// The result that came after a call had timed out.
    fn late<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<Option<LateResult>, ToolError>>;

    /// Takes over a waiting call whose owner is gone, and whose caller therefore waits no longer. At most one process
    /// succeeds. Whoever asks has the call in hand, so that what this very process has let go is taken over, too.
    fn claim<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<ClaimResult, ToolError>>;

    /// The grants that could cover this tool, newest first.
    fn grants<'a>(&'a self, scope: &'a Scope, tool: &'a str) -> BoxFuture<'a, Result<Vec<Grant>, ToolError>>;

    /// Spends one use. `false` means that it ran out or expired meanwhile.
    fn spend<'a>(&'a self, scope: &'a Scope, grant: &'a GrantId) -> BoxFuture<'a, Result<bool, ToolError>>;

    /// Remembers a yes.
    fn remember<'a>(&'a self, scope: &'a Scope, grant: &'a Grant) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// What became of the attempt to take a waiting call over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimResult {
    /// It is this process's now.
    Claimed,
    /// A living process has it, or it waits no longer.
    NotClaimed,
    /// Its workspace lives on another node, which alone can carry it on: this one.
    OfNode(String),
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// Being looked at, aside.
    Preparing,
    /// Waits for an answer.
    Waiting,
    /// Acting.
    Executing,
    /// Over.
    Ended,
}

/// One addition to the journal: where a call stands now and what happened since the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which call.
    pub call: CallId,
    /// What the call is part of.
    pub via: Arc<Via>,
    /// Who asked for what; only in a call's first entry.
    pub opening: Option<Opening>,
    /// Where it stands.
    pub state: CallState,
    /// What it is about to do, or did, with staged changes.
    pub turn: Option<Turn>,
    /// The envelope, once there is one; the foreseen one while the call is executing.
    pub outcome: Option<Arc<Outcome>>,
    /// The whole output, when the envelope holds only head and tail of it.
    pub whole_output: Option<ToolOutput>,
    /// What happened since the last entry, in order.
    pub events: Vec<(Timestamp, CallEvent)>,
    /// The question whose answer ended the call, where a result was waited for from outside: the outcome goes to the caller's
    /// inbox in the same transaction, unless the caller's request is held.
    pub result_of: Option<u32>,
}

/// Who asked for what.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// The tool's own name; what was asked for when there is no such tool.
    pub tool: String,
    /// The exact input.
    pub input: Value,
    /// The call that this one comes from.
    pub parent: Option<CallId>,
    /// Who asked.
    pub caller: CallerRecord,
    /// What could happen without asking.
    pub auto_approve: AutoApprove,
    /// When it came in.
    pub at: Timestamp,
}

/// One call as the journal knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// Which call.
    pub call: CallId,
    /// Who asked for what.
    pub opening: Opening,
    /// Where it belongs.
    pub scope: Scope,
    /// Where it stands.
    pub state: CallState,
    /// What it did, or was about to do, with staged changes.
    pub turn: Option<Turn>,
    /// The envelope, once there is one; the foreseen one while the call is executing.
    pub outcome: Option<Outcome>,
}

impl CallRecord {
    /// The turn that takes back what this call did; `None` when it changed nothing.
    pub fn reversal(&self) -> Option<Turn> {
        let done = self.turn.as_ref()?;
        let changes = self.outcome.as_ref()?.changes.as_ref()?;
        let wanted = match done.direction {
            Direction::Commit => crate::ChangeState::Committed,
            Direction::Undo => crate::ChangeState::Undone,
        };
        let paths: Vec<String> =
            changes.0.iter().filter(|change| change.state == wanted).map(|change| change.path.clone()).collect();
        let turn = Turn { of: done.of.clone(), direction: done.direction.reversed(), paths: Some(paths) };
        turn.paths.as_ref().is_some_and(|paths| !paths.is_empty()).then_some(turn)
    }

    /// Whether it came to a good end and changed no files, so that none were ever kept of it.
    pub fn changed_nothing(&self) -> bool {
        let without_changes = |outcome: &Outcome| {
            matches!(outcome.end, End::Success { .. })
                && outcome.changes.as_ref().is_none_or(|changes| changes.0.is_empty())
        };
        self.turn.is_none() || self.outcome.as_ref().is_some_and(without_changes)
    }

    /// The call that goes on in the place of this one, where an approver gave another input.
    pub fn continued_as(&self) -> Option<&CallId> {
        match &self.outcome.as_ref()?.end {
            End::Pending { pending } if self.state == CallState::Ended => Some(&pending.pending_tool_call_id),
            End::Pending { .. }
            | End::Success { .. }
            | End::Error { .. }
            | End::Rejected { .. }
            | End::Cancelled { .. } => None,
        }
    }

    /// What the call staged, or the part of an earlier call's changes that it turned, as it stands now. What is no longer
    /// kept is not shown.
    pub async fn changes(&self, workbench: &dyn Workbench) -> Result<ChangeList, ToolError> {
        let Some(turn) = &self.turn else { return Ok(ChangeList::default()) };
        let mut changes = match workbench.show(&self.scope, &turn.of).await {
            Ok(changes) => changes,
            Err(error) if error.code == ErrorCode::Unavailable => ChangeList::default(),
            Err(error) => return Err(error),
        };
        if turn.of != self.call {
            let touched = self.outcome.as_ref().and_then(|outcome| outcome.changes.as_ref()).map(ChangeList::paths);
            let touched: HashSet<String> =
                touched.or_else(|| turn.paths.clone()).unwrap_or_default().into_iter().collect();
            changes.0.retain(|change| touched.contains(&change.path));
        }
        Ok(changes)
    }
}

/// The append-only record of every call.
pub trait Journal: Send + Sync {
    /// Records and returns once it would survive `kill -9`.
    fn record<'a>(&'a self, scope: &'a Scope, entry: Entry) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Records soon, in a batch. Waits only when the queue is full; nothing is dropped.
    fn record_later<'a>(&'a self, scope: &'a Scope, entry: Entry) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Returns once everything that was recorded before can be read, by other processes too.
    fn caught_up(&self) -> BoxFuture<'_, Result<(), ToolError>>;

    /// One call.
    fn find<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<Option<CallRecord>, ToolError>>;

    /// The whole output of a call.
    fn output<'a>(&'a self, scope: &'a Scope, call: &'a CallId)
    -> BoxFuture<'a, Result<Option<ToolOutput>, ToolError>>;

    /// Waits until the call has ended, at most this long. `None` means that it has not.
    fn ended<'a>(
        &'a self,
        scope: &'a Scope,
        call: &'a CallId,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Option<Outcome>, ToolError>>;

    /// Takes over the calls that were preparing or executing in a process that is gone.
    fn abandoned<'a>(&'a self, house: &'a HouseWide) -> BoxFuture<'a, Result<Vec<CallRecord>, ToolError>>;

    /// The calls that are preparing or executing in this process as far as the journal knows, but that nobody here has in
    /// hand.
    fn let_go<'a>(
        &'a self,
        house: &'a HouseWide,
        in_hand: &'a CallsInHand,
    ) -> BoxFuture<'a, Result<Vec<CallRecord>, ToolError>>;

    /// Returns when some process has asked for this running call to be stopped; otherwise never.
    fn stop_wanted<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, ()>;
}

/// Who is woken by a call: a page, a person's own program, a client that waits. It is told after the record, in this process
/// alone, and may be lost with it: what must follow from an outcome is part of the entry's transaction, never of this.
pub trait Delivery: Send + Sync {
    /// A question has opened. The call waits for this, so it only sets things going.
    fn asked<'a>(&'a self, _scope: &'a Scope, _question: &'a Question) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// A call has ended, or was handed back.
    fn ended<'a>(&'a self, scope: &'a Scope, outcome: &'a Outcome) -> BoxFuture<'a, ()>;
}
