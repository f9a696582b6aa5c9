//! One JSON-RPC message a line. What is no message is answered here, so that the service behind hears only whole ones.

use std::{
    collections::HashSet,
    io,
    ops::Range,
    sync::{
        Arc, Mutex as StdMutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use rmcp::{
    RoleServer,
    model::{
        ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcError, JsonRpcMessage, JsonRpcRequest,
        PaginatedRequestParams, ProtocolVersion, RequestId,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Mutex,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    called::call,
    stdio::{MessageReader, MessageWriter},
};

/// The longest message that is read.
const LONGEST: usize = 16 << 20;
/// What is read at once.
const PIECE: usize = 64 << 10;
/// How much may wait to be read by the client before it is heard no further.
const MOST_WAITING: usize = 8 << 20;
/// More requests than this are begun to be answered before the next is heard.
const MANY: usize = 256;
/// How long the last answer may take to be read.
const GOODBYE: Duration = Duration::from_secs(1);

/// Lines in, lines out.
pub(crate) struct Frames {
    reader: MessageReader,
    /// What has been read.
    read: Vec<u8>,
    /// How much of it has been handed out.
    taken: usize,
    /// How much of it is known to hold no further end of a line.
    searched: usize,
    /// The line that is being read is too long; the rest of it is passed over.
    skipping: bool,
    /// The client has chosen its era; what is no request means nothing before.
    begun: bool,
    /// Cancelled at the end of the input.
    gone: CancellationToken,
    /// What is said before anything more is heard: a refusal, or too much that waits. It is kept here because whoever
    /// receives may turn to something else meanwhile.
    saying: Option<BoxFuture<'static, io::Result<()>>>,
    /// The requests that have no answer yet.
    open: HashSet<RequestId>,
    lines: Arc<LineWriter>,
}

/// The way out, shared by everything that is answered at once.
struct LineWriter {
    /// Whole lines that nobody has begun to write.
    waiting: StdMutex<Vec<u8>>,
    way: Mutex<LineSink>,
    /// Nobody reads any more.
    broken: AtomicBool,
}

/// Where lines go, and what is being written there. It changes places with what waits, so that neither is made anew.
struct LineSink {
    writer: MessageWriter,
    lines: Vec<u8>,
}

/// Why a line is answered instead of handed on.
#[derive(Debug, PartialEq)]
struct Refused {
    id: Option<RequestId>,
    code: ErrorCode,
    message: String,
}

impl Frames {
    pub(crate) fn new(reader: MessageReader, writer: MessageWriter, gone: CancellationToken) -> Self {
        let lines = Arc::new(LineWriter {
            waiting: StdMutex::default(),
            way: Mutex::new(LineSink { writer, lines: Vec::new() }),
            broken: AtomicBool::new(false),
        });
        Self {
            reader,
            read: Vec::new(),
            taken: 0,
            searched: 0,
            skipping: false,
            begun: false,
            gone,
            saying: None,
            open: HashSet::new(),
            lines,
        }
    }

    /// Where the next line is, or why it is none; `None` at the end.
    async fn line(&mut self) -> Option<Result<Range<usize>, Refused>> {
        loop {
            if let Some(found) = self.read[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.taken..self.searched + found;
                (self.taken, self.searched) = (line.end + 1, line.end + 1);
                if !std::mem::take(&mut self.skipping) {
                    return Some(Ok(line));
                }
                continue;
            }
            self.read.drain(..self.taken);
            self.taken = 0;
            if self.skipping {
                self.read.clear();
            } else if self.read.len() > LONGEST {
                self.skipping = true;
                return Some(Err(Refused::invalid(None, format!("a message is longer than {LONGEST} bytes"))));
            }
            self.searched = self.read.len();
            if self.read.is_empty() {
                // What one long message needed is not held for the short ones after it.
                self.read.shrink_to(PIECE);
            }
            self.read.reserve(PIECE);
            match self.reader.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => {
                    self.gone.cancel();
                    return None;
                }
                Ok(_) => {}
            }
        }
    }

    /// Lets what waits be read before anything more is heard.
    fn say(&mut self) {
        let lines = Arc::clone(&self.lines);
        self.saying = Some(Box::pin(async move { lines.write().await }));
    }

    /// What a line says.
    fn message(&mut self, line: Range<usize>) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Refused> {
        let line = &self.read[line];
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let message = match call(line) {
            Some(call) => call,
            None => read(line)?,
        };
        if let JsonRpcMessage::Request(request) = &message
            && !self.open.insert(request.id.clone())
        {
            let message = format!("the request `{}` has no answer yet; every request has an id of its own", request.id);
            return Err(Refused::invalid(Some(request.id.clone()), message));
        }
        self.begun |= begins(&message);
        // The service behind gives up on a client that begins with anything but a request.
        let heard = self.begun || matches!(message, JsonRpcMessage::Request(_));
        Ok(Some(message).filter(|_| heard))
    }
}

impl Transport<RoleServer> for Frames {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Response(response) => drop(self.open.remove(&response.id)),
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => drop(self.open.remove(id)),
            JsonRpcMessage::Error(_) | JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        let said = self.lines.add(&item);
        let lines = Arc::clone(&self.lines);
        async move {
            said?;
            lines.write().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(saying) = &mut self.saying {
                // Whether anybody reads it, `broken` tells.
                let _told = saying.await;
                self.saying = None;
            }
            // Who does not read answers is heard no longer.
            if self.lines.broken.load(Ordering::Relaxed) {
                self.gone.cancel();
                return None;
            }
            if self.open.len() > MANY {
                tokio::task::yield_now().await;
            }
            if self.lines.waiting().len() > MOST_WAITING {
                self.say();
                continue;
            }
            let refused = match self.line().await? {
                Ok(line) => match self.message(line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => continue,
                    Err(refused) => refused,
                },
                Err(refused) => refused,
            };
            self.lines.add(&refused.told()).ok()?;
            self.say();
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        let shut = async { self.lines.way.lock().await.writer.shutdown().await };
        // A client that reads no answers may hold up the last one for ever.
        timeout(GOODBYE, shut).await.unwrap_or(Ok(()))
    }
}

impl LineWriter {
    /// Puts a message behind those that wait already.
    fn add(&self, message: &impl Serialize) -> io::Result<()> {
        let mut waiting = self.waiting();
        let before = waiting.len();
        match serde_json::to_writer(&mut *waiting, message) {
            Ok(()) => waiting.push(b'\n'),
            // Half a line would take the next one with it.
            Err(err) => {
                waiting.truncate(before);
                return Err(err.into());
            }
        }
        Ok(())
    }

    /// Writes everything that waits, in one piece. Whoever finds nothing left has had it written by another.
    async fn write(&self) -> io::Result<()> {
        let mut way = self.way.lock().await;
        let LineSink { writer, lines } = &mut *way;
        lines.clear();
        std::mem::swap(lines, &mut *self.waiting());
        if lines.is_empty() {
            return Ok(());
        }
        let written = match writer.write_all(lines).await {
            Ok(()) => writer.flush().await,
            failed => failed,
        };
        if lines.len() > PIECE {
            // What one long answer needed is not held for the short ones after it.
            *lines = Vec::new();
        }
        self.broken.fetch_or(written.is_err(), Ordering::Relaxed);
        written
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error that tells what is wrong with something that is no message.
pub(crate) fn refusal(bytes: &[u8]) -> Option<JsonRpcError> {
    read(bytes).err().map(Refused::told)
}

/// The parameters of a request that may have none.
#[derive(Deserialize)]
struct ListRequest {
    #[serde(rename = "params")]
    _params: Option<PaginatedRequestParams>,
}

/// Reads a message. Parameters that may be left out count for none with rmcp when it cannot read them.
fn read(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Refused> {
    let message = serde_json::from_slice(line).map_err(|err| refused(line, &err))?;
    if let JsonRpcMessage::Request(JsonRpcRequest { id, request: ClientRequest::ListToolsRequest(list), .. }) = &message
        && list.params.is_none()
        && let Err(err) = serde_json::from_slice::<ListRequest>(line)
    {
        let message = format!("the parameters of `tools/list` cannot be read: {err}");
        return Err(Refused { id: Some(id.clone()), code: ErrorCode::INVALID_PARAMS, message });
    }
    Ok(message)
}

impl Refused {
    fn told(self) -> JsonRpcError {
        JsonRpcError::new(self.id, ErrorData::new(self.code, self.message, None))
    }

    fn not_json(err: &serde_json::Error) -> Self {
        Self { id: None, code: ErrorCode::PARSE_ERROR, message: format!("not JSON: {err}") }
    }

    fn invalid(id: Option<RequestId>, message: String) -> Self {
        Self { id, code: ErrorCode::INVALID_REQUEST, message }
    }
}

/// Whether a message chooses the era: the greeting of the older one, or a request of the newer one that says so. Looking
/// what a server can do chooses nothing yet.
fn begins(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(JsonRpcRequest { request, .. }) = message else { return false };
    if matches!(request, ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_)) {
        return false;
    }
    let meta = request.get_meta();
    let known = |version: ProtocolVersion| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
    let says_so = meta.protocol_version().is_some_and(known) && meta.client_capabilities().is_some();
    says_so || matches!(request, ClientRequest::InitializeRequest(_))
}

/// The id of a message. What else stands there is passed over, however deep it is.
#[derive(Deserialize)]
struct Named {
    id: Option<RequestId>,
}

/// What is JSON, but nested more deeply than it is read.
fn too_deep(line: &[u8], err: &serde_json::Error) -> Option<Refused> {
    if !err.to_string().starts_with("recursion limit exceeded") {
        return None;
    }
    let IgnoredAny = serde_json::from_slice(line).ok()?;
    let id = serde_json::from_slice(line).ok().and_then(|Named { id }| id);
    Some(Refused::invalid(id, "the message is nested too deeply: more than 127 levels are not read".to_owned()))
}

/// What is wrong with a line that is no message.
fn refused(line: &[u8], err: &serde_json::Error) -> Refused {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(err) => return too_deep(line, &err).unwrap_or_else(|| Refused::not_json(&err)),
    };
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    if value.is_array() {
        return Refused::invalid(
            None,
            "several messages at once are no part of this protocol; send one at a time".to_owned(),
        );
    }
    if value["jsonrpc"] != "2.0" {
        return Refused::invalid(id, "no message of this protocol: its `jsonrpc` is not \"2.0\"".to_owned());
    }
    let message = format!("no message of this protocol: {err}");
    // A request whose parameters cannot be read.
    if value.get("method").is_some_and(Value::is_string) && id.is_some() {
        return Refused { id, code: ErrorCode::INVALID_PARAMS, message };
    }
    Refused::invalid(id, message)
}
