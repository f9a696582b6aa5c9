//! What a command that writes into the workspace itself makes there that would steer haft or git: it does not stay
//! without a question, on any rung.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "these tests mount something")]

mod fenced;
mod support;

use std::{fs, path::Path, process::Command};

use fenced::Person;
use serde_json::{Value, json};
use support::{ALL, Running, id, text};

/// Makes everything that steers, and something that does not.
const STEERS: &str = "mkdir -p .haft/tools && echo x > .haft/tools/x.toml; echo x > haft.toml; echo '{}' > .mcp.json; \
    git init -q . && printf '#!/bin/sh\\n' > .git/hooks/pre-push && chmod +x .git/hooks/pre-push && \
    git config core.sshCommand evil; echo plain > plain; mkdir folder; echo end";
const HELD_BACK: [&str; 5] = [".haft/tools/x.toml", "haft.toml", ".mcp.json", ".git/hooks/pre-push", ".git/config"];

/// What was held back is staged, flagged, and out of the workspace; the rest is there.
fn assert_held_back(person: &Person, outcome: &Value) {
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("end\n"), "{outcome:#}");
    assert_eq!(outcome["undoable"], json!(false), "{outcome:#}");
    let changes = outcome["changes"].as_array().unwrap();
    for path in HELD_BACK {
        assert!(!person.fixture.path(path).exists(), "{path} came in: {outcome:#}");
        let change =
            changes.iter().find(|change| change["path"] == path).unwrap_or_else(|| panic!("{path}: {outcome:#}"));
        assert!(change["state"] == "staged" && !change["flags"].as_array().unwrap().is_empty(), "{change:#}");
    }
    assert!(person.fixture.path("plain").exists() && person.fixture.path(".git/HEAD").exists());
    assert!(!person.fixture.path(".haft").exists());
    assert!(text(&outcome["result"]["content"]).contains("[Not applied yet: "), "whoever called is told: {outcome:#}");
}

/// Something that is mounted in the workspace, so that no command can run aside there.
struct Inner<'a>(&'a Path);

impl<'a> Inner<'a> {
    fn new(at: &'a Path) -> Self {
        fs::create_dir(at).unwrap();
        assert!(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(at).status().unwrap().success());
        Self(at)
    }
}

impl Drop for Inner<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn with_something_mounted_inside_it_is_held_back_in_mode_all() {
    if !rustix::process::geteuid().is_root() {
        // Only root can mount something; the other test has no need of it.
        return;
    }
    for person in Person::everyone() {
        let inner = person.fixture.path("inner");
        let _inner = Inner::new(&inner);
        let (code, outcome) = person.shell(STEERS, ALL);
        assert_eq!((code, &outcome["status"]), (0, &json!("success")), "{outcome:#}");
        assert_held_back(&person, &outcome);
        // By a person's yes it comes in, and from then on no command changes it there.
        let committed = person.run(&["commit", &id(&outcome)]);
        assert_eq!(committed.code, Some(0), "{committed:?}");
        assert!(HELD_BACK.iter().all(|path| person.fixture.path(path).exists()), "{committed:?}");
        let again = "python3 -c 'import os, sys
for path in sys.argv[1:]:
  for change in [lambda: open(path, \"a\").write(\"y\"), lambda: os.unlink(path), lambda: os.rename(path, \"away\")]:
    try: change(); print(\"changed\", path)
    except OSError: pass
print(\"end\")' .haft/tools/x.toml .haft haft.toml .mcp.json .git/hooks/pre-push .git/hooks .git/config .git";
        let (_, outcome) = person.shell(again, ALL);
        assert_eq!(outcome["result"]["structured"]["stdout"], json!("end\n"), "{outcome:#}");
        assert_eq!(person.fixture.text("haft.toml").as_deref(), Some("x\n"));
        assert!(HELD_BACK.iter().all(|path| person.fixture.path(path).exists()), "{outcome:#}");
    }
}

#[test]
fn a_new_repository_without_commands_in_it_is_nothing_to_hold_back() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let person = Person::us();
    let inner = person.fixture.path("inner");
    let _inner = Inner::new(&inner);
    let (code, outcome) =
        person.shell("git init -q . && git remote add origin https://example.org/x && ls .git/hooks", ALL);
    assert_eq!((code, &outcome["result"]["structured"]["exitCode"]), (0, &json!(0)), "{outcome:#}");
    assert_eq!(outcome["changes"], Value::Null, "{outcome:#}");
    assert!(person.fixture.path(".git/config").exists());
}

#[test]
fn by_landlock_alone_it_is_held_back_after_the_yes() {
    let person = Person::ordinary();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fenced/refusing.py");
    let script = fs::read_to_string(script).unwrap();
    let unshare = if cfg!(target_arch = "x86_64") { "272" } else { "97" };
    let haft = |args: &[&str]| {
        let mut command = person.program("python3");
        command.args(["-c", &script, unshare]).arg(person.haft::<&str>(&[]).get_program()).args(args);
        Running::start(command).finish()
    };
    let asked = haft(&["call", "shell_exec", "--command", STEERS, "--json"]).json();
    assert_eq!(asked["status"], json!("pending"), "{asked:#}");
    let outcome = haft(&["approve", &id(&asked), "--json"]).json();
    assert_eq!(outcome["isolation"], json!("landlock"), "{outcome:#}");
    assert_held_back(&person, &outcome);
}
