//! The command line as scripts rely on it: exit codes, one JSON document, flags, answers, undo, from any folder.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::{fs, os::unix::fs::symlink};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use support::{ALL, Fixture, Ran, Running, events, id, text, user};

fn message(ran: &Ran) -> String {
    text(&ran.json()["error"]["message"])
}

fn paths(list: &Value) -> Vec<(String, String)> {
    list.as_array().unwrap().iter().map(|change| (text(&change["path"]), text(&change["state"]))).collect()
}

#[test]
fn every_exit_code_has_its_end() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let (code, outcome) = fixture.call("read_file", &json!({"path": "a.txt"}), &[]);
    assert_eq!((code, &outcome["status"]), (0, &json!("success")));
    let (code, outcome) = fixture.call("read_file", &json!({"path": "b.txt"}), &[]);
    assert_eq!((code, &outcome["status"], &outcome["error"]["code"]), (1, &json!("error"), &json!("FILE_NOT_FOUND")));
    for usage in
        [&["call", "read_file", "--no-such-flag"][..], &["call"], &["no-such-command"], &["log", "--limit", "0"]]
    {
        let ran = fixture.run(usage);
        assert_eq!(ran.code, Some(2), "{usage:?}: {ran:?}");
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{usage:?}: {ran:?}");
    }
    let wrong = fixture.run(&["call", "read_file", "--path", "a.txt", "--limit", "abc"]);
    assert_eq!(wrong.code, Some(1), "the flag can be read, its value is the tool's to refuse: {wrong:?}");
    let call = fixture.pending("write_file", &json!({"path": "new.txt", "content": "new\n"}));
    assert_eq!(fixture.run(&["reject", &call]).code, Some(0));
    let ran = fixture.run(&["wait", &call, "--json"]);
    assert_eq!((ran.code, &ran.json()["status"]), (Some(3), &json!("rejected")), "{ran:?}");
    assert!(!fixture.path("new.txt").exists());
}

#[test]
fn an_interrupt_cancels_a_waiting_call() {
    for signal in [Signal::INT, Signal::TERM] {
        let fixture = Fixture::new();
        let input = r#"{"path":"new.txt","content":"new\n"}"#;
        let running = Running::start(fixture.haft(&["call", "write_file", input, "--wait", "60", "--json"]));
        let call = fixture.asked(&[]);
        kill_process(running.pid(), signal).unwrap();
        let ran = running.finish();
        assert_eq!((ran.code, &ran.json()["status"]), (Some(130), &json!("cancelled")), "{ran:?}");
        assert_eq!(id(&ran.json()), call);
        assert_eq!(fixture.story(&call)["status"], "cancelled");
        assert_eq!(fixture.run(&["approve", &call]).code, Some(1));
        assert!(!fixture.path("new.txt").exists());
        assert_eq!(fixture.json(&["approvals"]), json!([]));
    }
}

