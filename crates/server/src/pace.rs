//! How quickly the other end of a connection must go on, and when it is given up on.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};

use crate::refusal;

/// How long the head of a request may take from its first byte; that of the first one, from the beginning.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// How long nothing may be said between requests, or in the middle of an answer.
pub(crate) const SILENCE: Duration = Duration::from_secs(15 * 60);
/// How long the other end may take nothing of what is sent to it.
pub(crate) const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// What happens on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// The head of a request is on its way.
    Head,
    /// Everything that was asked is answered.
    Idle,
    /// A handler works.
    Working,
    /// An answer is on its way.
    Answering,
}

/// How far a connection is, and since when. It is moved on by the connection's own task, and looked at by others.
#[derive(Debug)]
pub(crate) struct ConnectionPace(Mutex<PaceState>);

#[derive(Debug)]
struct PaceState {
    phase: ConnectionPhase,
    /// When something happened last that counts in this phase.
    since: Instant,
    /// Since when nothing more can be written.
    stuck: Option<Instant>,
    /// Whether all of the last answer was sent.
    is_flushed: bool,
}

impl ConnectionPace {
    /// That of a new connection.
    pub(crate) fn new() -> Arc<Self> {
        let state = PaceState { phase: ConnectionPhase::Head, since: Instant::now(), stuck: None, is_flushed: true };
        Arc::new(Self(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, PaceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it is given up on if nothing happens before; `None` while a handler works.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let state = self.state();
        let phase = match state.phase {
            ConnectionPhase::Head => Some(state.since + HEAD_WITHIN),
            ConnectionPhase::Idle | ConnectionPhase::Answering => Some(state.since + SILENCE),
            ConnectionPhase::Working => None,
        };
        let stuck = state.stuck.map(|stuck| stuck + TAKEN_WITHIN);
        phase.into_iter().chain(stuck).min()
    }

    /// Since when nobody would miss it: nothing of it is worked on or answered.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let state = self.state();
        let is_unused = matches!(state.phase, ConnectionPhase::Head | ConnectionPhase::Idle) && state.is_flushed;
        is_unused.then_some(state.since)
    }

    /// A request has come whole, but for its body.
    pub(crate) fn head_came(&self) {
        let mut state = self.state();
        (state.phase, state.since, state.is_flushed) = (ConnectionPhase::Working, Instant::now(), false);
    }

    /// Its handler has begun to answer.
    pub(crate) fn answer_begins(&self) {
        self.state().turn(ConnectionPhase::Answering);
    }

    /// All of the answer was made. Some of it may have to be sent yet.
    pub(crate) fn answer_ended(&self) {
        self.state().turn(ConnectionPhase::Idle);
    }

    fn read(&self, bytes: usize) {
        let mut state = self.state();
        match state.phase {
            ConnectionPhase::Idle if bytes > 0 => state.turn(ConnectionPhase::Head),
            ConnectionPhase::Answering if bytes > 0 => state.since = Instant::now(),
            // A head that comes in small pieces has no more time than any other.
            ConnectionPhase::Head | ConnectionPhase::Idle | ConnectionPhase::Working | ConnectionPhase::Answering => {}
        }
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        let mut state = self.state();
        match written {
            Poll::Pending => _ = state.stuck.get_or_insert_with(Instant::now),
            Poll::Ready(_) => {
                state.stuck = None;
                if state.phase == ConnectionPhase::Answering {
                    state.since = Instant::now();
                }
            }
        }
    }

    fn flushed(&self) {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Idle {
            state.is_flushed = true;
        }
    }

    /// Whether whatever is written now answers no request that reached a handler.
    fn refuses(&self) -> bool {
        let state = self.state();
        state.is_flushed && matches!(state.phase, ConnectionPhase::Head | ConnectionPhase::Idle)
    }
}

impl PaceState {
    fn turn(&mut self, phase: ConnectionPhase) {
        (self.phase, self.since) = (phase, Instant::now());
    }
}

/// A connection whose pace is kept. What hyper says by itself to a head that it cannot read is said in our own shape.
pub(crate) struct PacedStream {
    stream: TcpStream,
    pace: Arc<ConnectionPace>,
    /// What is left of a refusal that is sent in the place of hyper's.
    refusal: Option<Bytes>,
}

impl PacedStream {
    /// This connection at this pace.
    pub(crate) fn new(stream: TcpStream, pace: Arc<ConnectionPace>) -> Self {
        Self { stream, pace, refusal: None }
    }

    /// The connection itself.
    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Sends what is left of a refusal; `Ready` when all of it is sent.
    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.refusal.as_mut().filter(|rest| !rest.is_empty()) {
            let written = Pin::new(&mut self.stream).poll_write(cx, rest);
            self.pace.wrote(&written);
            match written {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => drop(rest.split_to(bytes)),
                Poll::Ready(Err(err)) => return Poll::Ready(Err(err)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Whether a refusal is sent in the place of these bytes.
    fn refuses(&mut self, begin: &[u8]) -> bool {
        if self.refusal.is_none() && self.pace.refuses() {
            self.refusal = Some(refusal::in_the_place_of(begin));
        }
        self.refusal.is_some()
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        self.pace.read(into.filled().len() - before);
        read
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.refuses(bytes) {
            return self.poll_refusal(cx).map_ok(|()| bytes.len());
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.pace.wrote(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.pace.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.refuses(pieces.first().map(|piece| &**piece).unwrap_or_default()) {
            let length = pieces.iter().map(|piece| piece.len()).sum();
            return self.poll_refusal(cx).map_ok(|()| length);
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.pace.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
