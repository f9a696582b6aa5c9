//! The one shape of an error over HTTP, and which status goes with it.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use haft_runtime::{ErrorCode, ToolError};
use serde_json::{Map, Value, json};

/// What a request that is refused gets: a status, the error, and what else helps.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    error: Box<ToolError>,
    beside: Map<String, Value>,
}

impl Problem {
    /// With the status that usually goes with the code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ToolError::new(code, message).into()
    }

    /// A request that says something impossible.
    pub(crate) fn mistake(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgs, message)
    }

    /// What is not there, or not for this caller.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no {what}"))
    }

    /// The error alone.
    pub(crate) fn error(&self) -> &ToolError {
        &self.error
    }

    /// The same with another status.
    #[must_use]
    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// What is said of it, also where it is one of several answers.
    pub(crate) fn into_body(self) -> Value {
        let ToolError { code, message, recoverable, details, .. } = *self.error;
        let mut error = json!({"code": code, "message": message, "recoverable": recoverable});
        if !details.is_empty() {
            error["details"] = Value::Object(details);
        }
        let mut body = self.beside;
        body.insert("error".to_owned(), error);
        Value::Object(body)
    }

    /// The same with one more fact beside the error.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, fact: impl Into<Value>) -> Self {
        self.beside.insert(name.to_owned(), fact.into());
        self
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        Self { status: status_of(error.code), error: Box::new(error), beside: Map::new() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let wait = self.error.details.get("retryAfterMs").and_then(Value::as_u64).map(|ms| ms.div_ceil(1000).max(1));
        let mut response = (self.status, Json(self.into_body())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = wait.and_then(|seconds| HeaderValue::from_str(&seconds.to_string()).ok()) {
            headers.insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

/// The status that goes with a code.
fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidArgs | ErrorCode::InvalidPath => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden
        | ErrorCode::PermissionDenied
        | ErrorCode::CommandBlocked
        | ErrorCode::NotTrusted
        | ErrorCode::ToolHeld
        | ErrorCode::UrlNotAllowed => StatusCode::FORBIDDEN,
        ErrorCode::NotFound | ErrorCode::ToolNotFound | ErrorCode::FileNotFound => StatusCode::NOT_FOUND,
        ErrorCode::Conflict
        | ErrorCode::AlreadyExists
        | ErrorCode::Rejected
        | ErrorCode::Cancelled
        | ErrorCode::Interrupted => StatusCode::CONFLICT,
        ErrorCode::Expired | ErrorCode::ApprovalExpired => StatusCode::GONE,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::RateLimited | ErrorCode::QuotaReached => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::OutputInvalid
        | ErrorCode::IsADirectory
        | ErrorCode::NotADirectory
        | ErrorCode::NotEmpty
        | ErrorCode::NoMatch
        | ErrorCode::AmbiguousMatch
        | ErrorCode::StaleFile
        | ErrorCode::BinaryFile => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::StoreUnavailable
        | ErrorCode::Unavailable
        | ErrorCode::Busy
        | ErrorCode::NetworkError
        | ErrorCode::ResourceLimit
        | ErrorCode::SandboxUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::UpstreamError | ErrorCode::Timeout | ErrorCode::OutcomeUnknown => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::ExecutionError | ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
