//! The one shape of an error also for what never reaches a handler, and for handlers that break off.

use std::panic::AssertUnwindSafe;

use axum::{
    body::{Bytes, to_bytes},
    extract::Request,
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use haft_runtime::ErrorCode;

use crate::problem::Problem;

/// The longest target of a request: its path and its query.
const LONGEST_TARGET: usize = 8 << 10;
/// The most that is said in plain words.
const LONGEST_WORDS: usize = 4096;
/// The most bytes that the head of a request may have.
pub(crate) const LONGEST_HEAD: usize = 64 << 10;

/// Answers in the place of a handler that breaks off by a fault. What it broke off with stays in the log.
pub(crate) async fn survive(request: Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => Problem::new(ErrorCode::Internal, "the request broke off by a fault in haft").into_response(),
    }
}

/// Refuses what is too long to be a path with its query, and gives the one shape to what a service behind refuses in plain
/// words or breaks off.
pub(crate) async fn shape(request: Request, next: Next) -> Response {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > LONGEST_TARGET {
        return too_long_a_target().into_response();
    }
    shaped(survive(request, next).await).await
}

fn too_long_a_target() -> Problem {
    let message = format!("the path and the query have more than {LONGEST_TARGET} bytes; send long values in the body");
    Problem::new(ErrorCode::TooLarge, message).status(StatusCode::URI_TOO_LONG)
}

/// Of errors, plain words become the one shape; everything else stays as it is.
async fn shaped(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    let is_plain = kind.is_none_or(|kind| kind.starts_with(b"text/plain"));
    let status = response.status();
    if !is_plain || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let words = to_bytes(body, LONGEST_WORDS).await.unwrap_or_default();
    let words = match String::from_utf8_lossy(&words) {
        words if words.trim().is_empty() => status.canonical_reason().unwrap_or("refused").to_lowercase().into(),
        words => words,
    };
    let problem = Problem::new(code_of(status), words.trim()).status(status);
    head.headers.remove(header::CONTENT_TYPE);
    head.headers.remove(header::CONTENT_LENGTH);
    let mut shaped = problem.into_response();
    shaped.headers_mut().extend(head.headers);
    shaped
}

/// The code that goes with a status.
fn code_of(status: StatusCode) -> ErrorCode {
    match status {
        StatusCode::UNAUTHORIZED => ErrorCode::Unauthorized,
        StatusCode::FORBIDDEN => ErrorCode::Forbidden,
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        StatusCode::CONFLICT => ErrorCode::Conflict,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::TooLarge,
        StatusCode::TOO_MANY_REQUESTS => ErrorCode::RateLimited,
        status if status.is_client_error() => ErrorCode::InvalidArgs,
        _ => ErrorCode::Internal,
    }
}

/// What is said instead of an answer without a body to a head that cannot be read. The status stays what it was.
pub(crate) fn in_the_place_of(answer: &[u8]) -> Bytes {
    let status = answer.get(9..12).and_then(|digits| StatusCode::from_bytes(digits).ok());
    let status = status.filter(StatusCode::is_client_error).unwrap_or(StatusCode::BAD_REQUEST);
    let problem = match status {
        StatusCode::URI_TOO_LONG => too_long_a_target(),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            let message = format!("the head of the request has more than {LONGEST_HEAD} bytes or 100 headers");
            Problem::new(ErrorCode::TooLarge, message)
        }
        _ => Problem::mistake("the head of the request is no HTTP/1.1"),
    };
    let body = problem.into_body().to_string();
    let head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {}\r\ncontent-length: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        crate::JSON,
        body.len()
    );
    Bytes::from(head + &body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn what_is_said_of_an_unreadable_head_has_the_one_shape() {
        for (given, status, code) in [
            ("HTTP/1.1 431 Request Header Fields Too Large\r\n", "HTTP/1.1 431", "TOO_LARGE"),
            ("HTTP/1.1 414 URI Too Long\r\n", "HTTP/1.1 414", "TOO_LARGE"),
            ("HTTP/1.1 400 Bad Request\r\n", "HTTP/1.1 400", "INVALID_ARGS"),
            ("", "HTTP/1.1 400", "INVALID_ARGS"),
        ] {
            let said = String::from_utf8(in_the_place_of(given.as_bytes()).to_vec()).unwrap();
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert!(head.starts_with(status) && head.contains("connection: close"), "{head}");
            assert_eq!(body["error"]["code"], code, "{body}");
        }
    }
}
