//! Completion as a shell does it: commands, tools, fields, ids of calls; silent when something is wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{fs, path::Path};

use serde_json::json;
use support::{ALL, Fixture, HAFT, Ran, Running, id};

/// What bash offers for the last of these words.
fn offered(fixture: &Fixture, words: &[&str]) -> Vec<String> {
    let ran = in_bash(fixture, words);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words:?}: {ran:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

/// Loads the script as a person's `.bashrc` would, and completes by the function that it registers.
fn in_bash(fixture: &Fixture, words: &[&str]) -> Ran {
    let script = r#"source <(haft completions bash) || exit 9
        [[ $(complete -p haft) =~ -F\ ([^ ]+) ]] || exit 8
        COMP_WORDS=(haft "$@"); COMP_CWORD=$#; COMP_TYPE=9
        "${BASH_REMATCH[1]}" haft "${!#}" "${COMP_WORDS[$#-1]}" 2> >(grep -v 'compopt' >&2)
        (( ${#COMPREPLY[@]} == 0 )) || printf '%s\n' "${COMPREPLY[@]}""#;
    let mut command = fixture.program("/bin/bash");
    let folder = Path::new(HAFT).parent().unwrap().display();
    command.args(["--norc", "-c", script, "bash"]).args(words).env("PATH", format!("{folder}:/usr/bin:/bin"));
    Running::start(command).finish()
}

#[test]
fn commands_tools_and_fields_are_offered() {
    let fixture = Fixture::new();
    assert_eq!(offered(&fixture, &["tru"]), ["trust"]);
    assert_eq!(offered(&fixture, &["call", "read_"]), ["read_file"]);
    let fields = offered(&fixture, &["call", "read_file", "--"]);
    for field in ["--path", "--offset", "--json", "--auto-approve"] {
        assert!(fields.contains(&field.to_owned()), "{field}: {fields:?}");
    }
    assert!(!offered(&fixture, &["call", "list_directory", "--"]).contains(&"--offset".to_owned()));
    fixture.put("some.txt", "");
    assert_eq!(offered(&fixture, &["call", "read_file", "--path", "so"]), ["some.txt"]);
    assert_eq!(offered(&fixture, &["tools", "edit"]), ["edit_file"]);
    assert_eq!(offered(&fixture, &["log", "--tool", "wait"]), ["wait_call"]);
    assert_eq!(offered(&fixture, &["help", "pol"]), ["policy"]);
    assert_eq!(offered(&fixture, &["completions", "z"]), ["zsh"]);
}

#[test]
fn calls_are_offered_where_they_make_sense() {
    let fixture = Fixture::new();
    let (_, done) = fixture.call("write_file", &json!({"path": "a", "content": "a"}), ALL);
    let waiting = fixture.pending("write_file", &json!({"path": "b", "content": "b"}));
    for command in ["approve", "reject"] {
        assert_eq!(offered(&fixture, &[command, "tc_"]), [waiting.as_str()], "{command}");
    }
    for command in [&["undo"][..], &["redo"], &["changes"], &["commit"], &["discard"], &["wait"], &["log", "show"]] {
        let offered = offered(&fixture, &[command, &["tc_"]].concat());
        assert_eq!(offered, [waiting.clone(), id(&done)], "{command:?}");
    }
    let elsewhere = fixture.home.to_string_lossy().into_owned();
    assert!(offered(&fixture, &["--workspace", &elsewhere, "approve", "tc_"]).is_empty());
}

#[test]
fn nothing_is_said_when_something_is_wrong() {
    let fixture = Fixture::new();
    fs::create_dir_all(&fixture.data).unwrap();
    fs::write(fixture.data.join("haft.db"), "this is no database").unwrap();
    assert!(offered(&fixture, &["undo", "tc_"]).is_empty());
    assert!(offered(&fixture, &["call", "read"]).is_empty());
    assert!(offered(&fixture, &["--workspace", "/nowhere", "approve", "tc_"]).is_empty());
    let mut command = fixture.haft(&["--", "haft", ""]);
    command.env("HAFT_COMPLETE", "no-such-shell");
    let ran = Running::start(command).finish();
    assert_eq!((ran.code, ran.said().as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn every_shell_has_a_script() {
    let fixture = Fixture::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = fixture.run(&["completions", shell]);
        assert!(ran.code == Some(0) && ran.stdout.contains("HAFT_COMPLETE"), "{ran:?}");
        assert!(ran.stdout.contains(HAFT), "by the path it was started with: {ran:?}");
    }
    assert_eq!(fixture.run(&["completions", "cmd"]).code, Some(2));
}
