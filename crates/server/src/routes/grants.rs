//! Remembered answers.

use axum::http::Method;
use haft_platform::{GrantFilter, GrantRow, Permission};
use haft_runtime::{Asks, Bounds, CallerId, Coverage, Grant, GrantId, Within};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ListPage, PageQuery, remembered_yes::length_of_time};
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    let may = Needs(Permission::GrantsOwnManage);
    vec![
        route(Method::GET, "/api/grants", may, "Lists grants.", list),
        route(Method::POST, "/api/grants", may, "Says yes in advance.", add),
        route(Method::GET, "/api/grants/{id}", may, "Shows a grant.", show),
        route(Method::DELETE, "/api/grants/{id}", may, "Revokes a grant.", revoke),
    ]
}

/// How many recorded calls a grant is held against.
const LAST: u32 = 500;

/// Which grants.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct GrantsQuery {
    limit: Option<u32>,
    after: Option<String>,
    /// Only grants for this tool.
    tool: Option<String>,
    /// Whether those that are revoked, expired or used up are listed, too.
    #[serde(default)]
    all: bool,
}

/// Grants, newest first: everybody's, or one's own.
pub(super) async fn list(asked: Asked<GrantsQuery>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let query = &asked.query;
    let before = query
        .after
        .as_ref()
        .map(|after| GrantId::parse(after).ok_or_else(|| Problem::mistake("`after` is no cursor of this list")));
    let limit = PageQuery { limit: query.limit, after: None }.limit()?;
    let (before, tool, only_usable) = (before.transpose()?, query.tool.clone(), !query.all);
    let filter = GrantFilter { of: None, tool, only_usable, before, limit: limit + 1 };
    let mut rows = asked.app.platform.grants(asked.caller()?, &filter).await?;
    let next = (rows.len() > limit as usize).then(|| rows.pop());
    let next = next.and_then(|_| rows.last()).map(|row| row.grant.id.to_string());
    Ok(JsonReply::ok(ListPage { items: rows.iter().map(view).collect(), next }))
}

/// One grant, and how many of the last calls it covers.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<Value>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    let row = app.platform.grant(caller, asked.part("id")?).await?;
    let within = row.workspace.clone().map_or(Within::Everything, Within::Only);
    let past = app.platform.last_calls(caller, &within, LAST).await?;
    // A workspace that is gone leaves the caller where they are.
    let there = match &row.workspace {
        Some(workspace) => app.platform.in_workspace(caller.clone(), workspace.as_str()).await.ok(),
        None => None,
    };
    let tool = app.catalog.find(there.as_ref().unwrap_or(caller), &row.grant.tool).await.ok();
    let mut view = view(&row);
    view["coverage"] = json!(Coverage::of(&row.grant, tool.as_deref(), &past));
    Ok(JsonReply::ok(view))
}

/// A yes to be given in advance.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantBody {
    /// The tool that may go on without asking.
    tool: String,
    /// What it covers; whatever the tool does when absent.
    #[serde(default)]
    #[schemars(with = "Value")]
    bounds: Bounds,
    /// For whom: `{ kind, id }`. Oneself by default; for those who manage everybody's, anybody.
    #[schemars(with = "Option<Value>")]
    caller: Option<CallerId>,
    /// How long it lasts, such as `8h`; until it is revoked when absent.
    #[serde(rename = "for")]
    lasting: Option<String>,
    /// How often it can be used; without limit when absent.
    uses: Option<u32>,
    /// The workspace that it counts in; that of the caller by default.
    workspace: Option<String>,
}

/// Says yes in advance.
pub(super) async fn add(asked: Asked<NoFields, GrantBody>) -> Result<JsonReply<Value>, Problem> {
    let (app, caller, body) = (&asked.app, asked.caller()?, &asked.body);
    let there = match &body.workspace {
        Some(name) => app.platform.in_workspace(caller.clone(), name).await?,
        None => caller.clone(),
    };
    let tool = app.catalog.find(&there, &body.tool).await?;
    let spec = tool.spec();
    if spec.asks == Asks::Always {
        let message = format!("`{}` asks every time, so a grant for it would change nothing", spec.name);
        return Err(Problem::mistake(message));
    }
    if body.uses == Some(0) {
        return Err(Problem::mistake("`uses` is at least 1"));
    }
    let manages_all = caller.permissions.allow(Permission::GrantsTeamManage.word());
    let lasting = body.lasting.as_deref().map(length_of_time).transpose()?;
    let grant = Grant {
        caller: body.caller.clone().or_else(|| (!manages_all).then(|| caller.id.clone())),
        until: lasting.map(|lasting| Timestamp::now().checked_add(lasting).unwrap_or(Timestamp::MAX)),
        uses_left: body.uses,
        ..Grant::new(&spec.name, body.bounds.clone())
    };
    let given = app.platform.give_grant(caller, &there.scope, grant).await?;
    Ok(JsonReply::created(view(&given)))
}

/// Takes a grant back, at once.
pub(super) async fn revoke(asked: Asked) -> Result<JsonReply<Value>, Problem> {
    let revoked = asked.app.platform.revoke_grant(asked.caller()?, asked.part("id")?).await?;
    Ok(JsonReply::ok(view(&revoked)))
}

fn view(row: &GrantRow) -> Value {
    let mut view = json!(row.grant);
    view["standing"] = json!(row.grant.standing(Timestamp::now()));
    if let Some(workspace) = &row.workspace {
        view["workspace"] = json!(workspace);
    }
    view
}
