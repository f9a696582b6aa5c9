//! Servers that go wrong: a clear error, no hang, nothing left.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{bench::Bench, support::ALL};

/// What a call comes to, and that it comes to it soon.
fn comes_to(options: &Value, tool: &str, input: &Value) -> (String, String) {
    let begun = Instant::now();
    let failed = Bench::with(options).fails(tool, input);
    assert!(begun.elapsed() < Duration::from_secs(60), "{options}: {:?}", begun.elapsed());
    failed
}

#[test]
fn whatever_breaks_a_server_is_told() {
    let echo = json!({ "text": "a" });
    for (options, tool, input, code, words) in [
        (json!({ "ends": true }), "echo", &echo, "UNAVAILABLE", "cannot find the database"),
        (json!({ "dies": "act" }), "act", &json!({}), "OUTCOME_UNKNOWN", "exit code 7"),
        (json!({ "garbage": "act" }), "act", &json!({}), "OUTCOME_UNKNOWN", "no message of the protocol"),
        (json!({ "huge": "echo" }), "echo", &echo, "OUTCOME_UNKNOWN", "more than 16 MiB"),
        (json!({ "version": "1990-01-01" }), "echo", &echo, "UNAVAILABLE", "it speaks MCP in version `1990-01-01`"),
        (json!({ "lies": "echo" }), "echo", &echo, "OUTPUT_INVALID", "7 is not of type \"string\""),
    ] {
        let (is, said) = comes_to(&options, tool, input);
        assert!(is == code && said.contains(words), "{options}: {is}: {said}");
    }
}

#[test]
fn what_a_server_said_last_stands_last() {
    let (_, said) = comes_to(&json!({ "dies": "act", "last_words": "segfault soon" }), "act", &json!({}));
    let (ours, theirs) = said.split_once("; it said:\n").unwrap();
    assert!(ours.starts_with("It may have happened, and was not tried again. Check before you call again: "), "{said}");
    assert_eq!(theirs, "segfault soon");
}

#[test]
fn one_that_breaks_has_failed_until_it_runs_again() {
    for (options, words) in
        [(json!({ "dies": "echo" }), "exit code 7"), (json!({ "huge": "echo" }), "more than 16 MiB")]
    {
        let bench = Bench::with(&options);
        let stands = || bench.0.json(&["mcp-servers"])[0].clone();
        assert_eq!(bench.fails("echo", &json!({ "text": "a" })).0, "OUTCOME_UNKNOWN");
        let broken = stands();
        assert_eq!((&broken["state"], &broken["breaks"]), (&json!("failed"), &json!(1)), "{broken}");
        assert!(broken["lastError"].as_str().unwrap().contains(words), "{broken}");
        assert!(bench.servers(&[]).stdout.contains("broke once"));
        bench.does("act", &json!({}));
        let again = stands();
        assert_eq!(
            (&again["state"], &again["lastError"], &again["breaks"]),
            (&json!("ready"), &Value::Null, &json!(1))
        );
        assert_eq!(bench.servers(&["restart", "fake"]).code, Some(0));
        assert_eq!(stands()["breaks"], 0);
    }
    let bench = Bench::with(&json!({ "version": "1990-01-01" }));
    bench.fails("echo", &json!({ "text": "a" }));
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["state"], "failed");
}

