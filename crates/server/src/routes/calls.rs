//! Calls: starting them, and reading what became of them.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::http::{Method, StatusCode};
use haft_platform::{CallFilter, CallOrigin, CallRow, Permission};
use haft_runtime::{
    Answer, CallId, CallInHand, CallRecord, CallRequest, CallState, Caller, CallerRef, End, ErrorCode, Isolation,
    Outcome, Scope, Source, Submission, Via, Within, WorkspaceId,
    tools::{ResultPart, ResultWindow, read_result},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{ListPage, approvals, story::RecordView};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonOf, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![
        route(Method::POST, "/api/tools/{slug}/calls", Needs(Permission::ToolsExecute), "Calls a tool.", start),
        route(Method::GET, "/api/calls", Needs(Permission::CallsOwnRead), "Lists calls, newest first.", list),
        route(Method::GET, "/api/calls/{id}", Needs(Permission::CallsOwnRead), "Shows a call.", show),
        route(Method::GET, "/api/calls/{id}/output", Needs(Permission::CallsOwnRead), "Reads its result.", output),
        route(Method::POST, "/api/calls/{id}/cancel", Needs(Permission::ToolsExecute), "Stops a call.", cancel),
    ]
}

/// How long an answer from outside is waited for by default.
const WAIT: u64 = 60;
/// The longest.
const LONGEST_WAIT: u64 = 600;

/// How often it is looked whether the journal knows a call that goes on by itself.
const BEGINS: Duration = Duration::from_millis(50);

/// How long a call may take to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// A call to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StartBody {
    /// What the tool is given.
    #[serde(default)]
    input: Map<String, Value>,
    /// How many seconds to wait for an answer from outside; 60 by default, 600 at most.
    wait: Option<u64>,
    /// The workspace to work in; that of the key by default.
    workspace: Option<String>,
    /// The session that it belongs to.
    session: Option<String>,
    /// The run that it belongs to.
    run: Option<String>,
    /// The space that it belongs to.
    space: Option<String>,
    /// How long the work may take.
    timeout_ms: Option<u64>,
    /// Whether to work anew, also where a cached result is still valid.
    #[serde(default)]
    no_cache: bool,
    /// Whether to answer as soon as the call has begun, with its id; it goes on by itself and waits for nobody.
    #[serde(default)]
    detach: bool,
}

/// Calls a tool: 200 with the envelope when it ended, 202 while it waits for somebody.
pub(super) async fn start(asked: Asked<NoFields, StartBody>) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let (app, body) = (&asked.app, &asked.body);
    let caller = placed(app, asked.caller()?.clone(), body).await?;
    let tool = app.catalog.find(&caller, asked.part("slug")?).await?;
    app.guard.permit(&caller, tool.spec()).await?;
    app.platform.refuse_beyond_quota(&caller.scope).await?;
    let mut request = CallRequest::new(caller, asked.part("slug")?, Value::Object(body.input.clone()));
    request.wait = if body.detach { Duration::ZERO } else { wait_of(body.wait)? };
    let in_hand = app.pipeline.in_hand().hold(&request.id);
    match started_before(&asked, &request, || format!("{:?}", asked.body)).await? {
        Some(earlier) if body.detach => return Ok(begun(&earlier, &request.tool)),
        Some(earlier) => return told_again(app, &request.caller.scope, &earlier, request.wait).await,
        None => {}
    }
    request.timeout = body.timeout_ms.map(Duration::from_millis);
    request.fresh = body.no_cache;
    request.hand_back = app.stop.clone();
    if body.detach {
        return detached(app, request, in_hand).await;
    }
    answered(app, &app.pipeline.call(request).await)
}

