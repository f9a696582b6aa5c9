//! Whether it lives, and what it can do.

use std::sync::OnceLock;

use axum::{
    body::{Body, Bytes},
    http::{Method, header},
    response::{IntoResponse, Response},
};

use super::{DONE, Done};
use crate::{
    metrics::{COUNTED, MetricsNow},
    openapi,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, raw_route, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Open;
    vec![
        route(Method::GET, "/healthz", Open, "Says that the process lives.", alive),
        route(Method::GET, "/readyz", Open, "Says that the database answers.", ready),
        raw_route(Method::GET, "/metrics", Open, "Numbers for Prometheus, on this machine and for its keys.", metrics),
        raw_route(Method::GET, "/openapi.json", Open, "Describes every route.", openapi),
    ]
}

/// The process lives.
pub(super) async fn alive(_asked: Asked) -> Result<JsonReply<Done>, Problem> {
    Ok(JsonReply::ok(DONE))
}

/// The database answers.
pub(super) async fn ready(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    if asked.app.stop.is_cancelled() {
        return Err(Problem::new(haft_runtime::ErrorCode::Unavailable, "this server is about to end"));
    }
    asked.app.platform.tenant("local").await?;
    Ok(JsonReply::ok(DONE))
}

/// What is counted.
pub(super) async fn metrics(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let app = asked.app;
    let (questions, waiting) = app.platform.open_counts(COUNTED).await?;
    let (reads, commits) = app.platform.database_latency();
    let spans = app.spans.as_ref().map(|spans| spans.counts());
    let text = app.metrics.text(&MetricsNow { questions, waiting, reads, commits, spans });
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// Every route. It is written once: anybody may ask for it, and it is long.
pub(super) async fn openapi(_asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| openapi::document(&super::all()).to_string().into());
    let headers = [(header::CONTENT_TYPE, crate::JSON), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, document.clone()).into_response())
}
