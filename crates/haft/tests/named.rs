//! Which call a command means: by the beginning of an id, or by leaving the id out; and what the log says of each.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::{Value, json};
use support::{ALL, Fixture, Terminal, id};

fn write(fixture: &Fixture, path: &str) -> String {
    let (code, outcome) = fixture.call("write_file", &json!({"path": path, "content": "x\n"}), ALL);
    assert_eq!(code, 0, "{outcome}");
    id(&outcome)
}

#[test]
fn the_beginning_of_an_id_is_enough() {
    let fixture = Fixture::new();
    let (one, other) = (write(&fixture, "one"), write(&fixture, "other"));
    let alike = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    for args in [&["log", "show"][..], &["changes"], &["wait"], &["policy", "explain"]] {
        let shown = fixture.json(&[args, &[&one[..=alike]]].concat());
        let call = shown.get("callId").or(shown.get("tool_call_id")).cloned();
        assert_eq!(call, Some(json!(one)), "{args:?}: {shown}");
    }
    let upper = fixture.json(&["log", "show", &format!("tc_{}", one[3..=alike].to_uppercase())]);
    assert_eq!(upper["callId"], json!(one));
    let ran = fixture.run(&["log", "show", &one[..alike]]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&one) && ran.stderr.contains(&other), "those that it may mean: {ran:?}");
    let ran = fixture.run(&["log", "show", "tc_ffff", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
    let page: Value = fixture.json(&["log", "--before", &other[..=alike]]);
    assert_eq!(page.as_array().unwrap().len(), 1, "older ones: {page}");
    let grant = fixture.json(&["grants", "add", "--tool", "write_file"]);
    let beginning = &grant["id"].as_str().unwrap()[..10];
    assert_eq!(fixture.json(&["grants", "revoke", beginning])["revoked"], json!(true));
}

#[test]
fn an_undo_without_an_id_skips_what_was_only_built_or_looked_at() {
    let fixture = Fixture::new();
    fixture.put(".gitignore", "target/\n");
    fixture.put("seen", "same\n");
    for arguments in [&["init", "-q"][..], &["add", "-A"]] {
        assert!(fixture.program("git").args(arguments).output().unwrap().status.success());
    }
    let meant = write(&fixture, "important");
    // The same content with another time makes git write its index again.
    let file = std::fs::File::options().write(true).open(fixture.path("seen")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    for command in ["git status", "mkdir -p target && echo built > target/out"] {
        let (code, outcome) = fixture.call("shell_exec", &json!({"command": command}), ALL);
        assert!(code == 0 && outcome["changes"].is_array(), "{outcome}");
    }
    let ran = fixture.run(&["undo", "--yes"]);
    assert!(ran.stderr.contains(&meant) && fixture.text("important").is_none(), "{ran:?}");
    assert!(ran.stdout.contains("↶ delete important") && !ran.stdout.contains("create"), "as it was done: {ran:?}");
    assert_eq!(fixture.text("target/out").as_deref(), Some("built\n"));
}

#[test]
fn an_undo_without_an_id_goes_back_one_call_after_the_other() {
    let fixture = Fixture::new();
    let (one, other) = (write(&fixture, "one"), write(&fixture, "other"));
    fixture.call("read_file", &json!({"path": "one"}), &[]);
    let ran = fixture.run(&["undo", "--yes"]);
    assert!(ran.stderr.contains(&other) && ran.stderr.contains("write_file other"), "it says which: {ran:?}");
    assert_eq!((fixture.text("one").is_some(), fixture.text("other").is_some()), (true, false));
    let ran = fixture.run(&["undo", "--yes"]);
    assert!(ran.stderr.contains(&one), "{ran:?}");
    let ran = fixture.run(&["undo", "--yes", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
    // Back again, the last undo first.
    assert_eq!(fixture.run(&["redo", "--yes"]).code, Some(0));
    assert_eq!((fixture.text("one").is_some(), fixture.text("other").is_some()), (true, false));
    assert_eq!(fixture.run(&["redo", "--yes"]).code, Some(0));
    assert!(fixture.text("other").is_some());
    let ran = fixture.run(&["redo", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ran = fixture.run(&["undo", "--yes"]);
    assert_eq!((ran.code, fixture.text("other")), (Some(0), None), "a redo can be undone: {ran:?}");
}

#[test]
fn an_answer_without_an_id_is_for_the_only_question() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run(&["approve"]).code, Some(1), "there is none");
    let one = fixture.pending("write_file", &json!({"path": "one", "content": "1\n"}));
    assert!(fixture.run(&["changes"]).stderr.contains(&one));
    let ran = fixture.run(&["approve"]);
    assert!(ran.code == Some(0) && ran.stderr.contains(&one), "{ran:?}");
    let two = fixture.pending("write_file", &json!({"path": "two", "content": "2\n"}));
    let three = fixture.pending("write_file", &json!({"path": "three", "content": "3\n"}));
    for answer in ["approve", "reject", "commit", "discard"] {
        let ran = fixture.run(&[answer]);
        assert_eq!(ran.code, Some(1), "{answer}: {ran:?}");
        assert!(ran.stderr.contains(&two) && ran.stderr.contains(&three), "{answer}: {ran:?}");
    }
    assert_eq!(fixture.run(&["reject", &two]).code, Some(0));
    assert_eq!(fixture.run(&["commit", "three"]).code, Some(0), "a path of the only one");
    assert_eq!((fixture.text("two"), fixture.text("three").as_deref()), (None, Some("3\n")));
}

#[test]
fn a_question_that_was_not_named_is_shown_before_the_yes() {
    let fixture = Fixture::new();
    fixture.pending("write_file", &json!({"path": "new", "content": "seen\n"}));
    let mut terminal = Terminal::start(fixture.haft(&["approve"]));
    let card = terminal.read_until("[?]");
    assert!(card.contains("+seen"), "{card}");
    assert_eq!(fixture.text("new"), None);
    terminal.type_in("y\n");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(fixture.text("new").as_deref(), Some("seen\n"));
}

#[test]
fn the_log_says_what_was_called_and_cuts_nothing_in_a_pipe() {
    let fixture = Fixture::new();
    let command = format!("exit 3 # {}", "long ".repeat(30));
    let (_, outcome) = fixture.call("shell_exec", &json!({"command": command}), &[]);
    fixture.call("read_file", &json!({"path": "not there"}), &[]);
    let log = fixture.run(&["log"]).stdout;
    assert!(log.contains(&format!("shell_exec {}", command.trim())) && log.contains("exit 3"), "{log}");
    assert!(log.contains(&id(&outcome)), "the whole id: {log}");
    assert!(log.contains("FILE_NOT_FOUND") && log.contains("read_file not there"), "{log}");
    let mut terminal = Terminal::start(fixture.haft(&["log"]));
    let seen = terminal.read_until("log show").replace('\r', "");
    assert!(seen.contains("FILE_NOT_FOUND  read_file not there\n"), "{seen}");
    assert!(seen.lines().all(|line| anstream::adapter::strip_str(line).to_string().chars().count() <= 80), "{seen}");
}
