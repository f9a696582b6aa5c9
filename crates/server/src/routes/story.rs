//! Everything that is known of one call, and how it ended.

use axum::http::Method;
use haft_platform::Permission;
use haft_runtime::{
    CallEvent, CallId, CallRecord, CallState, CallerId, End, ErrorCode, Isolation, Outcome, Pending, Scope, Turn, Via,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::calls::{end_of, envelope, seen, status_of, wait_of};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonOf, JsonReply, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    let own = RouteAccess::Needs(Permission::CallsOwnRead);
    vec![
        route(Method::GET, "/api/calls/{id}/story", own, "Tells all about a call.", story),
        route(Method::GET, "/api/calls/{id}/outcome", own, "Waits for the end of a call.", outcome),
    ]
}

/// What a call was asked for and what became of it, as the journal has it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordView {
    input: Value,
    caller_id: CallerId,
    via: Via,
    parent: Option<CallId>,
    /// What it did, or was about to do, with staged changes.
    #[schemars(with = "Option<Value>")]
    turn: Option<Turn>,
    outcome: Option<Outcome>,
}

impl From<CallRecord> for RecordView {
    fn from(record: CallRecord) -> Self {
        let CallRecord { opening, turn, outcome, .. } = record;
        Self {
            input: opening.input,
            caller_id: opening.caller.who.id,
            via: opening.caller.via,
            parent: opening.parent,
            turn,
            outcome,
        }
    }
}

/// How much of it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct StoryQuery {
    /// Whether to leave out what happened to it, which may be long.
    #[serde(default)]
    brief: bool,
}

/// A call with its question, its answer, its outcome, what happened and what came of it, as `haft log show` tells it.
async fn story(asked: Asked<StoryQuery>) -> Result<JsonReply<Value>, Problem> {
    let (app, record) = (&asked.app, seen(&asked).await?);
    let (scope, call) = (record.scope.clone(), record.call.clone());
    let (question, answer) = app.questions.find(&scope, &call).await?.unzip();
    let mut story = json!({
        "callId": call, "tool": record.opening.tool, "caller": record.opening.caller.who.name,
        "source": record.opening.caller.source, "workspace": scope.workspace(), "state": record.state,
        "status": status_of(&record), "startedAt": record.opening.at,
        "isolation": record.outcome.as_ref().map(|outcome| outcome.isolation),
        "question": question, "answer": answer.flatten(),
        "children": app.platform.relatives_of(&scope, &call).await?,
    });
    if !asked.query.brief {
        let told =
            |(cursor, at, event): (i64, Timestamp, CallEvent)| json!({"cursor": cursor, "at": at, "data": event});
        story["events"] = app.platform.events_of(&scope, &call).await?.into_iter().map(told).collect();
    }
    if let (Value::Object(story), Value::Object(record)) = (&mut story, json!(RecordView::from(record))) {
        story.extend(record);
    }
    Ok(JsonReply::ok(app.redactor.value(&story)))
}

/// How long, and how much.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct OutcomeQuery {
    /// How many seconds to wait for the end; 0 by default, 600 at most.
    wait: Option<u64>,
    /// Whether to give the whole of a long result.
    #[serde(default)]
    whole: bool,
}

/// The envelope of a call: 200 when it ended, 202 while it waits for somebody, 503 with `BUSY` while it runs.
async fn outcome(asked: Asked<OutcomeQuery>) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let (app, record) = (&asked.app, seen(&asked).await?);
    let wait = wait_of(Some(asked.query.wait.unwrap_or(0)))?;
    let (call, ended) = end_of(app, &record.scope, &record.call, wait).await?;
    let mut outcome = match ended {
        Some(outcome) => outcome,
        None => {
            let waiting = waiting(app, &record.scope, &call).await?;
            waiting.ok_or_else(|| Problem::new(ErrorCode::Busy, format!("{call} has not ended yet; ask again")))?
        }
    };
    if asked.query.whole && matches!(&outcome.end, End::Success { result } if result.is_shortened()) {
        let whole = app.journal.output(&record.scope, &outcome.tool_call_id).await?;
        if let Some(whole) = whole.filter(|whole| !whole.is_shortened()) {
            outcome = outcome.with_whole(whole);
        }
    }
    Ok(envelope(app, &outcome))
}

/// The envelope of a call that waits for an answer. It has one of its own only once its caller was told to come back, which a
/// server that died never did.
async fn waiting(app: &App, scope: &Scope, call: &CallId) -> Result<Option<Outcome>, Problem> {
    let record = app.journal.find(scope, call).await?.filter(|record| record.state == CallState::Waiting);
    let Some(record) = record else { return Ok(None) };
    if record.outcome.is_some() {
        return Ok(record.outcome);
    }
    let Some((question, None)) = app.questions.find(scope, call).await? else { return Ok(None) };
    let pending = Pending { pending_tool_call_id: record.call.clone(), expires_at: question.expires_at };
    Ok(Some(Outcome {
        end: End::Pending { pending },
        tool_call_id: record.call,
        tool: record.opening.tool,
        changes: None,
        undoable: false,
        approved_by: None,
        grant: None,
        isolation: Isolation::None,
        attempts: 0,
        cached: false,
        started_at: record.opening.at,
        finished_at: None,
        execution_time_ms: 0,
    }))
}
