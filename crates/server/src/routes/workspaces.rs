//! The workspaces of a tenant. Over HTTP only those are made that haft keeps itself.

use axum::http::Method;
use haft_platform::{Permission, WorkspaceSummary};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{DONE, Done, ListPage};
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    let (read, manage) = (Needs(Permission::WorkspaceRead), Needs(Permission::WorkspacesManage));
    vec![
        route(Method::GET, "/api/workspaces", read, "Lists workspaces.", list),
        route(Method::POST, "/api/workspaces", manage, "Makes a workspace that haft keeps.", add),
        route(Method::DELETE, "/api/workspaces/{name}", manage, "Takes a workspace off the list.", remove),
    ]
}

/// The workspaces of the tenant.
pub(super) async fn list(asked: Asked) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let all = asked.app.platform.workspaces(&asked.caller()?.scope).await?;
    Ok(JsonReply::ok(ListPage::whole(all.iter().map(|record| json!(WorkspaceSummary::from(record))).collect())))
}

/// A workspace to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceBody {
    name: String,
}

/// Makes a workspace. Folders of this machine are given by its operator alone.
pub(super) async fn add(asked: Asked<NoFields, WorkspaceBody>) -> Result<JsonReply<Value>, Problem> {
    let made = asked.app.platform.add_workspace(&asked.caller()?.scope, &asked.body.name, None).await?;
    Ok(JsonReply::created(json!(made)))
}

/// Takes a workspace off the list; its folder stays with the operator.
pub(super) async fn remove(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    asked.app.platform.remove_workspace(&asked.caller()?.scope, asked.part("name")?).await?;
    Ok(JsonReply::ok(DONE))
}
