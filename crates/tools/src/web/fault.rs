//! What went wrong on the web, as the one error that callers see.

use std::error::Error;

use haft_runtime::{Category, ErrorCode, ToolError};
use haft_sandbox::web::{Refusal, WebError};

/// A URL that may not be fetched.
pub(super) fn refused(refusal: &Refusal) -> ToolError {
    ToolError::new(ErrorCode::UrlNotAllowed, refusal.to_string()).with("url", refusal.url.clone())
}

/// A URL that another leads to, and that may not be fetched. `what` completes "cannot …".
pub(super) fn leads_astray(what: &str, refusal: &Refusal) -> ToolError {
    let Refusal { url, rule } = refusal;
    let message = format!("cannot {what}: it redirects to `{url}`, which may not be fetched: {rule}");
    ToolError::new(ErrorCode::UrlNotAllowed, message).with("url", url.clone())
}

/// Why something could not be had. `what` completes "cannot …".
pub(super) fn failed(what: &str, error: &WebError) -> ToolError {
    let network =
        |why: &str, next: &str| ToolError::new(ErrorCode::NetworkError, format!("cannot {what}: {why}; {next}"));
    let lasting = |error: ToolError| ToolError { recoverable: false, ..error };
    let why = told(error);
    let error_told = match error {
        WebError::Refused(refusal) => return refused(refusal),
        WebError::Unresolved { .. } => network(&why, "check its spelling, and that this machine has a network"),
        WebError::Unreachable { .. } => network(&why, "nothing answers there now; check the port, or try later"),
        WebError::Insecure { .. } => {
            lasting(network(&why, "its certificate or its TLS is at fault, and nothing was sent"))
        }
        WebError::NoRoots { .. } => lasting(network(&why, "a person has to set this up")),
        WebError::SlowToConnect { .. } => {
            network(&why, "`web.connect` is how long it may").in_category(Category::Timeout)
        }
        WebError::Silent { .. } => {
            network(&why, "a longer `timeoutMs` gives it more time, and so does `web.silence` in the settings")
                .in_category(Category::Timeout)
        }
        WebError::Late => {
            let next = "`timeoutMs` is how long it may take";
            ToolError::new(ErrorCode::Timeout, format!("cannot {what}: {why}; {next}"))
        }
        WebError::Broken { .. } => network(&why, "the host, or the network on the way to it, is at fault"),
        WebError::TooManyRedirects { .. } => lasting(network(&why, "use the URL that it should lead to")),
        WebError::Unwritable(_) => {
            return ToolError::new(ErrorCode::InvalidArgs, format!("cannot {what}: {why}"));
        }
    };
    if error.nothing_sent() { error_told.having_done_nothing() } else { error_told }
}

/// The error with everything that led to it.
fn told(error: &WebError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text} ({words})");
        }
        cause = inner.source();
    }
    text
}
