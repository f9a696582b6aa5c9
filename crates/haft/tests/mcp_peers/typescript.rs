//! The official TypeScript clients, with a person behind them who fills in forms.

use serde_json::{Value, json};

use crate::{
    listening::{Listening, TOKEN},
    node, peers,
    support::{Fixture, HAFT, Running, text},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_peers/client.cjs");

/// One client through everything, and what is recorded of it.
fn works(package: &str, mode: &str, fixture: &Fixture, server: &[&str]) {
    fixture.put("a.txt", "a\n");
    let mut command = fixture.program(&node());
    command.args([SCRIPT, package, mode]).args(server).env("PEERS", peers()).env("TOKEN", TOKEN);
    let ran = Running::start(command).finish();
    assert_eq!(ran.code, Some(0), "{package} {mode}: {}", ran.said());

    let written = ["made.txt", "refused.txt", "declined.txt"].map(|file| fixture.text(file));
    assert_eq!(written, [Some("made\n".to_owned()), None, None]);
    let statuses = |tool: &str| -> Vec<String> {
        fixture.json(&["log", "--tool", tool]).as_array().unwrap().iter().map(|row| text(&row["status"])).collect()
    };
    assert_eq!(statuses("write_file"), ["pending", "rejected", "success"]);
    assert_eq!(statuses("shell_exec"), ["cancelled", "success"]);
    let rows = fixture.json(&["log", "--tool", "write_file"]);
    let made = fixture.story(&text(&rows[2]["callId"]));
    let name = format!("typescript-{package}");
    assert_eq!((&made["caller"], &made["source"]), (&json!(name), &json!("mcp")), "{made:#}");
    assert!(text(&made["answer"]["by"]["name"]).ends_with(&format!(" through {name}")), "{made:#}");
    let open: Vec<Value> = fixture.json(&["approvals"]).as_array().unwrap().clone();
    assert_eq!(open.len(), 1, "a form that is closed leaves its question open: {open:#?}");
}

fn over_pipes(package: &str, mode: &str) {
    let fixture = Fixture::new();
    works(package, mode, &fixture, &[HAFT, "mcp"]);
}

fn over_http(mode: &str) {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture);
    works("client", mode, &fixture, &[&listening.url]);
}

#[test]
fn the_client_in_the_older_era() {
    over_pipes("client", "legacy");
}

#[test]
fn the_client_in_the_newer_era() {
    over_pipes("client", "2026-07-28");
}

#[test]
fn the_client_left_to_itself() {
    over_pipes("client", "auto");
}

#[test]
fn the_client_over_http_in_the_older_era() {
    over_http("legacy");
}

#[test]
fn the_client_over_http_in_the_newer_era() {
    over_http("2026-07-28");
}

#[test]
fn the_sdk_before_it() {
    over_pipes("sdk", "legacy");
}
