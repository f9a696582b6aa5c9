//! What git would obey, however it is hidden: it is asked about in every mode, and so is its return.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fenced;
mod support;

use std::fs;

use fenced::Person;
use serde_json::{Value, json};
use support::{ALL, Running, id};

/// A program of its own, as a command writes it.
const EVIL: &str = "evil() { printf '#!/bin/sh\\ntouch marker\\n' > \"$1\"; chmod +x \"$1\"; }; ";

/// A person whose workspace is a repository, after some work outside of any fence.
fn after(setup: &str) -> Person {
    let person = Person::us();
    person.put_home(".gitconfig", "[user]\n\tname = Anna\n\temail = anna@example.org\n");
    let mut shell = person.program("/bin/sh");
    let script = format!("git init -q . && echo one > a.txt && {setup}");
    shell.current_dir(&person.fixture.workspace).args(["-c", &script]);
    let ran = Running::start(shell).finish();
    assert_eq!(ran.code, Some(0), "{setup}: {ran:?}");
    person
}

/// The flags of every path that waits for a yes.
fn waits(person: &Person, command: &str, mode: &[&str]) -> Vec<(String, Value)> {
    let (code, outcome) = person.shell(&format!("{EVIL}{command}"), mode);
    assert_eq!(code, 4, "{command}: {outcome:#}");
    let shown = person.run(&["changes", &id(&outcome), "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let changes = shown["changes"].as_array().unwrap().clone();
    changes.into_iter().map(|change| (change["path"].as_str().unwrap().to_owned(), change["flags"].clone())).collect()
}

#[test]
fn hooks_and_settings_are_found_where_their_path_does_not_tell() {
    let bare = "git init -q --bare repo.git";
    for (setup, command, path, flag) in [
        (
            "git config core.hooksPath .githooks && mkdir .githooks",
            "evil .githooks/pre-commit",
            ".githooks/pre-commit",
            "git_hook",
        ),
        (
            "git config core.hooksPath ./h && mkdir h && echo x > h/pre-push",
            "chmod +x h/pre-push",
            "h/pre-push",
            "git_hook",
        ),
        (
            "git config core.hooksPath h && mkdir old && echo x > old/pre-push && chmod +x old/pre-push",
            "mv old h",
            "h",
            "git_hook",
        ),
        (
            "rm -r .git/hooks && mkdir hooks && ln -s ../hooks .git/hooks",
            "evil hooks/pre-commit",
            "hooks/pre-commit",
            "git_hook",
        ),
        (
            "mkdir scripts .git/hooks -p && ln -s ../../scripts/pc .git/hooks/pre-commit",
            "evil scripts/pc",
            "scripts/pc",
            "git_hook",
        ),
        (bare, "evil repo.git/hooks/post-receive", "repo.git/hooks/post-receive", "git_hook"),
        (bare, "echo ../.. > repo.git/commondir", "repo.git/commondir", "git_config_command"),
        (bare, "mv repo.git/config c; ln -s ../c repo.git/config", "repo.git/config", "git_config_command"),
        (bare, "head -c 3000000 /dev/zero | tr '\\0' '#' > repo.git/config", "repo.git/config", "git_config_command"),
        ("git init -q --separate-git-dir=store .", "evil store/hooks/pre-commit", "store/hooks/pre-commit", "git_hook"),
        (
            &format!("{bare} && mv repo.git/HEAD h && echo x > repo.git/hooks/post-receive"),
            "cp h repo.git/HEAD",
            "repo.git/HEAD",
            "git_hook",
        ),
        (
            "mkdir sub",
            "mkdir -p .git/modules; git init -q --bare e; echo 'gitdir: ../.git/modules/../../e' > sub/.git",
            "sub/.git",
            "git_config_command",
        ),
        ("mkdir -p .git/modules payload", "ln -s ../../payload .git/modules/s", ".git/modules/s", "git_config_command"),
        ("true", "git config alias.st '-c core.fsmonitor=./x.sh status'", ".git/config", "git_config_command"),
    ] {
        let person = after(setup);
        let waiting = waits(&person, command, ALL);
        let flags = waiting.iter().find(|(waits, _)| waits == path).map(|(_, flags)| flags);
        let flags = flags.unwrap_or_else(|| panic!("{command}: {waiting:#?}"));
        assert!(flags.as_array().unwrap().contains(&json!(flag)), "{command}: {waiting:#?}");
    }
}

#[test]
fn folders_that_only_look_like_hooks_are_nothing_to_ask_about() {
    for (setup, command) in [
        ("true", "mkdir -p src/hooks; evil src/hooks/use; evil pre-commit"),
        ("mkdir -p shared/config", "ln -s shared/config config"),
        ("git config core.hooksPath .githooks && mkdir .githooks", "echo text > .githooks/README; rm -f gone"),
        ("git init -q --bare repo.git", "rm repo.git/hooks/*.sample"),
        ("true", "git init -q --bare fresh.git"),
        ("true", "git config alias.lg 'log --oneline --graph'"),
    ] {
        let person = after(setup);
        let (code, outcome) = person.shell(&format!("{EVIL}{command}"), ALL);
        assert_eq!((code, &outcome["status"]), (0, &json!("success")), "{command}: {outcome:#}");
    }
}

#[test]
fn a_set_uid_file_too_deep_for_a_path_is_asked_about() {
    let person = after("echo build/ > .gitignore && mkdir build");
    let deep = "python3 -c 'import os; os.chdir(\"build\")
for _ in range(17): os.mkdir(\"d\" * 250); os.chdir(\"d\" * 250)
open(\"s\", \"w\").close(); os.chmod(\"s\", 0o4755)'";
    let waiting = waits(&person, deep, &[]);
    assert!(
        waiting.iter().any(|(_, flags)| flags.as_array().unwrap().contains(&json!("set_uid"))),
        "{}",
        waiting.len()
    );
}

#[test]
fn files_that_git_forgets_do_not_become_build_output() {
    let person = after(
        "echo build/ > .gitignore && mkdir build && echo first > build/release.sh && git add -f . && git commit -qm First",
    );
    // A look refreshes what git remembers, and is nothing to ask about.
    let (code, outcome) = person.shell("touch a.txt; git status", &[]);
    assert_eq!(code, 0, "{outcome:#}");
    assert_eq!(waits(&person, "git rm -q --cached build/release.sh", &[])[0].0, ".git/index");
    assert_eq!(waits(&person, "echo evil > build/release.sh", &[])[0].0, "build/release.sh");
}

#[test]
fn what_comes_back_by_an_undo_is_judged_by_what_it_is() {
    let person =
        after("printf '#!/bin/sh\\n' > .git/hooks/pre-push && chmod +x .git/hooks/pre-push && touch s && chmod 4755 s");
    for (command, path) in [("rm s", "s"), ("rm .git/hooks/pre-push", ".git/hooks/pre-push")] {
        let (code, outcome) = person.shell(command, ALL);
        assert_eq!(code, 0, "{outcome:#}");
        let (code, undo) = person.call("undo_call", &json!({"callId": id(&outcome)}), ALL);
        assert_eq!((code, person.fixture.path(path).exists()), (4, false), "{undo:#}");
        let approved = person.run(&["approve", &id(&undo)]);
        assert_eq!((approved.code, fs::exists(person.fixture.path(path)).unwrap()), (Some(0), true), "{approved:?}");
    }
}
