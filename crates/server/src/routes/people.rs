//! The people of a tenant, and what each role may do.

use axum::http::Method;
use haft_platform::{NewPerson, Permission, PersonChange, Role, RoleView};
use haft_runtime::{CallerKind, ErrorCode};
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
    use RouteAccess::{Known, Needs};
    let manage = Needs(Permission::PeopleManage);
    vec![
        route(Method::GET, "/api/roles", Known, "Lists roles and what each may do.", roles),
        route(Method::GET, "/api/people", Known, "Lists the people of the tenant, for those who are one.", list),
        route(Method::POST, "/api/people", manage, "Adds somebody, with a link to sign in by once.", add),
        route(Method::PATCH, "/api/people/{id}", manage, "Changes somebody's role or name.", change),
        route(Method::DELETE, "/api/people/{id}", manage, "Takes somebody out, with their keys.", remove),
    ]
}

/// Every role.
pub(super) async fn roles(_asked: Asked) -> Result<JsonReply<ListPage<Value>>, Problem> {
    Ok(JsonReply::ok(ListPage::whole(Role::ALL.iter().map(|role| json!(RoleView::from(*role))).collect())))
}

/// Everybody in the tenant. Programs have no need of their addresses.
pub(super) async fn list(asked: Asked) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let caller = asked.caller()?;
    if caller.id.kind != CallerKind::Person {
        return Err(Problem::new(ErrorCode::Forbidden, "the list of people is for people who are signed in"));
    }
    let people = asked.app.platform.people(&caller.scope).await?;
    Ok(JsonReply::ok(ListPage::whole(people.into_iter().map(|person| json!(person)).collect())))
}

/// Somebody to be added.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PersonBody {
    email: String,
    /// `owner`, `admin`, `member` or `viewer`.
    role: String,
    /// The name that others read; the beginning of the address by default.
    name: Option<String>,
}

/// Adds somebody. The link is shown here once, and works once.
pub(super) async fn add(asked: Asked<NoFields, PersonBody>) -> Result<JsonReply<Value>, Problem> {
    let (app, PersonBody { email, role, name }) = (&asked.app, &asked.body);
    let new = NewPerson { email, role, name: name.as_deref() };
    let added = app.platform.invite(asked.known()?, &new).await?;
    let people = app.platform.people(&asked.caller()?.scope).await?;
    let mut view = json!(people.into_iter().find(|person| person.id == added.id));
    view["signIn"] = json!(format!("{}/sign-in#{}", app.place.url(), added.code));
    Ok(JsonReply::created(view))
}

/// What shall be another.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PersonChangeBody {
    role: Option<String>,
    name: Option<String>,
}

/// Changes somebody's role or name. With another role they must sign in again.
pub(super) async fn change(asked: Asked<NoFields, PersonChangeBody>) -> Result<JsonReply<Value>, Problem> {
    let change = PersonChange { role: asked.body.role.as_deref(), name: asked.body.name.as_deref() };
    let changed = asked.app.platform.change_person(asked.known()?, asked.part("id")?, &change).await?;
    Ok(JsonReply::ok(json!(changed)))
}

/// Takes somebody out of the tenant.
pub(super) async fn remove(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    asked.app.platform.dismiss(asked.known()?, asked.part("id")?).await?;
    Ok(JsonReply::ok(DONE))
}