/// Lets a call go on by itself. The answer is its envelope where it ended first, else its id once the journal knows it.
async fn detached(
    app: &Arc<App>,
    request: CallRequest,
    in_hand: CallInHand,
) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let (scope, call, tool) = (request.caller.scope.clone(), request.id.clone(), request.tool.clone());
    let mut calling = app.carry_on({
        let app = Arc::clone(app);
        async move {
            // When the server ends it has as long as a call whose request is held, and is then cancelled like that.
            let (_in_hand, _under_way) = (in_hand, app.requests.each.token());
            let cancel = request.cancel.clone();
            let mut calling = pin!(app.pipeline.call(request));
            tokio::select! {
                outcome = &mut calling => outcome,
                () = app.requests.cut.cancelled() => {
                    cancel.cancel();
                    calling.await
                }
            }
        }
    });
    let broke_off = |_| Problem::new(ErrorCode::Internal, "the call broke off by a fault in haft");
    loop {
        match timeout(BEGINS, &mut calling).await {
            Ok(ended) => return answered(app, &ended.map_err(broke_off)?),
            Err(_) if app.journal.find(&scope, &call).await?.is_some() => return Ok(begun(&call, &tool)),
            Err(_) => {}
        }
    }
}

/// That a call has begun; `/api/calls/{id}/outcome` waits for its end.
fn begun(call: &CallId, tool: &str) -> JsonReply<JsonOf<Outcome>> {
    let begun = json!({"status": "pending", "tool_call_id": call, "tool": tool});
    JsonReply::with(StatusCode::ACCEPTED, JsonOf::new(begun))
}

/// What is sent of a call that was made: its envelope, or that the journal could not be written, whatever became of it.
pub(super) fn answered(app: &App, outcome: &Outcome) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    match outcome.end.error() {
        Some(error) if error.code == ErrorCode::StoreUnavailable => {
            Err(Problem::from(error.clone()).with("callId", json!(outcome.tool_call_id)))
        }
        Some(_) | None => Ok(envelope(app, outcome)),
    }
}

/// How long an answer from outside is waited for.
pub(super) fn wait_of(seconds: Option<u64>) -> Result<Duration, Problem> {
    match seconds.unwrap_or(WAIT) {
        seconds @ 0..=LONGEST_WAIT => Ok(Duration::from_secs(seconds)),
        _ => Err(Problem::mistake(format!("`wait` is a number of seconds from 0 to {LONGEST_WAIT}"))),
    }
}

/// The call that the same request has started before, where it names a key for that. The new one is in hand.
pub(super) async fn started_before<Q, B>(
    asked: &Asked<Q, B>,
    request: &CallRequest,
    sent: impl FnOnce() -> String,
) -> Result<Option<CallId>, Problem> {
    match key_of(asked)? {
        Some(key) => started_by_key(&asked.app, key, request, &sent()).await,
        None => Ok(None),
    }
}

/// The key by which a request is known again.
pub(super) fn key_of<Q, B>(asked: &Asked<Q, B>) -> Result<Option<&str>, Problem> {
    let key = asked.headers.get("idempotency-key");
    key.map(|key| key.to_str().map_err(|_| Problem::mistake("the Idempotency-Key is no text"))).transpose()
}

/// The call that a request with this key has started before.
pub(super) async fn started_by_key(
    app: &App,
    key: &str,
    request: &CallRequest,
    sent: &str,
) -> Result<Option<CallId>, Problem> {
    let sent = format!("{}\n{:?}\n{sent}", request.tool, request.caller.scope);
    let new = (&request.id, app.pipeline.in_hand());
    Ok(app.platform.started_before(&request.caller, (key, &sent), new).await?)
}

/// What became of a call that was started before: its envelope, or that it still waits.
pub(super) async fn told_again(
    app: &App,
    scope: &Scope,
    call: &CallId,
    wait: Duration,
) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let (call, ended) = end_of(app, scope, call, wait).await?;
    if let Some(outcome) = ended {
        return Ok(envelope(app, &outcome));
    }
    // While it works, its envelope is only what it will be if nothing goes wrong.
    let record = app.journal.find(scope, &call).await?;
    let stands = record.filter(|record| matches!(record.state, CallState::Waiting | CallState::Ended));
    match stands.and_then(|record| record.outcome) {
        Some(outcome) => Ok(envelope(app, &outcome)),
        None => Err(Problem::new(ErrorCode::Busy, "the call has just begun; ask again")),
    }
}

