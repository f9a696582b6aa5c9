//! What is said of every request: its id, a line in the log, its numbers. And what becomes of requests when the server ends.

use std::{sync::Arc, time::Instant};

use axum::{
    body::{Body, Bytes},
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use haft_runtime::{CallerId, ErrorCode, OpenSpan, SpanKind, TraceContext, in_trace};

use crate::{app::App, metrics::OpenStream, problem::Problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The longest id that is taken from a client.
const LONGEST_ID: usize = 64;
/// The last word of a stream when the server ends. Clients come back by themselves.
const GOODBYE: &[u8] = b": this server ends\n\n";

/// Asked by machines that watch this one: nobody is there because of them, and they are answered to the end.
pub(crate) const WATCHED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Sees every request come and its answer go. Nothing of a path, a query, a body or a credential is written down: of the path
/// only the pattern that it fits.
pub(crate) async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), request.method().clone());
    let route = app.metrics.route(request.extensions().get::<MatchedPath>().map(MatchedPath::as_str));
    let id = request_id(request.headers());
    let is_watched = WATCHED.contains(&route);
    if !is_watched {
        app.metrics.somebody_asked();
    }
    let mut response = match is_watched {
        true => next.run(request).await,
        false => traced(&app, (&method, route), request, next).await,
    };
    let (caller, status, time) = (response.extensions_mut().remove::<CallerId>(), response.status(), began.elapsed());
    app.metrics.answered((&method, route), status.as_u16(), time);
    tracing::info!(
        %method,
        route,
        status = status.as_u16(),
        ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        caller = caller.map(|caller| caller.to_string()),
        request = id,
        "request"
    );
    response.headers_mut().extend(HeaderValue::from_str(&id).map(|id| (REQUEST_ID, id)));
    match is_stream(&response) {
        true => counted(&app, response),
        false => response,
    }
}

/// Answers a request as a part of the trace that it says it belongs to, or as the beginning of one.
async fn traced(app: &App, (method, route): (&Method, &'static str), mut request: Request, next: Next) -> Response {
    let parent = request.headers().get(TRACEPARENT).and_then(|told| told.to_str().ok()).and_then(TraceContext::parse);
    let span = OpenSpan::begin(app.spans.as_ref(), parent);
    let place = span.as_ref().map(OpenSpan::place).or(parent);
    // The MCP server works in tasks of its own and takes its place from here.
    if let Some(place) = place {
        request.extensions_mut().insert(place);
    }
    let response = in_trace(place, until_the_end(app, request, next)).await;
    if let Some(span) = span {
        let status = response.status();
        span.end(SpanKind::Server, format!("{method} {route}"), |span, _| {
            span.attributes.push(("http.request.method", method.as_str().into()));
            span.attributes.push(("http.route", route.into()));
            span.attributes.push(("http.response.status_code", status.as_u16().into()));
            span.error = status.is_server_error().then(|| status.as_u16().to_string());
        });
    }
    response
}

/// Answers a request, unless the server has begun to end. What is under way then may end by itself, until all of it is cut
/// short: a call that loses its request is cancelled and recorded so.
async fn until_the_end(app: &App, request: Request, next: Next) -> Response {
    if app.stop.is_cancelled() {
        return ending();
    }
    let _under_way = app.requests.each.token();
    tokio::select! {
        biased;
        response = next.run(request) => response,
        () = app.requests.cut.cancelled() => ending(),
    }
}

fn ending() -> Response {
    let problem = Problem::new(ErrorCode::Unavailable, "this server ends; ask again in a moment");
    let mut response = problem.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The id of a request: the client's own where it is short and plain, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|given| given.to_str().ok());
    let plain = |id: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(is_plain)
    };
    given.filter(plain).map_or_else(|| format!("rq_{}", uuid::Uuid::now_v7().simple()), str::to_owned)
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// The same stream, counted for as long as it is open. When the server ends, so does the stream, with a comment.
fn counted(app: &Arc<App>, response: Response) -> Response {
    let (head, body) = response.into_parts();
    let open: OpenStream = app.metrics.stream();
    let rest = Some((body.into_data_stream(), Arc::clone(app), open));
    let frames = stream::unfold(rest, |rest| async move {
        let (mut frames, app, open) = rest?;
        match frames.next().await {
            Some(frame) => Some((frame, Some((frames, app, open)))),
            None if app.stop.is_cancelled() => Some((Ok(Bytes::from_static(GOODBYE)), None)),
            None => None,
        }
    });
    Response::from_parts(head, Body::from_stream(frames))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_from_a_client_only_if_it_is_short_and_plain() {
        let id = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(given).unwrap());
            request_id(&headers)
        };
        assert_eq!(id("a-1_b.2"), "a-1_b.2");
        for wrong in ["", "a b", "a\"b", "{}", &"x".repeat(65)] {
            assert!(id(wrong).starts_with("rq_"), "{wrong}");
        }
        assert!(request_id(&HeaderMap::new()).starts_with("rq_"));
    }
}
