//! Bodies that are no message: each gets its JSON-RPC error, as a line of standard input does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::TryStreamExt;

use crate::JSON;

/// What the service behind has read of a body. It reads no more than it may, so no more is kept.
#[derive(Clone, Default)]
struct Read(Arc<Mutex<Vec<Bytes>>>);

/// Answers in the place of the service behind what that could not read. It says 415 to every body that is no message, and
/// only that is looked at again.
pub(crate) async fn answer(request: Request, next: Next) -> Response {
    if !is_json(request.headers()) {
        return next.run(request).await;
    }
    let read = Read::default();
    let reading = read.clone();
    let keep = move |piece: &Bytes| reading.pieces().push(piece.clone());
    let request = request.map(|body| Body::from_stream(body.into_data_stream().inspect_ok(keep)));
    let response = next.run(request).await;
    if response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return response;
    }
    match haft_mcp::misread(&read.pieces().concat()) {
        Some(error) => (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, JSON)], error).into_response(),
        None => response,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(JSON))
}

impl Read {
    fn pieces(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
