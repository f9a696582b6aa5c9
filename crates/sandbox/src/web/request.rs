//! What is asked of a host.

use std::time::Duration;

use hyper::{
    HeaderMap, Method, StatusCode, Uri,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
};
use tokio::time::Instant;
use url::Position;

use super::{error::WebError, rules::WebTarget};

/// Headers that say how a message is carried, or speak to somebody on the way: only the client sets them.
const CARRIAGE: &[HeaderName] = &[
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
const CARRIAGE_BY_NAME: &[&str] = &["keep-alive", "http2-settings"];
/// Headers that go along to another origin, because they say nothing of whoever asks.
const HARMLESS: &[HeaderName] = &[header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT];
/// How bodies may be packed: what `decode` can unpack.
const ENCODINGS: &str = "gzip, deflate, br";

/// How the body of an answer may be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEncoding {
    Any,
    None,
}

impl BodyEncoding {
    fn words(self) -> &'static str {
        match self {
            Self::Any => ENCODINGS,
            Self::None => "identity",
        }
    }
}

/// Whether a header may not be set by whoever asks.
pub fn is_forbidden(name: &HeaderName) -> bool {
    CARRIAGE.contains(name) || CARRIAGE_BY_NAME.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

/// One request, to a URL that keeps the rules.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where to.
    pub target: WebTarget,
    /// What to do there.
    pub method: Method,
    /// What to say beside it.
    pub headers: HeaderMap,
    /// What to send.
    pub body: Bytes,
    /// When the answer must be there, redirects included.
    pub until: Instant,
    /// How long the host may be silent, where the caller says so; otherwise the client's limit holds.
    pub silence: Option<Duration>,
}

impl Request {
    /// The message on the wire.
    pub(super) fn written<B>(&self, body: B, packing: BodyEncoding) -> Result<hyper::Request<B>, WebError> {
        let url = self.target.url();
        let mut written = hyper::Request::new(body);
        *written.method_mut() = self.method.clone();
        let uri = url[Position::BeforePath..Position::AfterQuery].parse::<Uri>();
        *written.uri_mut() = uri.map_err(|err| WebError::Unwritable(err.into()))?;
        let headers = written.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("haft/", env!("CARGO_PKG_VERSION"))));
        headers.extend(self.headers.clone());
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        headers.insert(header::HOST, host.map_err(|err| WebError::Unwritable(err.into()))?);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(packing.words()));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        Ok(written)
    }

    /// The request that a redirect asks for.
    pub(super) fn redirected(mut self, target: WebTarget, status: StatusCode) -> Self {
        let becomes_get = status == StatusCode::SEE_OTHER
            || (matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND) && self.method == Method::POST);
        if becomes_get {
            self.method = Method::GET;
            self.body = Bytes::new();
            for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_LANGUAGE] {
                self.headers.remove(name);
            }
        }
        if self.target.url().origin() != target.url().origin() {
            let kept = self.headers.into_iter();
            self.headers =
                kept.filter_map(|(name, value)| Some((name.filter(|name| HARMLESS.contains(name))?, value))).collect();
        }
        Self { target, ..self }
    }
}
