//! An MCP server that wants a login, with the authorization server that gives it, and a browser that goes there.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "each test uses what it needs, and starts it"
)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

/// The server; it ends with the test.
pub(crate) struct GuardedPeer {
    child: Child,
    port: String,
}

impl GuardedPeer {
    pub(crate) fn start() -> Self {
        Self::running("python3".as_ref(), "guarded_peer/guarded.py")
    }

    /// What a script of the tests serves, run by this Python.
    pub(crate) fn running(python: &std::ffi::OsStr, script: &str) -> Self {
        let script = format!("{}/tests/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new(python).arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned() }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.host())
    }

    /// Lets something go wrong from now on.
    pub(crate) fn fault(&self, faults: &Value) {
        let (status, _, _) = sent("POST", &format!("http://{}/control", self.host()), &faults.to_string());
        assert_eq!(status, 200);
    }

    /// How often something came.
    pub(crate) fn count(&self, what: &str) -> u64 {
        self.counts()[what].as_u64().unwrap()
    }

    /// Every token that it gave.
    pub(crate) fn tokens(&self) -> Vec<String> {
        self.counts()["seen"].as_array().unwrap().iter().map(|token| token.as_str().unwrap().to_owned()).collect()
    }

    fn counts(&self) -> Value {
        let (_, _, body) = sent("GET", &format!("http://{}/counts", self.host()), "");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for GuardedPeer {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Where the page of an authorization server leads whom it knows by this name.
pub(crate) fn said_yes(link: &str, name: &str) -> String {
    let (status, head, body) = sent("GET", &format!("{link}&login_as={name}"), "");
    assert!((300..400).contains(&status), "{status} {head} {body}");
    let to =
        head.lines().find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("location")));
    to.unwrap_or_else(|| panic!("{head}")).1.to_owned()
}

/// The path and query of an address.
pub(crate) fn path_of(address: &str) -> String {
    let (_, rest) = address.split_once("://").unwrap();
    format!("/{}", rest.split_once('/').unwrap().1)
}

/// One request: its status, head and body.
pub(crate) fn sent(method: &str, address: &str, body: &str) -> (u16, String, String) {
    let host = address.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let head = format!(
        "{method} {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        path_of(address),
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_owned(), body.to_owned())
}

/// A server as somebody adds it, whose answers need no yes.
pub(crate) fn entry(peer: &GuardedPeer, oauth: &Value) -> Value {
    json!({"name": "docs", "url": peer.url(), "trusted": true, "oauth": oauth})
}
