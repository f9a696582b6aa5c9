//! `HAFT_LOG`: what haft does, on standard error, and nothing of what calls are given or give back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};
use support::{ALL, Fixture, Ran, Running, id};

/// Stands in inputs and outputs, and nowhere in the log.
const SECRET: &str = "the-text-that-nobody-logs";

/// One call with this filter.
fn call(fixture: &Fixture, filter: &str, tool: &str, input: &Value) -> Ran {
    let mut command = fixture.haft(&[&["call", tool, &input.to_string(), "--json"], ALL].concat());
    command.env("HAFT_LOG", filter);
    Running::start(command).finish()
}

#[test]
fn a_call_is_logged_with_its_tool_id_status_and_time() {
    let fixture = Fixture::new();
    let ran = call(&fixture, "info", "write_file", &json!({"path": "a.txt", "content": SECRET}));
    let (outcome, log) = (ran.json(), &ran.stderr);
    assert_eq!((ran.code, &outcome["status"]), (Some(0), &json!("success")), "{ran:?}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(&id(&outcome))).collect();
    let [started, ended] = lines[..] else { panic!("{log}") };
    assert!(started.contains("call started") && started.contains("tool=\"write_file\""), "{started}");
    assert!(ended.contains("call ended") && ended.contains("status=\"success\"") && ended.contains("ms="), "{ended}");
    assert!(!log.contains('\x1b'), "no colours where nobody sees them: {log}");
}

#[test]
fn a_failure_and_the_fence_are_logged() {
    let fixture = Fixture::new();
    let ran = call(&fixture, "info", "read_file", &json!({"path": "missing.txt"}));
    assert!(ran.stderr.contains("status=\"error\""), "{ran:?}");
    let ran = call(&fixture, "info", "shell_exec", &json!({"command": "true"}));
    assert!(ran.stderr.contains("fence"), "{ran:?}");
}

#[test]
fn nothing_of_inputs_and_outputs_is_logged() {
    let fixture = Fixture::new();
    let inputs = [
        ("write_file", json!({"path": format!("{SECRET}.txt"), "content": SECRET})),
        ("read_file", json!({"path": format!("{SECRET}.txt")})),
        ("shell_exec", json!({"command": format!("echo {SECRET}")})),
        ("read_file", json!({"path": format!("{SECRET}-missing.txt")})),
    ];
    for (tool, input) in inputs {
        let ran = call(&fixture, "trace", tool, &input);
        assert!(ran.stderr.contains("call ended") && ran.stdout.contains(SECRET), "{ran:?}");
        assert!(!ran.stderr.contains(SECRET), "{ran:?}");
    }
}

#[test]
fn without_the_variable_or_with_off_nothing_is_logged() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let ran = fixture.run(&["call", "read_file", r#"{"path":"a.txt"}"#, "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for filter in ["", " ", "off", "error"] {
        let ran = call(&fixture, filter, "read_file", &json!({"path": "a.txt"}));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{filter:?}");
    }
}

#[test]
fn a_filter_that_cannot_be_meant_is_refused_in_a_sentence() {
    let fixture = Fixture::new();
    for filter in ["debgu", "haft=loud", "info,[x"] {
        let ran = call(&fixture, filter, "read_file", &json!({"path": "a.txt"}));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("error: cannot use HAFT_LOG="), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
}

#[test]
fn a_served_client_finds_only_the_protocol_on_standard_output() {
    let fixture = Fixture::new();
    fixture.put("a.txt", SECRET);
    let mut command = fixture.haft(&["mcp"]);
    command.env("HAFT_LOG", "trace").stdin(Stdio::piped());
    let mut running = Running::start(command);
    let mut stdin = running.stdin();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let read = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "read_file", "arguments": {"path": "a.txt"}}});
    for line in [hello, ready, read] {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let ran = running.finish();
    let answers: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers.iter().all(|answer| answer["jsonrpc"] == "2.0"), "{ran:?}");
    assert!(answers.iter().any(|answer| answer["id"] == 2), "{ran:?}");
    assert!(ran.stderr.contains("call ended") && !ran.stderr.contains(SECRET), "{ran:?}");
}
