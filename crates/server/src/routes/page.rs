//! The few pages that the server itself writes.

use axum::{
    body::Body,
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use haft_platform::{Permission, QuestionFilter};
use haft_runtime::{About, Caller, ErrorCode, Question, TenantId};
use serde::Deserialize;

use super::me;
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, NoFields, Route, RouteAccess, raw_route, whole_body},
};

/// How many open questions the page shows.
const SHOWN: u32 = 50;
/// The longest form that signs in.
const LONGEST_FORM: usize = 4096;

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Open;
    vec![
        raw_route(Method::GET, "/", Open, "The page of this server.", home),
        raw_route(Method::GET, "/sign-in", Open, "The page to sign in.", sign_in),
        raw_route(Method::POST, "/sign-in", Open, "Signs in by the form that `haft open` makes.", sign_in_by_form),
        raw_route(Method::GET, "/sign-in.js", Open, "What the page to sign in does.", sign_in_script),
    ]
}

/// What there is here, until there is an app.
pub(super) async fn home(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    // A body cannot be looked at from two places, so that it is let go here.
    let Asked { app, identity, .. } = asked;
    let who = match &identity {
        Some(identity) => format!("<p class=\"who\">Signed in as <b>{}</b></p>", escaped(&identity.caller.name)),
        None => "<p class=\"who\"><a href=\"/sign-in\">Sign in</a>, or use a key.</p>".to_owned(),
    };
    let questions = match &identity {
        Some(identity) => open_questions(&app, &identity.caller).await?,
        None => String::new(),
    };
    Ok(page(&format!("<header><h1>haft</h1>{who}</header><main>{questions}{WHAT_IS_HERE}</main>")))
}

const WHAT_IS_HERE: &str = "<section><h2>What is here</h2><ul>\
    <li><a href=\"/openapi.json\">/openapi.json</a> describes every route</li>\
    <li><code>POST /api/tools/TOOL/calls</code> calls a tool</li>\
    <li><code>GET /api/approvals?state=open</code> lists what waits for an answer</li>\
    <li><code>GET /api/events</code> tells everything as it happens</li>\
    <li><code>/mcp</code> serves MCP clients</li></ul></section>";

/// What waits for an answer, for those who may see it.
async fn open_questions(app: &App, caller: &Caller) -> Result<String, Problem> {
    if !caller.permissions.allow(Permission::ApprovalsRead.word()) {
        return Ok(String::new());
    }
    let filter = QuestionFilter { limit: SHOWN, ..QuestionFilter::default() };
    let (found, more) = app.platform.questions(caller, false, &filter).await?;
    if found.is_empty() {
        return Ok("<section><h2>Open questions</h2><p>Nothing waits for an answer.</p></section>".to_owned());
    }
    let is_local = *caller.scope.tenant() == TenantId::local();
    let items: String = found.iter().map(|(question, _)| listed(app, question, is_local)).collect();
    let more = match more {
        Some(_) => format!("<p>These are the newest {SHOWN}. <a href=\"/api/approvals?limit=200\">All of them</a></p>"),
        None => String::new(),
    };
    Ok(format!("<section><h2>Open questions</h2><ol class=\"questions\">{items}</ol>{more}</section>"))
}

/// One question: what asks, why, and how to answer it.
fn listed(app: &App, question: &Question, is_local: bool) -> String {
    let call = &question.call;
    let answers = match (&question.about, is_local) {
        (About::Approval(_), true) => vec![format!("haft approve {call}"), format!("haft reject {call}")],
        (About::Form(_) | About::Result(_), true) => vec![format!("haft approve {call} --input JSON")],
        (About::Approval(_), false) => {
            vec![format!("POST /api/approvals/{call}/approve"), format!("POST /api/approvals/{call}/reject")]
        }
        (About::Form(_) | About::Result(_), false) => vec![format!("POST /api/approvals/{call}/fill")],
    };
    let answers: String = answers.iter().map(|answer| format!("<code>{answer}</code>")).collect();
    let place = question.workspace.as_ref().map(|place| format!(" in {}", escaped(place.as_str()))).unwrap_or_default();
    format!(
        "<li id=\"{call}\"><h3>{tool}</h3><p>{reason}</p><p class=\"facts\">asked by {by}{place} · open until {until} · \
         <a href=\"/api/approvals/{call}\">details as JSON</a></p><div class=\"answers\">{answers}</div></li>",
        tool = escaped(&question.tool),
        reason = escaped(&app.redactor.text(&question.reason)),
        by = escaped(&question.asked_by.name),
        until = question.expires_at.strftime("%Y-%m-%d %H:%M UTC"),
    )
}

/// Signing in. The code of a link stands behind `#`, which no server and no log sees; it is used when the button is pressed.
pub(super) async fn sign_in(_asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    Ok(page(
        "<h1>Sign in to haft</h1><form id=\"link\" hidden><button>Sign in</button></form>\
         <form id=\"password\"><label>E-mail <input name=\"email\" type=\"email\" autocomplete=\"username\" required></label>\
         <label>Password <input name=\"password\" type=\"password\" autocomplete=\"current-password\" required></label>\
         <button>Sign in</button></form><p id=\"said\" role=\"status\"></p><script src=\"/sign-in.js\"></script>",
    ))
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
pub(super) async fn sign_in_by_form(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let Asked { app, body, headers, .. } = asked;
    let bytes = whole_body(&headers, body, LONGEST_FORM).await?;
    let unreadable = |_| Problem::mistake("the form has a `code` and, where wanted, a page `to` go to");
    let SignInForm { code, to } = serde_urlencoded::from_bytes(&bytes).map_err(unreadable)?;
    let (csrf, cookie) = match me::begin_by_link(&app, &code).await {
        Ok(begun) => begun,
        Err(problem) if problem.error().code == ErrorCode::Unauthorized => {
            let why = escaped(&problem.error().message);
            let page = page(&format!("<h1>Not signed in</h1><p>{why}</p>"));
            return Ok((StatusCode::UNAUTHORIZED, page).into_response());
        }
        Err(problem) => return Err(problem),
    };
    let to = if is_own_page(&to) { to.as_str() } else { "/" };
    let body = format!(
        "<h1>Signed in</h1><p><a id=\"signed-in\" href=\"{}\" data-csrf=\"{}\">Go on</a></p><script src=\"/sign-in.js\"></script>",
        escaped(to),
        escaped(&csrf)
    );
    let mut response = page(&body);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Whether a text is the path of a page here, and not the address of another server.
fn is_own_page(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\n', '\r', '\t'])
}

/// What the page does.
pub(super) async fn sign_in_script(_asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let kind = HeaderValue::from_static("text/javascript; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], include_str!("sign_in.js")).into_response())
}

const STYLE: &str = include_str!("page.css");

pub(super) fn page(body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>haft</title>\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><style>{STYLE}</style></head>\
         <body>{body}</body></html>"
    );
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; \
                 frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
            ),
        ),
    ];
    (StatusCode::OK, headers, html).into_response()
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_gone_to() {
        assert!(is_own_page("/") && is_own_page("/approvals/tc_1?tenant=a"));
        for wrong in ["", "https://evil.example", "//evil.example", "/\\evil.example", "/a\nb", "javascript:alert(1)"] {
            assert!(!is_own_page(wrong), "{wrong}");
        }
    }
}
