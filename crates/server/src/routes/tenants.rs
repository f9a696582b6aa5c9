//! One's own tenants, and what a tenant sets for itself.

use axum::http::Method;
use haft_platform::{Permission, QuotaView, TenantSettings, TenantView};
use serde_json::{Value, json};

use super::ListPage;
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Known, Needs};
    let update = Needs(Permission::SettingsUpdate);
    vec![
        route(Method::GET, "/api/tenants", Known, "Lists one's own tenants.", list),
        route(Method::GET, "/api/tenants/{slug}", Known, "Shows one of one's own tenants.", show),
        route(Method::GET, "/api/settings", update, "Shows the tenant's settings.", settings),
        route(Method::GET, "/api/quotas", Known, "Shows how much the tenant may have, and has.", quotas),
        route(Method::PUT, "/api/settings", update, "Replaces the tenant's settings.", set_settings),
    ]
}

/// The tenants that one belongs to.
pub(super) async fn list(asked: Asked) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let own = own(&asked).await?;
    Ok(JsonReply::ok(ListPage::whole(own.into_iter().map(|tenant| json!(tenant)).collect())))
}

/// One of them; another one looks like one that never was.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<Value>, Problem> {
    let slug = asked.part("slug")?;
    let found = own(&asked).await?.into_iter().find(|tenant| tenant.slug == slug);
    Ok(JsonReply::ok(json!(found.ok_or_else(|| Problem::not_found("such tenant"))?)))
}

async fn own(asked: &Asked) -> Result<Vec<TenantView>, Problem> {
    let identity = asked.known()?;
    Ok(match &identity.sign_in {
        Some(sign_in) => asked.app.platform.tenants_of(&sign_in.person).await?,
        None => vec![asked.app.platform.tenant_of(&identity.caller.scope).await?],
    })
}

/// What the tenant has set for itself.
pub(super) async fn settings(asked: Asked) -> Result<JsonReply<TenantSettings>, Problem> {
    Ok(JsonReply::ok(asked.app.platform.settings(&asked.caller()?.scope).await?))
}

/// How much the tenant may have and use, and does.
pub(super) async fn quotas(asked: Asked) -> Result<JsonReply<ListPage<QuotaView>>, Problem> {
    Ok(JsonReply::ok(ListPage::whole(asked.app.platform.quotas(&asked.caller()?.scope).await?)))
}

/// Puts other settings in the place of those before. What is not named has its default.
pub(super) async fn set_settings(asked: Asked<NoFields, TenantSettings>) -> Result<JsonReply<TenantSettings>, Problem> {
    Ok(JsonReply::ok(asked.app.platform.set_settings(&asked.caller()?.scope, asked.body).await?))
}
