//! Several calls in one request.

use std::time::Duration;

use axum::http::Method;
use futures_util::{StreamExt, stream};
use haft_platform::Permission;
use haft_runtime::{CallId, CallRequest, CallState, Caller, ErrorCode, Outcome, ToolError, Wish};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    ListPage,
    calls::{envelope, key_of, started_by_key, wait_of},
};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![route(Method::POST, "/api/calls/batch", Needs(Permission::ToolsExecute), "Makes several calls.", start)]
}

/// How many calls one request makes at the most.
const MOST: usize = 100;

/// Calls to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchBody {
    calls: Vec<BatchItem>,
    /// How many seconds to wait for answers from outside; 60 by default, 600 at most. It holds for each of them.
    wait: Option<u64>,
    /// The workspace to work in; that of the key by default.
    workspace: Option<String>,
}

/// One of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchItem {
    tool: String,
    #[serde(default)]
    input: Map<String, Value>,
    /// Given back with its envelope.
    id: Option<String>,
}

/// Makes several calls: what only reads runs at once, what may change something runs alone, in the order given. Each is
/// answered by its envelope, or by why there is no such call.
pub(super) async fn start(asked: Asked<NoFields, BatchBody>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let (app, body) = (&asked.app, &asked.body);
    let wait = wait_of(body.wait)?;
    if body.calls.len() > MOST {
        return Err(Problem::mistake(format!("a batch has at most {MOST} calls; send the rest in another one")));
    }
    let caller = match &body.workspace {
        Some(name) => app.platform.in_workspace(asked.caller()?.clone(), name).await?,
        None => asked.caller()?.clone(),
    };
    let key = key_of(&asked)?;
    let (mut wishes, mut in_hand) = (Vec::new(), Vec::new());
    for (item, place) in body.calls.iter().zip(1..) {
        let (wish, is_refused) = match refusal(app, &caller, &item.tool).await {
            Some(error) => (Wish::Unreadable(Box::new(Outcome::refused(&item.tool, error))), true),
            None => {
                let mut request = CallRequest::new(caller.clone(), &item.tool, Value::Object(item.input.clone()));
                request.wait = wait;
                request.hand_back = app.stop.clone();
                in_hand.push(app.pipeline.in_hand().hold(&request.id));
                // Each call of a batch is known again by the batch's key and its place there.
                let earlier = match key {
                    Some(key) => {
                        started_by_key(app, &format!("{key} {place}"), &request, &request.input.to_string()).await?
                    }
                    None => None,
                };
                match earlier {
                    Some(earlier) => {
                        (Wish::Unreadable(Box::new(ended_before(app, &caller, &earlier, wait).await?)), false)
                    }
                    None => (Wish::Call(Box::new(request)), false),
                }
            }
        };
        wishes.push(((item.id.clone(), is_refused), wish));
    }
    let outcomes: Vec<_> = app.pipeline.batch(stream::iter(wishes), &app.stop).collect().await;
    let items = outcomes.into_iter().map(|((id, is_refused), outcome)| view(app, id, is_refused, &outcome));
    Ok(JsonReply::ok(ListPage::whole(items.collect())))
}

/// How a call ended, or stands, that the same batch has made before.
async fn ended_before(app: &App, caller: &Caller, call: &CallId, wait: Duration) -> Result<Outcome, Problem> {
    if let Some(outcome) = app.journal.ended(&caller.scope, call, wait).await? {
        return Ok(outcome);
    }
    let record = app.journal.find(&caller.scope, call).await?;
    let stands = record.filter(|record| matches!(record.state, CallState::Waiting | CallState::Ended));
    let outcome = stands.and_then(|record| record.outcome);
    outcome.ok_or_else(|| Problem::new(ErrorCode::Busy, "this batch was begun before and goes on; ask again"))
}

/// Why there will be no call.
async fn refusal(app: &App, caller: &Caller, tool: &str) -> Option<ToolError> {
    match app.catalog.find(caller, tool).await {
        Ok(found) => app.guard.permit(caller, found.spec()).await.err(),
        Err(error) => Some(error),
    }
}

fn view(app: &App, id: Option<String>, is_refused: bool, outcome: &Outcome) -> Value {
    let mut view = envelope(app, outcome).into_body().value;
    if is_refused {
        // No call was made, so that it has no id.
        view = json!({"status": view["status"], "tool": view["tool"], "error": view["error"]});
    }
    if let Some(id) = id {
        view["id"] = json!(id);
    }
    view
}
