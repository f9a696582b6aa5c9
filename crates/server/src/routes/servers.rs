//! Upstream MCP servers of a tenant: adding, changing, looking at and removing them, and accepting what they say.

use std::collections::{BTreeMap, BTreeSet};

use axum::{
    Json,
    body::Body,
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use haft_mcp::{LoginAnswer, NEEDS_LOGIN, PinDifference, ServerPins, client_document, tool_name};
use haft_platform::{HttpServerFields, LoginFor, Permission, ServerDefinition, ServerReach, ServerRecord};
use haft_runtime::{ErrorCode, Redactor, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    DONE, Done, ListPage, PageQuery,
    page::{escaped, page},
};
use crate::{
    app::{AcceptedTools, LoginLink, LoginReturn},
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, raw_route, route},
};

/// Where people come back to who log in at a server, and where haft describes itself to those who ask them.
const RETURN: &str = "/servers/login";
const DOCUMENT: &str = "/servers/client.json";

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
        route(Method::POST, "/api/servers/{name}/login", read, "Begins a login at a server.", login),
        route(Method::DELETE, "/api/servers/{name}/login", read, "Gives a login at a server up.", log_out),
        raw_route(Method::GET, RETURN, RouteAccess::Open, "Ends a login at a server.", came_back),
        raw_route(Method::GET, DOCUMENT, RouteAccess::Open, "Says what haft is to other servers.", described),
    ]
}

/// The servers of the tenant, by name.
pub(super) async fn list(asked: Asked<PageQuery>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let (platform, scope) = (&asked.app.platform, &asked.caller()?.scope);
    let page = ListPage::cut(platform.servers(scope).await?, &asked.query, |record| record.definition.name.clone())?;
    let mut items = Vec::new();
    for listed in page.items {
        items.push(view(&asked, &platform.server(scope, &listed.definition.name).await?).await?);
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
    Ok(JsonReply::created(view(&asked, &added).await?))
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
    let mut view = view(&asked, &asked.app.platform.server(&asked.caller()?.scope, name).await?).await?;
    view["accepted"] = json!(accepted);
    Ok(JsonReply::ok(view))
}

async fn shown<B>(asked: &Asked<NoFields, B>, name: &str) -> Result<JsonReply<Value>, Problem> {
    let record = asked.app.platform.server(&asked.caller()?.scope, name).await?;
    Ok(JsonReply::ok(view(asked, &record).await?))
}

/// A server as whoever asks sees it.
async fn view<Q, B>(asked: &Asked<Q, B>, record: &ServerRecord) -> Result<Value, Problem> {
    let has_login = asked.app.servers.has_login(asked.caller()?, &record.definition).await?;
    Ok(server_view(record, has_login))
}

/// Begins a login: the answer is a link that a person opens where they are signed in.
pub(super) async fn login(asked: Asked) -> Result<JsonReply<LoginLink>, Problem> {
    let (app, known) = (&asked.app, asked.known()?);
    let here = app.place.url_for(&asked.headers);
    let back = LoginReturn {
        address: format!("{here}{RETURN}"),
        document: here.starts_with("https://").then(|| format!("{here}{DOCUMENT}")),
        sign_in: known.sign_in.as_ref().map(|sign_in| sign_in.id.clone()),
    };
    Ok(JsonReply::ok(app.servers.begin_login(&known.caller, asked.part("name")?, &back).await?))
}

/// Gives the login of whoever asks up, or that of the tenant.
pub(super) async fn log_out(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    let name = asked.part("name")?;
    if asked.app.servers.end_login(asked.caller()?, name).await? {
        return Ok(JsonReply::ok(DONE));
    }
    Err(ToolError::new(ErrorCode::NotFound, format!("there is no login at `{name}`")).into())
}

/// What an authorization server sends back with a person.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ReturnQuery {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// The page that a person comes back to. It says what happened, and leads nowhere.
pub(super) async fn came_back(asked: Asked<ReturnQuery, Body>) -> Result<Response, Problem> {
    let Asked { app, identity, query: ReturnQuery { code, state, iss, error }, .. } = asked;
    let signed_in = identity.as_deref().and_then(|known| known.sign_in.as_ref().map(|sign_in| (known, sign_in)));
    let Some((known, sign_in)) = signed_in else {
        let why = "Nobody is signed in to haft in this browser. Sign in, and begin the login again.";
        return Ok(told(StatusCode::UNAUTHORIZED, "Not logged in", why));
    };
    let answer = LoginAnswer { code, state, iss, error };
    Ok(match app.servers.finish_login(&known.caller, &sign_in.id, &answer).await {
        Ok(name) => {
            let done = format!("You are logged in at {name}. You can close this page.");
            told(StatusCode::OK, "Logged in", &done)
        }
        Err(error) => told(StatusCode::BAD_REQUEST, "Not logged in", &sentence(&error.message)),
    })
}

fn told(status: StatusCode, title: &str, sentence: &str) -> Response {
    let mut response = page(&format!("<main><h1>{}</h1><p>{}</p></main>", escaped(title), escaped(sentence)));
    *response.status_mut() = status;
    response
}

/// An error as a sentence on a page.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str().replace('`', ""))
}

/// What haft is to authorization servers. They fetch it where people reach haft by https.
pub(super) async fn described(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let here = asked.app.place.url_for(&asked.headers);
    Ok(Json(client_document(&format!("{here}{DOCUMENT}"), &format!("{here}{RETURN}"))).into_response())
}

/// A server as others see it: never a secret, and nothing of how the operator starts it.
pub fn server_view(record: &ServerRecord, has_login: Option<bool>) -> Value {
    let (definition, pins) = (&record.definition, ServerPins::parsed(record.pins.as_deref()));
    let mut view = json!(definition.fields());
    view["headers"] = json!(shown_headers(&definition.fields().headers));
    view["transport"] = json!(match &definition.reach {
        ServerReach::Http { .. } => "http",
        ServerReach::Stdio(_) => "stdio",
    });
    view["timeout"] = json!(definition.timeout().as_millis());
    let error = error_of(definition, &pins, has_login);
    view["state"] = json!(state(definition, &pins, (error, has_login)));
    if let Some(why) = error.filter(|_| definition.enabled) {
        view["reason"] = json!(why);
    }
    if let (Some(login), Some(logged_in), true) = (definition.login(), has_login, pins.wants_login) {
        view["login"] = json!({ "for": login.whose, "loggedIn": logged_in });
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

/// Why a server could not be had. That others have to log in is nothing to somebody who has a login of their own.
fn error_of<'a>(definition: &ServerDefinition, pins: &'a ServerPins, has_login: Option<bool>) -> Option<&'a String> {
    let is_own = definition.login().is_some_and(|login| login.whose == LoginFor::Person) && has_login == Some(true);
    pins.last_error.as_ref().filter(|why| !(is_own && why.contains(NEEDS_LOGIN)))
}

/// How a server is, to whoever asks.
fn state(
    definition: &ServerDefinition,
    pins: &ServerPins,
    (error, has_login): (Option<&String>, Option<bool>),
) -> &'static str {
    let wants_more = || has_login.is_some() && error.is_some_and(|why| why.contains(NEEDS_LOGIN));
    match (definition.enabled, error, pins.was_met()) {
        (false, _, _) => "disabled",
        (true, _, _) if (has_login == Some(false) && pins.wants_login) || wants_more() => "needs_login",
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
