//! Upstream MCP servers of a tenant: adding, changing, looking at and removing them, and accepting what they say.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use haft_mcp::{PinDifference, ServerPins, tool_name};
use haft_platform::{HttpServerFields, Permission, ServerDefinition, ServerReach, ServerRecord};
use haft_runtime::Redactor;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{DONE, Done, ListPage, PageQuery};
use crate::{
    app::AcceptedTools,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// What stands for a secret in a header.
const SECRET: &str = "{{secret:";

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    let (read, manage) = (Needs(Permission::ToolsRead), Needs(Permission::McpManage));
    let (refreshes, accepts) = ("Asks a server for its tools now.", "Accepts what a server says of its tools now.");
    vec![
        route(Method::GET, "/api/servers", read, "Lists upstream MCP servers.", list),
        route(Method::POST, "/api/servers", manage, "Adds an upstream MCP server.", add),
        route(Method::GET, "/api/servers/{name}", read, "Shows a server and its tools.", show),
        route(Method::PATCH, "/api/servers/{name}", manage, "Changes a server.", change),
        route(Method::DELETE, "/api/servers/{name}", manage, "Removes a server.", remove),
        route(Method::POST, "/api/servers/{name}/refresh", manage, refreshes, refresh),
        route(Method::POST, "/api/servers/{name}/accept", manage, accepts, accept),
    ]
}

/// The servers of the tenant, by name.
pub(super) async fn list(asked: Asked<PageQuery>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let (platform, scope) = (&asked.app.platform, &asked.caller()?.scope);
    let page = ListPage::cut(platform.servers(scope).await?, &asked.query, |record| record.definition.name.clone())?;
    let mut items = Vec::new();
    for listed in page.items {
        items.push(server_view(&platform.server(scope, &listed.definition.name).await?));
    }
    Ok(JsonReply::ok(ListPage { items, next: page.next }))
}

/// One server with its tools, and how those differ from what was accepted.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<Value>, Problem> {
    shown(&asked, asked.part("name")?).await
}

/// A server to be added.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct ServerBody(#[schemars(with = "HttpServerFields")] Value);

/// Adds a server and begins to meet it: 409 when its name is taken.
pub(super) async fn add(asked: Asked<NoFields, ServerBody>) -> Result<JsonReply<Value>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    let added = app.platform.add_server(caller, &asked.body.0, &app.web.rules(&caller.scope).await?).await?;
    app.servers.notice(caller).await?;
    Ok(JsonReply::created(server_view(&added)))
}

/// Changes some fields; `null` takes one away.
pub(super) async fn change(asked: Asked<NoFields, Map<String, Value>>) -> Result<JsonReply<Value>, Problem> {
    let (app, caller, name) = (&asked.app, asked.caller()?, asked.part("name")?);
    let rules = app.web.rules(&caller.scope).await?;
    app.platform.change_server(caller, (name, &asked.body), &rules).await?;
    app.servers.notice(caller).await?;
    shown(&asked, name).await
}

/// Removes a server; its tools are gone at once.
pub(super) async fn remove(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    app.platform.remove_server(&caller.scope, asked.part("name")?).await?;
    app.servers.notice(caller).await?;
    Ok(JsonReply::ok(DONE))
}

/// Looks at a server again now.
pub(super) async fn refresh(asked: Asked) -> Result<JsonReply<Value>, Problem> {
    let name = asked.part("name")?;
    asked.app.servers.refresh(asked.caller()?, name).await?;
    shown(&asked, name).await
}

/// What is accepted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcceptBody {
    /// Only this tool; all without it.
    tool: Option<String>,
    /// The `digest` that was shown of the tool, or of the server; 409 when the server says something else by now.
    digest: Option<String>,
}

/// Accepts what a server said last of its tools, or of one of them.
pub(super) async fn accept(asked: Asked<NoFields, AcceptBody>) -> Result<JsonReply<Value>, Problem> {
    let name = asked.part("name")?;
    let wanted = AcceptedTools { tool: asked.body.tool.clone(), digest: asked.body.digest.clone() };
    let accepted = asked.app.servers.accept(asked.caller()?, name, &wanted).await?;
    let mut view = server_view(&asked.app.platform.server(&asked.caller()?.scope, name).await?);
    view["accepted"] = json!(accepted);
    Ok(JsonReply::ok(view))
}

