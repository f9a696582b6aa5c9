//! A server that runs elsewhere, reached over HTTP by the guarded client.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use haft_sandbox::web::{
    HeaderMap, Method, Request, Response, StatusCode, WebClient, WebError,
    header::{self, HeaderName, HeaderValue},
};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions, JsonRpcError, RequestId, ServerJsonRpcMessage,
    },
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use sse_stream::{Sse, SseStream};
use tokio::time::Instant;

use super::entry_place::EntryPlace;

/// The longest answer.
const LONGEST: usize = 16 << 20;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const CALL_ID: HeaderName = HeaderName::from_static("x-haft-call-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// What is said of a server that wants to know who asks.
pub const NEEDS_LOGIN: &str = "it needs a login";

/// The call that a request belongs to, after those that led to it: another haft refuses what goes in a circle.
#[derive(Clone, Debug)]
pub(super) struct CallChain(pub(super) Vec<String>);

/// The place in a trace that a request belongs to, as a header has it.
#[derive(Clone)]
pub(super) struct TraceHeader(pub(super) String);

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Where a server is, and what is sent with every request to it.
#[derive(Clone)]
pub struct Endpoint {
    /// What the user calls it.
    pub name: String,
    /// Dials what may be dialled.
    pub client: Arc<WebClient>,
    /// Where it is.
    pub url: String,
    /// What is sent with every request, such as a token.
    pub headers: Vec<(String, String)>,
    /// How long one answer may take.
    pub patience: Duration,
    /// Where its entry stands.
    pub entry: EntryPlace,
}

impl Endpoint {
    /// The conversation; why it was broken off goes to `broke`.
    pub(super) fn transport(
        self,
        broke: &Arc<OnceLock<String>>,
    ) -> Result<StreamableHttpClientTransport<Guarded>, String> {
        let mut headers = HashMap::new();
        for (name, value) in &self.headers {
            let wrong = || format!("its header `{name}` cannot be sent; correct its entry");
            let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::try_from(name.as_str()).map_err(|_| wrong())?, value);
        }
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str()).custom_headers(headers);
        let log_in = self.entry.to_log_in(&self.name);
        let client = Guarded { client: self.client, patience: self.patience, log_in, broke: Arc::clone(broke) };
        Ok(StreamableHttpClientTransport::with_client(client, config.max_sse_event_size(LONGEST)))
    }
}

/// The guarded client, in the words of the protocol.
#[derive(Clone)]
pub(super) struct Guarded {
    client: Arc<WebClient>,
    patience: Duration,
    /// What to do where it wants to know who asks.
    log_in: String,
    broke: Arc<OnceLock<String>>,
}

type HttpClientError = StreamableHttpError<WebError>;

impl Guarded {
    async fn ask(
        &self,
        method: Method,
        uri: &str,
        body: Vec<u8>,
        headers: HeaderMap,
    ) -> Result<Response, HttpClientError> {
        let refused = |why| StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("{why}")));
        let target = self.client.target(uri).map_err(refused)?;
        let request = Request {
            target,
            method,
            headers,
            body: body.into(),
            until: Instant::now() + self.patience,
            silence: None,
        };
        let response = self.client.stream(&request).await.map_err(StreamableHttpError::Client)?;
        if matches!(response.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let why = format!("{NEEDS_LOGIN} (HTTP {}); {}", response.status.as_u16(), self.log_in);
            self.broke.get_or_init(|| why.clone());
            return Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why)));
        }
        Ok(response)
    }
}

impl StreamableHttpClient for Guarded {
    type Error = WebError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let mut headers: HeaderMap = custom.into_iter().collect();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some(id) = session.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(SESSION, id);
        }
        if let ClientJsonRpcMessage::Request(request) = &message
            && let Some(CallChain(calls)) = request.request.extensions().get()
        {
            let calls = calls.iter().filter_map(|call| HeaderValue::from_str(call).ok());
            headers.extend(calls.map(|call| (CALL_ID, call)));
            let trace = request.request.extensions().get::<TraceHeader>();
            headers.extend(trace.and_then(|trace| HeaderValue::from_str(&trace.0).ok()).map(|it| (TRACEPARENT, it)));
        }
        let mut response = self.ask(Method::POST, &uri, serde_json::to_vec(&message)?, headers).await?;
        let text =
            |name: HeaderName| response.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (kind, given) = (text(header::CONTENT_TYPE).unwrap_or_default(), text(SESSION));
        if matches!(response.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if response.status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if response.status.is_success() && kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, request_id(&message)), given));
        }
        let body = whole(&mut response).await?;
        if session.is_some() && is_lost_session(response.status, &body) {
            return Err(StreamableHttpError::SessionExpired);
        }
        answer(&message, response.status, &body).map(|found| match found {
            Some(found) => StreamableHttpPostResponse::Json(found, given),
            None => StreamableHttpPostResponse::Accepted,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpClientError> {
        let mut headers: HeaderMap = custom.into_iter().collect();
        if let Ok(id) = HeaderValue::from_str(&session) {
            headers.insert(SESSION, id);
        }
        self.ask(Method::DELETE, &uri, Vec::new(), headers).await.map(drop)
    }

    /// What a server says of its own accord is not waited for: its list of tools is asked for again soon enough.
    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session: Option<Arc<str>>,
        _last: Option<String>,
        _token: Option<String>,
        _custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpClientError> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Notification(_) | ClientJsonRpcMessage::Error(_) => {
            None
        }
    }
}

