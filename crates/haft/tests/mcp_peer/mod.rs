//! An upstream MCP server over HTTP in this process, which says and does as the test wants.
#![allow(dead_code, reason = "each test uses what it needs")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

/// What it says of its tools, and what it was sent.
#[derive(Default)]
struct PeerState {
    description: String,
    more: Vec<String>,
    /// Every header `Authorization` that came.
    tokens: Vec<String>,
    /// The ids of calls that came with the last call.
    call_ids: Vec<String>,
    calls: usize,
}

/// The server; it ends with the process.
pub(crate) struct McpPeer {
    port: u16,
    state: Arc<Mutex<PeerState>>,
}

impl McpPeer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state =
            Arc::new(Mutex::new(PeerState { description: "Says it again.".to_owned(), ..PeerState::default() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = shared.clone();
                std::thread::spawn(move || stream.map(|stream| answer(stream, &shared)));
            }
        });
        Self { port, state }
    }

    /// One that takes connections and says nothing.
    pub(crate) fn hanging() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let held: Vec<_> = listener.incoming().collect();
            drop(held);
        });
        port
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on it says this of `echo`.
    pub(crate) fn describe(&self, text: &str) {
        text.clone_into(&mut self.state.lock().unwrap().description);
    }

    /// From now on it has one more tool.
    pub(crate) fn add_tool(&self, name: &str) {
        self.state.lock().unwrap().more.push(name.to_owned());
    }

    pub(crate) fn tokens(&self) -> Vec<String> {
        self.state.lock().unwrap().tokens.clone()
    }

    pub(crate) fn call_ids(&self) -> Vec<String> {
        self.state.lock().unwrap().call_ids.clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().unwrap().calls
    }
}

fn answer(stream: TcpStream, state: &Mutex<PeerState>) {
    let mut reader = BufReader::new(stream);
    let (mut length, mut token, mut call_ids) = (0, None, Vec::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => token = Some(value.to_owned()),
            "x-haft-call-id" => call_ids.push(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    state.lock().unwrap().tokens.extend(token.clone());
    if !call_ids.is_empty() {
        state.lock().unwrap().call_ids = call_ids;
    }
    let (status, reply) = match result(&request, token.as_deref(), state) {
        _ if request["id"].is_null() => ("202 Accepted", String::new()),
        Some(result) => ("200 OK", json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string()),
        None => ("400 Bad Request", "no such method".to_owned()),
    };
    let kind = if status == "200 OK" { "application/json" } else { "text/plain" };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", reply.len());
    let _gone = reader.into_inner().write_all(format!("{head}Connection: close\r\n\r\n{reply}").as_bytes());
}

fn result(request: &Value, token: Option<&str>, state: &Mutex<PeerState>) -> Option<Value> {
    let mut state = state.lock().unwrap();
    match request["method"].as_str()? {
        "initialize" => Some(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer", "version": "1"}})),
        "tools/list" => {
            let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let mut tools = vec![json!({"name": "echo", "description": state.description, "inputSchema": text,
                "annotations": {"readOnlyHint": true}})];
            tools.extend(state.more.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})));
            Some(json!({ "tools": tools }))
        }
        "tools/call" => {
            state.calls += 1;
            let said = request["params"]["arguments"]["text"].as_str().unwrap_or_default();
            let said = format!("{said} {}", token.unwrap_or_default());
            Some(json!({"content": [{"type": "text", "text": said.trim()}]}))
        }
        _ => None,
    }
}
