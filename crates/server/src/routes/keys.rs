//! Keys of programs.

use axum::http::Method;
use haft_platform::{KeyScope, KeyView, KeyWish, Permission, length_of_time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DONE, Done, ListPage};
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![
        route(Method::GET, "/api/keys", Needs(Permission::KeysOwnManage), "Lists keys.", list),
        route(Method::POST, "/api/keys", Needs(Permission::KeysOwnManage), "Makes a key, shown once.", add),
        route(
            Method::POST,
            "/api/keys/{id}/rotate",
            Needs(Permission::KeysOwnManage),
            "Gives a key another secret, shown once.",
            rotate,
        ),
        route(Method::DELETE, "/api/keys/{id}", Needs(Permission::KeysOwnManage), "Removes a key.", remove),
    ]
}

/// The keys that one may see, without their secrets.
pub(super) async fn list(asked: Asked) -> Result<JsonReply<ListPage<KeyView>>, Problem> {
    let keys = asked.app.platform.keys(asked.caller()?).await?;
    Ok(JsonReply::ok(ListPage::whole(keys)))
}

/// A key to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct KeyBody {
    name: String,
    /// What it is for, such as `tools:execute`.
    scopes: Vec<String>,
    /// The workspace that it works in.
    workspace: Option<String>,
    /// Until when; until it is removed by default.
    expires_at: Option<String>,
}

/// A key, shown once.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KeyReply {
    id: String,
    key: String,
}

/// Makes a key that may never do more than whoever made it.
pub(super) async fn add(asked: Asked<NoFields, KeyBody>) -> Result<JsonReply<KeyReply>, Problem> {
    let (caller, body) = (asked.caller()?, &asked.body);
    let scope = match &body.workspace {
        Some(name) => asked.app.platform.in_workspace(caller.clone(), name).await?.scope,
        None => caller.scope.clone(),
    };
    let known = |word: &String| KeyScope::parse(word).ok_or_else(|| unknown_scope(word));
    let scopes = body.scopes.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    let time = |text: &String| text.parse().map_err(|_| Problem::mistake("`expiresAt` is no time"));
    let expires_at = body.expires_at.as_ref().map(time).transpose()?;
    let wish = KeyWish { name: &body.name, scopes: &scopes, expires_at };
    let made = asked.app.platform.add_own_key(caller, &scope, &wish).await?;
    Ok(JsonReply::created(KeyReply { id: made.id, key: made.key }))
}

fn unknown_scope(word: &str) -> Problem {
    let all: Vec<&str> = KeyScope::ALL.iter().map(|scope| scope.word()).collect();
    Problem::mistake(format!("there is no scope `{word}`; there are {}", all.join(", ")))
}

/// What is wanted of a new secret.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RotateBody {
    /// How long the old secret counts beside the new one, such as `24h`; not at all by default.
    grace: Option<String>,
}

/// Gives a key another secret.
pub(super) async fn rotate(asked: Asked<NoFields, RotateBody>) -> Result<JsonReply<KeyReply>, Problem> {
    let unread = || Problem::mistake("`grace` is a time such as `30m`, `24h` or `7d`");
    let grace = asked.body.grace.as_deref().map(|text| length_of_time(text).ok_or_else(unread)).transpose()?;
    let made = asked.app.platform.rotate_key(asked.caller()?, asked.part("id")?, grace).await?;
    Ok(JsonReply::ok(KeyReply { id: made.id, key: made.key }))
}

/// Removes a key; it is refused from the next request on.
pub(super) async fn remove(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    asked.app.platform.remove_key(asked.caller()?, asked.part("id")?).await?;
    Ok(JsonReply::ok(DONE))
}
