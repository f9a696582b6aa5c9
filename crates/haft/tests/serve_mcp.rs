//! MCP over HTTP for many callers: each by its key, with the tools and the rights of that key.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::{fs, process::Command};

use http_client::{Gateway, clients_python};
use serde_json::json;

/// Several callers at once through the official client.
#[expect(clippy::disallowed_methods, reason = "a client is started as people start it")]
fn works(mode: &str) {
    let served = Gateway::start();
    let folder = served.workspace();
    fs::write(folder.join("a.txt"), "a\n").unwrap();
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "add", "bolt"]);
    served.admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", folder.to_str().unwrap()]);
    let decider = served.key_in("decider", "acme", "tools:execute,tools:write,approvals:decide", "shop");
    let runner = served.key_in("runner", "acme", "tools:execute", "shop");
    let other = served.key("other", "bolt", "tools:execute");
    let greet = json!({"slug": "greet", "description": "Greets.", "inputSchema": {"type": "object"},
        "executionType": "internal"});
    assert_eq!(served.post("/api/tools", &greet, Some(&decider)).status, 201);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve_mcp.py");
    let keys = [decider.as_str(), &runner, &other];
    let ran = Command::new(clients_python()).args([script, mode, &served.url]).args(keys).output().unwrap();
    assert!(ran.status.success(), "{mode}: {}", String::from_utf8_lossy(&ran.stderr));
    for (name, content) in [("made.txt", "made\n"), ("asked.txt", "asked\n")] {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), content);
    }
    let calls = served.get("/api/calls?source=mcp&limit=200", Some(&decider)).body;
    let by: Vec<&str> =
        calls["items"].as_array().unwrap().iter().map(|call| call["caller"].as_str().unwrap()).collect();
    assert_eq!(by, vec!["decider"; by.len()], "a key that may see only its own calls sees no others: {calls}");
}

#[test]
fn the_older_era() {
    works("legacy");
}

#[test]
fn the_newer_era() {
    works("2026-07-28");
}
