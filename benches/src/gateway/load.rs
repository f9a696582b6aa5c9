//! Many connections that each send the next request when the last was answered, and how long the answers took.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use futures_util::future::try_join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// How many connections ask at once.
pub(super) const CONNECTIONS: usize = 64;
/// How long is measured, after some time of warming up.
const LASTING: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);
/// A number that stands in every request and must stand in its answer.
pub(super) const MARK: u32 = 4711;

/// What a load found.
pub(super) struct Load {
    /// Answers a second.
    pub(super) rate: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Load {
    /// Sends the requests of each connection, over and over, and demands that each is answered by 200.
    pub(super) async fn of(address: SocketAddr, request: impl Fn(usize) -> Vec<u8>) -> Result<Self> {
        let begin = Instant::now();
        let all = (0..CONNECTIONS).map(|number| {
            let request = request(number);
            async move {
                let mut connection = Connection::open(address).await?;
                let (_, body) = connection.ask(&request).await?;
                let body = String::from_utf8_lossy(body);
                ensure!(body.contains(&MARK.to_string()), "{body}");
                let mut laps = Vec::new();
                while begin.elapsed() < WARM_UP + LASTING {
                    let sent = Instant::now();
                    connection.ask(&request).await?;
                    if sent.duration_since(begin) >= WARM_UP {
                        laps.push(sent.elapsed());
                    }
                }
                anyhow::Ok(laps)
            }
        });
        let mut laps: Vec<Duration> = try_join_all(all).await?.concat();
        laps.sort_unstable();
        let part = |hundredth: usize| laps.get(laps.len() * hundredth / 100).copied().unwrap_or_default();
        Ok(Self { rate: laps.len() as f64 / LASTING.as_secs_f64(), p50: part(50), p99: part(99) })
    }
}

/// One kept connection.
pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(16 << 10) })
    }

    /// Sends a request and gives back the head and the body of its answer, which must be a success.
    pub(super) async fn ask(&mut self, request: &[u8]) -> Result<(&str, &[u8])> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let head = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let whole = match length(&self.read[..head])? {
            Some(length) => head + length,
            None => usize::MAX,
        };
        while self.read.len() < whole && !(whole == usize::MAX && self.read.ends_with(b"0\r\n\r\n")) {
            self.more().await?;
        }
        let (head, body) = self.read.split_at(head);
        let head = std::str::from_utf8(head)?;
        let is_success = head.as_bytes().get(9) == Some(&b'2');
        ensure!(is_success, "{head}{}", String::from_utf8_lossy(body));
        Ok((head, body))
    }

    /// Reads what comes, whatever it is.
    pub(super) async fn more(&mut self) -> Result<&[u8]> {
        let before = self.read.len();
        ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server has closed the connection");
        Ok(&self.read[before..])
    }

    /// Sends a request whose answer has no end, and forgets its head.
    pub(super) async fn listen(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.more().await?;
        self.read.clear();
        Ok(())
    }

    /// What has come since the last time.
    pub(super) async fn heard(&mut self) -> Result<&[u8]> {
        self.read.clear();
        self.more().await
    }
}

/// How long a body is; `None` where it comes in pieces.
fn length(head: &[u8]) -> Result<Option<usize>> {
    for line in std::str::from_utf8(head)?.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            return Ok(Some(value.trim().parse().context("a length")?));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Ok(None);
        }
    }
    bail!("an answer without a length")
}

/// A request as it is sent.
pub(super) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}").into_bytes()
}
