//! The page to sign in, and what comes back to it.

use axum::{
    body::Body,
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use haft_runtime::ErrorCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    me,
    page::{escaped, is_own_page, script, task_page},
};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, NoFields, Route, RouteAccess, raw_route, whole_body},
};

/// The longest form that signs in.
const LONGEST_FORM: usize = 4096;

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Open;
    vec![
        raw_route(Method::GET, "/sign-in", Open, "The page to sign in.", sign_in),
        raw_route(Method::POST, "/sign-in", Open, "Signs in by the form that `haft open` makes.", sign_in_by_form),
        raw_route(Method::GET, "/sign-in.js", Open, "What the page to sign in does.", sign_in_script),
    ]
}

/// Where somebody wants to go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct SignInQuery {
    /// The page here that is shown then.
    pub(super) to: Option<String>,
    /// The tenant; the first one by default.
    pub(super) tenant: Option<String>,
}

impl SignInQuery {
    /// The page to go to: one of this server, whatever was asked for.
    pub(super) fn page(&self) -> &str {
        self.to.as_deref().filter(|to| is_own_page(to)).unwrap_or("/")
    }
}

/// Signing in. The code of a link stands behind `#`, which no server and no log sees; it is used when the button is pressed.
async fn sign_in(asked: Asked<SignInQuery, Body>) -> Result<Response, Problem> {
    let Asked { app, query, .. } = asked;
    Ok(sign_in_page(&app, &query, ""))
}

/// The page with every way to sign in that there is here, and what somebody should know.
pub(super) fn sign_in_page(app: &App, query: &SignInQuery, said: &str) -> Response {
    let wish = serde_urlencoded::to_string([("to", Some(query.page())), ("tenant", query.tenant.as_deref())]);
    let wish = escaped(&wish.unwrap_or_default());
    let providers: String = app
        .sign_in
        .oidc
        .providers()
        .map(|provider| {
            let (name, label) = (escaped(&provider.name), escaped(&provider.label));
            format!("<a class=\"button\" href=\"/sign-in/oidc/{name}?{wish}\">Sign in with {label}</a>")
        })
        .collect();
    let quiet = if providers.is_empty() { "" } else { " class=\"quiet\"" };
    let or = if providers.is_empty() { "" } else { "<p class=\"or\">or</p>" };
    let password = match app.sign_in.password {
        true => format!(
            "{or}<form id=\"password\"><label>E-mail \
             <input name=\"email\" type=\"email\" autocomplete=\"username\" required></label>\
             <label>Password <input name=\"password\" type=\"password\" autocomplete=\"current-password\" required></label>\
             <button{quiet}>Sign in</button></form>"
        ),
        false => String::new(),
    };
    let hint = match (app.sign_in.password, providers.is_empty()) {
        (false, true) => "<p>Open a link that you were sent, or run <code>haft open</code> on the machine itself.</p>",
        _ => "",
    };
    task_page(
        "Sign in to haft",
        &format!(
            "<p id=\"said\" class=\"said\" role=\"alert\">{}</p><form id=\"link\" hidden>\
             <p>This link signs you in once.</p><button>Sign in</button></form>\
             <div id=\"other-ways\">{providers}{password}{hint}</div>\
             <noscript><p>This page needs JavaScript to sign you in.</p></noscript><script src=\"/sign-in.js\"></script>",
            escaped(said)
        ),
    )
}

/// What the file of `haft open` posts.
#[derive(Deserialize)]
struct SignInForm {
    /// The code of a link.
    code: String,
    /// The page to go to.
    #[serde(default)]
    to: String,
}

/// Signs in by the file that `haft open` hands to the browser: a form with the code, so that this is in no address and no
/// history. What only the page may know is in the answer.
async fn sign_in_by_form(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let Asked { app, body, headers, .. } = asked;
    let bytes = whole_body(&headers, body, LONGEST_FORM).await?;
    let unreadable = |_| Problem::mistake("the form has a `code` and, where wanted, a page `to` go to");
    let SignInForm { code, to } = serde_urlencoded::from_bytes(&bytes).map_err(unreadable)?;
    let (csrf, cookie) = match me::begin_by_link(&app, &code).await {
        Ok(begun) => begun,
        Err(problem) if problem.error().code == ErrorCode::Unauthorized => {
            let why = escaped(&problem.error().message);
            let page = task_page("Not signed in", &format!("<p>{why}</p>"));
            return Ok((StatusCode::UNAUTHORIZED, page).into_response());
        }
        Err(problem) => return Err(problem),
    };
    let to = if is_own_page(&to) { to.as_str() } else { "/" };
    let mut response = signed_in_page(to, ("csrf", &csrf));
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

/// The page that goes on by itself, with something that its script needs.
pub(super) fn signed_in_page(to: &str, (name, value): (&str, &str)) -> Response {
    task_page(
        "Signing in",
        &format!(
            "<p id=\"said\" class=\"said\" role=\"alert\"></p>\
             <p><a id=\"signed-in\" class=\"button\" href=\"{}\" data-{name}=\"{}\">Go on</a></p>\
             <noscript><p>This page needs JavaScript to sign you in.</p></noscript><script src=\"/sign-in.js\"></script>",
            escaped(to),
            escaped(value)
        ),
    )
}

/// What the page does.
async fn sign_in_script(_asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    Ok(script(include_str!("sign_in.js")))
}