/// How a call ended, and which one that was: where somebody gave another input, the call that goes on in its place.
pub(super) async fn end_of(
    app: &App,
    scope: &Scope,
    call: &CallId,
    wait: Duration,
) -> Result<(CallId, Option<Outcome>), Problem> {
    let mut call = call.clone();
    while let Some(outcome) = app.journal.ended(scope, &call, wait).await? {
        match &outcome.end {
            End::Pending { pending } if pending.pending_tool_call_id != call => {
                call = pending.pending_tool_call_id.clone();
            }
            End::Pending { .. }
            | End::Success { .. }
            | End::Error { .. }
            | End::Rejected { .. }
            | End::Cancelled { .. } => return Ok((call, Some(outcome))),
        }
    }
    Ok((call, None))
}

/// The caller where the call shall work, and as part of what.
async fn placed(app: &App, caller: Caller, body: &StartBody) -> Result<Caller, Problem> {
    let mut caller = match &body.workspace {
        Some(name) => app.platform.in_workspace(caller, name).await?,
        None => caller,
    };
    if let Some(session) = &body.session {
        caller.via.session = Some(app.platform.seen_session(&caller, session).await?.id);
    }
    caller.via.run.clone_from(&body.run);
    caller.via.space.clone_from(&body.space);
    Ok(caller)
}

/// An envelope as it is sent: 202 while it waits.
pub(super) fn envelope(app: &App, outcome: &Outcome) -> JsonReply<JsonOf<Outcome>> {
    let status = if matches!(outcome.end, End::Pending { .. }) { StatusCode::ACCEPTED } else { StatusCode::OK };
    JsonReply::with(status, JsonOf::new(app.redactor.known_out_of(json!(outcome))))
}

/// Which calls.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct CallsQuery {
    limit: Option<u32>,
    after: Option<String>,
    tool: Option<String>,
    status: Option<String>,
    /// Only calls through this door: `api`, `mcp`, `cli`, `web`, …
    #[schemars(with = "Option<String>")]
    source: Option<Source>,
    workspace: Option<String>,
    session: Option<String>,
    agent: Option<String>,
    space: Option<String>,
    /// Only calls since this time.
    since: Option<String>,
    /// Whether each is told with its input, its outcome and what it did with changes.
    #[serde(default)]
    details: bool,
}

/// A call in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallItem {
    call_id: CallId,
    workspace: Option<WorkspaceId>,
    tool: String,
    /// What whoever asked is called.
    caller: String,
    /// Through which door.
    source: Source,
    state: CallState,
    /// How it ended, or `pending`; `null` while it runs.
    status: Option<String>,
    /// The error's code, where there is one.
    code: Option<String>,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
    /// How long the work took.
    duration_ms: Option<i64>,
    /// Whether somebody was asked about it.
    asked: bool,
    isolation: Option<Isolation>,
    #[serde(flatten)]
    details: Option<RecordView>,
}

impl From<CallRow> for CallItem {
    fn from(row: CallRow) -> Self {
        Self {
            call_id: row.id,
            workspace: row.workspace,
            tool: row.tool,
            caller: row.caller,
            source: row.source,
            state: row.state,
            status: row.status,
            code: row.code,
            started_at: row.started_at,
            finished_at: row.finished_at,
            duration_ms: row.duration_ms,
            asked: row.asked,
            isolation: row.isolation,
            details: None,
        }
    }
}

