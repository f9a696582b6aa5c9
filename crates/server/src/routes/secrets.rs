//! The secrets of a tenant: set, never shown.

use axum::http::Method;
use haft_platform::Permission;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Value, json};

use super::{DONE, Done, ListPage};
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    let write = RouteAccess::Needs(Permission::SecretsWrite);
    vec![
        route(Method::GET, "/api/secrets", write, "Lists secrets by name and host.", list),
        route(Method::PUT, "/api/secrets/{name}", write, "Sets a secret.", set),
        route(Method::DELETE, "/api/secrets/{name}", write, "Removes a secret.", remove),
    ]
}

/// The secrets, without their values.
pub(super) async fn list(asked: Asked) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let all = asked.app.platform.secrets(&asked.caller()?.scope).await?;
    Ok(JsonReply::ok(ListPage::whole(all.into_iter().map(|secret| json!(secret)).collect())))
}

/// A value that no error repeats.
#[derive(JsonSchema)]
#[schemars(with = "String")]
pub(super) struct SecretText(String);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from) {
            Ok(Value::String(text)) => Ok(Self(text)),
            Ok(_) | Err(_) => Err(D::Error::custom("`value` must be a text")),
        }
    }
}

/// A secret to be set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretBody {
    value: SecretText,
    /// Where it may be sent. Without it a secret keeps the hosts that it has; a new one is bound to the first tool's.
    #[serde(default)]
    hosts: Vec<String>,
}

/// Sets a secret, in the place of one of the same name.
pub(super) async fn set(asked: Asked<NoFields, SecretBody>) -> Result<JsonReply<Value>, Problem> {
    let (scope, body) = (&asked.caller()?.scope, &asked.body);
    let set = asked.app.platform.set_secret(scope, asked.part("name")?, &body.value.0, &body.hosts).await?;
    Ok(JsonReply::ok(json!(set)))
}

/// Removes a secret; tools that name it fail from then on.
pub(super) async fn remove(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    asked.app.platform.remove_secret(&asked.caller()?.scope, asked.part("name")?).await?;
    Ok(JsonReply::ok(DONE))
}
