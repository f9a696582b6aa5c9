//! Copies, moves and deletes of very much: stopped, killed, out of room, undone.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::fs;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use support::{ALL, Fixture, Running, events, id, text, until};

const FILES: usize = 10_000;
/// A copy of so many can be seen and stopped.
const ENOUGH_TO_LAST: usize = 3_000;

/// So many small files in twenty folders.
fn fill(fixture: &Fixture, files: usize) {
    for number in 0..files {
        fixture.put(&format!("many/{}/{number}", number % 20), "some text\n");
    }
}

fn holds_nothing_aside(fixture: &Fixture) -> bool {
    fs::read_dir(fixture.data.join("changes")).map_or(true, |mut calls| calls.next().is_none())
}

/// Starts a copy that takes long, and gives the program once its call is in the journal.
fn copying(fixture: &Fixture, seen: usize) -> (Running, String) {
    let input = json!({"source": "many", "dest": format!("twin{seen}"), "recursive": true}).to_string();
    let running = Running::start(fixture.haft(&["call", "copy_file", &input, "--json", "--auto-approve", "all"]));
    let call = until("copy at work", || {
        let rows = fixture.json(&["log", "--tool", "copy_file"]);
        let rows = rows.as_array().unwrap();
        (rows.len() > seen).then(|| text(&rows[0]["callId"]))
    });
    (running, call)
}

#[test]
fn ten_thousand_files_are_copied_moved_deleted_and_brought_back() {
    let fixture = Fixture::new();
    fill(&fixture, FILES);
    let old = fixture.picture();
    let (code, copied) = fixture.call("copy_file", &json!({"source": "many", "dest": "twin", "recursive": true}), ALL);
    assert_eq!((code, &copied["result"]["structured"]["files"]), (0, &json!(FILES)), "{}", copied["error"]);
    assert_eq!(copied["changes"].as_array().unwrap().len(), FILES + 21, "the whole list is recorded");
    let content = text(&copied["result"]["content"]);
    assert!(
        content.starts_with("Copied many to twin (10000 files, 100000 bytes)\n[changed twin (created), "),
        "{content}"
    );
    assert!(content.contains(" and 10016 more; `undo_call`"), "{content}");
    let value = &copied["result"]["structured"];
    assert_eq!((value["changed"].as_array().unwrap().len(), &value["moreChanged"]), (50, &json!(FILES + 21 - 50)));
    let (code, moved) = fixture.call("move_file", &json!({"from": "twin", "to": "moved"}), ALL);
    assert_eq!((code, moved["changes"].as_array().unwrap().len()), (0, 1), "{moved}");
    let (code, deleted) = fixture.call("delete_file", &json!({"path": "moved", "recursive": true}), ALL);
    assert_eq!(code, 0);
    for call in [&deleted, &moved, &copied] {
        let ran = fixture.run(&["undo", &id(call), "--yes"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.lines().count() < 100, "people are not told ten thousand names:\n{}", ran.stdout);
    }
    assert!(fixture.picture() == old, "everything is as it was");
    let waiting = fixture.pending("delete_file", &json!({"path": "many", "recursive": true}));
    let card = fixture.run(&["changes", &waiting]).stdout;
    assert!(card.contains("10021 paths: 10021 deleted (100.0 KB)"), "{card}");
    assert!(card.contains("delete many/  10020 paths inside, 100.0 KB"), "{card}");
}

#[test]
fn a_copy_that_is_interrupted_leaves_nothing_behind() {
    let fixture = Fixture::new();
    fill(&fixture, ENOUGH_TO_LAST);
    let old = fixture.picture();
    let (running, call) = copying(&fixture, 0);
    kill_process(running.pid(), Signal::INT).unwrap();
    let ran = running.finish();
    // It may have been faster than the signal.
    if ran.code == Some(0) {
        assert_eq!(fixture.run(&["undo", &call, "--yes"]).code, Some(0));
    } else {
        assert_eq!((ran.code, &ran.json()["status"]), (Some(130), &json!("cancelled")), "{ran:?}");
        assert!(holds_nothing_aside(&fixture));
    }
    assert!(fixture.picture() == old);
}

#[test]
fn a_copy_that_is_killed_is_swept_away_by_whoever_comes_next() {
    let fixture = Fixture::new();
    fill(&fixture, ENOUGH_TO_LAST);
    let old = fixture.picture();
    let (running, call) = copying(&fixture, 0);
    running.kill();
    let story = fixture.story(&call);
    if story["status"] == "error" {
        assert_eq!(story["outcome"]["error"]["code"], "INTERRUPTED");
        assert!(fixture.picture() == old && holds_nothing_aside(&fixture));
    } else {
        assert_eq!((story["status"].as_str(), fixture.path("twin0/7").is_dir()), (Some("success"), true));
    }
}

/// A small filesystem of its own for haft's data, as long as this lives.
struct Small<'a>(&'a Fixture);