/// The calls, newest first: everybody's, or one's own.
pub(super) async fn list(asked: Asked<CallsQuery>) -> Result<JsonReply<ListPage<JsonOf<CallItem>>>, Problem> {
    let (app, caller, query) = (&asked.app, asked.caller()?, &asked.query);
    let page = super::PageQuery { limit: query.limit, after: query.after.clone() };
    let before = query
        .after
        .as_ref()
        .map(|after| CallId::parse(after).ok_or_else(|| Problem::mistake("`after` is no cursor of this list")));
    let since = query.since.as_ref().map(|since| since.parse().map_err(|_| Problem::mistake("`since` is no time")));
    let filter = CallFilter {
        tool: query.tool.clone(),
        status: query.status.clone(),
        state: None,
        session: query.session.clone(),
        since: since.transpose()?,
        before: before.transpose()?,
        limit: page.limit()?,
    };
    let origin = CallOrigin { source: query.source, agent: query.agent.clone(), space: query.space.clone() };
    let within = match &query.workspace {
        Some(name) => {
            let there = app.platform.in_workspace(caller.clone(), name).await?;
            there.scope.workspace().map_or(Within::Everything, |workspace| Within::Only(workspace.clone()))
        }
        None => Within::Everything,
    };
    let (rows, next) = app.platform.calls(caller, (&within, &origin), &filter).await?;
    let mut items = Vec::new();
    for row in rows {
        let record = if query.details { app.journal.find(&caller.scope, &row.id).await? } else { None };
        let item = CallItem { details: record.map(RecordView::from), ..CallItem::from(row) };
        let told = json!(item);
        items.push(JsonOf::new(if query.details { app.redactor.value(&told) } else { told }));
    }
    Ok(JsonReply::ok(ListPage { items, next: next.map(|last| last.to_string()) }))
}

/// A call with its input, its question and its outcome.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallView {
    call_id: CallId,
    /// The call that went on in its place, where somebody gave it another input.
    #[serde(skip_serializing_if = "Option::is_none")]
    continued_as: Option<CallId>,
    tool: String,
    input: Value,
    caller: CallerRef,
    /// Through which door.
    source: Source,
    /// What it is part of.
    via: Via,
    /// Whether it only tried a tool.
    test: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<WorkspaceId>,
    /// The call that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<CallId>,
    state: CallState,
    /// How it ended, or `pending`.
    status: &'static str,
    started_at: Timestamp,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<WaitingQuestion>,
    /// The node that carries it on once it is there again.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    /// A result that came after its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<LateView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

/// What a call waits for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WaitingQuestion {
    kind: &'static str,
    number: u32,
    expires_at: Timestamp,
    reason: String,
}

/// A result that came after the end.
#[derive(Debug, Serialize, JsonSchema)]
struct LateView {
    given: Submission,
    by: CallerRef,
    at: Timestamp,
}

/// One call with its input, its question and its outcome.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<JsonOf<CallView>>, Problem> {
    let first = seen(&asked).await?;
    let (call, continued_as) = (first.call.clone(), first.continued_as().cloned());
    let record = last_of(&asked.app, first.clone()).await?;
    let question = asked.app.questions.find(&record.scope, &record.call).await?;
    let open = question.filter(|(_, answer)| answer.is_none()).map(|(question, _)| question);
    let late = asked.app.platform.late_result(&record.scope, &record.call).await?;
    let waiting_for = match record.state {
        CallState::Ended => None,
        CallState::Preparing | CallState::Waiting | CallState::Executing => {
            asked.app.platform.waiting_for_node(&record.scope, &record.call).await?
        }
    };
    let question = open.map(|question| WaitingQuestion {
        kind: question.kind(),
        number: question.number,
        expires_at: question.expires_at,
        reason: question.reason,
    });
    let status = status_of(&record);
    let view = CallView {
        call_id: call,
        continued_as,
        tool: first.opening.tool,
        input: first.opening.input,
        caller: first.opening.caller.who,
        source: first.opening.caller.source,
        test: first.opening.caller.via.trial.is_some(),
        via: first.opening.caller.via,
        workspace: record.scope.workspace().cloned(),
        parent: first.opening.parent,
        state: record.state,
        status,
        started_at: first.opening.at,
        question,
        waiting_for: waiting_for.map(|node| format!("node {node}")),
        late: late.map(|late| LateView { given: late.submission, by: late.by, at: late.at }),
        outcome: record.outcome,
    };
    Ok(JsonReply::ok(JsonOf::new(asked.app.redactor.value(&json!(view)))))
}

