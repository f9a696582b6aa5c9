//! `notify.command`: run when a question opens, bounded, and never in the way of the call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{fs, time::Instant};

use serde_json::json;
use support::{Fixture, Running, id};

fn with_command(command: &str) -> Fixture {
    let fixture = Fixture::new();
    let folder = fixture.home.join(".config/haft");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("haft.toml"), format!("notify.command = {command}\n")).unwrap();
    fixture
}

#[test]
fn it_is_told_which_call_asks_and_where() {
    let script = r#"["/bin/sh", "-c", "echo $HAFT_CALL $HAFT_TOOL $HAFT_WORKSPACE $PWD > \"$HOME/told\""]"#;
    let fixture = with_command(script);
    assert_eq!(fixture.run(&["call", "list_directory"]).code, Some(0));
    assert!(!fixture.home.join("told").exists(), "nothing was asked");
    let call = fixture.pending("write_file", &json!({"path": "a", "content": "a"}));
    let told = fs::read_to_string(fixture.home.join("told")).unwrap();
    let (workspace, data) = (fixture.workspace.display(), fixture.data.display());
    assert_eq!(told, format!("{call} write_file {workspace} {data}\n"));
}

#[test]
fn what_fails_is_told_and_fails_nothing() {
    for (command, word) in [
        ("['/no/such/program']", "cannot be started"),
        ("['no-such-program']", "cannot be started"),
        ("'/bin/false'", "failed"),
        ("['/bin/sh', '-c', 'kill -9 $$']", "failed"),
    ] {
        let fixture = with_command(command);
        let ran = fixture.run(&["call", "write_file", r#"{"path": "a", "content": "a"}"#, "--json"]);
        assert_eq!((ran.code, &ran.json()["status"]), (Some(4), &json!("pending")), "{ran:?}");
        assert!(ran.stderr.contains("notify.command") && ran.stderr.contains(word), "{ran:?}");
        assert_eq!(fixture.run(&["approve", &id(&ran.json())]).code, Some(0));
    }
}

#[test]
fn what_hangs_is_stopped_with_all_that_it_started() {
    let fixture = with_command(r#"["/bin/sh", "-c", "sleep 987 & echo $! > \"$HOME/pid\"; wait"]"#);
    let started = Instant::now();
    let ran = fixture.run(&["call", "write_file", r#"{"path": "a", "content": "a"}"#, "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("stopped after 5 seconds"), "{ran:?}");
    assert!(started.elapsed().as_secs() < 60);
    let pid = fs::read_to_string(fixture.home.join("pid")).unwrap();
    support::until("end of what it started", || {
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
}

#[test]
fn only_the_users_file_can_name_it_and_only_by_a_safe_name() {
    let fixture = Fixture::new();
    let mut command = fixture.haft(&["call", "list_directory"]);
    command.env("HAFT_NOTIFY_COMMAND", "/bin/true");
    let ran = Running::start(command).finish();
    assert_eq!((ran.code, ran.stderr.contains("HAFT_NOTIFY_COMMAND")), (Some(1), true), "{ran:?}");
    for (command, word) in [
        ("['./here.sh']", "full path"),
        ("'bin/here.sh x'", "full path"),
        ("[1, 2]", "array of text"),
        ("[['x']]", "array of text"),
    ] {
        let ran = with_command(command).run(&["call", "list_directory"]);
        assert_eq!((ran.code, ran.stderr.contains(word)), (Some(1), true), "{ran:?}");
    }
}
