//! Calls, questions and grants to write, and stores to write them to.

use std::sync::Arc;

use haft_runtime::{
    About, Answer, AnswerReceipt, Answered, AutoApprove, Bounds, CallEvent, CallId, CallState, Caller, Described,
    Effect, End, Entry, Evidence, Grant, HouseWide, Isolation, Opening, Outcome, Pending, PermittedAnswer, Question,
    QuestionId, Questions, Scope, Source, ToolError, ToolOutput, Turn, Within, WorkspaceId, WrittenBounds,
};
use haft_store::Store;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tempfile::TempDir;

use crate::database;

/// A new store in a folder that goes away with the test.
pub(crate) async fn new_store() -> (TempDir, Store) {
    let folder = new_folder().await;
    let store = open(&folder).await;
    (folder, store)
}

/// A folder for a new store.
pub(crate) async fn new_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    database::create(folder.path()).await;
    folder
}

/// One more store on the same folder, as another process would have it.
pub(crate) async fn open(folder: &TempDir) -> Store {
    Store::open(&folder.path().join("data"), database::options(folder.path())).await.unwrap()
}

pub(crate) fn scope() -> Scope {
    Scope::local("w")
}

/// The workspace of [`scope`], for lists.
pub(crate) fn here() -> Within {
    Within::Only(WorkspaceId::new("w"))
}

/// The right to look at everything.
pub(crate) fn house() -> HouseWide {
    HouseWide::of_house(Within::Everything)
}

pub(crate) fn anna() -> Caller {
    Caller::owner("anna", scope(), Source::Cli)
}

/// Now, as exactly as the database keeps it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap()
}

pub(crate) fn opened(state: CallState) -> Entry {
    let input = json!({"path": "a.txt"});
    let opening = Opening {
        tool: "write_file".into(),
        input: input.clone(),
        parent: None,
        caller: anna().record(),
        auto_approve: AutoApprove::Reads,
        at: now(),
    };
    Entry {
        call: CallId::new(),
        via: Arc::default(),
        opening: Some(opening),
        state,
        turn: None,
        outcome: None,
        whole_output: None,
        result_of: None,
        events: vec![(
            now(),
            CallEvent::Called { tool: "write_file".into(), called_as: None, remove_by: None, args: input, test: false },
        )],
    }
}

pub(crate) fn outcome(call: &CallId, end: End) -> Arc<Outcome> {
    Arc::new(Outcome {
        end,
        tool_call_id: call.clone(),
        tool: "write_file".into(),
        changes: None,
        undoable: false,
        approved_by: None,
        grant: None,
        isolation: Isolation::None,
        attempts: 1,
        cached: false,
        started_at: now(),
        finished_at: Some(now()),
        execution_time_ms: 7,
    })
}

pub(crate) fn success(call: &CallId, content: &str) -> Arc<Outcome> {
    let result = ToolOutput { content: content.into(), structured: json!({"n": 1}).into(), ..ToolOutput::default() };
    outcome(call, End::Success { result })
}

pub(crate) fn pending(call: &CallId) -> Arc<Outcome> {
    let pending = Pending { pending_tool_call_id: call.clone(), expires_at: now() };
    outcome(call, End::Pending { pending })
}

pub(crate) fn later(call: &CallId, state: CallState) -> Entry {
    Entry {
        call: call.clone(),
        via: Arc::default(),
        opening: None,
        state,
        turn: None,
        outcome: None,
        whole_output: None,
        result_of: None,
        events: vec![(now(), CallEvent::Started { attempt: 1 })],
    }
}

pub(crate) fn ended(call: &CallId) -> Entry {
    Entry {
        outcome: Some(success(call, "done")),
        turn: Some(Turn::commit(call.clone())),
        events: vec![(now(), CallEvent::Completed { execution_time_ms: 7, late: false })],
        ..later(call, CallState::Ended)
    }
}

pub(crate) fn question(call: &CallId) -> Question {
    Question {
        call: call.clone(),
        number: 1,
        tool: "write_file".into(),
        input: json!({"path": "a.txt"}),
        called_as: None,
        effect: Effect::Write,
        reason: "it writes".into(),
        nearly: None,
        about: About::Approval(Evidence::Plain(Described::default())),
        asked_by: anna().who(),
        workspace: scope().workspace().cloned(),
        asked_at: now(),
        expires_at: now() + SignedDuration::from_hours(24),
        escalated_at: None,
    }
}

/// What the first question of a call is answered by.
pub(crate) fn first(call: &CallId) -> QuestionId {
    QuestionId { call: call.clone(), number: 1 }
}

pub(crate) fn answered(by: &str) -> Answered {
    Answered {
        answer: Answer::Approve { paths: None },
        by: Caller::owner(by, scope(), Source::Cli).who(),
        source: Source::Cli,
        at: now(),
    }
}

/// Answers without a guard.
pub(crate) trait Answering {
    async fn reply(
        &self,
        scope: &Scope,
        question: &QuestionId,
        answered: &Answered,
    ) -> Result<AnswerReceipt, ToolError>;
}

impl Answering for Store {
    async fn reply(
        &self,
        scope: &Scope,
        question: &QuestionId,
        answered: &Answered,
    ) -> Result<AnswerReceipt, ToolError> {
        Questions::answer(self, scope, question, &PermittedAnswer::unchecked(answered.clone())).await
    }
}

pub(crate) fn grant(uses_left: Option<u32>) -> Grant {
    let bounds = WrittenBounds { max_files: Some(3), ..WrittenBounds::default() };
    Grant { uses_left, created_at: now(), ..Grant::new("write_file", Bounds::try_from(bounds).unwrap()) }
}
