//! A stream of server-sent events, read as it comes.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use super::Gateway;

/// No step takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream that is open.
pub(crate) struct EventReader {
    lines: BufReader<TcpStream>,
    /// The status line and the headers.
    pub(crate) head: String,
}

/// One event, or a comment.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct StreamFrame {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: Value,
    pub(crate) retry: Option<String>,
    pub(crate) comment: Option<String>,
}

impl EventReader {
    pub(crate) fn open(served: &Gateway, path: &str, headers: &[(&str, &str)]) -> Self {
        let address = served.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // To whoever speaks the older version nothing is sent in chunks.
        let mut request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let (mut lines, mut head) = (BufReader::new(stream), String::new());
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "{head}");
        }
        Self { lines, head }
    }

    pub(crate) fn by_key(served: &Gateway, path: &str, key: &str) -> Self {
        let opened = Self::open(served, path, &[("Authorization", &format!("Bearer {key}"))]);
        assert!(opened.head.contains(" 200 "), "{}", opened.head);
        opened
    }

    /// The next event, comments left out; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<StreamFrame> {
        loop {
            let frame = self.frame()?;
            if frame.event.is_some() {
                return Some(frame);
            }
        }
    }

    /// Whatever comes next; `None` at the end, also where the connection broke.
    pub(crate) fn frame(&mut self) -> Option<StreamFrame> {
        let mut frame = StreamFrame::default();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            let line = line.trim_end();
            if line.is_empty() {
                return Some(frame);
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.trim_start().to_owned();
            match field {
                "id" => frame.id = Some(value),
                "event" => frame.event = Some(value),
                "data" => frame.data = serde_json::from_str(&value).unwrap(),
                "retry" => frame.retry = Some(value),
                _ => frame.comment = Some(value),
            }
        }
    }

    /// Every event until one of this name, that one included.
    pub(crate) fn until(&mut self, event: &str) -> Vec<StreamFrame> {
        let mut heard = Vec::new();
        loop {
            heard.push(self.next().unwrap_or_else(|| panic!("the stream ended before {event}: {heard:?}")));
            if heard.last().is_some_and(|last| last.event.as_deref() == Some(event)) {
                return heard;
            }
        }
    }
}
