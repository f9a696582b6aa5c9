//! What a gateway sends of calls and questions, read into the types that a house has for them.

use anyhow::Result;
use haft_runtime::{
    About, Answer, Answered, AutoApprove, AwaitedResult, CallEvent, CallId, CallRecord, CallState, CallerId,
    CallerRecord, CallerRef, ChangeList, Described, Effect, Evidence, Form, Isolation, Opening, Outcome, Question,
    QuestionAndAnswer, Scope, Source, TenantId, ToolOutput, Turn, Via, WorkspaceId,
};
use haft_store::CallRow;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::read;
use crate::{backend::ListedCall, show::timeline::Story};

/// Where a record of a gateway belongs. Which tenant that is, the gateway knows by the key.
pub(super) fn scope_of(workspace: Option<WorkspaceId>) -> Scope {
    Scope::of_record(TenantId::local(), workspace)
}

/// A call of a list, or of its story; what only one of them says is absent in the other.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteCall {
    #[serde(alias = "id")]
    pub(super) call_id: CallId,
    workspace: Option<WorkspaceId>,
    pub(super) tool: String,
    caller: String,
    source: Source,
    state: CallState,
    status: Option<String>,
    code: Option<String>,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
    duration_ms: Option<i64>,
    #[serde(default)]
    asked: bool,
    isolation: Option<Isolation>,
    caller_id: Option<CallerId>,
    #[serde(default)]
    via: Via,
    #[serde(default)]
    input: Value,
    parent: Option<CallId>,
    turn: Option<Turn>,
    outcome: Option<Outcome>,
}

impl RemoteCall {
    fn asked_by(&self) -> CallerRef {
        let id = self.caller_id.clone().unwrap_or_else(CallerId::owner);
        CallerRef { id, name: self.caller.clone() }
    }

    pub(super) fn row(&self) -> CallRow {
        CallRow {
            id: self.call_id.clone(),
            workspace: self.workspace.clone(),
            tool: self.tool.clone(),
            caller: self.caller.clone(),
            asked_by: self.asked_by(),
            via: self.via.clone(),
            source: self.source,
            state: self.state,
            status: self.status.clone(),
            code: self.code.clone(),
            started_at: self.started_at,
            finished_at: self.finished_at,
            duration_ms: self.duration_ms,
            asked: self.asked,
            isolation: self.isolation,
        }
    }

    pub(super) fn into_record(self) -> CallRecord {
        let caller = CallerRecord { who: self.asked_by(), source: self.source, via: self.via };
        let opening = Opening {
            tool: self.tool,
            input: self.input,
            parent: self.parent,
            caller,
            auto_approve: AutoApprove::default(),
            at: self.started_at,
        };
        let scope = scope_of(self.workspace);
        CallRecord { call: self.call_id, opening, scope, state: self.state, turn: self.turn, outcome: self.outcome }
    }

    pub(super) fn into_listed(self) -> ListedCall {
        ListedCall { row: self.row(), record: Some(self.into_record()) }
    }
}

/// Everything that is known of a call.
#[derive(Deserialize)]
pub(super) struct RemoteStory {
    #[serde(flatten)]
    pub(super) call: RemoteCall,
    question: Option<Question>,
    answer: Option<Answered>,
    pub(super) children: Vec<RemoteCall>,
    #[serde(default)]
    events: Vec<RecordedEvent>,
}

#[derive(Deserialize)]
struct RecordedEvent {
    cursor: i64,
    at: Timestamp,
    data: CallEvent,
}

impl RemoteStory {
    pub(super) fn into_story(self) -> Story {
        Story {
            record: self.call.into_record(),
            events: self.events.into_iter().map(|event| (event.cursor, event.at, event.data)).collect(),
            question: self.question,
            answer: self.answer,
            relatives: self.children.iter().map(RemoteCall::row).collect(),
        }
    }
}

/// A question as it is shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteCard {
    call_id: CallId,
    number: u32,
    tool: String,
    input: Value,
    effect: Effect,
    reason: String,
    nearly: Option<String>,
    asked_by: CallerRef,
    workspace: Option<WorkspaceId>,
    asked_at: Timestamp,
    expires_at: Timestamp,
    escalated_at: Option<Timestamp>,
    changes: Option<ChangeList>,
    output: Option<ToolOutput>,
    turn: Option<Turn>,
    isolation: Option<Isolation>,
    description: Option<Described>,
    form: Option<Form>,
    awaited: Option<AwaitedResult>,
    #[serde(flatten)]
    decided: Option<RemoteDecision>,
}

/// What was answered.
#[derive(Deserialize)]
pub(super) struct RemoteDecision {
    given: Answer,
    by: CallerRef,
    source: Source,
    at: Timestamp,
}

impl From<RemoteDecision> for Answered {
    fn from(RemoteDecision { given, by, source, at }: RemoteDecision) -> Self {
        Self { answer: given, by, source, at }
    }
}

impl RemoteCard {
    pub(super) fn into_question(self) -> Result<QuestionAndAnswer> {
        let about = match self {
            Self { changes: Some(changes), output: Some(output), turn: Some(turn), isolation, .. } => {
                About::Approval(Evidence::Staged { output, changes, turn, isolation })
            }
            Self { description: Some(described), .. } => About::Approval(Evidence::Plain(described)),
            Self { form: Some(form), .. } => About::Form(form),
            Self { awaited: Some(awaited), .. } => About::Result(awaited),
            Self { .. } => return read(Value::Null),
        };
        let question = Question {
            call: self.call_id,
            number: self.number,
            tool: self.tool,
            input: self.input,
            called_as: None,
            effect: self.effect,
            reason: self.reason,
            nearly: self.nearly,
            about,
            asked_by: self.asked_by,
            workspace: self.workspace,
            asked_at: self.asked_at,
            expires_at: self.expires_at,
            escalated_at: self.escalated_at,
        };
        Ok((question, self.decided.map(Answered::from)))
    }
}
