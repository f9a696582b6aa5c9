//! The few pages that the server itself writes.

use axum::{
    body::Body,
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use haft_platform::{Permission, QuestionFilter};
use haft_runtime::{About, Caller, Question, TenantId};

use crate::{
    app::App,
    problem::Problem,
    route::{Asked, NoFields, Route, RouteAccess, raw_route},
};

/// How many open questions the page shows.
const SHOWN: u32 = 50;

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    vec![raw_route(Method::GET, "/", RouteAccess::Open, "The page of this server.", home)]
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

const STYLE: &str = include_str!("page.css");

/// A page of its own.
pub(super) fn page(body: &str) -> Response {
    titled_page("haft", body)
}

/// A page for one thing that somebody does: its title is its headline, too.
pub(super) fn task_page(title: &str, body: &str) -> Response {
    let title = escaped(title);
    titled_page(&title, &format!("<main class=\"task\"><h1>{title}</h1>{body}</main>"))
}

fn titled_page(title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
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
                 frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
            ),
        ),
    ];
    (StatusCode::OK, headers, html).into_response()
}

/// A script of a page.
pub(super) fn script(text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"))], text).into_response()
}

/// Whether a text is the path of a page here, and not the address of another server.
pub(super) fn is_own_page(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains(|letter: char| letter == '\\' || letter.is_control())
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
