//! What `haft gc` lets go of, and what it never touches.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};
use support::{ALL, Fixture, Ran, Running, id, text};

/// `haft gc` with settings of its own, in hours so short that everything is past them.
fn gc(fixture: &Fixture, flags: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = fixture.haft(&[&["gc", "--json"], flags].concat());
    for (key, value) in settings {
        command.env(format!("HAFT_RETENTION_{key}"), value);
    }
    command
}

fn swept(fixture: &Fixture, flags: &[&str], settings: &[(&str, &str)]) -> Value {
    let ran = Running::start(gc(fixture, flags, settings)).finish();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["removed"].clone()
}

const ALL_PAST: &[(&str, &str)] = &[("JOURNAL", "0s"), ("OUTPUTS", "0s"), ("CHANGES", "0s"), ("UNASKED", "0s")];

fn folder(fixture: &Fixture, call: &str) -> PathBuf {
    fixture.data.join("changes").join(call)
}

fn write(fixture: &Fixture, path: &str) -> String {
    let (code, outcome) = fixture.call("write_file", &json!({"path": path, "content": format!("{path}\n")}), ALL);
    assert_eq!(code, 0, "{outcome}");
    id(&outcome)
}

fn undo(fixture: &Fixture, call: &str) -> Ran {
    fixture.run(&["undo", call, "--yes"])
}

#[test]
fn nothing_goes_before_its_time() {
    let fixture = Fixture::new();
    let call = write(&fixture, "a.txt");
    let gone = swept(&fixture, &[], &[]);
    for part in ["outputs", "changes", "orphans"] {
        assert_eq!(gone[part]["count"], 0, "{gone}");
    }
    assert_eq!((&gone["calls"], &gone["kept"]["count"]), (&json!(0), &json!(1)));
    assert_eq!(undo(&fixture, &call).code, Some(0));
    assert!(!fixture.path("a.txt").exists());
}

#[test]
fn a_dry_run_says_the_same_and_touches_nothing() {
    let fixture = Fixture::new();
    fixture.put("big.txt", "a line of text\n".repeat(5000));
    let call = write(&fixture, "a.txt");
    let (_, long) = fixture.call("grep", &json!({"pattern": "line", "maxResults": 5000}), &[]);
    let before = fixture.json(&["log"]);
    let would = swept(&fixture, &["--dry-run"], ALL_PAST);
    assert_eq!(fixture.json(&["log"]), before);
    assert!(folder(&fixture, &call).exists());
    let query = json!({"callId": id(&long), "offset": 40_000});
    assert_eq!(fixture.call("result_query", &query, &[]).0, 0);
    let people = fixture.run(&["gc", "--dry-run"]);
    assert!(people.stdout.contains("would delete"), "{people:?}");
    let gone = swept(&fixture, &[], ALL_PAST);
    assert_eq!(would["changes"], gone["changes"]);
    assert_eq!(would["outputs"]["count"], 1);
    // The call of `result_query` came between.
    assert_eq!(gone["calls"].as_i64(), would["calls"].as_i64().map(|calls| calls + 1));
    assert_eq!(fixture.json(&["log"]), json!([]));
    assert!(!folder(&fixture, &call).exists() && fixture.path("a.txt").exists());
}

#[test]
fn undo_of_what_was_let_go_says_so() {
    let fixture = Fixture::new();
    let call = write(&fixture, "a.txt");
    swept(&fixture, &[], &[("CHANGES", "0s"), ("UNASKED", "0s")]);
    let ran = fixture.run(&["undo", &call, "--yes", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("UNAVAILABLE")), "{ran:?}");
    assert!(text(&ran.json()["error"]["message"]).contains("not kept any more"), "{ran:?}");
    assert_eq!(fixture.text("a.txt"), Some("a.txt\n".to_owned()));
    assert!(!fixture.run(&["log", "show", &call]).said().contains("haft undo"));
}

#[test]
fn the_rest_of_a_long_result_that_was_let_go_is_not_made_up() {
    let fixture = Fixture::new();
    fixture.put("big.txt", "a line of text\n".repeat(5000));
    let (_, long) = fixture.call("grep", &json!({"pattern": "line", "maxResults": 5000}), &[]);
    assert_eq!(swept(&fixture, &[], &[("OUTPUTS", "0s")])["outputs"]["count"], 1);
    let (code, outcome) = fixture.call("result_query", &json!({"callId": id(&long)}), &[]);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("UNAVAILABLE")), "{outcome}");
}

