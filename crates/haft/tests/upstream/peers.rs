//! Real servers, installed by `scripts/setup peers`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;

use serde_json::{Value, json};
use support::{ALL, Fixture};

/// A workspace whose user has one real server.
fn with(server: impl FnOnce(&str) -> Value) -> Fixture {
    let fixture = Fixture::new();
    let variable =
        |name: &str| std::env::vars().find(|(known, _)| known == name).map(|(_, value)| PathBuf::from(value));
    let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| variable("HOME").unwrap().join(".cache"));
    let tools = cache.join("haft/tools").display().to_string();
    let config = fixture.home.join(".config/haft");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("haft.toml"), format!("sandbox.read = ['{tools}']\n")).unwrap();
    std::fs::write(config.join("mcp.json"), json!({ "mcpServers": { "x": server(&tools) } }).to_string()).unwrap();
    fixture.put("a.txt", "hello\n");
    fixture
}

fn says(fixture: &Fixture, tool: &str, input: &Value) -> String {
    let (code, outcome) = fixture.call(&format!("mcp__x__{tool}"), input, ALL);
    assert_eq!(code, 0, "{outcome:#}");
    support::text(&outcome["result"]["content"])
}

fn npm(tools: &str, name: &str, argument: &str) -> Value {
    let script = format!("{tools}/lib/node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    json!({ "command": "node", "args": [script, argument] })
}

#[test]
fn everything() {
    let fixture = with(|tools| npm(tools, "everything", "stdio"));
    assert_eq!(says(&fixture, "echo", &json!({ "message": "hi" })), "Echo: hi");
    let (code, outcome) = fixture.call("mcp__x__get-tiny-image", &json!({}), ALL);
    assert_eq!((code, &outcome["result"]["images"][0]["mimeType"]), (0, &json!("image/png")), "{outcome}");
}

#[test]
fn filesystem() {
    let fixture = with(|tools| npm(tools, "filesystem", "."));
    let path = fixture.path("a.txt").display().to_string();
    assert_eq!(says(&fixture, "read_text_file", &json!({ "path": path })).trim(), "hello");
    let write = json!({ "path": path, "content": "other" });
    assert_ne!(fixture.call("mcp__x__write_file", &write, ALL).0, 0, "it may only read");
    assert_eq!(fixture.text("a.txt").as_deref(), Some("hello\n"));
}

#[test]
fn git() {
    let server = |tools: &str| {
        let variables = json!({ "PYTHONPATH": format!("{tools}/python") });
        json!({ "command": "python3", "args": ["-m", "mcp_server_git"], "env": variables })
    };
    let fixture = with(server);
    let ran = support::Running::start({
        let mut git = fixture.program("git");
        git.args(["init", "-q", "."]);
        git
    });
    assert_eq!(ran.finish().code, Some(0));
    let status = says(&fixture, "git_status", &json!({ "repo_path": fixture.workspace }));
    assert!(status.contains("a.txt"), "{status}");
}
