//! Servers that take their time to begin, or never do: the wait is the call's own.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    client::{Client, Era, MUTE, failed, succeeded},
    support::{ALL, text, until},
};

/// Far less than a server may take to start.
const AT_ONCE: Duration = Duration::from_secs(10);

/// A client of a haft whose only server never answers.
fn beside_a_silent_server() -> (Bench, Client) {
    let bench = Bench::with(&json!({ "never_begins": true }));
    let client = Client::with(&bench.0.fixture, Era::Initialize, MUTE, ALL);
    (bench, client)
}

/// The call of the silent server, once others can see it.
fn under_way(bench: &Bench) -> Value {
    until("call in the journal", || {
        let calls = bench.0.json(&["log"]);
        calls.as_array().unwrap().iter().find(|call| call["tool"] == "mcp__fake__echo").cloned()
    })
}

fn id_of(call: &Value) -> String {
    text(call.get("callId").unwrap_or(&call["id"]))
}

#[test]
fn a_call_that_waits_for_a_server_is_seen_and_can_be_cancelled_while_others_work() {
    let (bench, mut client) = beside_a_silent_server();
    let begun = Instant::now();
    let waiting = client.begin("mcp__fake__echo", &json!({ "text": "a" }));
    let seen = under_way(&bench);
    assert_eq!(seen["state"], "preparing", "{seen:#}");
    succeeded(&client.call("read_file", &json!({ "path": "fake.py" })));
    client.notify("notifications/cancelled", json!({ "requestId": waiting }));
    let ended = until("end", || Some(under_way(&bench)).filter(|call| call["state"] == "ended"));
    assert_eq!(ended["status"], "cancelled", "{ended:#}");
    assert!(begun.elapsed() < AT_ONCE * 3, "{:?}", begun.elapsed());
}

#[test]
fn somebody_else_can_stop_a_call_that_waits_for_a_server() {
    let (bench, mut client) = beside_a_silent_server();
    let waiting = client.begin("mcp__fake__echo", &json!({ "text": "a" }));
    let call = id_of(&under_way(&bench));
    assert_eq!(bench.0.run(&["cancel", &call]).code, Some(0));
    failed(&client.result_of(&waiting), "cancelled", "CANCELLED");
}

#[test]
fn haft_ends_at_once_while_a_server_starts() {
    for signalled in [false, true] {
        let (bench, mut client) = beside_a_silent_server();
        client.begin("mcp__fake__echo", &json!({ "text": "a" }));
        under_way(&bench);
        let begun = Instant::now();
        if signalled {
            client.signal(Signal::TERM);
        } else {
            client.close_input();
        }
        assert!(client.end().success());
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }
}

#[test]
fn the_limit_of_a_call_holds_for_the_start_of_its_server() {
    let bench = Bench::with(&json!({ "never_begins": true }));
    let begun = Instant::now();
    let words = ["call", "mcp__fake__echo", r#"{"text": "a"}"#, "--timeout", "1500", "--json"];
    let ran = bench.0.run(&words);
    let outcome = ran.json();
    assert_eq!(outcome["error"]["code"], "TIMEOUT", "{outcome:#}");
    assert!(begun.elapsed() < AT_ONCE * 2, "{:?}", begun.elapsed());
    assert!(ran.stderr.contains("waiting for the MCP server `fake` …"), "{ran:?}");
}