#[test]
fn open_questions_and_what_is_staged_stay() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let waits = fixture.pending("write_file", &json!({"path": "w.txt", "content": "w\n"}));
    let done = write(&fixture, "d.txt");
    let undoing = fixture.pending("undo_call", &json!({"callId": done}));
    swept(&fixture, &[], ALL_PAST);
    assert!(folder(&fixture, &waits).exists() && folder(&fixture, &done).exists());
    assert_eq!(fixture.run(&["approve", &waits]).code, Some(0));
    assert_eq!(fixture.run(&["approve", &undoing]).code, Some(0));
    assert!(fixture.path("w.txt").exists() && !fixture.path("d.txt").exists());
    // What was left staged goes with its time, not with the quota.
    let both = json!({"path": "x/y.txt", "content": "y\n", "createDirs": true});
    let left = fixture.pending("write_file", &both);
    fixture.run(&["reject", &left]);
    let gone = swept(&fixture, &[], &[("QUOTA", "0"), ("UNASKED", "0s")]);
    assert!(gone["changes"]["count"].as_i64() >= Some(1), "{gone}");
}

#[test]
fn the_quota_takes_the_oldest_and_spares_what_nobody_was_asked_about() {
    let fixture = Fixture::new();
    let asked = fixture.pending("write_file", &json!({"path": "asked.txt", "content": "asked\n"}));
    fixture.run(&["approve", &asked]);
    let later = fixture.pending("write_file", &json!({"path": "later.txt", "content": "later\n"}));
    fixture.run(&["approve", &later]);
    let unasked = write(&fixture, "unasked.txt");
    let kept = swept(&fixture, &["--dry-run"], &[])["kept"]["bytes"].as_u64().unwrap();
    let gone = swept(&fixture, &[], &[("QUOTA", &(kept - 1).to_string())]);
    assert_eq!(gone["changes"]["count"], 1, "{gone}");
    assert!(!folder(&fixture, &asked).exists() && folder(&fixture, &later).exists());
    let gone = swept(&fixture, &[], &[("QUOTA", "0")]);
    assert_eq!(gone["changes"]["count"], 1, "{gone}");
    assert!(!folder(&fixture, &later).exists(), "the quota takes it");
    assert_eq!(undo(&fixture, &unasked).code, Some(0), "nobody was asked, so it can still be undone");
}

#[test]
fn what_crashes_left_goes_and_what_is_young_stays() {
    let fixture = Fixture::new();
    write(&fixture, "a.txt");
    let changes = fixture.data.join("changes");
    let old = changes.join("tc_019000000000700080000000000000aa");
    let half = changes.join("gone-tc_019000000000700080000000000000ab");
    let young = changes.join(haft_runtime::CallId::new().as_str());
    let stranger = changes.join("not-ours");
    for folder in [&old, &half, &young, &stranger] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("slot-1"), "x".repeat(5000)).unwrap();
    }
    let dead = fixture.data.join("owners/ow_019000000000700080000000000000aa");
    fs::create_dir_all(dead.parent().unwrap()).unwrap();
    fs::write(&dead, "").unwrap();
    let would = swept(&fixture, &["--dry-run"], &[]);
    assert_eq!((&would["orphans"]["count"], &would["owners"]), (&json!(1), &json!(1)));
    assert!(old.exists() && half.exists() && dead.exists());
    let gone = swept(&fixture, &[], &[]);
    assert_eq!((&gone["orphans"], &gone["owners"]), (&would["orphans"], &would["owners"]));
    assert!(!old.exists() && !half.exists() && !dead.exists());
    assert!(young.exists() && stranger.exists());
}

#[test]
fn what_commands_kept_for_a_workspace_goes_with_the_workspace() {
    let fixture = Fixture::new();
    let other = fixture.home.join("other");
    fs::create_dir(&other).unwrap();
    let private = fixture.data.join("private");
    let there = || fs::read_dir(&private).map_or(0, Iterator::count);
    for workspace in [&fixture.workspace, &other] {
        let words = ["--workspace", &workspace.to_string_lossy()].map(str::to_owned);
        let call =
            ["call", "shell_exec", "--command", "mkdir -m 0 /tmp/closed; echo kept > /tmp/kept"].map(str::to_owned);
        assert_eq!(fixture.run(&[&call[..], &words].concat()).code, Some(0));
    }
    assert_eq!(there(), 2);
    assert_eq!(swept(&fixture, &[], &[])["private"]["count"], 0);
    fs::remove_dir_all(&other).unwrap();
    let would = swept(&fixture, &["--dry-run"], &[]);
    assert_eq!((&would["private"]["count"], there()), (&json!(1), 2), "{would}");
    assert_eq!(swept(&fixture, &[], &[])["private"], would["private"]);
    assert_eq!(there(), 1);
    let said = fixture.call("shell_exec", &json!({"command": "cat /tmp/kept"}), &[]).1;
    assert_eq!(said["result"]["structured"]["stdout"], json!("kept\n"), "{said:#}");
    // What an earlier one left that was killed, and what belongs to nobody that can be told.
    for (name, age) in [("going-abc", 0), ("unnamed", 25), ("young", 1)] {
        fs::create_dir_all(private.join(name).join("seeds")).unwrap();
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(age * 3600);
        fs::File::open(private.join(name)).unwrap().set_modified(then).unwrap();
    }
    assert_eq!(swept(&fixture, &[], &[])["private"]["count"], 2);
    assert!(private.join("young").exists());
}

