//! Linked worktrees: their repository lies elsewhere, and what commands change in it is held aside like all the rest.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    fenced::Person,
    repo::{git, plain, put_program, with_repository},
    support::{ALL, text},
};

/// A person whose workspace is a linked worktree on the branch `side`, and where the main one is.
fn linked(person: Person) -> (Person, PathBuf) {
    let mut person = with_repository(person);
    let linked = person.fixture.workspace.with_file_name("linked");
    git(&person, &["worktree", "add", "-q", "-b", "side", &linked.display().to_string()]);
    let main = std::mem::replace(&mut person.fixture.workspace, linked);
    (person, main)
}

/// What the main worktree has to itself, and what it says of its files.
fn standing(person: &Person, main: &Path) -> (Vec<u8>, Vec<u8>, String) {
    let read = |name: &str| std::fs::read(main.join(".git").join(name)).unwrap();
    let status = plain(person, main, &["--no-optional-locks", "status", "--short", "--branch"]);
    (read("HEAD"), read("index"), status.stdout)
}

/// A command that is asked about; gives the call and the open questions.
fn asked(person: &Person, command: &str, flags: &[&str]) -> (String, Value) {
    let call = person.stages(command, flags);
    let open = person.json(&["approvals"]);
    (call, open)
}

#[test]
fn a_commit_in_a_linked_worktree_is_one_line_and_can_be_undone_and_made_again() {
    for person in Person::everyone() {
        let (person, main) = linked(person);
        let (first, before) = (git(&person, &["rev-parse", "HEAD"]), standing(&person, &main));
        person.put("a.txt", "linked\n");
        person.put("new.txt", "new\n");
        let call = person.stages("git add -A && git commit -q -m Second", &[]);
        assert_eq!(git(&person, &["rev-parse", "HEAD"]), first, "nothing has changed yet");
        let card = person.run(&["changes", &call]).said();
        assert!(card.contains("commit ") && card.contains(" on side"), "{card}");
        let open = person.json(&["approvals"]);
        assert!(!open.to_string().contains("inside_git"), "one line, nothing flagged: {open:#}");
        let ran = person.run(&["approve", &call]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let second = git(&person, &["rev-parse", "HEAD"]);
        assert_eq!(git(&person, &["log", "--format=%s"]), "Second\nFirst");
        assert_eq!(git(&person, &["status", "--short"]), "");
        assert_eq!(plain(&person, &main, &["log", "-1", "--format=%s", "side"]).stdout, "Second\n");
        assert_eq!(standing(&person, &main), before);
        assert_eq!(person.run(&["undo", &call, "--yes"]).code, Some(0));
        assert_eq!(git(&person, &["rev-parse", "HEAD"]), first);
        assert_eq!(git(&person, &["status", "--short"]), " M a.txt\n?? new.txt");
        assert_eq!(person.run(&["redo", &call, "--yes"]).code, Some(0));
        assert_eq!(git(&person, &["rev-parse", "HEAD"]), second);
        assert_eq!(git(&person, &["fsck", "--no-progress"]), "");
        assert_eq!(standing(&person, &main), before);
    }
}

#[test]
fn commands_read_and_write_the_repository_of_a_linked_worktree() {
    for person in Person::everyone() {
        let (mut person, main) = linked(person);
        person.put("a.txt", "linked\n");
        let said = person.does("git status --short --branch && git log --format=%s && git diff");
        for words in ["## side", " M a.txt", "First", "+linked"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        for command in ["git log --format=%s", "git status"] {
            let (code, outcome) = person.shell(command, &[]);
            assert_eq!(code, 0, "{outcome:#}");
        }
        let before = standing(&person, &main);
        person.does("git stash");
        assert_eq!(git(&person, &["stash", "list"]).lines().count(), 1);
        person.does("git stash pop && git switch -q -c more && git commit -q -a -m More && git tag v1");
        assert_eq!(git(&person, &["log", "--format=%s", "v1"]), "More\nFirst");
        assert_eq!(git(&person, &["branch", "--show-current"]), "more");
        assert_eq!(standing(&person, &main), before);
        assert_eq!(git(&person, &["fsck", "--no-progress", "--no-dangling"]), "");
        // Only a repository that knows of the workspace is shown.
        let stranger = person.fixture.workspace.with_file_name("stranger");
        std::fs::create_dir(&stranger).unwrap();
        person.give(&stranger);
        person.fixture.workspace = stranger;
        person.put(".git", format!("gitdir: {}\n", main.join(".git").display()));
        let said = person.says("git log 2>&1; ls ../*");
        assert!(said.contains("not a git repository") && !said.contains("First"), "{said}");
    }
}

#[test]
fn build_output_of_a_linked_worktree_is_not_asked_about() {
    for person in Person::everyone() {
        let (person, _) = linked(person);
        person.put(".gitignore", "out/\n");
        git(&person, &["add", "."]);
        git(&person, &["commit", "-q", "-m", "Ignore"]);
        let (code, outcome) = person.shell("mkdir out && echo built > out/a.o && git status", &[]);
        assert_eq!((code, &outcome["status"]), (0, &json!("success")), "{outcome:#}");
        assert_eq!(person.fixture.text("out/a.o").unwrap(), "built\n");
    }
}

#[test]
fn what_steers_git_is_asked_about_in_every_mode() {
    let (person, main) = linked(Person::us());
    let shared = main.join(".git");
    let (hooks, settings) = (shared.join("hooks/pre-commit"), std::fs::read(shared.join("config")).unwrap());
    let plant = "dir=$(git rev-parse --git-common-dir); mkdir -p $dir/hooks; echo run > $dir/hooks/pre-commit; \
                 chmod +x $dir/hooks/pre-commit";
    for (command, flag) in [
        (plant, "git_hook"),
        ("git config core.fsmonitor ./run", "git_config_command"),
        ("git config core.hooksPath hooks", "git_config_command"),
        ("echo ../../.. > $(git rev-parse --git-dir)/commondir", "git_config_command"),
        ("git config extensions.worktreeConfig true && git config --worktree core.sshCommand x", "git_config_command"),
    ] {
        let (call, open) = asked(&person, command, ALL);
        assert!(open.to_string().contains(flag), "{command}: {open:#}");
        assert!(!hooks.exists() && std::fs::read(shared.join("config")).unwrap() == settings, "{command}");
        assert_eq!(person.run(&["reject", &call]).code, Some(0), "{command}");
    }
    // What belongs to the main worktree is neither a switch of this one nor a commit of it.
    let before = standing(&person, &main);
    for (command, path) in [
        ("echo ref: refs/heads/side > $(git rev-parse --git-common-dir)/HEAD", ".git/HEAD"),
        ("git update-ref refs/heads/main $(git commit-tree -p main -m More main^{tree})", ".git/refs/heads/main"),
    ] {
        let (call, open) = asked(&person, command, &[]);
        let said = open.to_string();
        assert!(said.contains("inside_git") && said.contains(path), "{command}: {open:#}");
        assert!(!said.contains("switch to") && !said.contains(" on main"), "{command}: {open:#}");
        assert_eq!(person.run(&["reject", &call]).code, Some(0));
        assert_eq!(standing(&person, &main), before);
    }
    // Settings that name hooks in the worktree make hooks of what lies there.
    git(&person, &["config", "core.hooksPath", "steps"]);
    let (_, open) = asked(&person, "mkdir steps; echo run > steps/pre-commit; chmod +x steps/pre-commit", ALL);
    assert!(open.to_string().contains("git_hook"), "{open:#}");
}

#[test]
fn what_somebody_else_has_committed_meanwhile_is_a_conflict() {
    let (person, main) = linked(Person::us());
    person.put("a.txt", "mine\n");
    let call = person.stages("git commit -q -a -m Mine", &[]);
    let theirs = plain(&person, &main, &["commit-tree", "-p", "side", "-m", "Theirs", "side^{tree}"]).stdout;
    assert_eq!(plain(&person, &main, &["update-ref", "refs/heads/side", theirs.trim()]).code, Some(0));
    let before = standing(&person, &main);
    let ran = person.run(&["approve", &call, "--json"]);
    assert!(ran.said().contains("CONFLICT"), "{ran:?}");
    assert_eq!(git(&person, &["log", "--format=%s"]), "Theirs\nFirst");
    assert_eq!(standing(&person, &main), before);
    assert_eq!(git(&person, &["fsck", "--no-progress", "--no-dangling"]), "");
}

#[test]
fn git_commit_and_git_branch_in_a_linked_worktree_are_undone() {
    for person in Person::everyone() {
        let (mut person, main) = linked(person);
        let linked = std::mem::replace(&mut person.fixture.workspace, main.clone());
        put_program(&person, ".git/hooks/pre-commit", "echo hooked >&2");
        person.fixture.workspace = linked;
        let before = standing(&person, &main);
        person.put("a.txt", "linked\n");
        let input = json!({"message": "In a linked worktree", "files": ["a.txt"]});
        let (code, outcome) = person.call("git_commit", &input, &[]);
        assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{outcome:#}");
        let call = text(&outcome["tool_call_id"]);
        let card = person.run(&["changes", &call]).said();
        for words in ["+linked", "commit ", " on side"] {
            assert!(card.contains(words), "{words}: {card}");
        }
        assert!(!card.contains("cannot be undone"), "{card}");
        assert_eq!(person.run(&["approve", &call]).code, Some(0));
        assert_eq!(git(&person, &["log", "-1", "--format=%s"]), "In a linked worktree");
        assert_eq!(git(&person, &["status", "--short"]), "");
        assert_eq!(person.run(&["undo", &call, "--yes"]).code, Some(0));
        assert_eq!(git(&person, &["log", "-1", "--format=%s"]), "First");
        let branch = json!({"name": "more", "create": true, "checkout": true});
        let (code, outcome) = person.call("git_branch", &branch, ALL);
        assert_eq!(code, 0, "{outcome:#}");
        assert_eq!(git(&person, &["branch", "--show-current"]), "more");
        assert_eq!(person.run(&["undo", &text(&outcome["tool_call_id"]), "--yes"]).code, Some(0));
        assert_eq!(git(&person, &["branch", "--show-current"]), "side");
        assert_eq!(git(&person, &["branch", "--list", "more"]), "");
        assert_eq!(standing(&person, &main), before);
    }
}

#[test]
fn a_submodule_of_something_larger_is_committed_to() {
    let mut person = with_repository(Person::us());
    let larger = person.fixture.workspace.with_file_name("larger");
    let part = person.fixture.workspace.display().to_string();
    git(&person, &["init", "-q", &larger.display().to_string()]);
    let added = plain(&person, &larger, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &part, "part"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    person.fixture.workspace = larger.join("part");
    person.put("a.txt", "part\n");
    let call = person.stages("git commit -q -a -m Part", &[]);
    let card = person.run(&["changes", &call]).said();
    assert!(card.contains("commit ") && card.contains(" on main"), "{card}");
    assert_eq!(person.run(&["approve", &call]).code, Some(0));
    assert_eq!(git(&person, &["log", "--format=%s"]), "Part\nFirst");
    assert_eq!(person.run(&["undo", &call, "--yes"]).code, Some(0));
    assert_eq!(git(&person, &["log", "--format=%s"]), "First");
}

#[test]
fn a_worktree_can_leave_its_repository_and_come_back() {
    let (person, main) = linked(Person::us());
    let before = standing(&person, &main);
    let leave = "git branch left && rm .git && git init -q -b own && git add -A && git commit -q -m Own";
    let (code, outcome) = person.shell(leave, ALL);
    assert_eq!(code, 0, "{outcome:#}");
    assert_eq!(git(&person, &["log", "--format=%s %D"]), "Own HEAD -> own");
    assert_eq!(plain(&person, &main, &["branch", "--list", "left"]).stdout, "  left\n");
    assert_eq!(person.run(&["undo", &text(&outcome["tool_call_id"]), "--yes"]).code, Some(0));
    assert_eq!(git(&person, &["log", "--format=%s"]), "First");
    assert_eq!(plain(&person, &main, &["branch", "--list", "left"]).stdout, "");
    assert_eq!(standing(&person, &main), before);
}

/// A layer over the repository would lie over the workspace, too.
#[test]
fn around_a_worktree_a_repository_is_only_read_and_git_commit_still_works() {
    let mut person = with_repository(Person::us());
    let bare = person.fixture.workspace.with_file_name("bare.git");
    let (from, to) = (person.fixture.workspace.display().to_string(), bare.display().to_string());
    git(&person, &["clone", "-q", "--bare", &from, &to]);
    let linked = bare.join("side");
    let added = plain(&person, &bare, &["worktree", "add", "-q", "-b", "side", &linked.display().to_string()]);
    assert_eq!(added.code, Some(0), "{added:?}");
    person.fixture.workspace = linked;
    person.put("a.txt", "side\n");
    for command in ["git commit -a -m Unasked", "git add a.txt"] {
        let (_, outcome) = person.shell(command, ALL);
        assert!(outcome.to_string().contains("Read-only file system"), "{command}: {outcome:#}");
        let hint = text(&outcome["result"]["structured"]["hint"]);
        assert!(hint.contains("linked worktree") && hint.contains("`git_commit`"), "{command}: {outcome:#}");
    }
    let (_, outcome) = person.shell("git log nothing", ALL);
    assert!(!outcome.to_string().contains("`git_commit`"), "only where it is the reason: {outcome:#}");
    let (code, outcome) = person.call("git_commit", &json!({"message": "Asked", "files": ["a.txt"]}), &[]);
    assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{outcome:#}");
    let card = person.run(&["approvals"]).said();
    assert!(card.contains("+side") && card.contains("cannot be undone"), "{card}");
    assert_eq!(person.run(&["approve", &text(&outcome["tool_call_id"])]).code, Some(0));
    assert_eq!(git(&person, &["log", "--format=%s"]), "Asked\nFirst");
}
