//! The Inspector's command line: lists and calls over pipes and over HTTP, in both eras.

use serde_json::Value;

use crate::{
    listening::{Listening, TOKEN},
    node, peers,
    support::{Fixture, HAFT, Running},
};

/// What it prints of one request.
fn asks(fixture: &Fixture, server: &[&str], args: &[&str]) -> Value {
    let program = peers().join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let mut command = fixture.program(&node());
    command.arg(program).arg("--cli").args(server).args(["--format", "json", "--quiet"]).args(args);
    let ran = Running::start(command).finish();
    assert_eq!(ran.code, Some(0), "{server:?} {args:?}: {}", ran.said());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|err| panic!("{err}: {ran:?}"));
    answer.get("result").cloned().unwrap_or(answer)
}

fn lists_and_calls(fixture: &Fixture, server: &[&str]) {
    fixture.put("a.txt", "a\n");
    for era in ["legacy", "modern"] {
        let list = asks(fixture, server, &["--protocol-era", era, "--strict", "--method", "tools/list"]);
        let tools = list["tools"].as_array().unwrap();
        assert!(tools.len() > 20 && tools.iter().any(|tool| tool["name"] == "read_file"), "{list:#}");
        let call = ["--protocol-era", era, "--method", "tools/call", "--tool-name", "read_file"];
        let read = asks(fixture, server, &[&call[..], &["--tool-arg", "path=a.txt"]].concat());
        assert_eq!(read["structuredContent"]["content"], "a\n", "{read:#}");
    }
    let rows = fixture.json(&["log", "--tool", "read_file"]);
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows:#}");
}

#[test]
fn over_pipes() {
    let fixture = Fixture::new();
    // It hands few variables on to servers.
    let data = format!("HAFT_DATA_DIR={}", fixture.data.display());
    lists_and_calls(&fixture, &[HAFT, "mcp", "-e", &data]);
}

#[test]
fn over_http_with_the_token() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture);
    let header = format!("Authorization: Bearer {TOKEN}");
    lists_and_calls(&fixture, &["--transport", "http", "--server-url", &listening.url, "--header", &header]);
}
