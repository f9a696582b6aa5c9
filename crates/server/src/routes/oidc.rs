//! Signing in with a provider of OpenID Connect: to there, and back from there.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, header},
    response::{IntoResponse, Redirect, Response},
};
use haft_platform::{OidcAnswer, OidcWish};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sign_in::{SignInQuery, sign_in_page, signed_in_page};
use crate::{
    admit::cookie_named,
    app::App,
    problem::Problem,
    route::{Asked, Route, RouteAccess, raw_route},
};

/// The cookie of a browser that is at a provider. What comes back counts only in the browser that has it.
const COOKIE: &str = "haft_oidc";
/// How many letters it has.
const COOKIE_LENGTH: usize = 43;
/// The longest page that is remembered.
const LONGEST_PAGE: usize = 4000;

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Open;
    vec![
        raw_route(Method::GET, "/sign-in/oidc/{provider}", Open, "Goes to a provider to sign in there.", leave),
        raw_route(Method::GET, "/sign-in/oidc/{provider}/back", Open, "Comes back from a provider.", come_back),
    ]
}

/// Sends a browser to a provider.
async fn leave(asked: Asked<SignInQuery, Body>) -> Result<Response, Problem> {
    let provider = asked.part("provider")?.to_owned();
    let Asked { app, query, headers, .. } = asked;
    let browser = match browser_of(&headers) {
        // Two pages of one browser may be away at once.
        Some(known) => known.to_owned(),
        None => app.platform.new_browser_secret()?,
    };
    let page = Some(query.page()).filter(|page| page.len() <= LONGEST_PAGE).unwrap_or("/");
    let back = back_to(&app, &headers, &provider);
    let tenant = query.tenant.as_deref();
    let wish = OidcWish { provider: &provider, browser: &browser, back: &back, tenant, page };
    match app.sign_in.oidc.begin(&wish).await {
        Ok(address) => {
            let mut response = Redirect::to(&address).into_response();
            response.headers_mut().append(header::SET_COOKIE, set_cookie(&app, &browser)?);
            Ok(response)
        }
        Err(error) => Ok(not_signed_in(&app, &query, error.into())),
    }
}

/// What a provider sends a browser back with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct BackQuery {
    state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Takes a browser back. What only the page may know is in no answer to a GET: the page gets a code that it signs in with.
async fn come_back(asked: Asked<BackQuery, Body>) -> Result<Response, Problem> {
    let provider = asked.part("provider")?.to_owned();
    let Asked { app, query, headers, .. } = asked;
    let back = back_to(&app, &headers, &provider);
    let refused = query.error_description.as_deref().or(query.error.as_deref()).unwrap_or("it gave no code");
    let answer = OidcAnswer {
        provider: &provider,
        browser: browser_of(&headers).unwrap_or_default(),
        back: &back,
        state: query.state.as_deref().unwrap_or_default(),
        code: query.code.as_deref().filter(|_| query.error.is_none()).ok_or(refused),
        issuer: query.iss.as_deref(),
    };
    match app.sign_in.oidc.finish(&answer).await {
        Ok((link, page)) => Ok(signed_in_page(&page, ("link", &link))),
        Err(error) => Ok(not_signed_in(&app, &SignInQuery::default(), error.into())),
    }
}

/// Every other way stays open when this one fails.
fn not_signed_in(app: &App, query: &SignInQuery, problem: Problem) -> Response {
    let page = sign_in_page(app, query, &sentence(&problem.error().message));
    let status = problem.into_response().status();
    (status, page).into_response()
}

/// A message as a sentence of its own.
pub(super) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Where a provider sends browsers back to.
fn back_to(app: &App, headers: &HeaderMap, provider: &str) -> String {
    format!("{}/sign-in/oidc/{provider}/back", app.place.url_for(headers))
}

fn browser_of(headers: &HeaderMap) -> Option<&str> {
    let is_ours = |value: &&str| value.len() == COOKIE_LENGTH && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    cookie_named(headers, COOKIE).filter(is_ours)
}

fn set_cookie(app: &App, value: &str) -> Result<HeaderValue, Problem> {
    let secure = if app.place.is_secure() { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={value}; Path=/sign-in/oidc; HttpOnly; SameSite=Lax; Max-Age=900{secure}");
    HeaderValue::from_str(&cookie).map_err(|_| Problem::mistake("the cookie cannot be sent"))
}
