//! A server that does as it should.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    bench::{Bench, server},
    client::{Client, Era, MUTE},
    fenced::Person,
    support::{ALL, Running, Terminal, id, text, until},
};

#[test]
fn its_tools_are_called_like_any_other_by_everyone() {
    for person in Person::everyone() {
        let bench = Bench::of(person);
        bench.list(&json!({ "fake": server(&json!({})) }));
        let said = bench.does("echo", &json!({ "text": "hi" }));
        assert_eq!((&said["content"], &said["structured"]), (&json!("hi"), &json!({ "text": "hi" })));
        assert_eq!(bench.does("picture", &json!({}))["images"][0]["mimeType"], "image/png");
        let (code, message) = bench.fails("fails", &json!({}));
        assert_eq!((code.as_str(), message.as_str()), ("EXECUTION_ERROR", "there is no such branch"));
        let (code, message) = bench.fails("echo", &json!({ "txt": "hi" }));
        assert!(code == "INVALID_ARGS" && message.contains("text"), "{code}: {message}");
        let listed = bench.0.json(&["tools"]);
        let names = listed.as_array().unwrap().iter().map(|tool| text(&tool["name"]));
        assert_eq!(names.filter(|name| name.starts_with("mcp__fake__")).count(), 6);
    }
}

#[test]
fn a_client_gets_a_picture_without_a_value_that_would_hide_it() {
    let bench = Bench::with(&json!({}));
    bench.does("act", &json!({}));
    let mut client = Client::with(&bench.0.fixture, Era::Initialize, MUTE, ALL);
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let of = |name: &str| tools.iter().find(|tool| tool["name"] == format!("mcp__fake__{name}")).unwrap();
    assert!(of("picture").get("outputSchema").is_none() && of("echo").get("outputSchema").is_some(), "{listed:#}");
    let shown = client.call("mcp__fake__picture", &json!({}));
    assert!(shown.get("structuredContent").is_none() && shown["content"][0]["type"] == "image", "{shown:#}");
    let said = client.call("mcp__fake__act", &json!({}));
    assert!(said["structuredContent"]["text"].as_str().is_some_and(|text| text.starts_with("done")), "{said:#}");
}

#[test]
fn it_runs_in_a_fence_with_a_home_that_lasts() {
    let bench = Bench::new();
    let mut fake = server(&json!({}));
    fake["env"] = json!({ "X_KEY": "secret:KEY", "X_PLAIN": "plain" });
    bench.list(&json!({ "fake": fake }));
    let (code, message) = bench.fails("facts", &json!({}));
    assert!(code == "INVALID_ARGS" && message.contains("no secret `KEY`"), "{message}");
    let mut bench = bench;
    bench.0.variables.push(("KEY", "hidden-key".into()));
    let facts = |bench: &Bench| -> Value {
        serde_json::from_str(bench.does("facts", &json!({}))["content"].as_str().unwrap()).unwrap()
    };
    let (_, message) = bench.fails("fails", &json!({ "writing": true }));
    assert!(message.contains("[mcp.servers.fake]\nworkspace = \"write\""), "{message}");
    let first = facts(&bench);
    assert!(first["writes"].as_str().is_some_and(|why| why.contains("Read-only")), "{first}");
    assert_eq!(first["variables"], json!({ "X_KEY": "[redacted]", "X_PLAIN": "plain" }), "it has the secret");
    assert_eq!((&first["files"], &first["cpu"]), (&json!(256), &json!(3600)));
    let starts = first["starts"].as_u64().unwrap();
    bench.settings("[mcp.servers.fake]\nworkspace = 'write'\nopen_files = 300\ncpu = '1m'\n");
    let second = facts(&bench);
    assert_eq!(second["starts"].as_u64().unwrap(), starts + 1, "its home lasts");
    assert_eq!((&second["writes"], &second["files"], &second["cpu"]), (&json!(true), &json!(300), &json!(60)));
    assert_eq!(bench.0.fixture.text("made-by-server").as_deref(), Some("x"));
    let (_, message) = bench.fails("fails", &json!({ "writing": true }));
    assert!(!message.contains("workspace ="), "{message}");
    let listed = bench.servers(&[]).said() + &bench.0.run(&["log", "--json"]).said();
    assert!(!listed.contains("hidden-key"), "{listed}");
}

#[test]
fn it_asks_unless_the_user_says_that_it_only_reads() {
    let bench = Bench::with(&json!({}));
    let echo = |bench: &Bench| bench.0.call("mcp__fake__echo", &json!({ "text": "a" }), &[]);
    let (code, outcome) = echo(&bench);
    assert_eq!(code, 4, "its own hint is not believed: {outcome}");
    let (code, outcome) = bench.0.call("mcp__fake__act", &json!({}), &[]);
    assert_eq!(code, 4, "{outcome}");
    assert_eq!(bench.counted("calls"), 0, "nothing is done before the yes");
    let approved = bench.0.run(&["approve", &id(&outcome), "--json"]);
    assert_eq!((approved.code, bench.counted("calls")), (Some(0), 1), "{approved:?}");
    bench.settings("[mcp.servers.fake]\ntrusted = true\n");
    assert_eq!(echo(&bench).0, 0);
    assert_eq!(bench.0.call("mcp__fake__act", &json!({}), &[]).0, 4);
    bench.settings("[mcp.servers.fake]\neffects = { act = 'read', echo = 'destructive' }\n");
    assert_eq!(bench.0.call("mcp__fake__act", &json!({}), &[]).0, 0);
    assert_eq!(echo(&bench).0, 4);
}