#[test]
fn an_interrupt_and_a_cancel_end_a_call_at_work() {
    let fixture = Fixture::new();
    let waiting = fixture.pending("write_file", &json!({"path": "new.txt", "content": "new\n"}));
    let input = json!({"callId": waiting, "timeoutMs": 100_000}).to_string();
    let at_work = |seen: usize| {
        let running = Running::start(fixture.haft(&["call", "wait_call", &input, "--json"]));
        let call = support::until("call at work", || {
            let rows = fixture.json(&["log", "--tool", "wait_call"]);
            let rows = rows.as_array().unwrap();
            (rows.len() > seen && rows[0]["state"] == "preparing").then(|| text(&rows[0]["callId"]))
        });
        (running, call)
    };
    for (seen, signal) in [Signal::INT, Signal::TERM].into_iter().enumerate() {
        let (running, call) = at_work(seen);
        kill_process(running.pid(), signal).unwrap();
        let ran = running.finish();
        assert_eq!((ran.code, &ran.json()["status"]), (Some(130), &json!("cancelled")), "{ran:?}");
        assert_eq!(fixture.story(&call)["status"], "cancelled");
    }
    let (running, call) = at_work(2);
    assert_eq!(fixture.run(&["cancel", &call]).code, Some(0));
    assert_eq!(running.finish().code, Some(130));
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let call = fixture.pending("write_file", &json!({"path": "new.txt", "content": "new\n"}));
    for args in [
        &["--json"][..],
        &["tools", "--json"],
        &["tools", "read_file", "--json"],
        &["tools", "--export", "mcp"],
        &["log", "--json"],
        &["log", "show", &call, "--json"],
        &["approvals", "--json"],
        &["approvals", "--all", "--json"],
        &["changes", &call, "--json"],
        &["doctor", "--json"],
        &["call", "read_file", "--path", "a.txt", "--json"],
        &["--json", "call", "read_file", "--path", "a.txt"],
        &["call", "--json", "read_file", "--path", "a.txt"],
        &["wait", &call, "--timeout", "0", "--json"],
        &["wait", "tc_nonsense", "--json"],
        &["approve", "tc_00000000000000000000000000000000", "--json"],
        &["tools", "nonsense", "--json"],
        &["log", "--since", "nonsense", "--json"],
        &["reject", &call, "--json"],
        &["undo", &call, "--json"],
        &["redo", &call, "--json"],
        &["cancel", &call, "--json"],
        &["discard", &call, "--json"],
    ] {
        let ran = fixture.run(args);
        let document: Result<Value, _> = serde_json::from_str(&ran.stdout);
        assert!(document.is_ok(), "{args:?}: {ran:?}");
        assert!(ran.stderr.is_empty(), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_mistake_has_a_code_of_its_own() {
    let fixture = Fixture::new();
    for (args, exit, code) in [
        (&["tools", "nonsense"][..], 1, "TOOL_NOT_FOUND"),
        (&["grants", "add", "--tool", "nonsense"], 1, "TOOL_NOT_FOUND"),
        (&["undo", "tc_nonsense"], 1, "INVALID_ARGS"),
        (&["undo", "tc_00000000000000000000000000000000"], 1, "INVALID_ARGS"),
        (&["grants", "revoke", "g_nonsense"], 1, "INVALID_ARGS"),
        (&["help", "nonsense"], 2, "INVALID_ARGS"),
        (&["log", "--since", "nonsense"], 2, "INVALID_ARGS"),
        (&["stats", "--since", "nonsense"], 2, "INVALID_ARGS"),
        (&["nonsense"], 2, "INVALID_ARGS"),
        (&["call", "read_file", "--nonsense"], 2, "INVALID_ARGS"),
        (&["call", "read_file", "{nonsense"], 1, "INVALID_ARGS"),
        (&["call", "read_file", "@nonsense"], 1, "INVALID_ARGS"),
        (&["mcp-servers", "remove", "nonsense"], 1, "NOT_FOUND"),
        (&["mcp-servers", "restart", "nonsense"], 1, "NOT_FOUND"),
        (&["batch", "nonsense"], 1, "FILE_NOT_FOUND"),
    ] {
        let ran = fixture.run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(exit), &json!(code)), "{args:?}: {ran:?}");
        assert!(ran.stderr.is_empty() && ran.json().get("tool_call_id").is_none(), "the journal knows none: {ran:?}");
        let ran = fixture.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(exit), ""), "{args:?}: {ran:?}");
        let head = if exit == 2 { "error".to_owned() } else { format!("error[{code}]: ") };
        assert!(ran.stderr.starts_with(&head), "one voice: {args:?}: {ran:?}");
    }
    assert_eq!(fixture.json(&["log"]), json!([]));
    fixture.put("haft.toml", "");
    for args in [&["log"][..], &["mcp"], &["init"], &["store", "copy", "--to", "postgres://localhost/x"]] {
        let mut command = fixture.haft(&[args, &["--json"]].concat());
        command.env("HAFT_APPROVALS_MODE", "nonsense");
        let ran = Running::start(command).finish();
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{args:?}: {ran:?}");
    }
}