impl<'a> Small<'a> {
    fn new(fixture: &'a Fixture) -> Self {
        fs::create_dir(&fixture.data).unwrap();
        mount("tmpfs", &fixture.data, "tmpfs", MountFlags::empty(), c"size=6m").unwrap();
        Self(fixture)
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        unmount(&self.0.data, UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_is_left_half_done() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let fixture = Fixture::new();
    let _small = Small::new(&fixture);
    fixture.put("large/a", vec![b'a'; 4 << 20]);
    fixture.put("large/b", vec![b'b'; 4 << 20]);
    let old = fixture.picture();
    let (code, outcome) =
        fixture.call("copy_file", &json!({"source": "large", "dest": "twin", "recursive": true}), ALL);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("RESOURCE_LIMIT")), "{outcome}");
    let message = text(&outcome["error"]["message"]);
    assert!(message.starts_with("cannot copy `large/") && message.contains("free some space"), "{message}");
    assert!(holds_nothing_aside(&fixture));
    let (code, outcome) = fixture.call("move_file", &json!({"from": "large", "to": "moved"}), ALL);
    assert_eq!(code, 0, "a move needs no room: {outcome}");
    assert_eq!(fixture.run(&["undo", &id(&outcome), "--yes"]).code, Some(0));
    assert!(fixture.picture() == old);
}

#[test]
fn the_story_of_a_move_names_both_ends() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    let call = fixture.pending("move_file", &json!({"from": "a", "to": "b"}));
    let shown = fixture.json(&["changes", &call, "a"]);
    let expected = json!([{"path": "b", "kind": "renamed", "from": "a", "size": 2, "added": 0, "removed": 0,
        "flags": [], "state": "staged"}]);
    assert_eq!(shown["changes"], expected, "either end finds it");
    assert_eq!(fixture.run(&["commit", &call, "a"]).code, Some(0));
    assert_eq!((fixture.text("a"), fixture.text("b").as_deref()), (None, Some("a\n")));
    let told = events(&fixture.story(&call));
    assert!(told.contains(&"changes.committed".to_owned()), "{told:?}");
    let undone: Value = fixture.run(&["undo", &call, "--yes", "--json"]).json();
    assert_eq!(undone["changes"][0]["state"], "undone");
    assert_eq!(fixture.run(&["redo", &call, "--yes"]).code, Some(0));
    assert_eq!(fixture.text("b").as_deref(), Some("a\n"));
}

#[test]
fn another_filesystem_for_the_data_makes_no_difference() {
    let Some(fixture) = Fixture::across() else { return };
    fixture.put("d/deep/x", "x\n");
    fixture.put("a", "new\n");
    fixture.put("b", "old\n");
    let old = fixture.picture();
    let calls = [
        ("copy_file", json!({"source": "d", "dest": "e", "recursive": true})),
        ("move_file", json!({"from": "a", "to": "b", "overwrite": true})),
        ("move_file", json!({"from": "e", "to": "f"})),
    ];
    let calls = calls.map(|(tool, input)| fixture.call(tool, &input, ALL));
    assert!(calls.iter().all(|(code, _)| *code == 0), "{calls:?}");
    assert_eq!((fixture.text("f/deep/x").as_deref(), fixture.text("b").as_deref()), (Some("x\n"), Some("new\n")));
    for (_, call) in calls.iter().rev() {
        assert_eq!(fixture.run(&["undo", &id(call), "--yes"]).code, Some(0));
    }
    assert!(fixture.picture() == old);
}