#[test]
fn one_start_serves_all_calls_of_a_process_and_the_era_is_remembered() {
    let bench = Bench::with(&json!({}));
    let lines: String =
        (0..5).map(|n| format!("{{\"tool\": \"mcp__fake__echo\", \"input\": {{\"text\": \"{n}\"}}}}\n")).collect();
    bench.0.put("calls.jsonl", lines);
    let ran = bench.0.run(&["batch", "calls.jsonl", "--json", "--auto-approve", "all"]);
    assert_eq!((ran.code, ran.stdout.lines().count(), bench.counted("starts")), (Some(0), 5, 1), "{ran:?}");
    let state = bench.0.json(&["mcp-servers"]);
    assert_eq!((&state[0]["version"], &state[0]["state"]), (&json!("2025-11-25"), &json!("ready")));
    assert_eq!(bench.counted("discovers"), 1);
    bench.does("echo", &json!({ "text": "a" }));
    assert_eq!(bench.counted("discovers"), 1, "the same command is not tried with the other era again");
}

#[test]
fn a_server_of_the_new_era_is_met_without_a_greeting() {
    let bench = Bench::with(&json!({ "modern": true, "never_begins": true }));
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a");
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["version"], "2026-07-28");
    assert_eq!(bench.does("echo", &json!({ "text": "b" }))["content"], "b");
}

#[test]
fn allowed_and_denied_tools_are_all_that_there_is_and_is_not() {
    let bench = Bench::with(&json!({}));
    bench.settings("[mcp.servers.fake]\nallowed_tools = ['echo', 'act']\ndenied_tools = ['act']\n");
    bench.does("echo", &json!({ "text": "a" }));
    assert_eq!(bench.fails("act", &json!({})).0, "TOOL_NOT_FOUND");
    assert_eq!(bench.fails("fails", &json!({})).0, "TOOL_NOT_FOUND");
}

#[test]
fn a_call_that_is_stopped_is_stopped_there_and_its_progress_is_heard() {
    let bench = Bench::with(&json!({}));
    bench.does("echo", &json!({ "text": "a" }));
    let mut slow = Terminal::start(bench.0.haft(&[&["call", "mcp__fake__slow", "{}"], ALL].concat()));
    slow.read_until("step 2");
    let log = bench.0.json(&["log", "--tool", "mcp__fake__slow"]);
    assert_eq!(bench.0.run(&["cancel", &text(&log[0]["callId"])]).code, Some(0));
    slow.read_until("It may have happened");
    assert_eq!(slow.exit_code(), Some(1));
    assert_eq!(bench.counted("cancels"), 1);
}

#[test]
fn nothing_of_it_is_left_a_second_after_its_haft_was_killed() {
    let bench = Bench::with(&json!({ "leaks": true }));
    bench.does("echo", &json!({ "text": "a" }));
    let before = bench.counted("starts");
    let slow = Running::start(bench.0.haft(&[&["call", "mcp__fake__slow", "{}"], ALL].concat()));
    until("a start", || (bench.counted("starts") > before).then_some(()));
    until("its processes", || (!started_in(&bench).is_empty()).then_some(()));
    slow.kill();
    let killed = Instant::now();
    until("the end of everything", || started_in(&bench).is_empty().then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
}

/// The processes that have the workspace as their folder: the server's and what it leaked.
fn started_in(bench: &Bench) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let here = |path: &std::path::PathBuf| {
        let line = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
        let is_ours = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == bench.0.fixture.workspace);
        is_ours && (line.contains("fake.py") || line.contains("sleep"))
    };
    all.filter(here).map(|path| path.display().to_string()).collect()
}

#[test]
fn an_odd_definition_costs_nobody_the_others() {
    let bench = Bench::with(&json!({ "odd_tools": true }));
    bench.does("act", &json!({}));
    let mut client = Client::new(&bench.0.fixture, Era::Initialize, "{}");
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    for name in ["mcp__fake__anything", "mcp__fake__things", "read_file"] {
        assert_eq!(tool(name)["outputSchema"]["type"], "object", "{name}");
    }
    assert_eq!(tool("mcp__fake__field")["inputSchema"]["properties"]["text"], json!({}));
}

#[test]
fn a_field_called_input_is_a_field_like_any_other() {
    let bench = Bench::with(&json!({ "odd_tools": true }));
    let given = |words: &[&str]| {
        let ran = bench.0.run(&[&["call", "mcp__fake__field", "--auto-approve", "all", "--json"], words].concat());
        ran.json()["result"]["content"].clone()
    };
    assert_eq!(given(&[r#"{"input": "a", "text": "b"}"#]), r#"{"input": "a", "text": "b"}"#);
    assert_eq!(given(&[r#"{"text": "b"}"#]), r#"{"text": "b"}"#);
    assert_eq!(given(&["--input", "c", r#"{"text": "b"}"#]), r#"{"input": "c", "text": "b"}"#);
}
