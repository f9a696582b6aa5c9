//! Clients that people use, installed by `scripts/setup tests`, with a person behind them who fills in forms.
#![expect(
    clippy::disallowed_methods,
    reason = "the tools of whoever runs the tests are found as the set-up finds them"
)]

use std::{env, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{Fixture, HAFT, Running, text};

/// The Python that has the clients.
fn python() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap()).join(".cache"));
    let python = cache.join("haft/tools/clients/bin/python");
    assert!(python.exists(), "{} is missing; `scripts/setup tests` installs it", python.display());
    python
}

/// One client through everything, and what is recorded of it.
fn works(script: &str, mode: &str, name: &str) {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(script);
    let mut command = fixture.program(python().to_str().unwrap());
    command.arg(script).args([mode, HAFT, "mcp", "--workspace"]).arg(&fixture.workspace);
    let ran = Running::start(command).finish();
    assert_eq!(ran.code, Some(0), "{name} {mode}: {}", ran.said());
    assert_eq!((fixture.text("made.txt").as_deref(), fixture.text("refused.txt")), (Some("made\n"), None));
    let rows = fixture.json(&["log", "--tool", "write_file"]);
    let rows = rows.as_array().unwrap();
    let statuses: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, [&json!("rejected"), &json!("success")], "{rows:#?}");
    for row in rows {
        let by = text(&fixture.story(&text(&row["callId"]))["answer"]["by"]["name"]);
        assert!(by.ends_with(&format!(" through {name}")), "{by}");
    }
    assert_eq!(fixture.json(&["approvals"]), json!([]));
}

#[test]
fn the_python_sdk_in_the_older_era() {
    works("sdk.py", "legacy", "sdk");
}

#[test]
fn the_python_sdk_in_the_newer_era() {
    works("sdk.py", "2026-07-28", "sdk");
}

#[test]
fn the_python_sdk_left_to_itself() {
    works("sdk.py", "auto", "sdk");
}

#[test]
fn fastmcp_in_the_older_era() {
    works("fast.py", "legacy", "fast");
}

#[test]
fn fastmcp_left_to_itself() {
    works("fast.py", "auto", "fast");
}