#[test]
fn one_that_failed_before_is_waited_for_briefly_and_not_in_silence() {
    let bench = Bench::with(&json!({ "ends": true }));
    bench.fails("echo", &json!({ "text": "a" }));
    bench.list(&json!({ "fake": crate::bench::server(&json!({ "never_begins": true })) }));
    let ran = bench.0.run(&["tools"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("read_file"), "{ran:?}");
    for words in
        ["waiting for the MCP server `fake` …", "did not answer within 5 s", "mcp-servers restart fake` waits longer"]
    {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}

#[test]
fn what_only_reads_is_tried_again_and_what_acts_is_not() {
    let bench = Bench::with(&json!({ "dies_once": "echo" }));
    bench.settings("[mcp.servers.fake]\ntrusted = true\n");
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a");
    assert_eq!(bench.counted("starts"), 2);
    let bench = Bench::with(&json!({ "dies_once": "act" }));
    assert_eq!(bench.fails("act", &json!({})).0, "OUTCOME_UNKNOWN");
    assert_eq!(bench.counted("calls"), 1);
}

#[test]
fn one_that_always_breaks_is_started_again_three_times() {
    let bench = Bench::with(&json!({ "dies": "echo" }));
    bench.settings("[mcp.servers.fake]\ntrusted = true\n");
    bench.does("act", &json!({}));
    let before = bench.counted("starts");
    let (code, message) = bench.fails("echo", &json!({ "text": "a" }));
    assert!(code == "UNAVAILABLE" && message.contains("exit code 7"), "{code}: {message}");
    assert_eq!(bench.counted("starts") - before, 4);
    let lines = "{\"tool\": \"mcp__fake__echo\", \"input\": {\"text\": \"a\"}}\n".repeat(3);
    bench.0.put("calls.jsonl", lines);
    let before = bench.counted("starts");
    let ran = bench.0.run(&["batch", "calls.jsonl", "--json", "--auto-approve", "all"]);
    assert!(ran.stdout.contains("haft mcp-servers restart fake"), "{ran:?}");
    assert!(bench.counted("starts") - before <= 5, "it is left alone after that");
    let state = &bench.0.json(&["mcp-servers"])[0];
    assert!(state["state"] == "failed" && state["breaks"].as_u64().unwrap() >= 8, "{state}");
}

#[test]
fn one_that_never_answers_is_given_up() {
    let bench = Bench::with(&json!({ "silent": "echo" }));
    bench.settings("[mcp.servers.fake]\ntrusted = true\ntimeout = '500ms'\n");
    let (code, message) = bench.fails("echo", &json!({ "text": "a" }));
    assert!(code == "TIMEOUT" && message.contains("500"), "{code}: {message}");
    let bench = Bench::with(&json!({ "silent": "act" }));
    bench.settings("[mcp.servers.fake]\ntimeout = '500ms'\n");
    assert_eq!(bench.fails("act", &json!({})).0, "OUTCOME_UNKNOWN");
}

#[test]
fn one_that_tells_of_its_progress_may_take_longer_than_it_may_be_silent() {
    let bench = Bench::with(&json!({ "steps": 40 }));
    bench.settings("[mcp.servers.fake]\ntimeout = '1s'\n");
    let begun = Instant::now();
    assert_eq!(bench.does("slow", &json!({}))["content"], "slow and steady");
    assert!(begun.elapsed() > Duration::from_millis(1800), "{:?}", begun.elapsed());
}

#[test]
fn what_failed_behind_the_fence_says_so_and_what_is_missing_does_not_come_back_later() {
    let bench = Bench::with(&json!({}));
    let (_, outcome) = bench.call("fails", &json!({}));
    assert_eq!(outcome["isolation"], "namespaces", "{outcome:#}");
    bench.list(
        &json!({ "fake": { "command": "no-such-program" }, "other": { "command": "python3", "args": ["no.py"] } }),
    );
    for tool in ["mcp__fake__act", "mcp__other__act"] {
        let (_, outcome) = bench.0.call(tool, &json!({}), ALL);
        let error = &outcome["error"];
        assert_eq!((&error["code"], &error["recoverable"]), (&json!("UNAVAILABLE"), &json!(false)), "{outcome:#}");
    }
}

#[test]
fn noise_is_no_harm() {
    for options in [json!({ "flood": true }), json!({ "chatter": true, "twice": true }), json!({ "leaks": true })] {
        let bench = Bench::with(&options);
        assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a", "{options}");
    }
}

#[test]
fn a_broken_definition_costs_only_itself() {
    let bench = Bench::with(&json!({ "broken_tool": true }));
    let ran = bench.0.run(&["tools"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let remote = "`bad_schema` of the MCP server `fake` gives no tool: its input schema refers to `http://x/y`";
    let twice =
        "a definition of `echo` of the MCP server `fake` gives no tool: it is listed twice, and the first counts";
    for words in ["`no_schema` of the MCP server `fake` gives no tool", twice, remote] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let state = &bench.0.json(&["mcp-servers"])[0];
    assert_eq!(
        (state["tools"].as_array().unwrap().len(), state["dropped"].as_array().unwrap().len()),
        (6, 3),
        "{state}"
    );
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a");
    assert_eq!(bench.fails("no_schema", &json!({})).0, "TOOL_NOT_FOUND");
}

#[test]
fn what_a_definition_hides_is_shown() {
    let bench = Bench::with(&json!({ "hides": true }));
    let ran = bench.0.run(&["tools", "mcp__fake__hides"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("Reads \\u{202e}.evil"), "{ran:?}");
    assert!(!ran.stdout.contains('\u{202e}'), "{ran:?}");
}

#[test]
fn one_that_cannot_fetch_says_which_line_to_add() {
    let bench = Bench::new();
    bench.list(&json!({ "fake": { "command": "sh", "args": ["-c", "echo getaddrinfo ENOTFOUND registry.example >&2; exit 1"] } }));
    let (code, message) = bench.fails("echo", &json!({}));
    assert!(code == "UNAVAILABLE" && message.contains("[mcp.servers.fake]\nnetwork = true"), "{message}");
    for words in ["ENOTFOUND registry.example", "a: Read-only file system"] {
        bench.list(&json!({ "fake": { "command": "sh", "args": ["-c", format!("echo {words} >&2; exit 1")] } }));
        let (_, outcome) = bench.0.call("mcp__fake__echo", &json!({}), ALL);
        assert_eq!(outcome["error"]["recoverable"], json!(false), "a line must be added first: {outcome:#}");
    }
    bench.list(&json!({ "fake": { "command": "no-such-program" } }));
    let (_, message) = bench.fails("echo", &json!({}));
    assert!(message.contains("the program `no-such-program` was not found"), "{message}");
}

#[test]
fn a_script_that_only_the_fence_hides_is_told_from_one_that_is_missing() {
    let bench = Bench::new();
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    let folder = elsewhere.path().canonicalize().unwrap();
    std::fs::copy(bench.0.fixture.path("fake.py"), folder.join("fake.py")).unwrap();
    let script = folder.join("fake.py").display().to_string();
    bench.list(&json!({ "fake": { "command": "python3", "args": [script] } }));
    let (code, said) = bench.fails("act", &json!({}));
    assert_eq!(code, "UNAVAILABLE");
    let lines = format!("add to your haft.toml:\n[sandbox]\nread = [{:?}]", folder.display().to_string());
    assert!(said.contains(&lines), "{said}");
    bench.settings(&format!("[sandbox]\nread = [{:?}]\n", folder.display().to_string()));
    bench.servers(&["restart", "fake"]);
    bench.does("act", &json!({}));
    bench.list(&json!({ "fake": { "command": "python3", "args": [folder.join("none.py").display().to_string()] } }));
    assert!(!bench.fails("act", &json!({})).1.contains("[sandbox]"));
}
