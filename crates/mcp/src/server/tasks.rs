//! Calls that wait, as tasks: the journal is what a task is kept in, so that it outlives this process.

use haft_runtime::{CallId, CallRecord, CallState, End, QuestionAndAnswer, ToolError};
use jiff::Timestamp;
use rmcp::{
    ErrorData, RoleServer,
    model::{DetailedTask, GetTaskResult, InputResponses, Task, TaskPayload, TaskStatus},
    service::RequestContext,
};
use serde_json::Value;

use super::{
    answer,
    asking::{self, ClientReply},
    callers::ClientRequest,
};

/// How long an unanswered question stays open; after that a task is only a part of the history.
const LASTS_MS: u64 = 24 * 3600 * 1000;
/// How often a client should look again.
const LOOK_AGAIN_MS: u64 = 1000;

/// A call that has just put a question.
pub(super) fn waiting(call: &CallId, since: Timestamp, asked: Timestamp) -> Task {
    task(call, since, asked)
        .with_status_message(format!("waits for a person's answer: `haft approve {call}` or `haft approvals`"))
}

fn task(call: &CallId, since: Timestamp, changed: Timestamp) -> Task {
    let task = Task::new(call.as_str(), TaskStatus::Working, since.to_string(), changed.to_string());
    task.with_ttl_ms(LASTS_MS).with_poll_interval_ms(LOOK_AGAIN_MS)
}

/// How the call of a task stands.
pub(super) async fn look(
    server: &ClientRequest,
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<GetTaskResult, ErrorData> {
    let ground = &server.ground;
    let (call, record) = known(server, id).await?;
    let since = record.opening.at;
    if record.state == CallState::Ended {
        let outcome = record.outcome.ok_or_else(|| unknown(id))?;
        let task = task(&call, since, outcome.finished_at.unwrap_or(since));
        if matches!(outcome.end, End::Cancelled { .. }) {
            return Ok(GetTaskResult::new(DetailedTask::new(task, TaskPayload::Cancelled)));
        }
        let result = match serde_json::to_value(answer::result(server, outcome).await) {
            Ok(Value::Object(result)) => result,
            Ok(_) | Err(_) => return Err(ErrorData::internal_error(format!("{id} cannot be told"), None)),
        };
        return Ok(GetTaskResult::new(DetailedTask::new(task, TaskPayload::Completed { result })));
    }
    let (task, open) = match last(server, &call).await? {
        None => (task(&call, since, since), None),
        Some((_, Some(answered))) => (task(&call, since, answered.at), None),
        Some((question, None)) => (waiting(&call, since, question.asked_at), Some(question)),
    };
    let shows_forms = context.client_capabilities().is_some_and(|able| asking::shows_forms(&able));
    let asked = open.as_ref().filter(|_| shows_forms);
    let payload = match asked.and_then(|question| asking::inputs(ground, question, None)) {
        Some(input_requests) => TaskPayload::InputRequired { input_requests },
        None => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Takes what the person said; how the call goes on is in the journal, where the client looks for it.
pub(super) async fn answer(server: &ClientRequest, id: &str, inputs: &InputResponses) -> Result<(), ErrorData> {
    let (call, _) = known(server, id).await?;
    let Some((question, None)) = last(server, &call).await? else { return Ok(()) };
    let Some(given) = inputs.get(asking::name(&question)) else { return Ok(()) };
    match asking::said(&question, given) {
        ClientReply::Answer(answer) => drop(server.answer(&question, answer, None).await.map_err(internal)?),
        ClientReply::Wrong(why) => return Err(ErrorData::invalid_params(why, None)),
        ClientReply::PutAway | ClientReply::Nothing => {}
    }
    Ok(())
}

/// What the call asked last, open or answered.
async fn last(server: &ClientRequest, call: &CallId) -> Result<Option<QuestionAndAnswer>, ErrorData> {
    server.ground.questions.find(&server.caller.scope, call).await.map_err(internal)
}

/// Withdraws the question of a task, or stops what it does.
pub(super) async fn cancel(server: &ClientRequest, id: &str) -> Result<(), ErrorData> {
    let (call, _) = known(server, id).await?;
    server.cancel(&call).await.map_err(internal)
}

/// The call of a task, and what is known of it.
async fn known(server: &ClientRequest, id: &str) -> Result<(CallId, CallRecord), ErrorData> {
    let call = CallId::parse(id).ok_or_else(|| unknown(id))?;
    let found = server.ground.journal.find(&server.caller.scope, &call).await.map_err(internal)?;
    Ok((call, found.ok_or_else(|| unknown(id))?))
}

fn unknown(id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no task `{id}`"), None)
}

fn internal(error: ToolError) -> ErrorData {
    ErrorData::internal_error(error.message, None)
}
