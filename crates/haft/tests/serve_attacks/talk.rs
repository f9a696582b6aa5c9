//! Requests one after the other on a connection that stays open, and whatever else can be sent over one.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use crate::http_client::Gateway;

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody who asks.
pub(crate) struct Talk {
    address: String,
    /// What is said with each request.
    headers: String,
    open: Option<BufReader<TcpStream>>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        pairs.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Talk {
    pub(crate) fn with(served: &Gateway, headers: &[(&str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Self { address: served.url.trim_start_matches("http://").to_owned(), headers, open: None }
    }

    pub(crate) fn by_key(served: &Gateway, key: &str) -> Self {
        Self::with(served, &[("Authorization", &format!("Bearer {key}"))])
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.ask("GET", path, None)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, Some(body.to_string().as_bytes()))
    }

    /// Asks, with a JSON body where there is one.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: Option<&[u8]>) -> Reply {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{}", self.address, self.headers).into_bytes();
        if let Some(body) = body {
            let kind = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
            request.extend_from_slice(kind.as_bytes());
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body.unwrap_or_default());
        if let Some(mut open) = self.open.take()
            && open.get_mut().write_all(&request).is_ok()
            && let Some(reply) = self.reply(open)
        {
            return reply;
        }
        let mut open = connected(&self.address);
        open.get_mut().write_all(&request).unwrap();
        self.reply(open).unwrap_or_else(|| panic!("{method} {path} is not answered"))
    }

    fn reply(&mut self, mut open: BufReader<TcpStream>) -> Option<Reply> {
        let head = head(&mut open)?;
        let mut reply = Reply { status: head.split(' ').nth(1)?.parse().ok()?, head, text: String::new() };
        if reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Some(reply);
        }
        let bytes = match (reply.header("content-length"), reply.header("transfer-encoding")) {
            (Some(length), _) => exactly(&mut open, length.parse().ok()?)?,
            (None, Some(_)) => chunks(&mut open)?,
            (None, None) => Vec::new(),
        };
        reply.text = String::from_utf8_lossy(&bytes).into_owned();
        if reply.header("connection") != Some("close") {
            self.open = Some(open);
        }
        Some(reply)
    }
}

fn connected(address: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(stream)
}

fn head(open: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        open.read_line(&mut head).ok().filter(|length| *length > 0)?;
    }
    Some(head)
}

fn exactly(open: &mut BufReader<TcpStream>, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    open.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn chunks(open: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut line = String::new();
        open.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        all.extend_from_slice(&exactly(open, length)?);
        exactly(open, 2)?;
        if length == 0 {
            return Some(all);
        }
    }
}

/// What is answered to these very bytes, until the connection ends.
pub(crate) fn raw(served: &Gateway, bytes: &[u8]) -> Reply {
    let mut stream = connected(served.url.trim_start_matches("http://"));
    // Whoever is refused may not be heard to the end.
    stream.get_mut().write_all(bytes).ok();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).ok();
    let said = String::from_utf8_lossy(&said).into_owned();
    let (head, text) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Reply { status, head: format!("{head}\r\n"), text: text.to_owned() }
}