async fn shown<B>(asked: &Asked<NoFields, B>, name: &str) -> Result<JsonReply<Value>, Problem> {
    let record = asked.app.platform.server(&asked.caller()?.scope, name).await?;
    Ok(JsonReply::ok(server_view(&record)))
}

/// A server as others see it: never a secret, and nothing of how the operator starts it.
pub fn server_view(record: &ServerRecord) -> Value {
    let (definition, pins) = (&record.definition, ServerPins::parsed(record.pins.as_deref()));
    let mut view = json!(definition.fields());
    view["headers"] = json!(shown_headers(&definition.fields().headers));
    view["transport"] = json!(match &definition.reach {
        ServerReach::Http { .. } => "http",
        ServerReach::Stdio(_) => "stdio",
    });
    view["timeout"] = json!(definition.timeout().as_millis());
    view["state"] = json!(state(definition, &pins));
    if let Some(why) = pins.last_error.as_ref().filter(|_| definition.enabled) {
        view["reason"] = json!(why);
    }
    view["tools"] = Value::Array(tools(definition, &pins));
    view["leftOut"] = json!(pins.dropped);
    if pins.was_met() {
        view["protocolVersion"] = json!(pins.version);
        view["digest"] = json!(pins.digest());
    }
    view["savedBy"] = json!(record.saved_by);
    view["createdAt"] = json!(record.created_at);
    view
}

/// How a server is.
fn state(definition: &ServerDefinition, pins: &ServerPins) -> &'static str {
    match (definition.enabled, &pins.last_error, pins.was_met()) {
        (false, _, _) => "disabled",
        (true, Some(_), _) => "failed",
        (true, None, false) => "connecting",
        (true, None, true) => "ready",
    }
}

/// What names a secret is shown as it is written; what may be one itself is not.
fn shown_headers(headers: &BTreeMap<String, String>) -> Map<String, Value> {
    let redactor = Redactor::default();
    let shown = |(name, value): (&String, &String)| {
        let value = json!({ name: value });
        let names_a_secret = value[name].as_str().is_some_and(|value| value.contains(SECRET));
        let value = if names_a_secret { value } else { redactor.value(&value) };
        (name.clone(), value[name].clone())
    };
    headers.iter().map(shown).collect()
}

/// Every tool that is used, as it was accepted, and how it differs from that by now.
fn tools(definition: &ServerDefinition, pins: &ServerPins) -> Vec<Value> {
    let differences: BTreeMap<String, PinDifference<'_>> =
        pins.differences().into_iter().map(|one| (one.tool.to_owned(), one)).collect();
    let accepted = pins.accepted.iter().flat_map(BTreeMap::keys);
    let names: BTreeSet<&String> = accepted.chain(pins.seen.keys()).filter(|tool| definition.uses(tool)).collect();
    let view = |tool: &String| {
        let accepted = pins.accepted.as_ref().and_then(|accepted| accepted.get(tool));
        let known = accepted.or_else(|| pins.seen.get(tool));
        let mut view = json!({
            "name": tool_name(&definition.name, tool),
            "tool": tool,
            "title": known.and_then(|known| known.title.as_ref()),
            "description": known.and_then(|known| known.description.as_ref()),
            "effect": known.map(|known| known.effect(definition.trusted)),
            "held": false,
        });
        if let Some(one) = differences.get(tool) {
            show_difference(&mut view, one);
        }
        view
    };
    names.into_iter().map(view).collect()
}

fn show_difference(view: &mut Value, one: &PinDifference<'_>) {
    view["held"] = json!(true);
    view["change"] = json!(one.kind());
    view["diff"] = json!(one.diff(one.tool));
    if let Some(seen) = one.seen {
        view["digest"] = json!(seen.digest());
    }
}