/// The call that goes on in the place of this one, where somebody gave it another input.
async fn last_of(app: &App, mut record: CallRecord) -> Result<CallRecord, Problem> {
    while let Some(next) = record.continued_as() {
        let Some(next) = app.journal.find(&record.scope, next).await? else { break };
        record = next;
    }
    Ok(record)
}

/// Where a call stands, in the words of the envelope.
pub(super) fn status_of(record: &CallRecord) -> &'static str {
    match &record.outcome {
        Some(outcome) if record.state == CallState::Ended => outcome.end.status(),
        Some(_) | None => "pending",
    }
}

/// Which part of a result.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct OutputQuery {
    /// The first character, from 0.
    offset: Option<usize>,
    /// So many characters at most; 20,000 by default, 30,000 at most.
    limit: Option<usize>,
    /// A JSON Pointer into the value; without it the text is read.
    pointer: Option<String>,
}

/// A window of the whole result of a call.
pub(super) async fn output(asked: Asked<OutputQuery>) -> Result<JsonReply<JsonOf<ResultWindow>>, Problem> {
    let (record, query) = (seen(&asked).await?, &asked.query);
    let limit = match query.limit {
        None => 20_000,
        Some(limit @ 1..=30_000) => limit,
        Some(_) => return Err(Problem::mistake("`limit` is a number from 1 to 30000")),
    };
    let part = ResultPart { offset: query.offset.unwrap_or(0), limit, pointer: query.pointer.clone() };
    let window = read_result(&*asked.app.journal, &record.scope, &record.call, &part).await?;
    Ok(JsonReply::ok(JsonOf::new(asked.app.redactor.known_out_of(json!(window)))))
}

/// Stops a call: what waits is waited for no longer, what runs is ended. Of others' calls it is for those who may decide.
pub(super) async fn cancel(asked: Asked) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let (app, caller, record) = (&asked.app, asked.caller()?, seen(&asked).await?);
    let is_own = record.opening.caller.who.id == caller.id;
    if !is_own && !caller.permissions.allow(Permission::ApprovalsDecide.word()) {
        return Err(Problem::new(ErrorCode::Forbidden, "only whoever made a call, or may decide about it, cancels it"));
    }
    match record.state {
        CallState::Ended => {
            let message = format!("{} has already ended: {}", record.call, status_of(&record));
            Err(Problem::new(ErrorCode::Conflict, message))
        }
        CallState::Waiting => {
            let (question, caller) = approvals::open(app, caller, record.call.as_str()).await?;
            let given = approvals::given(app, caller, question, Answer::Cancel).await?;
            match given.outcome {
                Some(outcome) => Ok(envelope(app, &outcome)),
                None => told_again(app, &record.scope, &record.call, STOPPED_WITHIN).await,
            }
        }
        CallState::Preparing | CallState::Executing => {
            app.platform.want_stop(&record.scope, &record.call).await?;
            told_again(app, &record.scope, &record.call, STOPPED_WITHIN).await
        }
    }
}

/// The call that a path names, if the caller may see it.
pub(super) async fn seen<Q, B>(asked: &Asked<Q, B>) -> Result<CallRecord, Problem> {
    let (caller, id) = (asked.caller()?, asked.part("id")?);
    let unknown = || Problem::not_found("such call");
    let call = CallId::parse(id).ok_or_else(unknown)?;
    let record = asked.app.journal.find(&caller.scope, &call).await?.ok_or_else(unknown)?;
    if caller.may_see(&record) { Ok(record) } else { Err(unknown()) }
}
