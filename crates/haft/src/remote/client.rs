//! Requests to a gateway, and what is said when one fails.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Result;
use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::web::{
    AllowRemedy, BodyEnd, Bytes, FetchLimits, HeaderMap, Method, Request, Response, StatusCode, Url, WebClient,
    WebError, WebRules, header,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::login::Login;
use crate::{commands::mistake, settings::Settings};

/// The variable with the key for a server.
pub(crate) const KEY: &str = "HAFT_KEY";
/// The most that is read of an answer.
const LONGEST: usize = 256 << 20;
/// How long one answer may take. A call that is not in the journal before its end is answered only then.
const ANSWERED_WITHIN: Duration = Duration::from_secs(900);
/// How long a stream of events may be silent: it has a comment every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);
/// How long a server that was there may be away, as when it is started again.
pub(super) const AWAY: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A gateway, and by what it knows whoever asks.
pub(crate) struct Client {
    url: String,
    web: WebClient,
    credentials: Credentials,
    /// Whether it has ever answered.
    heard: AtomicBool,
}

enum Credentials {
    Key(String),
    Login(Login),
    /// For what everybody may ask.
    None,
}

/// Why a request came to nothing, and all that the server said of it.
pub(crate) struct RequestError {
    pub(crate) error: Box<ToolError>,
    pub(crate) body: Value,
    /// Whether it was sent a second time because the first answer never came.
    pub(crate) repeated: bool,
}

impl From<RequestError> for anyhow::Error {
    fn from(err: RequestError) -> Self {
        (*err.error).into()
    }
}

impl From<ToolError> for RequestError {
    fn from(error: ToolError) -> Self {
        Self { error: Box::new(error), body: Value::Null, repeated: false }
    }
}

/// A request as it is sent, perhaps more than once.
struct SentRequest<'a> {
    method: Method,
    path: &'a str,
    kind: &'static str,
    body: Vec<u8>,
    idempotency_key: Option<String>,
}

impl<'a> SentRequest<'a> {
    fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, kind: "application/json", body: Vec::new(), idempotency_key: None }
    }
}

impl Client {
    /// The gateway at an address, for whoever has its key or has logged in there.
    pub(crate) fn open(url: &str, settings: &Settings) -> Result<Self> {
        let mut client = Self::unknown(url)?;
        client.credentials = match settings.variables.get(KEY).map(|key| key.trim()).filter(|key| !key.is_empty()) {
            Some(key) => Credentials::Key(key.to_owned()),
            None => match Login::kept(&settings.data, &client.url)? {
                Some(login) => Credentials::Login(login),
                None => {
                    let message = format!("nobody is logged in at {url}: set {KEY}, or run `haft login {url}`");
                    return Err(ToolError::new(ErrorCode::Unauthorized, message).into());
                }
            },
        };
        Ok(client)
    }

    /// The same for whoever has logged in there, whatever else is set.
    pub(crate) fn of_login(url: &str, settings: &Settings) -> Result<Self> {
        let mut client = Self::unknown(url)?;
        if let Some(login) = Login::kept(&settings.data, &client.url)? {
            client.credentials = Credentials::Login(login);
        }
        Ok(client)
    }

    /// The same for somebody whom it does not know.
    pub(crate) fn unknown(url: &str) -> Result<Self> {
        let (url, rules) = reach(url)?;
        let limits = FetchLimits { connect: Duration::from_secs(10), silence: ANSWERED_WITHIN };
        let web = WebClient::new(rules, limits);
        Ok(Self { url, web, credentials: Credentials::None, heard: AtomicBool::new(false) })
    }

