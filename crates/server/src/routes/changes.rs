//! What a call changed or would change: looking at it, applying it, dropping it, taking it back.

use std::time::Duration;

use axum::http::Method;
use haft_platform::Permission;
use haft_runtime::{
    Answer, CallId, CallRecord, CallRequest, Caller, ChangeList, Direction, End, ErrorCode, Evidence, Outcome,
    QuestionAndAnswer, ToolOutput,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    approvals,
    calls::{answered, envelope, seen, started_before, status_of, told_again},
};
use crate::{
    problem::Problem,
    route::{Asked, JsonOf, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![
        route(Method::GET, "/api/calls/{id}/changes", Needs(Permission::CallsOwnRead), "Shows its changes.", show),
        route(Method::POST, "/api/calls/{id}/commit", Needs(Permission::CallsOwnRead), "Applies its changes.", commit),
        route(Method::POST, "/api/calls/{id}/discard", Needs(Permission::CallsOwnRead), "Drops them.", discard),
        route(Method::POST, "/api/calls/{id}/undo", Needs(Permission::ToolsExecute), "Takes them back.", undo),
        route(Method::POST, "/api/calls/{id}/redo", Needs(Permission::ToolsExecute), "Brings them back.", redo),
    ]
}

/// How long what is done to the changes of a call may take.
const WITHIN: Duration = Duration::from_secs(60);

/// What a call changed, and what the process that it ran said.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangesView {
    call_id: CallId,
    /// How it ended, or `pending`.
    status: &'static str,
    changes: ChangeList,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

/// Everything that a call changed, with diffs and where each change stands now.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<JsonOf<ChangesView>>, Problem> {
    let (app, record) = (&asked.app, seen(&asked).await?);
    let caller = Caller { scope: record.scope.clone(), ..asked.caller()?.clone() };
    // The folder is opened by whoever first looks for a tool there.
    app.catalog.list(&caller).await?;
    let changes = record.changes(&*app.workbench).await?;
    let question = app.questions.find(&record.scope, &record.call).await?;
    let output = output_of(&asked, &record, question.as_ref()).await?;
    let process = output.as_ref().and_then(ToolOutput::process);
    let view = ChangesView {
        status: status_of(&record),
        call_id: record.call,
        changes,
        exit_code: process.map(|(exit_code, _)| exit_code),
        output: process.map(|(_, output)| output.to_owned()),
    };
    Ok(JsonReply::ok(JsonOf::new(app.redactor.value(&json!(view)))))
}

/// What the call said: as its evidence has it while it waits, as its outcome does after.
async fn output_of(
    asked: &Asked,
    record: &CallRecord,
    question: Option<&QuestionAndAnswer>,
) -> Result<Option<ToolOutput>, Problem> {
    if let Some((question, None)) = question {
        return Ok(match question.evidence() {
            Some(Evidence::Staged { output, .. }) => Some(output.clone()),
            Some(Evidence::Plain(_)) | None => None,
        });
    }
    Ok(asked.app.journal.output(&record.scope, &record.call).await?)
}

/// Which paths; all when absent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PathsBody {
    paths: Option<Vec<String>>,
}

/// What becomes of staged changes.
enum StagedDecision {
    /// They are applied; some paths, or all.
    Commit(Option<Vec<String>>),
    /// They are dropped.
    Discard,
}

/// Applies what is staged, or some of it. While the call asks, this is a yes to those paths.
pub(super) async fn commit(asked: Asked<NoFields, PathsBody>) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let paths = asked.body.paths.clone();
    decide(&asked, StagedDecision::Commit(paths)).await
}

/// Drops what is staged. While the call asks, this is a no.
pub(super) async fn discard(asked: Asked) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    decide(&asked, StagedDecision::Discard).await
}