/// Whether a server has forgotten the session, as after a restart. Many say so by another status than 404. What names no
/// request, or is no message at all, was refused before anybody looked at the request.
fn is_lost_session(status: StatusCode, body: &[u8]) -> bool {
    match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(ServerJsonRpcMessage::Error(JsonRpcError { id: None, error, .. })) => {
            status == StatusCode::BAD_REQUEST || error.message.to_ascii_lowercase().contains("session")
        }
        Ok(_) => false,
        Err(_) => status == StatusCode::BAD_REQUEST,
    }
}

/// The same message; an error that names no request belongs to the one that it came as an answer to.
fn addressed(mut message: ServerJsonRpcMessage, asked: &RequestId) -> ServerJsonRpcMessage {
    if let ServerJsonRpcMessage::Error(JsonRpcError { id: id @ None, .. }) = &mut message {
        *id = Some(asked.clone());
    }
    message
}

/// The same event. Only errors are read twice.
fn addressed_event(mut event: Sse, asked: &RequestId) -> Sse {
    let is_error = |data: &String| data.contains("\"error\"");
    if let Some(Ok(message)) = event.data.as_ref().filter(|data| is_error(data)).map(|data| serde_json::from_str(data))
    {
        event.data = serde_json::to_string(&addressed(message, asked)).ok();
    }
    event
}

/// What a server answered at once; `None` when nothing was to be answered.
fn answer(
    asked: &ClientJsonRpcMessage,
    status: StatusCode,
    body: &[u8],
) -> Result<Option<ServerJsonRpcMessage>, HttpClientError> {
    let ClientJsonRpcMessage::Request(request) = asked else { return Ok(None) };
    let told = serde_json::from_slice::<ServerJsonRpcMessage>(body);
    if status.is_client_error() && matches!(request.request, ClientRequest::DiscoverRequest(_)) {
        // A server of the old era knows no such question; how it says so differs.
        let error = match told {
            Ok(ServerJsonRpcMessage::Error(error)) => error.error,
            Ok(_) | Err(_) => ErrorData::invalid_request(format!("HTTP {status}"), None),
        };
        return Ok(Some(ServerJsonRpcMessage::error(error, Some(request.id.clone()))));
    }
    told.map(|message| Some(addressed(message, &request.id))).map_err(|err| {
        let start = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!(
            "HTTP {status} without an MCP answer ({err}): {start}"
        )))
    })
}

async fn whole(response: &mut Response) -> Result<Vec<u8>, HttpClientError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if body.len() + piece.len() > LONGEST {
            let why = format!("it sent a message of more than {} MiB", LONGEST >> 20);
            return Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why)));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The events of an answer as they come, up to the longest answer.
fn events(response: Response, asked: Option<RequestId>) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces = stream::unfold(Some((response, 0_usize)), |state| async move {
        let (mut response, before) = state?;
        match response.chunk().await {
            Ok(Some(piece)) if before + piece.len() <= LONGEST => {
                let read = before + piece.len();
                Some((Ok(piece), Some((response, read))))
            }
            Ok(Some(_)) => Some((Err(std::io::Error::other("the answer is too long")), None)),
            Ok(None) => None,
            Err(err) => Some((Err(std::io::Error::other(err.to_string())), None)),
        }
    });
    let events = SseStream::from_bytes_stream(pieces.boxed());
    match asked {
        Some(asked) => events.map(move |event| event.map(|event| addressed_event(event, &asked))).boxed(),
        None => events.boxed(),
    }
}