#[test]
fn flags_are_made_from_the_schema() {
    let fixture = Fixture::new();
    let flags = ["call", "write_file", "--path", "a/b.txt", "--content", "-x", "--create-dirs", "--json"];
    let ran = fixture.run(&[&flags[..], ALL].concat());
    assert_eq!((ran.code, fixture.text("a/b.txt").as_deref()), (Some(0), Some("-x")), "{ran:?}");
    let flags = ["call", "write_file", "--path=a/c/d.txt", "--content=d", "--createDirs=false", "--json"];
    assert_eq!(fixture.run(&[&flags[..], ALL].concat()).code, Some(1));
    // Flags are laid over the JSON.
    let (code, outcome) =
        fixture.call("list_directory", &json!({"recursive": false}), &["--recursive", "--limit", "7"]);
    assert_eq!((code, outcome["result"]["structured"]["total"].as_u64()), (0, Some(2)), "{outcome}");
    let ran = fixture.run(&["call", "read_file", "--path", "a/b.txt", "--line-numbers", "false", "--json"]);
    assert_eq!(ran.json()["result"]["content"], "-x", "{ran:?}");
    // An array is a flag that is repeated.
    let (_, outcome) =
        fixture.call("write_file", &json!({"path": "e/f/g.txt", "content": "g", "createDirs": true}), ALL);
    let call = id(&outcome);
    let ran =
        fixture.run(&["call", "undo_call", "--call-id", &call, "--paths", "e/f/g.txt", "--paths", "e/f", "--json"]);
    let turned = &fixture.story(&id(&ran.json()))["question"]["evidence"]["staged"]["changes"];
    let restored: Vec<String> = paths(turned).into_iter().map(|(path, _)| path).collect();
    assert_eq!((ran.code, restored), (Some(4), vec!["e/f".to_owned(), "e/f/g.txt".to_owned()]), "{ran:?}");
    let edits = ["--edits", r#"{"old":"x","new":"y"}"#, "--edits", r#"{"old":"y","new":"z"}"#];
    let ran = fixture.run(&[&["call", "edit_file", "--path", "a/b.txt", "--json"], &edits[..], ALL].concat());
    assert_eq!((ran.code, fixture.text("a/b.txt").as_deref()), (Some(0), Some("-z")), "{ran:?}");
}

#[test]
fn the_input_comes_from_a_file_or_standard_input() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    fixture.put("input.json", r#"{"path": "a.txt"}"#);
    let ran = fixture.run(&["call", "read_file", "@input.json", "--json"]);
    assert_eq!(ran.json()["result"]["structured"]["content"], "a\n", "{ran:?}");
    let ran = fixture.run_with_input(&["call", "read_file", "-", "--json"], br#"{"path": "a.txt"}"#.to_vec());
    assert_eq!(ran.json()["result"]["structured"]["content"], "a\n", "{ran:?}");
    let ran = fixture.run(&["call", "read_file", "@missing.json", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
}

#[test]
fn help_shows_a_tools_fields() {
    let fixture = Fixture::new();
    let ran = fixture.run(&["call", "write_file", "--help"]);
    assert_eq!(ran.code, Some(0));
    for word in ["--path", "--content", "--create-dirs", "--expected-hash", "[required]", "--auto-approve", "--wait"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    for args in [&["--help"][..], &["call", "--help"], &["log", "--help"], &["help"], &["--version"]] {
        let ran = fixture.run(args);
        assert_eq!((ran.code, ran.stdout.is_empty()), (Some(0), false), "{args:?}: {ran:?}");
    }
    // A flag of haft's own name hides the field, and the help says so.
    let ran = fixture.run(&["call", "list_directory", "--help"]);
    assert!(ran.stdout.contains("--recursive"), "{ran:?}");
}

#[test]
fn exports_are_the_same_each_time_and_sorted() {
    let fixture = Fixture::new();
    for (form, name) in [("openai", "/function/name"), ("anthropic", "/name"), ("mcp", "/name")] {
        let once = fixture.run(&["tools", "--export", form]);
        let again = fixture.run(&["tools", "--export", form]);
        assert_eq!(once.code, Some(0), "{once:?}");
        assert_eq!(once.stdout, again.stdout);
        let document = once.json();
        let tools = document.as_array().or_else(|| document["tools"].as_array()).unwrap();
        let names: Vec<String> = tools.iter().map(|tool| text(tool.pointer(name).unwrap())).collect();
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(names, sorted);
        assert!(names.contains(&"write_file".to_owned()) && !names.contains(&"edit".to_owned()), "{names:?}");
    }
}

#[test]
fn one_tool_is_shown_in_full() {
    let fixture = Fixture::new();
    let tool = fixture.json(&["tools", "edit"]);
    assert_eq!((&tool["name"], &tool["aliases"]), (&json!("edit_file"), &json!(["edit"])), "{tool}");
    for part in ["inputSchema", "outputSchema", "effect", "description", "example", "tokens"] {
        assert!(!tool[part].is_null(), "{part}: {tool}");
    }
    let people = fixture.run(&["tools", "edit_file"]);
    assert!(people.stdout.contains("also called") && people.stdout.contains("haft call edit_file"), "{people:?}");
    let found = fixture.json(&["tools", "--search", "undo"]);
    assert!(found.as_array().unwrap().iter().any(|tool| tool["name"] == "undo_call"));
    let ran = fixture.run(&["tools", "reed_file"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("read_file"), "{ran:?}");
    let tokens = fixture.run(&["tools", "--tokens"]);
    assert!(tokens.stdout.contains("TOKENS") && tokens.stdout.contains("tokens in all"), "{tokens:?}");
}

#[test]
fn the_log_is_filtered() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    fixture.call("read_file", &json!({"path": "a.txt"}), &[]);
    fixture.call("read_file", &json!({"path": "b.txt"}), &[]);
    fixture.call("edit_file", &json!({"path": "a.txt", "old": "a", "new": "b"}), ALL);
    let call = fixture.pending("write_file", &json!({"path": "n", "content": "n"}));
    let count = |flags: &[&str]| fixture.json(&[&["log"], flags].concat()).as_array().unwrap().len();
    assert_eq!(count(&[]), 4);
    assert_eq!(count(&["--tool", "read_file"]), 2);
    assert_eq!(count(&["--status", "error"]), 1);
    assert_eq!(count(&["--status", "pending"]), 1);
    assert_eq!(count(&["--status", "success", "--tool", "read_file"]), 1);
    assert_eq!(count(&["--since", "1h"]), 4);
    assert_eq!(count(&["--since", "0s"]), 0);
    assert_eq!(count(&["--limit", "2"]), 2);
    let newest = &fixture.json(&["log", "--limit", "1"])[0];
    assert_eq!(
        (&newest["callId"], &newest["state"], &newest["asked"]),
        (&json!(call), &json!("waiting"), &json!(true))
    );
    let people = fixture.run(&["log"]);
    assert!(people.stdout.contains("CALL") && people.stdout.contains(" FILE_NOT_FOUND "), "{people:?}");
    assert_eq!(fixture.run(&["log", "--status", "nonsense"]).code, Some(2));
}

#[test]
fn the_log_shows_the_persons_words() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "n", "content": "n"}));
    fixture.run(&["reject", &call, "--message", "keep it as it was"]);
    let story = fixture.story(&call);
    assert_eq!(story["outcome"]["user_message"], "keep it as it was", "{story}");
    assert_eq!(
        (&story["answer"]["by"]["name"], &story["answer"]["answer"]["kind"]),
        (&json!(user()), &json!("reject"))
    );
    assert_eq!(events(&story).last().map(String::as_str), Some("tool.rejected"), "{story}");
    let people = fixture.run(&["log", "show", &call]);
    assert!(people.stdout.contains("keep it as it was"), "{people:?}");
}

#[test]
fn an_edited_input_is_a_call_of_its_own() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "old.txt", "content": "old\n"}));
    let ran = fixture.run(&["approve", &call, "--input", r#"{"path":"new.txt","content":"new\n"}"#, "--json"]);
    let outcome = ran.json();
    assert_eq!((ran.code, &outcome["status"]), (Some(0), &json!("success")), "{ran:?}");
    let child = id(&outcome);
    assert_ne!(child, call);
    assert_eq!(fixture.story(&child)["parent"], call);
    assert!(!fixture.path("old.txt").exists());
    assert_eq!(fixture.text("new.txt").as_deref(), Some("new\n"));
    // Whoever waits for the first call gets the outcome of the second.
    let waited = fixture.run(&["wait", &call, "--json"]);
    assert_eq!((waited.code, id(&waited.json())), (Some(0), child), "{waited:?}");
    assert_eq!(waited.json()["result"]["metadata"]["args_modified"], true, "{waited:?}");
}

#[test]
fn a_live_caller_gets_the_outcome_of_the_edited_input() {
    let fixture = Fixture::new();
    let input = r#"{"path":"old.txt","content":"old\n"}"#;
    let owner = Running::start(fixture.haft(&["call", "write_file", input, "--wait", "100", "--json"]));
    let call = fixture.asked(&[]);
    let edit = ["approve", &call, "--input", r#"{"path":"new.txt","content":"new\n"}"#, "--json"];
    let edited = Running::start(fixture.haft(&edit)).finish();
    assert_eq!((edited.code, &edited.json()["status"]), (Some(0), &json!("success")), "{edited:?}");
    let ran = owner.finish();
    assert_eq!(id(&ran.json()), id(&edited.json()));
    assert_eq!((ran.code, &ran.json()["result"]["metadata"]["args_modified"]), (Some(0), &json!(true)), "{ran:?}");
    assert!(!fixture.path("old.txt").exists());
    assert_eq!(fixture.text("new.txt").as_deref(), Some("new\n"));
}

#[test]
fn an_edited_input_that_does_not_fit_is_told_and_the_question_stays() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "old.txt", "content": "old\n"}));
    let ran = fixture.run(&["approve", &call, "--input", "{bad", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
    assert_eq!(fixture.story(&call)["status"], "pending");
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    assert_eq!(fixture.text("old.txt").as_deref(), Some("old\n"));
}

#[test]
fn some_of_the_paths_can_be_committed() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "a/b/c.txt", "content": "c\n", "createDirs": true}));
    let ran = fixture.run(&["commit", &call, "a", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fixture.path("a").is_dir() && !fixture.path("a/b").exists());
    let staged = |path: &str| (path.to_owned(), "staged".to_owned());
    let committed = |path: &str| (path.to_owned(), "committed".to_owned());
    assert_eq!(paths(&ran.json()["changes"]), [committed("a"), staged("a/b"), staged("a/b/c.txt")]);
    assert_eq!(
        paths(&fixture.json(&["changes", &call])["changes"]),
        [committed("a"), staged("a/b"), staged("a/b/c.txt")]
    );
    // The rest is committed later, by a call of its own. A new file brings its new folders along.
    let ran = fixture.run(&["commit", &call, "a/b/c.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["result"]["structured"]["committed"], json!(["a/b", "a/b/c.txt"]), "{ran:?}");
    assert_ne!(id(&ran.json()), call);
    assert_eq!(fixture.text("a/b/c.txt").as_deref(), Some("c\n"));
    let ran = fixture.run(&["commit", &call, "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
}

#[test]
fn a_part_of_a_unit_is_refused_in_clear_words() {
    let fixture = Fixture::new();
    fixture.put("folder/one", "1\n");
    fixture.put("folder/two", "2\n");
    let call = fixture.pending("delete_file", &json!({"path": "folder", "recursive": true}));
    let ran = fixture.run(&["commit", &call, "folder/one", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
    let words = message(&ran);
    assert!(words.contains("folder/one") && words.contains("together with"), "{words}");
    assert!(fixture.path("folder/one").exists() && fixture.path("folder/two").exists());
    // A slip of the finger is no answer: the whole can still be committed.
    let ran = fixture.run(&["commit", &call, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!fixture.path("folder").exists());
}

#[test]
fn a_slip_of_the_finger_is_no_answer() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "new.txt", "content": "new\n"}));
    let ran = fixture.run(&["commit", &call, "new.tx", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(message(&ran).contains("new.txt"), "the nearest path is not named: {ran:?}");
    // The caller asked for nothing wrong, so it is not the caller's call that fails.
    assert_eq!(fixture.story(&call)["status"], "pending", "a path that is not there used up the question: {ran:?}");
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    assert_eq!(fixture.text("new.txt").as_deref(), Some("new\n"));
}

#[test]
fn what_is_staged_can_be_dropped() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "a/b.txt", "content": "b\n", "createDirs": true}));
    let ran = fixture.run(&["discard", &call, "--json"]);
    assert_eq!((ran.code, &ran.json()["status"]), (Some(0), &json!("rejected")), "{ran:?}");
    assert!(!fixture.path("a").exists());
    let call = fixture.pending("write_file", &json!({"path": "a/b.txt", "content": "b\n", "createDirs": true}));
    assert_eq!(fixture.run(&["commit", &call, "a"]).code, Some(0));
    let ran = fixture.run(&["discard", &call, "--json"]);
    assert_eq!((ran.code, &ran.json()["result"]["structured"]["discarded"]), (Some(0), &json!(["a/b.txt"])), "{ran:?}");
    let ran = fixture.run(&["commit", &call, "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!fixture.path("a/b.txt").exists());
    assert_eq!(fixture.run(&["undo", &call, "--yes"]).code, Some(0));
    assert!(!fixture.path("a").exists());
}

#[test]
fn an_undo_can_be_undone_as_often_as_one_likes() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "old\n");
    let old = fixture.picture();
    let (_, outcome) = fixture.call("write_file", &json!({"path": "a.txt", "content": "new\n"}), ALL);
    let new = fixture.picture();
    let call = id(&outcome);
    for _ in 0..3 {
        assert_eq!(fixture.run(&["undo", &call, "--yes"]).code, Some(0));
        assert!(fixture.picture() == old);
        let ran = fixture.run(&["undo", &call, "--yes", "--json"]);
        assert_eq!(ran.code, Some(1), "undone twice: {ran:?}");
        assert_eq!(fixture.run(&["redo", &call, "--yes"]).code, Some(0));
        assert!(fixture.picture() == new);
        assert_eq!(fixture.run(&["redo", &call, "--yes"]).code, Some(1));
    }
    // The undo of an undo, by its own id, and so on.
    let mut last = call;
    for turn in 0..4 {
        let ran = fixture.run(&["undo", &last, "--yes", "--json"]);
        assert_eq!(ran.code, Some(0), "{turn}: {ran:?}");
        last = id(&ran.json());
        assert!(fixture.picture() == if turn % 2 == 0 { old.clone() } else { new.clone() }, "{turn}");
    }
    fixture.put("a.txt", "mine\n");
    let ran = fixture.run(&["undo", &last, "--yes", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("CONFLICT")), "{ran:?}");
    assert_eq!(fixture.text("a.txt").as_deref(), Some("mine\n"));
}

#[test]
fn an_undo_without_a_yes_waits() {
    let fixture = Fixture::new();
    let (_, outcome) = fixture.call("write_file", &json!({"path": "a.txt", "content": "new\n"}), ALL);
    let ran = fixture.run(&["undo", &id(&outcome), "--json"]);
    assert_eq!((ran.code, fixture.path("a.txt").exists()), (Some(4), true), "{ran:?}");
    assert_eq!(fixture.run(&["approve", &id(&ran.json())]).code, Some(0));
    assert!(!fixture.path("a.txt").exists());
}

#[test]
fn waiting_has_a_limit() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "a.txt", "content": "a\n"}));
    let ran = fixture.run(&["wait", &call, "--timeout", "0.2"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let waiting = Running::start(fixture.haft(&["wait", &call, "--json"]));
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    let ran = waiting.finish();
    assert_eq!((ran.code, id(&ran.json())), (Some(0), call), "{ran:?}");
    let ran = fixture.run(&["wait", "tc_00000000000000000000000000000000"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn a_cancelled_call_stays_cancelled() {
    let fixture = Fixture::new();
    let call = fixture.pending("write_file", &json!({"path": "a.txt", "content": "a\n"}));
    assert_eq!(fixture.run(&["cancel", &call]).code, Some(0));
    for again in [&["cancel", &call][..], &["approve", &call], &["reject", &call]] {
        let ran = fixture.run(again);
        assert_eq!(ran.code, Some(1), "{again:?}: {ran:?}");
        assert!(ran.stderr.contains("cancelled"), "{again:?}: {ran:?}");
    }
    assert!(!fixture.path("a.txt").exists());
    assert_eq!(fixture.run(&["wait", &call]).code, Some(130));
}

#[test]
fn bare_haft_says_where_one_is() {
    let fixture = Fixture::new();
    let ran = fixture.run::<&str>(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(&*fixture.workspace.to_string_lossy()), "{ran:?}");
    assert!(ran.stdout.contains("nothing waits"), "{ran:?}");
    let tried = ran.stdout.lines().filter(|line| line.trim_start().starts_with("haft call") || line.contains("haft "));
    assert!(tried.count() >= 3, "{ran:?}");
    let call = fixture.pending("write_file", &json!({"path": "a.txt", "content": "a\n"}));
    let ran = fixture.run::<&str>(&[]);
    assert!(ran.stdout.contains(&format!("haft approve {call}")), "{ran:?}");
    assert_eq!(fixture.json(&[])["openQuestions"], 1);
    assert!(!ran.said().contains('\u{1b}'), "colour without a terminal: {ran:?}");
}

#[test]
fn the_doctor_looks_at_everything() {
    let fixture = Fixture::new();
    let findings = fixture.json(&["doctor"]);
    let looked: Vec<String> = findings.as_array().unwrap().iter().map(|finding| text(&finding["what"])).collect();
    for what in ["program", "kernel", "store", "workspace", "settings", "data"] {
        assert!(looked.contains(&what.to_owned()), "{what}: {looked:?}");
    }
    let mut command = fixture.haft(&["doctor"]);
    command.env("HAFT_APPROVALS_MODE", "nonsense");
    let ran = Running::start(command).finish();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.said().contains("nonsense") && ran.said().contains("HAFT_APPROVALS_MODE"), "{ran:?}");
}

#[test]
fn answers_are_typed_anywhere() {
    let fixture = Fixture::new();
    fixture.put(".haft/here", "");
    fixture.put("deep/er/file", "");
    let elsewhere = tempfile::tempdir().unwrap();
    let there = |args: &[&str]| {
        let mut command = fixture.haft(args);
        command.current_dir(elsewhere.path());
        Running::start(command).finish()
    };
    let call = fixture.pending("write_file", &json!({"path": "a.txt", "content": "a\n"}));
    assert_eq!(there(&["approvals", "--json"]).json(), json!([]));
    let all = there(&["approvals", "--all", "--json"]).json();
    assert_eq!((&all[0]["callId"], all.as_array().unwrap().len()), (&json!(call), 1));
    assert_eq!(there(&["changes", &call, "--json"]).json()["changes"][0]["path"], "a.txt");
    assert_eq!(there(&["approve", &call]).code, Some(0));
    assert_eq!(fixture.text("a.txt").as_deref(), Some("a\n"));
    assert_eq!(there(&["log", "show", &call, "--json"]).json()["status"], "success");
    assert_eq!(there(&["log", "--json"]).json(), json!([]));
    assert_eq!(there(&["undo", &call, "--yes"]).code, Some(0));
    assert!(!fixture.path("a.txt").exists());
    assert_eq!(there(&["redo", &call, "--yes"]).code, Some(0));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    // A folder beneath belongs to the workspace above it; another one can be named.
    let mut command = fixture.haft(&["call", "read_file", r#"{"path":"a.txt"}"#, "--json"]);
    command.current_dir(fixture.path("deep/er"));
    assert_eq!(Running::start(command).finish().code, Some(0));
    let workspace = fixture.workspace.to_string_lossy().into_owned();
    for named in [
        &["--workspace", &workspace, "call", "read_file", r#"{"path":"a.txt"}"#][..],
        &["call", "read_file", "--path", "a.txt", "--workspace", &workspace],
    ] {
        let ran = there(named);
        assert_eq!(ran.code, Some(0), "{named:?}: {ran:?}");
    }
}

#[test]
fn the_same_workspace_by_another_name_is_the_same() {
    let fixture = Fixture::new();
    let link = fixture.home.join("link");
    symlink(&fixture.workspace, &link).unwrap();
    let call = fixture.pending("write_file", &json!({"path": "a.txt", "content": "a\n"}));
    let open = fixture.json(&["approvals", "--workspace", &link.to_string_lossy()]);
    assert_eq!(open[0]["callId"], json!(call));
}

#[test]
fn what_is_asked_for_is_what_is_committed() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "old\n");
    let call = fixture.pending("write_file", &json!({"path": "a.txt", "content": "new\n"}));
    fixture.put("a.txt", "somebody else's\n");
    let ran = fixture.run(&["approve", &call, "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("CONFLICT")), "{ran:?}");
    assert_eq!(fixture.text("a.txt").as_deref(), Some("somebody else's\n"));
    let (code, outcome) = fixture.call("read_file", &json!({"path": "a.txt"}), &["--auto-approve", "none"]);
    assert_eq!((code, outcome.to_string().contains("somebody else")), (4, false), "{outcome}");
    let rejected = fixture.run(&["reject", &id(&outcome), "--json"]);
    assert!(!rejected.stdout.contains("somebody else"), "{rejected:?}");
}

#[test]
fn a_question_that_nobody_answered_in_time_has_expired() {
    let fixture = Fixture::new();
    let mut command = fixture.haft(&["call", "write_file", r#"{"path": "a", "content": "a"}"#]);
    command.env("HAFT_APPROVALS_EXPIRE", "1ms");
    assert_eq!(Running::start(command).finish().code, Some(4));
    let call = text(&fixture.json(&["log"])[0]["callId"]);
    let ran = fixture.run(&["wait", &call]);
    assert!(ran.code == Some(3) && ran.stderr.contains("expired: nobody answered in time"), "{ran:?}");
    let log = fixture.run(&["log"]);
    assert!(log.stdout.contains("  expired  write_file"), "{log:?}");
}
