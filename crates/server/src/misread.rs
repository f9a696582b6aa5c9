//! Bodies that are no message: each gets its JSON-RPC error, as a line of standard input does.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use haft_mcp::LONGEST_MESSAGE;

use crate::{JSON, large_bodies::BodyPlace, route::whole_body};

/// Reads the body, as far as it is no longer than a message and comes in time, and answers in the place of the service behind
/// what that could not read. It says 415 to every body that is no message, and only that is looked at again.
pub(crate) async fn answer(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let place = parts.extensions.remove::<BodyPlace>();
    let body = match whole_body(&parts.headers, body, LONGEST_MESSAGE).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    drop(place);
    let is_json = is_json(&parts.headers);
    let response = next.run(Request::from_parts(parts, Body::from(body.clone()))).await;
    if !is_json || response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return response;
    }
    match haft_mcp::misread(&body) {
        Some(error) => (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, JSON)], error).into_response(),
        None => response,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(JSON))
}