    /// Its address, without a slash at the end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, RequestError> {
        self.exchange(&SentRequest::get(path)).await
    }

    /// Sends something that is done once, however often it has to be sent.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, RequestError> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let idempotency_key = Some(uuid::Uuid::now_v7().to_string());
        self.exchange(&SentRequest { method: Method::POST, body, idempotency_key, ..SentRequest::get(path) }).await
    }

    /// Sends a form, as OAuth wants it.
    pub(crate) async fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> Result<Value, RequestError> {
        let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let kind = "application/x-www-form-urlencoded";
        let sent =
            SentRequest { method: Method::POST, kind, body: pairs.join("&").into_bytes(), ..SentRequest::get(path) };
        let (status, body) = self.once(&sent).await.map_err(|failure| self.told(&failure))?;
        self.understood(status, &body)
    }

    /// Opens a stream of events behind the last one that was heard.
    pub(super) async fn stream(&self, path: &str, last: Option<&str>) -> Result<Response, StreamFailure> {
        let mut request = self.request(&SentRequest::get(path)).await.map_err(StreamFailure::Refused)?;
        request.silence = Some(SILENCE);
        request.until = Instant::now() + Duration::from_secs(24 * 3600);
        if let Some(last) = last.and_then(|last| last.parse().ok()) {
            request.headers.insert("last-event-id", last);
        }
        let response = self.web.stream(&request).await.map_err(|err| StreamFailure::Broken(err.into()))?;
        if response.status == StatusCode::OK {
            self.heard.store(true, Ordering::Relaxed);
            return Ok(response);
        }
        let status = response.status;
        if is_ending(status, &response.headers) {
            return Err(StreamFailure::Broken(Failure::Ends));
        }
        let body = response.read(LONGEST).await.map_err(|err| StreamFailure::Broken(err.into()))?.bytes;
        match self.understood(status, &body) {
            Ok(_) => Err(StreamFailure::Refused(self.not_haft(status))),
            Err(err) => Err(StreamFailure::Refused(*err.error)),
        }
    }

    /// Sends a request until it is answered. Whatever reached a server that went away is sent again, with the same key, so
    /// that nothing is done twice.
    async fn exchange(&self, sent: &SentRequest<'_>) -> Result<Value, RequestError> {
        let (mut away_since, mut pause, mut repeated, mut renewed) = (None, FIRST_PAUSE, false, false);
        loop {
            match self.once(sent).await {
                Ok((StatusCode::UNAUTHORIZED, _)) if !renewed && self.renew().await? => renewed = true,
                Ok((status, body)) => {
                    self.heard.store(true, Ordering::Relaxed);
                    return self.understood(status, &body).map_err(|err| RequestError { repeated, ..err });
                }
                Err(failure) => {
                    let reached = !failure.nothing_sent() || self.heard.load(Ordering::Relaxed);
                    let since = *away_since.get_or_insert_with(Instant::now);
                    if !reached || since.elapsed() > AWAY {
                        return Err(self.told(&failure).into());
                    }
                    repeated |= !failure.nothing_sent();
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    self.heard.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    async fn once(&self, sent: &SentRequest<'_>) -> Result<(StatusCode, Vec<u8>), Failure> {
        let request = self.request(sent).await.map_err(Failure::Refused)?;
        let response = self.web.send(&request).await?;
        let status = response.status;
        if is_ending(status, &response.headers) {
            return Err(Failure::Ends);
        }
        let body = response.read(LONGEST).await?;
        match body.end {
            BodyEnd::Whole => Ok((status, body.bytes)),
            BodyEnd::Limit => {
                Err(Failure::Refused(ToolError::new(ErrorCode::TooLarge, "the answer of the server is too long")))
            }
            BodyEnd::Broken(why) => Err(Failure::BrokenOff(why)),
        }
    }

    async fn request(&self, sent: &SentRequest<'_>) -> Result<Request, ToolError> {
        let unreadable = |why: String| ToolError::new(ErrorCode::InvalidArgs, why);
        let target =
            self.web.target(&format!("{}{}", self.url, sent.path)).map_err(|err| unreadable(err.to_string()))?;
        let mut headers = HeaderMap::new();
        let bearer = match &self.credentials {
            Credentials::Key(key) => Some(key.clone()),
            Credentials::Login(login) => Some(login.access_token().await?),
            Credentials::None => None,
        };
        if let Some(bearer) = bearer {
            let value = format!("Bearer {bearer}").parse();
            let value = value.map_err(|_| unreadable(format!("{KEY} is no key: it has characters that no key has")))?;
            headers.insert(header::AUTHORIZATION, value);
        }
        if !sent.body.is_empty() {
            headers.insert(header::CONTENT_TYPE, sent.kind.parse().map_err(|_| unreadable("no such kind".to_owned()))?);
        }
        if let Some(key) = sent.idempotency_key.as_ref().and_then(|key| key.parse().ok()) {
            headers.insert("idempotency-key", key);
        }
        let (method, body) = (sent.method.clone(), Bytes::from(sent.body.clone()));
        Ok(Request { target, method, headers, body, until: Instant::now() + ANSWERED_WITHIN, silence: None })
    }

    /// Gets a new token where one was no longer taken; `false` where there is nothing to renew.
    async fn renew(&self) -> Result<bool, ToolError> {
        match &self.credentials {
            Credentials::Login(login) => login.renew().await.map(|()| true),
            Credentials::Key(_) | Credentials::None => Ok(false),
        }
    }

    /// What the server said, as JSON; what it refused, as an error that says what to do.
    fn understood(&self, status: StatusCode, body: &[u8]) -> Result<Value, RequestError> {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return Err(self.not_haft(status).into()) };
        if status.is_success() {
            return Ok(body);
        }
        let Ok(error) = serde_json::from_value::<RemoteError>(body["error"].clone()) else {
            // OAuth says it in its own way.
            if let (Some(code), why) = (body["error"].as_str(), body["error_description"].as_str()) {
                let message = format!("{} refuses: {}", self.url, why.unwrap_or(code));
                let error = Box::new(ToolError::new(ErrorCode::Unauthorized, message));
                return Err(RequestError { error, body, repeated: false });
            }
            return Err(self.not_haft(status).into());
        };
        let error = Box::new(self.explained(status, error));
        Err(RequestError { error, body, repeated: false })
    }

    fn explained(&self, status: StatusCode, said: RemoteError) -> ToolError {
        let url = &self.url;
        let message = match (status, &self.credentials) {
            (StatusCode::UNAUTHORIZED, Credentials::Key(_)) => {
                format!("{url} does not know this key: {KEY} is wrong, has expired or was revoked")
            }
            (StatusCode::UNAUTHORIZED, Credentials::Login(_)) => {
                format!("the login at {url} has ended; run `haft login {url}`")
            }
            // These words are those of a haft that has no such route.
            (StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, _) if said.message.contains("/openapi.json") => {
                format!("the haft at {url} is older than this one and cannot do this; update it")
            }
            _ => said.message,
        };
        let details = said.details.as_object().cloned().unwrap_or_default();
        ToolError { recoverable: said.recoverable, details, ..ToolError::new(said.code, message) }
    }

    fn not_haft(&self, status: StatusCode) -> ToolError {
        let message = format!("{} is no haft server: it answered {status} and no JSON; check the address", self.url);
        ToolError::new(ErrorCode::UpstreamError, message)
    }

    /// Why the server could not be asked.
    fn told(&self, failure: &Failure) -> ToolError {
        let url = &self.url;
        match failure {
            Failure::Refused(error) => error.clone(),
            Failure::Web(err @ (WebError::Broken { .. } | WebError::Silent { .. } | WebError::Late)) => {
                let message = format!("{url} broke off: {err}; check that haft runs there, then try again");
                ToolError::new(ErrorCode::NetworkError, message)
            }
            Failure::Web(err) => {
                let cause = std::error::Error::source(err).map_or_else(String::new, |cause| format!(" ({cause})"));
                let message =
                    format!("{url} cannot be reached: {err}{cause}; check the address, and that haft runs there");
                ToolError::new(ErrorCode::NetworkError, message)
            }
            Failure::Ends => {
                ToolError::new(ErrorCode::Unavailable, format!("the haft at {url} has just ended; try again later"))
            }
            Failure::BrokenOff(why) => {
                ToolError::new(ErrorCode::NetworkError, format!("{url} broke off ({why}); try again"))
            }
        }
    }

    /// Why a stream could not be had, or that its server went away.
    pub(super) fn told_of_stream(&self, failure: StreamFailure) -> ToolError {
        match failure {
            StreamFailure::Refused(error) => error,
            StreamFailure::Broken(failure) => self.told(&failure),
        }
    }
}

/// Why nothing was answered.
pub(super) enum Failure {
    /// It was not even sent, or cannot be used.
    Refused(ToolError),
    Web(WebError),
    /// The answer ended too soon.
    BrokenOff(String),
    /// The server takes no new requests: it ends, and another one may come.
    Ends,
}

/// Whether a server asks to come back in a moment.
fn is_ending(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::SERVICE_UNAVAILABLE && headers.contains_key(header::RETRY_AFTER)
}

impl From<WebError> for Failure {
    fn from(err: WebError) -> Self {
        Self::Web(err)
    }
}

impl Failure {
    fn nothing_sent(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Web(err) => err.nothing_sent(),
            // It was there, which is all that matters: it is asked again.
            Self::BrokenOff(_) | Self::Ends => false,
        }
    }
}

/// Why there is no stream.
pub(super) enum StreamFailure {
    /// The server says no.
    Refused(ToolError),
    /// The server is away.
    Broken(Failure),
}

/// An error as servers say it.
#[derive(serde::Deserialize)]
struct RemoteError {
    code: ErrorCode,
    message: String,
    #[serde(default)]
    recoverable: bool,
    #[serde(default)]
    details: Value,
}

/// The address of a server as it is kept, and the rules that let it be reached and nothing else. Whoever names a server may
/// name one on this machine or in their own network.
fn reach(text: &str) -> Result<(String, WebRules)> {
    let wrong =
        |why: &str| mistake(format!("`{text}` is no address of a server: {why}, such as https://haft.example.org"));
    let url = Url::parse(text.trim()).map_err(|_| wrong("write it whole"))?;
    if !matches!(url.scheme(), "http" | "https") || !matches!(url.path(), "" | "/") || url.query().is_some() {
        return Err(wrong("write http or https, a host, and nothing behind its port"));
    }
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(wrong("it names no host"));
    };
    if url.scheme() == "http" && !is_this_machine(host) {
        return Err(mistake(format!(
            "{text} would send your key for everybody on the way to read; use https, or a tunnel to 127.0.0.1"
        )));
    }
    let allowed = format!("{host}:{port}").parse().map_err(|_| wrong("it names no host"))?;
    let rules = WebRules { ports: vec![port], allowed: vec![allowed], remedy: AllowRemedy::Settings };
    Ok((url.origin().ascii_serialization(), rules))
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// A path with a query of those fields that have a value.
pub(crate) fn query(path: &str, fields: &[(&str, Option<String>)]) -> String {
    let pairs = fields.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(value.as_ref()?))));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// A text as a part of an address.
pub(crate) fn encoded(text: &str) -> String {
    const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, PART).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn a_key_is_sent_in_the_clear_on_this_machine_alone() {
        for (typed, kept) in [
            ("http://127.0.0.1:7373/", "http://127.0.0.1:7373"),
            ("http://localhost:80", "http://localhost"),
            ("http://[::1]:7373", "http://[::1]:7373"),
            ("https://Haft.Example.org", "https://haft.example.org"),
        ] {
            assert_eq!(reach(typed).unwrap().0, kept);
        }
        for wrong in ["http://haft.example.org", "http://10.0.0.1:7373", "ftp://a", "a.example", "https://a.example/x"]
        {
            reach(wrong).unwrap_err();
        }
    }

    #[test]
    fn a_query_has_what_has_a_value() {
        assert_eq!(query("/a", &[("b", None), ("c", Some("d e&".to_owned()))]), "/a?c=d%20e%26");
        assert_eq!(query("/a", &[]), "/a");
    }
}
