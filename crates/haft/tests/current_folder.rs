//! Paths that are typed as flags count from the current folder; paths in JSON count from the workspace.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::fs;

use serde_json::Value;
use support::{ALL, Fixture, Ran, Running, id};

/// A workspace with a file of the same name at its top and in two folders of it.
fn workspace() -> Fixture {
    let fixture = Fixture::new();
    fixture.put("haft.toml", "");
    for folder in ["", "demo/", "demo/deep/"] {
        fixture.put(&format!("{folder}a.txt"), format!("in `{folder}`\n"));
    }
    fixture
}

fn run_in(fixture: &Fixture, folder: &str, args: &[&str]) -> Ran {
    let mut command = fixture.haft(args);
    command.current_dir(fixture.path(folder));
    Running::start(command).finish()
}

fn read_in(fixture: &Fixture, folder: &str, args: &[&str]) -> Value {
    run_in(fixture, folder, &[&["call", "read_file", "--json"], args].concat()).json()
}

#[test]
fn a_path_in_a_flag_counts_from_the_current_folder() {
    let fixture = workspace();
    for (folder, typed, expected) in [
        ("", "a.txt", "in ``"),
        ("demo", "a.txt", "in `demo/`"),
        ("demo", "./deep/../a.txt", "in `demo/`"),
        ("demo", "deep/a.txt", "in `demo/deep/`"),
        ("demo/deep", "../a.txt", "in `demo/`"),
        ("demo/deep", "../../a.txt", "in ``"),
    ] {
        let read = read_in(&fixture, folder, &["--path", typed]);
        assert!(read.to_string().contains(expected), "{folder} {typed}: {read}");
    }
    let json = read_in(&fixture, "demo", &[r#"{"path": "a.txt"}"#]);
    assert!(json.to_string().contains("in ``"), "JSON counts from the workspace: {json}");
    let outside = read_in(&fixture, "demo", &["--path", "../../a.txt"]);
    assert_eq!(outside["status"], "error", "{outside}");
}

#[test]
fn a_file_is_made_where_one_stands_and_recorded_by_its_workspace_path() {
    let fixture = workspace();
    let write = ["call", "write_file", "--path", "new.txt", "--content", "x", "--json"];
    let written = run_in(&fixture, "demo", &[&write, ALL].concat()).json();
    assert_eq!(written["status"], "success", "{written}");
    assert!(fixture.path("demo/new.txt").exists() && !fixture.path("new.txt").exists());
    assert_eq!(fixture.story(&id(&written))["input"]["path"], "demo/new.txt");
    let copy = ["call", "copy_file", "--source", "new.txt", "--dest", "../copy.txt", "--json"];
    run_in(&fixture, "demo", &[&copy, ALL].concat());
    assert_eq!(fs::read_to_string(fixture.path("copy.txt")).unwrap(), "x");
    let ran = run_in(&fixture, "demo", &["call", "shell_exec", "--command", "cat a.txt", "--cwd", "deep"]);
    assert!(ran.stdout.contains("in `demo/deep/`"), "{ran:?}");
}

#[test]
fn elsewhere_a_path_counts_from_the_workspace_that_was_named() {
    let fixture = workspace();
    let mut command = fixture.haft(&["call", "read_file", "--path", "demo/a.txt", "--json", "--workspace"]);
    command.arg(&fixture.workspace).current_dir(&fixture.home);
    let read = Running::start(command).finish().json();
    assert!(read.to_string().contains("in `demo/`"), "{read}");
}

#[test]
fn every_path_of_our_own_tools_counts_from_the_current_folder() {
    const LIKE_PATHS: [&str; 9] = ["path", "paths", "files", "file", "folder", "cwd", "source", "dest", "to"];
    let source = include_str!("../src/commands/arguments.rs");
    for tool in workspace().json(&["tools"]).as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        // These take paths as `haft changes` prints them.
        if ["commit_call", "undo_call"].contains(&name) {
            continue;
        }
        for field in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
            if LIKE_PATHS.contains(&field.as_str()) {
                let row = source.lines().find(|line| line.trim().starts_with(&format!("(\"{name}\", ")));
                assert!(row.is_some_and(|row| row.contains(&format!("\"{field}\""))), "`{name}` has a path `{field}`");
            }
        }
    }
}
