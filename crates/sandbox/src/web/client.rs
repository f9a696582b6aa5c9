//! One request over one connection.

use std::{
    error::Error,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};

use super::{
    dial::Duplex,
    error::{Refusal, WebError},
    request::{BodyEncoding, Request},
    resolve::Resolver,
    rules::{WebRules, WebTarget},
    timeout_stream::TimeoutStream,
    tls::Tls,
};

/// The most bytes that the head of an answer may have.
const LARGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 200;

/// How long a host may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// To be looked up, to take a connection and to secure it.
    pub connect: Duration,
    /// Between two signs of life.
    pub silence: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), silence: Duration::from_secs(2) }
    }
}

/// Sends requests to what the rules let through, and to nothing else.
#[derive(Debug)]
pub struct WebClient {
    pub(super) rules: WebRules,
    pub(super) limits: FetchLimits,
    pub(super) resolver: Resolver,
    pub(super) tls: Tls,
}

impl WebClient {
    /// A client that keeps these rules. It knows no proxy.
    pub fn new(rules: WebRules, limits: FetchLimits) -> Self {
        Self { rules, limits, resolver: Resolver::of_system(), tls: Tls::default() }
    }

    /// The same, with names looked up elsewhere.
    #[must_use]
    pub fn resolving_with(self, resolver: Resolver) -> Self {
        Self { resolver, ..self }
    }

    /// One with other rules and limits that shares everything else with this one.
    #[must_use]
    pub fn beside(&self, rules: WebRules, limits: FetchLimits) -> Self {
        Self { rules, limits, resolver: self.resolver.clone(), tls: self.tls.clone() }
    }

    /// What may be reached.
    pub fn rules(&self) -> &WebRules {
        &self.rules
    }

    /// How long a host may take.
    pub fn limits(&self) -> FetchLimits {
        self.limits
    }

    /// Checks a URL; nothing is looked up or sent.
    pub fn target(&self, url: &str) -> Result<WebTarget, Refusal> {
        self.rules.target(url)
    }

    /// Sends one request and waits for the head of its answer, whatever that says.
    pub async fn send(&self, request: &Request) -> Result<Response, WebError> {
        self.exchange(request, BodyEncoding::Any).await
    }

    /// The same for an answer whose body is read piece by piece, as it comes, and therefore not packed.
    pub async fn stream(&self, request: &Request) -> Result<Response, WebError> {
        self.exchange(request, BodyEncoding::None).await
    }

    async fn exchange(&self, request: &Request, packing: BodyEncoding) -> Result<Response, WebError> {
        let host = request.target.host().to_owned();
        let late = |_| WebError::Late;
        let stream = timeout_at(request.until, self.dial(&request.target)).await.map_err(late)??;
        let silence = request.silence.unwrap_or(self.limits.silence);
        let patient = ResponseTimeout { host, silence, until: request.until };
        let written = request.written(Full::new(request.body.clone()), packing)?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(LARGEST_HEAD).max_headers(MOST_HEADERS);
        let handshake = builder.handshake(TokioIo::new(TimeoutStream::new(stream, silence)));
        let (mut sender, connection) = handshake.await.map_err(|err| patient.broken(err))?;
        let mut connection: ExchangeConnection = Some(Box::pin(connection));
        let answered = timeout_at(request.until, driven(&mut connection, sender.send_request(written)));
        let answer = answered.await.map_err(late)?.map_err(|err| patient.broken(err))?;
        let (head, body) = answer.into_parts();
        Ok(Response { status: head.status, headers: head.headers, body, connection, patient })
    }
}

type ConnectionIo = TokioIo<TimeoutStream<Box<dyn Duplex>>>;
/// What moves bytes between the socket and the two halves of an exchange; gone when it has ended.
type ExchangeConnection = Option<Pin<Box<http1::Connection<ConnectionIo, Full<Bytes>>>>>;

/// The answer to a request; its body is still on its way.
pub struct Response {
    /// How it went, in HTTP's words.
    pub status: StatusCode,
    /// What was said beside it.
    pub headers: HeaderMap,
    body: Incoming,
    connection: ExchangeConnection,
    patient: ResponseTimeout,
}

impl Response {
    /// The next bytes of the body as they come, still packed if they are; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, WebError> {
        loop {
            let next = driven(&mut self.connection, self.body.frame());
            match timeout_at(self.patient.until, next).await.map_err(|_| WebError::Late)? {
                None => return Ok(None),
                Some(Err(err)) => return Err(self.patient.broken(err)),
                Some(Ok(frame)) => {
                    // Whatever is no data is a trailer.
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}

/// Waits for something while the connection moves on.
async fn driven<T>(connection: &mut ExchangeConnection, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // How a connection ends is told to whoever waits for the exchange.
        if connection.as_mut().is_some_and(|open| open.as_mut().poll(cx).is_ready()) {
            *connection = None;
        }
        work.as_mut().poll(cx)
    })
    .await
}

/// How long a host is waited for, and how its failings are told.
struct ResponseTimeout {
    host: String,
    silence: Duration,
    until: Instant,
}

impl ResponseTimeout {
    fn broken(&self, source: hyper::Error) -> WebError {
        let host = self.host.clone();
        let mut cause = source.source();
        while let Some(inner) = cause {
            if inner.downcast_ref::<io::Error>().is_some_and(|err| err.kind() == io::ErrorKind::TimedOut) {
                return WebError::Silent { host, limit: self.silence };
            }
            cause = inner.source();
        }
        WebError::Broken { host, source }
    }
}
