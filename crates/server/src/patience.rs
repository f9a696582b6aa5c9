//! Connections that must say what they want before long: whoever holds one open without a word would keep others out.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Sleep, sleep},
};

/// How long the head of the first request may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// What ends a head.
const END: &[u8] = b"\r\n\r\n";

/// Hands out connections with little patience.
pub(crate) struct HeadTimeout(pub(crate) TcpListener);

impl Listener for HeadTimeout {
    type Io = HttpConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (HttpConnection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        (HttpConnection { stream, head: Some(Head { deadline: Box::pin(sleep(PATIENCE)), matched: 0 }) }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection, and how far the head of its first request is.
pub(crate) struct HttpConnection {
    stream: TcpStream,
    /// Gone once it is whole.
    head: Option<Head>,
}

struct Head {
    deadline: Pin<Box<Sleep>>,
    /// How much of its end has come.
    matched: usize,
}

impl Head {
    /// Whether it is whole after these bytes.
    fn ends_in(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.matched = match (*byte == END[self.matched], *byte == END[0]) {
                (true, _) => self.matched + 1,
                (false, true) => 1,
                (false, false) => 0,
            };
            if self.matched == END.len() {
                return true;
            }
        }
        false
    }
}

impl AsyncRead for HttpConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        if let Some(head) = &mut self.head
            && head.deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        self.head.take_if(|head| head.ends_in(&into.filled()[before..]));
        read
    }
}

impl AsyncWrite for HttpConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn pair() -> (TcpStream, HttpConnection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        (client, HeadTimeout(listener).accept().await.0)
    }

    #[tokio::test]
    async fn whoever_says_no_whole_head_is_not_waited_for() {
        let (mut client, mut heard) = pair().await;
        client.write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\n").await.unwrap();
        let mut bytes = [0; 64];
        assert!(heard.read(&mut bytes).await.unwrap() > 0);
        tokio::time::pause();
        let err = heard.read(&mut bytes).await.unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn after_the_head_it_may_take_its_time() {
        let (mut client, mut heard) = pair().await;
        let mut bytes = [0; 64];
        for piece in [&b"GET / HTTP/1.1\r"[..], b"\n\r\r\n\r", b"\n"] {
            client.write_all(piece).await.unwrap();
            assert_eq!(heard.read(&mut bytes).await.unwrap(), piece.len());
        }
        assert!(heard.head.is_none());
    }
}
