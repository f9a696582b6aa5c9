//! Who asks, and how they sign in and out.

use axum::http::{HeaderValue, Method, header};
use haft_platform::{PasswordChange, PasswordSignIn, SignInView, TenantView};
use haft_runtime::CallerRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DONE, Done, ListPage};
use crate::{
    admit::COOKIE,
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Known, Open};
    vec![
        route(Method::POST, "/api/sign-in", Open, "Signs in, by a link or a password.", sign_in),
        route(Method::POST, "/api/sign-out", Known, "Signs out.", sign_out),
        route(Method::GET, "/api/me", Known, "Says who asks, where, and what they may do.", me),
        route(Method::POST, "/api/me/tenant", Known, "Changes to another of one's tenants.", change_tenant),
        route(Method::POST, "/api/me/password", Known, "Sets one's password.", set_password),
        route(Method::GET, "/api/me/sign-ins", Known, "Lists where one is signed in.", sign_ins),
        route(Method::DELETE, "/api/me/sign-ins/{id}", Known, "Ends one of one's sign-ins.", end_sign_in),
    ]
}

/// How somebody signs in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignInBody {
    /// A link that was printed or sent, or its code.
    link: Option<String>,
    /// A mail address.
    email: Option<String>,
    /// Its password.
    password: Option<String>,
    /// The tenant; the first one by default.
    tenant: Option<String>,
}

/// What the page keeps after signing in.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SignInReply {
    /// Sent as `X-CSRF-Token` with every change.
    csrf: String,
    caller: CallerRef,
    tenant: TenantView,
}

/// Signs in. What only the page may know is in the answer and nowhere else.
pub(super) async fn sign_in(asked: Asked<NoFields, SignInBody>) -> Result<JsonReply<SignInReply>, Problem> {
    let (app, body) = (&asked.app, &asked.body);
    let signed_in = match (&body.link, &body.email, &body.password) {
        (Some(link), None, None) => app.platform.sign_in_by_link(code_of(link), app.sign_ins_last).await?,
        (None, Some(email), Some(password)) => {
            refuse_without_passwords(app)?;
            let given = PasswordSignIn { email, password, tenant: body.tenant.as_deref(), from: asked.from };
            app.platform.sign_in_by_password(&given, app.sign_ins_last).await?
        }
        _ => return Err(Problem::mistake("send `link`, or `email` and `password`")),
    };
    let cookie = haft_platform::Credential::Cookie(&signed_in.cookie);
    let identity = app.platform.identify(cookie, haft_runtime::Source::Web).await?;
    let tenant = app.platform.tenant_of(&identity.caller.scope).await?;
    let reply = SignInReply { csrf: signed_in.csrf.clone(), caller: identity.caller.who(), tenant };
    Ok(JsonReply::ok(reply).header(header::SET_COOKIE, set_cookie(app, &signed_in.cookie)?))
}

/// Passwords count for nothing where the operator has switched them off.
fn refuse_without_passwords(app: &App) -> Result<(), Problem> {
    match app.sign_in.password {
        true => Ok(()),
        false => Err(Problem::new(haft_runtime::ErrorCode::Forbidden, "nobody signs in by password here")),
    }
}

/// Signs in by the code of a link: what only the page may know, and the cookie.
pub(super) async fn begin_by_link(app: &App, link: &str) -> Result<(String, HeaderValue), Problem> {
    let signed_in = app.platform.sign_in_by_link(code_of(link), app.sign_ins_last).await?;
    Ok((signed_in.csrf, set_cookie(app, &signed_in.cookie)?))
}

/// The code of a link: what stands behind `#`.
fn code_of(link: &str) -> &str {
    link.rsplit('#').next().unwrap_or(link).trim()
}

fn set_cookie(app: &App, value: &str) -> Result<HeaderValue, Problem> {
    let secure = if app.place.is_secure() { "; Secure" } else { "" };
    let lasts = if value.is_empty() { "; Max-Age=0" } else { "" };
    let cookie = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{lasts}");
    HeaderValue::from_str(&cookie).map_err(|_| Problem::mistake("the cookie cannot be sent"))
}

/// Ends the sign-in that asks.
pub(super) async fn sign_out(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    let sign_in = asked.identity.as_ref().and_then(|identity| identity.sign_in.as_ref());
    if let Some(sign_in) = sign_in {
        asked.app.platform.sign_out(sign_in).await?;
    }
    Ok(JsonReply::ok(DONE).header(header::SET_COOKIE, set_cookie(&asked.app, "")?))
}

/// Who asks.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Me {
    caller: CallerRef,
    tenant: TenantView,
    /// The tenants that one can change to.
    tenants: Vec<TenantView>,
    /// What one may do here.
    permissions: Vec<String>,
}

/// Says who asks.
pub(super) async fn me(asked: Asked) -> Result<JsonReply<Me>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    let tenant = app.platform.tenant_of(&caller.scope).await?;
    let tenants = match asked.identity.as_ref().and_then(|identity| identity.sign_in.as_ref()) {
        Some(sign_in) => app.platform.tenants_of(&sign_in.person).await?,
        None => vec![tenant.clone()],
    };
    let all = haft_platform::Permission::ALL.iter().map(|permission| permission.word());
    let permissions = all.filter(|word| caller.permissions.allow(word)).map(str::to_owned).collect();
    Ok(JsonReply::ok(Me { caller: caller.who(), tenant, tenants, permissions }))
}

/// Which tenant to change to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantBody {
    slug: String,
}

/// Changes to another tenant.
pub(super) async fn change_tenant(asked: Asked<NoFields, TenantBody>) -> Result<JsonReply<Done>, Problem> {
    asked.app.platform.change_tenant(own_sign_in(&asked)?, &asked.body.slug).await?;
    Ok(JsonReply::ok(DONE))
}

/// A new password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PasswordBody {
    password: String,
    /// The one before, where there is one.
    old_password: Option<String>,
}

/// Sets one's password, and ends all other sign-ins.
pub(super) async fn set_password(asked: Asked<NoFields, PasswordBody>) -> Result<JsonReply<Done>, Problem> {
    refuse_without_passwords(&asked.app)?;
    let PasswordBody { password, old_password } = &asked.body;
    let change = PasswordChange { old: old_password.as_deref(), new: password, from: asked.from };
    asked.app.platform.change_password(own_sign_in(&asked)?, &change).await?;
    Ok(JsonReply::ok(DONE))
}

/// Where one is signed in.
pub(super) async fn sign_ins(asked: Asked) -> Result<JsonReply<ListPage<SignInView>>, Problem> {
    let sign_in = own_sign_in(&asked)?;
    Ok(JsonReply::ok(ListPage::whole(asked.app.platform.sign_ins(sign_in).await?)))
}

/// Ends one of one's sign-ins.
pub(super) async fn end_sign_in(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    asked.app.platform.end_sign_in(&own_sign_in(&asked)?.person, asked.part("id")?).await?;
    Ok(JsonReply::ok(DONE))
}

pub(super) fn own_sign_in<Q, B>(asked: &Asked<Q, B>) -> Result<&haft_platform::SignInRecord, Problem> {
    let sign_in = asked.identity.as_ref().and_then(|identity| identity.sign_in.as_ref());
    sign_in.ok_or_else(|| Problem::new(haft_runtime::ErrorCode::Forbidden, "this is for people who are signed in"))
}
