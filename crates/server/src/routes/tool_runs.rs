//! How tools were used: the history of one, and the numbers of all.

use axum::http::Method;
use haft_platform::Permission;
use haft_runtime::CallId;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ListPage, PageQuery};
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![
        route(Method::GET, "/api/tools/{slug}/runs", Needs(Permission::CallsOwnRead), "Lists its calls.", list),
        route(Method::GET, "/api/metrics/tools", Needs(Permission::CallsTeamRead), "Counts calls by tool.", metrics),
    ]
}

/// The calls of a tool that have ended, newest first; trials are left out.
pub(super) async fn list(asked: Asked<PageQuery>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let (app, caller, slug) = (&asked.app, asked.caller()?, asked.part("slug")?);
    let before = asked
        .query
        .after
        .as_ref()
        .map(|after| CallId::parse(after).ok_or_else(|| Problem::mistake("`after` is no cursor of this list")));
    // The calls of a tool that is gone are still there, under its own name.
    let tool = app.catalog.find(caller, slug).await.map_or_else(|_| slug.to_owned(), |tool| tool.spec().name.clone());
    let (runs, next) = app.platform.runs(caller, &tool, before.transpose()?, asked.query.limit()?).await?;
    let items = runs.iter().map(|run| app.redactor.value(&json!(run))).collect();
    Ok(JsonReply::ok(ListPage { items, next: next.map(|last| last.to_string()) }))
}

/// Since when.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct MetricsQuery {
    /// Only calls since the day of this time (UTC).
    since: Option<String>,
}

/// How often each tool was used, how that ended and how long it took.
pub(super) async fn metrics(asked: Asked<MetricsQuery>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let since = asked.query.since.as_ref().map(|since| since.parse::<Timestamp>());
    let since = since.transpose().map_err(|_| Problem::mistake("`since` is no time"))?;
    let all = asked.app.platform.tool_metrics(&asked.caller()?.scope, since).await?;
    let items = all.iter().map(|tool| asked.app.redactor.value(&json!(tool))).collect();
    Ok(JsonReply::ok(ListPage::whole(items)))
}
