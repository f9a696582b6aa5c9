//! Sessions: the threads that calls belong to.

use axum::http::Method;
use haft_platform::Permission;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ListPage, PageQuery, events};
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, raw_route, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    let read = Needs(Permission::CallsOwnRead);
    vec![
        route(Method::POST, "/api/sessions", Needs(Permission::ToolsExecute), "Begins a session.", add),
        route(Method::GET, "/api/sessions", read, "Lists sessions, newest first.", list),
        route(Method::GET, "/api/sessions/{id}", read, "Shows a session and where it stands.", show),
        raw_route(Method::GET, "/api/sessions/{id}/events", read, "Tells a session's calls.", events::of_session),
    ]
}

/// A session to be begun.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionBody {
    /// What people call it.
    #[serde(default)]
    title: String,
}

/// Begins a session.
pub(super) async fn add(asked: Asked<NoFields, SessionBody>) -> Result<JsonReply<Value>, Problem> {
    let made = asked.app.platform.add_session(asked.caller()?, &asked.body.title).await?;
    Ok(JsonReply::created(json!(made)))
}

/// Everybody's sessions, or one's own.
pub(super) async fn list(asked: Asked<PageQuery>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let (query, limit) = (&asked.query, asked.query.limit()?);
    let found = asked.app.platform.sessions(asked.caller()?, query.after.as_deref(), limit).await?;
    let is_full = found.len() == limit as usize;
    let next = found.last().filter(|_| is_full).map(|last| last.id.clone());
    Ok(JsonReply::ok(ListPage { items: found.into_iter().map(|session| json!(session)).collect(), next }))
}

/// One session with the number of its calls.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<Value>, Problem> {
    let found = asked.app.platform.session(asked.caller()?, asked.part("id")?).await?;
    Ok(JsonReply::ok(json!(found)))
}
