//! One message a line, in both directions, with bounds on length and patience.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Mutex,
    time::timeout,
};

use super::child::StderrTail;

/// The longest message that a server may send.
const LONGEST: usize = 16 << 20;
/// How long a server may take to listen to one message.
const PATIENCE: Duration = Duration::from_secs(20);

/// The two halves of the conversation with a server. A clone is the same conversation, begun again.
#[derive(Clone)]
pub(super) struct SocketTransport {
    from: Arc<Mutex<LineReader>>,
    to: Arc<Mutex<Option<OwnedWriteHalf>>>,
    tail: StderrTail,
    broke: Arc<OnceLock<String>>,
}

/// What a server says, line by line.
struct LineReader {
    from: BufReader<OwnedReadHalf>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
}

impl SocketTransport {
    /// What a server says beside messages goes to the `tail`; why the conversation was broken off, to `broke`.
    pub(super) fn new(socket: UnixStream, tail: StderrTail, broke: Arc<OnceLock<String>>) -> Self {
        let (from, to) = socket.into_split();
        let from = Arc::new(Mutex::new(LineReader { from: BufReader::new(from), line: Vec::new() }));
        Self { from, to: Arc::new(Mutex::new(Some(to))), tail, broke }
    }

    /// The next message. Lines that are not meant as one are kept as words of the server.
    async fn next_message(&self) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
        let mut from = self.from.lock().await;
        while let Some(line) = from.next_line().await? {
            let line = line.trim_ascii();
            match serde_json::from_slice(line) {
                Ok(message) => return Ok(Some(message)),
                Err(err) if is_meant_as_message(line) => {
                    return Err(format!("it sent what is no message of the protocol: {err}"));
                }
                Err(_) => {
                    self.tail.push(line);
                    self.tail.push(b"\n");
                }
            }
        }
        Ok(None)
    }
}

impl LineReader {
    /// The next line; `None` at the end. Nothing is lost when it is dropped half-way.
    async fn next_line(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            // A conversation that is cut off has ended; how the process ended says more.
            let Ok(piece @ [_, ..]) = self.from.fill_buf().await else { return Ok(None) };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(piece.len());
            if self.line.len() + taken > LONGEST {
                return Err(format!("it sent a message of more than {} MiB", LONGEST >> 20));
            }
            self.line.extend_from_slice(&piece[..taken]);
            self.from.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// Some servers keep their log, which may be JSON, where their messages go.
fn is_meant_as_message(line: &[u8]) -> bool {
    line.starts_with(b"{") && String::from_utf8_lossy(line).contains("\"jsonrpc\"")
}

impl Transport<RoleClient> for SocketTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let to = Arc::clone(&self.to);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut to = to.lock().await;
            let Some(half) = to.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
            let Ok(sent) = timeout(PATIENCE, half.write_all(&line)).await else {
                // Half a message is out, so nothing can follow it.
                *to = None;
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not listen"));
            };
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.next_message().await {
            Ok(message) => message,
            Err(why) => {
                self.broke.get_or_init(|| why);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // The end of its input is how a server learns that it should end.
        *self.to.lock().await = None;
        Ok(())
    }
}
