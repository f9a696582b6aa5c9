//! One JSON-RPC message a line. What is no message is answered here, so that the service behind hears only whole ones.

use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use rmcp::{
    RoleServer,
    model::{
        ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcError, JsonRpcMessage, JsonRpcRequest, ProtocolVersion,
        RequestId,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::Serialize;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Mutex,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The longest message that is read.
const LONGEST: usize = 16 << 20;
/// What is read at once.
const PIECE: usize = 64 << 10;
/// How long the last answer may take to be read.
const GOODBYE: Duration = Duration::from_secs(1);

/// Lines in, lines out.
pub(crate) struct Frames<R, W> {
    reader: R,
    /// What has been read and not yet handed out.
    read: Vec<u8>,
    /// How much of it is known to hold no end of a line.
    searched: usize,
    /// The line that is being read is too long; the rest of it is passed over.
    skipping: bool,
    /// The client has chosen its era; what is no request means nothing before.
    begun: bool,
    /// Cancelled at the end of the input.
    gone: CancellationToken,
    /// The refusal that is being said. It is kept here because whoever receives may turn to something else meanwhile.
    saying: Option<BoxFuture<'static, io::Result<()>>>,
    lines: Lines<W>,
}

/// The way out, shared by everything that is answered at once.
struct Lines<W> {
    writer: Arc<Mutex<W>>,
    /// The requests that have no answer yet.
    open: Arc<StdMutex<HashSet<RequestId>>>,
}

/// Why a line is answered instead of handed on.
#[derive(Debug, PartialEq)]
struct Refused {
    id: Option<RequestId>,
    code: ErrorCode,
    message: String,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Frames<R, W> {
    pub(crate) fn new(reader: R, writer: W, gone: CancellationToken) -> Self {
        let lines = Lines { writer: Arc::new(Mutex::new(writer)), open: Arc::default() };
        Self { reader, read: Vec::new(), searched: 0, skipping: false, begun: false, gone, saying: None, lines }
    }

    /// The next line, or why it is none; `None` at the end.
    async fn line(&mut self) -> Option<Result<Vec<u8>, Refused>> {
        loop {
            if let Some(found) = self.read[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(self.searched + found + 1);
                let line = std::mem::replace(&mut self.read, rest);
                self.searched = 0;
                if !std::mem::take(&mut self.skipping) {
                    return Some(Ok(line));
                }
                continue;
            }
            self.searched = self.read.len();
            if self.skipping {
                self.read.clear();
                self.searched = 0;
            } else if self.read.len() > LONGEST {
                self.skipping = true;
                return Some(Err(Refused::invalid(None, format!("a message is longer than {LONGEST} bytes"))));
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

    /// What a line says.
    fn message(&mut self, line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Refused> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let message: RxJsonRpcMessage<RoleServer> = serde_json::from_slice(line).map_err(|err| refused(line, &err))?;
        if let JsonRpcMessage::Request(request) = &message
            && !self.lines.open().insert(request.id.clone())
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

impl<R, W> Transport<RoleServer> for Frames<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Response(response) => drop(self.lines.open().remove(&response.id)),
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => drop(self.lines.open().remove(id)),
            JsonRpcMessage::Error(_) | JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        let writer = Arc::clone(&self.lines.writer);
        async move { write(&writer, &item).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(saying) = &mut self.saying {
                let said = saying.await;
                self.saying = None;
                // Who does not read answers is heard no longer.
                said.ok()?;
            }
            let refused = match self.line().await? {
                Ok(line) => match self.message(&line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => continue,
                    Err(refused) => refused,
                },
                Err(refused) => refused,
            };
            let error = JsonRpcError::new(refused.id, ErrorData::new(refused.code, refused.message, None));
            let writer = Arc::clone(&self.lines.writer);
            self.saying = Some(Box::pin(async move { write(&writer, &error).await }));
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        let shut = async { self.lines.writer.lock().await.shutdown().await };
        // A client that reads no answers may hold up the last one for ever.
        timeout(GOODBYE, shut).await.unwrap_or(Ok(()))
    }
}

impl<W> Lines<W> {
    fn open(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refused {
    fn invalid(id: Option<RequestId>, message: String) -> Self {
        Self { id, code: ErrorCode::INVALID_REQUEST, message }
    }
}

async fn write<W: AsyncWrite + Unpin>(writer: &Mutex<W>, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut writer = writer.lock().await;
    writer.write_all(&line).await?;
    writer.flush().await
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

/// What is wrong with a line that is no message.
fn refused(line: &[u8], err: &serde_json::Error) -> Refused {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(err) => return Refused { id: None, code: ErrorCode::PARSE_ERROR, message: format!("not JSON: {err}") },
    };
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    if value.is_array() {
        return Refused::invalid(
            None,
            "several messages in one line are no part of this protocol; send one a line".to_owned(),
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