/// Answers the question of a call, or, where it asks nothing, does the same by a call of its own. Whoever may decide says by
/// this request that they want it.
async fn decide<B>(
    asked: &Asked<NoFields, B>,
    decision: StagedDecision,
) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let (app, record) = (&asked.app, seen(asked).await?);
    let caller = Caller { scope: record.scope.clone(), ..asked.caller()?.clone() };
    if let Some((question, None)) = app.questions.find(&record.scope, &record.call).await? {
        let answer = match decision {
            StagedDecision::Commit(paths) => approvals::yes_to(app, &question, &record.scope, paths).await?,
            StagedDecision::Discard => approvals::no_to(&question, None),
        };
        let given = approvals::given(app, caller, question, answer).await?;
        return match given.outcome {
            Some(outcome) => Ok(envelope(app, &outcome)),
            None => told_again(app, &record.scope, &record.call, Duration::ZERO).await,
        };
    }
    let (tool, input) = match decision {
        StagedDecision::Commit(paths) => ("commit_call", json!({"callId": record.call, "paths": paths})),
        StagedDecision::Discard => ("discard_call", json!({"callId": record.call})),
    };
    let outcome = call(asked, &record, (tool, &input.to_string()), async { Ok(input) }).await?;
    let End::Pending { pending } = &outcome.end else { return answered(app, &outcome) };
    let (question, caller) = approvals::open(app, &caller, pending.pending_tool_call_id.as_str()).await?;
    match approvals::given(app, caller, question, Answer::Approve { paths: None }).await {
        Ok(given) => Ok(envelope(app, &given.outcome.unwrap_or(outcome))),
        // Somebody else has to say yes.
        Err(problem) if problem.error().code == ErrorCode::Forbidden => Ok(envelope(app, &outcome)),
        Err(problem) => Err(problem),
    }
}

/// Takes back what a call changed, by a call of its own.
pub(super) async fn undo(asked: Asked) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let record = seen(&asked).await?;
    let input = async { Ok(json!({"callId": record.call})) };
    let outcome = call(&asked, &record, ("undo_call", "undo"), input).await?;
    answered(&asked.app, &outcome)
}

/// Brings back what an undo took away: it is the undo of the undo.
pub(super) async fn redo(asked: Asked) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let record = seen(&asked).await?;
    let input = async {
        let of = record.turn.as_ref().map_or(&record.call, |turn| &turn.of);
        let last = asked.app.platform.last_turn_of(&record.scope, of).await?;
        let undo = last.filter(|last| last.turn.as_ref().is_some_and(|turn| turn.direction == Direction::Undo));
        let Some(undo) = undo else {
            let message = format!("{} has not been undone, so there is nothing to bring back", record.call);
            return Err(Problem::new(ErrorCode::Conflict, message));
        };
        Ok(json!({"callId": undo.call}))
    };
    let outcome = call(&asked, &record, ("undo_call", "redo"), input).await?;
    answered(&asked.app, &outcome)
}

/// Calls a tool about a call, where that call worked. What it is given is looked for only where the same request has not
/// been made before: afterwards it would be something else.
async fn call<B>(
    asked: &Asked<NoFields, B>,
    record: &CallRecord,
    (tool, wish): (&str, &str),
    input: impl Future<Output = Result<Value, Problem>>,
) -> Result<Outcome, Problem> {
    let caller = Caller { scope: record.scope.clone(), ..asked.caller()?.clone() };
    let mut request = CallRequest::new(caller, tool, Value::Null);
    request.wait = Duration::ZERO;
    request.timeout = Some(WITHIN);
    let sent = || format!("{wish} {}", record.call);
    let _in_hand = asked.app.pipeline.in_hand().hold(&request.id);
    if let Some(earlier) = started_before(asked, &request, sent).await? {
        let ended = asked.app.journal.ended(&record.scope, &earlier, WITHIN).await?;
        return ended.ok_or_else(|| Problem::new(ErrorCode::Busy, "this was begun before and goes on; ask again"));
    }
    request.input = input.await?;
    Ok(asked.app.pipeline.call(request).await)
}
