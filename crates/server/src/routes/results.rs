//! Results of calls that wait for somebody outside, and what reached callers after they had stopped waiting.

use axum::http::{Method, StatusCode};
use haft_platform::{InboxItem, InboxItemId, InboxOrder, InboxPage, InboxState};
use haft_runtime::{CallId, Caller, Delivered, ErrorCode, Submission, SubmitReply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ListPage, PageQuery};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonOf, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Known, KnownOrToken};
    vec![
        route(Method::POST, "/api/runs/{runId}/tool-results", KnownOrToken, "Takes results of a run's calls.", of_run),
        route(Method::POST, "/api/tool-results", KnownOrToken, "Takes results of calls of any runs.", of_any_run),
        route(Method::GET, "/api/inbox", Known, "Lists one's own inbox, newest first.", inbox),
        route(Method::POST, "/api/inbox/{id}/consume", Known, "Puts an item of one's inbox away.", consume),
    ]
}

/// One result, or several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Results {
    /// Several.
    Several(Vec<GivenResult>),
    /// One.
    One(GivenResult),
}

/// What somebody outside made of a call: its result, or why there is none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GivenResult {
    call_id: String,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<OutsideFailure>,
}

/// A result of `null` is a result.
fn present<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(given).map(Some)
}

/// Why there is no result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutsideFailure {
    code: Option<String>,
    message: String,
}

/// What became of a result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved {
    call_id: String,
    /// Always `resolved`.
    status: &'static str,
    /// `inline` to whoever waited, or to the caller's `inbox`.
    delivered: &'static str,
}

/// What became of one result or of several.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ResolvedResults {
    One(Resolved),
    Several { items: Vec<Value> },
}

/// Takes results of the calls of one run. A call that belongs to no run is a run of its own.
pub(super) async fn of_run(asked: Asked<NoFields, Results>) -> Result<JsonReply<ResolvedResults>, Problem> {
    let run = asked.part("runId")?.to_owned();
    take(asked, Some(run)).await
}

/// Takes results of calls of any runs.
pub(super) async fn of_any_run(asked: Asked<NoFields, Results>) -> Result<JsonReply<ResolvedResults>, Problem> {
    take(asked, None).await
}

async fn take(asked: Asked<NoFields, Results>, run: Option<String>) -> Result<JsonReply<ResolvedResults>, Problem> {
    let caller = asked.caller()?.clone();
    match asked.body {
        Results::One(given) => {
            let resolved = submit(&asked.app, &caller, run.as_deref(), given).await?;
            Ok(JsonReply::ok(ResolvedResults::One(resolved)))
        }
        Results::Several(all) => {
            let mut items = Vec::new();
            for given in all {
                let call = given.call_id.clone();
                items.push(match submit(&asked.app, &caller, run.as_deref(), given).await {
                    Ok(resolved) => json!(resolved),
                    Err(problem) => json!({"callId": call, "status": "error", "error": problem.error()}),
                });
            }
            Ok(JsonReply::ok(ResolvedResults::Several { items }))
        }
    }
}

async fn submit(app: &App, caller: &Caller, run: Option<&str>, given: GivenResult) -> Result<Resolved, Problem> {
    let unknown = || Problem::not_found("such call that waits for a result");
    let call = CallId::parse(&given.call_id).ok_or_else(unknown)?;
    let submission = match (given.result, given.error) {
        (Some(result), None) => Submission::Result(result),
        (None, Some(OutsideFailure { code, message })) => Submission::Error { code, message },
        (Some(_), Some(_)) | (None, None) => return Err(Problem::mistake("send `result` or `error`")),
    };
    let record = app.journal.find(&caller.scope, &call).await?.ok_or_else(unknown)?;
    let own_run = record.opening.caller.via.run.as_deref().unwrap_or(call.as_str());
    if run.is_some_and(|run| run != own_run) {
        return Err(unknown());
    }
    let delivered = match app.pipeline.submit(caller, &call, submission).await? {
        SubmitReply::Resolved { delivered } | SubmitReply::AlreadyEqual { delivered } => delivered,
        SubmitReply::Conflict => {
            return Err(Problem::new(ErrorCode::Conflict, format!("{call} was given another result before")));
        }
        SubmitReply::Unknown => return Err(unknown()),
        SubmitReply::Expired => {
            return Err(Problem::new(ErrorCode::Expired, format!("{call} was waited for no longer; call it again")));
        }
        SubmitReply::Cancelled => {
            return Err(Problem::new(ErrorCode::Cancelled, format!("{call} was cancelled; nobody wants its result")));
        }
        SubmitReply::NotFitting(error) => {
            return Err(Problem::from(error).status(StatusCode::UNPROCESSABLE_ENTITY));
        }
    };
    let delivered = match delivered {
        Delivered::Inline => "inline",
        Delivered::Inbox => "inbox",
    };
    Ok(Resolved { call_id: call.to_string(), status: "resolved", delivered })
}

/// Which items of one's inbox.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct InboxQuery {
    /// `open` (the default) or `consumed`.
    state: Option<String>,
    limit: Option<u32>,
    after: Option<String>,
}

/// One's own inbox, newest first.
pub(super) async fn inbox(asked: Asked<InboxQuery>) -> Result<JsonReply<ListPage<JsonOf<InboxItem>>>, Problem> {
    let query = &asked.query;
    let state = match query.state.as_deref() {
        None | Some("open") => InboxState::Open,
        Some("consumed") => InboxState::Consumed,
        Some(other) => return Err(Problem::mistake(format!("`{other}` is no state: open or consumed"))),
    };
    let limit = PageQuery { limit: query.limit, after: None }.limit()?;
    let after = query.after.as_deref().map(item_id).transpose()?;
    let page = InboxPage { state, order: InboxOrder::NewestFirst, after, limit };
    let items = asked.app.platform.inbox(asked.caller()?, &page).await?;
    let is_full = items.len() == usize::try_from(limit).unwrap_or(usize::MAX);
    let next = items.last().filter(|_| is_full).map(|last| last.id.to_string());
    Ok(JsonReply::ok(ListPage { items: items.iter().map(|item| view(&asked.app, item)).collect(), next }))
}

/// Puts an item of one's own inbox away.
pub(super) async fn consume(asked: Asked) -> Result<JsonReply<JsonOf<InboxItem>>, Problem> {
    let item = item_id(asked.part("id")?)?;
    let consumed = asked.app.platform.consume(asked.caller()?, &item).await?;
    let consumed = consumed.ok_or_else(|| Problem::not_found("such item in this inbox"))?;
    Ok(JsonReply::ok(view(&asked.app, &consumed)))
}

fn item_id(text: &str) -> Result<InboxItemId, Problem> {
    InboxItemId::parse(text).ok_or_else(|| Problem::mistake(format!("`{text}` is no item of an inbox")))
}

fn view(app: &App, item: &InboxItem) -> JsonOf<InboxItem> {
    JsonOf::new(app.redactor.value(&json!(item)))
}
