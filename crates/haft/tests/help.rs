//! The topics of `haft help`: they fit a terminal, and every example in them runs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::path::Path;

use serde_json::json;
use support::{ALL, Fixture, HAFT, Running, Terminal, id, text};

const TOPICS: &[&str] = &["calls", "approvals", "changes", "commands", "policy", "servers", "trust", "settings"];

/// What stands in the examples of a topic.
fn examples(topic: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/help/{topic}.md"));
    let text = std::fs::read_to_string(file).unwrap();
    let blocks = text.split("```").enumerate().filter(|(at, _)| at % 2 == 1).map(|(_, block)| block);
    blocks.flat_map(str::lines).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_topic_is_there_and_fits_a_terminal() {
    let fixture = Fixture::new();
    for topic in TOPICS {
        let ran = fixture.run(&["help", topic]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let long = ran.stdout.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{topic}");
        assert!(ran.stdout.lines().count() > 15 && !ran.stdout.contains("```"), "{topic}: {}", ran.stdout);
        assert_eq!(fixture.run(&["help", &topic.to_uppercase()]).stdout, ran.stdout, "in any letter case");
    }
}

#[test]
fn every_example_runs() {
    for topic in TOPICS {
        let lines = examples(topic);
        assert!(!lines.is_empty(), "{topic} has no example");
        for line in lines {
            let fixture = Fixture::new();
            fixture.put("README.md", "one\n");
            fixture.put("src/main.rs", "fn main() {}\n");
            let made = |flags| fixture.call("write_file", &json!({"path": "src/main.rs", "content": "x\n"}), flags);
            let taken_back = line.contains("undo") || line.contains("redo");
            let (_, call) = made(if taken_back { ALL } else { &[] });
            let call = id(&call);
            if line.contains("redo") {
                assert_eq!(fixture.run(&["undo", &call, "--yes"]).code, Some(0));
            }
            // These wait for a person, or for a call that nobody answers.
            if line.contains("--watch") || line.contains("haft wait") {
                continue;
            }
            let mut command = fixture.program("/bin/sh");
            let folder = Path::new(HAFT).parent().unwrap().display();
            let hash = text(&fixture.json(&["trust", "--show"])["hash"]);
            command
                .args(["-c", &line.replace("CALL", &call).replace("HASH", &hash)])
                .env("PATH", format!("{folder}:/usr/bin:/bin"));
            let ran = Running::start(command).finish();
            assert!(matches!(ran.code, Some(0 | 4)), "{topic}: {line}\n{ran:?}");
        }
    }
}

#[test]
fn commands_are_explained_too() {
    let fixture = Fixture::new();
    for (about, words) in [
        (&["help"][..], "Usage: haft"),
        (&["help", "call"], "Usage: haft call"),
        (&["help", "log", "show"], "Usage: haft log show"),
        (&["help", "trust"], "Usage: haft trust"),
        (&["help", "trust"], "exactly the bytes"),
        (&["help", "settings"], "HAFT_APPROVALS_MODE"),
        (&["help", "settings"], "notify.command"),
        (&["trust", "--help"], "Usage: haft trust"),
    ] {
        let ran = fixture.run(about);
        assert_eq!((ran.code, ran.stdout.contains(words)), (Some(0), true), "{about:?}: {ran:?}");
    }
    assert!(fixture.run(&["help"]).stdout.contains("policy"), "the topics are named");
    let ran = fixture.run(&["help", "trus"]);
    assert_eq!((ran.code, ran.stderr.contains("`trust`")), (Some(2), true), "{ran:?}");
    assert_eq!(fixture.run(&["help", "log", "nothing"]).code, Some(2));
}

#[test]
fn help_fits_a_terminal_and_says_how_a_command_is_typed() {
    let fixture = Fixture::new();
    for command in [
        "",
        "call",
        "batch",
        "tools",
        "log",
        "log show",
        "approvals",
        "approve",
        "reject",
        "changes",
        "commit",
        "discard",
        "undo",
        "redo",
        "cancel",
        "wait",
        "grants",
        "grants add",
        "grants show",
        "policy",
        "policy test",
        "policy explain",
        "stats",
        "trust",
        "init",
        "gc",
        "store",
        "store copy",
        "doctor",
        "serve",
        "admin",
        "admin key add",
        "admin mcp add",
        "admin tenant set",
        "completions",
        "help",
        "call write_file",
        "call shell_exec",
        "call grep",
    ] {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let ran = fixture.run(&words);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
        let long = ran.stdout.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{command}");
        assert!(ran.stdout.contains(format!("Usage: haft {command}").trim_end()), "{command}: {}", ran.stdout);
    }
}

#[test]
fn flags_are_shown_as_they_are_typed_with_what_they_take() {
    let fixture = Fixture::new();
    let help = fixture.run(&["call", "write_file", "--help"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["--create-dirs", "[possible values: overwrite, append]", "[possible values: none, safe, all]"] {
        assert!(help.contains(words), "{words} in {help}");
    }
    assert!(!help.contains("createDirs"), "{help}");
    let ran = fixture.run(&["call", "write_file", "--path", "a", "--content", "a", "--mode", "sideways"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn long_help_is_read_with_a_pager_at_a_terminal() {
    let fixture = Fixture::new();
    let mut command = fixture.haft(&["help", "servers"]);
    command.env("PAGER", "sed s/MCP/PAGED/");
    let mut terminal = Terminal::start(command);
    terminal.read_until("PAGED");
    assert_eq!(terminal.exit_code(), Some(0));
    let ran = Running::start(fixture.haft(&["help", "servers"])).finish();
    assert!(ran.stdout.contains("MCP"), "not in a pipe");
}

#[test]
fn colours_are_a_choice() {
    let fixture = Fixture::new();
    let coloured = |flags: &[&str]| fixture.run(&[&["tools"], flags].concat()).stdout.contains('\u{1b}');
    assert_eq!((coloured(&[]), coloured(&["--color", "always"]), coloured(&["--color=never"])), (false, true, false));
    assert_eq!(fixture.run(&["tools", "--color", "pink"]).code, Some(2));
}

#[test]
fn a_server_that_is_started_by_hand_says_what_it_is_for() {
    let fixture = Fixture::new();
    let mut terminal = Terminal::start(fixture.haft(&["mcp"]));
    terminal.read_until("haft mcp install");
}

#[test]
fn the_list_of_tools_gives_its_room_to_the_sentences() {
    let fixture = Fixture::new();
    let mut terminal = Terminal::start(fixture.haft(&["tools"]));
    let list = terminal.read_until("one in full").replace('\r', "");
    assert!(list.contains("read_file (read) ") && !list.contains('…'), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let piped = fixture.run(&["tools"]).stdout;
    let tool = piped.lines().find(|line| line.starts_with("shell_exec (execute)")).unwrap();
    assert!(tool.ends_with("build, test, git, inspect"), "on one line in a pipe: {tool}");
}