/// A command whose haft was killed before it was in the journal leaves a folder that nobody knows.
#[test]
fn the_folder_of_a_command_that_was_killed_early_goes() {
    let fixture = Fixture::new();
    let script = "echo staged > staged; echo private > /tmp/private; touch begun; sleep 600";
    let running = Running::start(fixture.haft(&["call", "shell_exec", "--command", script]));
    let changes = fixture.data.join("changes");
    let begun = || fs::read_dir(&changes).ok()?.flatten().find(|one| one.path().join("layer/upper/begun").exists());
    let folder = support::until("the command", begun);
    running.kill();
    let old = changes.join("tc_019000000000700080000000000000aa");
    fs::rename(folder.path(), &old).unwrap();
    assert_eq!(swept(&fixture, &["--dry-run"], &[])["orphans"]["count"], 1);
    let gone = swept(&fixture, &[], &[]);
    assert!(gone["orphans"]["count"] == 1 && gone["orphans"]["bytes"].as_u64() > Some(0), "{gone}");
    assert!(!old.exists());
}

#[test]
fn killed_at_any_moment_it_leaves_every_call_whole_or_gone() {
    let fixture = Fixture::new();
    let mut calls = Vec::new();
    for number in 0..12 {
        calls.push(write(&fixture, &format!("{number}.txt")));
    }
    for moment in 0..12_u64 {
        let running = Running::start(gc(&fixture, &[], &[("CHANGES", "0s"), ("UNASKED", "0s")]));
        let started = std::time::Instant::now();
        // Somewhere in its course; where exactly is up to the machine.
        while started.elapsed() < std::time::Duration::from_millis(moment * 4) {
            std::thread::yield_now();
        }
        running.kill();
        for (number, call) in calls.iter().enumerate() {
            let shown = fixture.run(&["changes", call, "--json"]);
            assert_eq!(shown.code, Some(0), "{number}: {shown:?}");
        }
    }
    swept(&fixture, &[], &[("CHANGES", "0s"), ("UNASKED", "0s")]);
    let left: Vec<_> = fs::read_dir(fixture.data.join("changes")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    for (number, call) in calls.iter().enumerate() {
        assert_eq!(undo(&fixture, call).code, Some(1));
        assert!(fixture.path(&format!("{number}.txt")).exists());
    }
    assert_eq!(fixture.call("read_file", &json!({"path": "1.txt"}), &[]).0, 0);
}

#[test]
fn it_works_beside_others() {
    let fixture = Fixture::new();
    let made: Vec<String> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..15).map(|number| write(&fixture, &format!("{number}.txt"))).collect());
        while !writer.is_finished() {
            swept(&fixture, &[], &[("OUTPUTS", "0s"), ("QUOTA", "0")]);
        }
        writer.join().unwrap()
    });
    for call in &made {
        assert_eq!(undo(&fixture, call).code, Some(0), "nobody was asked about {call}");
    }
    assert_eq!(fixture.picture().len(), 0);
}

#[test]
fn once_a_day_a_command_does_a_little_of_it_by_itself() {
    let fixture = Fixture::new();
    write(&fixture, "a.txt");
    let old = fixture.data.join("changes/tc_019000000000700080000000000000aa");
    fs::create_dir(&old).unwrap();
    fixture.run(&["log"]);
    assert!(old.exists(), "the first day has only begun");
    let mark = fs::File::options().write(true).open(fixture.data.join("swept")).unwrap();
    mark.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3600)).unwrap();
    fixture.run(&["log"]);
    assert!(!old.exists());
    fs::create_dir(&old).unwrap();
    fixture.run(&["log"]);
    assert!(old.exists(), "once a day");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    for (key, value) in [("QUOTA", "lots"), ("QUOTA", "5XB"), ("CHANGES", "soon"), ("QUOTES", "1GB")] {
        let ran = Running::start(gc(&fixture, &[], &[(key, value)])).finish();
        assert_eq!(ran.code, Some(1), "{key}={value}: {ran:?}");
    }
}
