//! What git does beneath `.git`.

use haft_sandbox::changes::{ChangeDirection, ChangeFlag, FileChange, Selection};

use crate::overlay::{meanwhile, over};
use crate::support::{World, commit, undo};

fn repository() -> World {
    let world = World::new();
    world.file("a", "one\n");
    meanwhile(&world, "git init -q -b main; git add a; git commit -q -m first");
    world
}

fn inside(list: &[FileChange]) -> Vec<&FileChange> {
    list.iter().filter(|change| change.path.starts_with(".git/")).collect()
}

#[test]
fn a_commit_is_one_line_and_one_unit() {
    let world = repository();
    let mut changes = over(&world, "commit", "echo two >> a; echo b > b; git add a b; git commit -q -m second");
    let list = changes.list();
    let git = inside(&list);
    let units: std::collections::HashSet<usize> = git.iter().map(|change| change.unit).collect();
    assert_eq!(units.len(), 1);
    assert!(git.iter().all(|change| change.flags.is_empty()), "{git:?}");
    let summaries: Vec<&str> = git.iter().filter_map(|change| change.summary.as_deref()).collect();
    assert_eq!(git[0].summary.as_deref(), summaries.first().copied());
    changes.turn(ChangeDirection::Commit, Selection::Some(&[".git/index".to_owned()])).unwrap();
    let head = world.read(".git/refs/heads/main");
    assert_eq!(summaries, [format!("commit {} on main", &head[..7])]);
    meanwhile(&world, "git fsck --strict; test \"$(git log --format=%s | head -1)\" = second");
    let back = changes.preview_turn(ChangeDirection::Undo, Selection::All).unwrap();
    assert!(back[0].summary.as_deref().unwrap().starts_with("undo commit "));
    undo(&mut changes);
    meanwhile(&world, "test \"$(git log --format=%s)\" = first; git fsck --strict");
}

#[test]
fn the_first_commit_on_a_branch_with_folders_is_one_line_too() {
    let world = World::new();
    meanwhile(&world, "git init -q -b work/new");
    let mut changes = over(&world, "commit", "echo a > a; git add a; git commit -q -m first");
    let list = changes.list();
    assert!(inside(&list)[0].summary.as_deref().unwrap().ends_with(" on work/new"));
    assert!(list.iter().all(|change| change.flags.is_empty()), "{list:?}");
    commit(&mut changes);
    meanwhile(&world, "git fsck --strict; test -z \"$(git status --porcelain)\"");
}

#[test]
fn a_commit_on_a_packed_branch_is_one_line_and_one_that_drops_it_is_not() {
    let world = repository();
    meanwhile(&world, "git pack-refs --all; test ! -e .git/refs/heads/main");
    let list = over(&world, "commit", "echo b > b; git add b; git commit -q -m second").list();
    assert!(inside(&list)[0].summary.as_deref().unwrap().ends_with(" on main"), "{list:?}");
    let list = over(&world, "root", "git update-ref refs/heads/main $(git commit-tree -m x HEAD^{tree})").list();
    assert!(inside(&list).iter().all(|change| change.summary.is_none() && !change.flags.is_empty()), "{list:?}");
}

/// The one line that stands for everything that a script does beneath `.git`, if there is one.
fn line(world: &World, call: &str, script: &str) -> Option<String> {
    let list = over(world, call, script).list();
    let git = inside(&list);
    assert!(git.iter().all(|change| change.unit == git[0].unit), "{script}");
    let lines: Vec<&String> = git.iter().filter_map(|change| change.summary.as_ref()).collect();
    assert_eq!(lines.is_empty(), git.iter().any(|change| !change.flags.is_empty()), "{script}: {git:?}");
    assert!(lines.len() <= 1, "{script}: {lines:?}");
    lines.first().map(|line| (*line).clone())
}

/// A repository whose branch `there` has one file less.
fn with_branches() -> World {
    let world = repository();
    meanwhile(&world, "git branch there; echo b > b; git add b; git commit -q -m second");
    world
}

fn short(world: &World, of: &str) -> String {
    let said = world.data.join("said");
    meanwhile(world, &format!("git rev-parse {of} > '{}'", said.display()));
    std::fs::read_to_string(said).unwrap()[..7].to_owned()
}

#[test]
fn a_new_branch_is_one_line_and_can_be_undone() {
    for pack in ["true", "git gc -q; test ! -e .git/refs/heads/main"] {
        let world = with_branches();
        meanwhile(&world, pack);
        let (main, first) = (short(&world, "HEAD"), short(&world, "HEAD~1"));
        for (at, (script, expected)) in [
            ("git branch new", format!("branch new at {main}")),
            ("git branch work/new HEAD~1", format!("branch work/new at {first}")),
            ("git switch -q -c new", format!("branch new at {main}, checked out")),
            ("git switch -q -c new HEAD~1", format!("branch new at {first}, checked out")),
            ("git switch -q there", "switch to branch there".to_owned()),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(line(&world, &format!("call{at}"), script), Some(expected), "{script}");
        }
        let mut changes = over(&world, "switch", "git switch -q -c new there");
        commit(&mut changes);
        meanwhile(&world, "git fsck --strict; test \"$(git branch --show-current)\" = new; test ! -e b");
        undo(&mut changes);
        meanwhile(&world, "git fsck --strict; test \"$(git branch --show-current)\" = main; test -e b");
        meanwhile(&world, "! git rev-parse -q --verify new");
    }
}

#[test]
fn a_commit_without_a_branch_and_one_that_ends_a_merge_are_one_line() {
    let world = with_branches();
    meanwhile(&world, "git checkout -q --detach");
    let told = line(&world, "detached", "echo c > c; git add c; git commit -q -m c").unwrap();
    assert!(told.starts_with("commit ") && told.ends_with(" on detached HEAD"), "{told}");
    meanwhile(&world, "git switch -q there; echo x > b; git add b; git commit -q -m theirs; git switch -q main");
    meanwhile(&world, "git merge -q there && exit 1; echo both > b; git add b; test -e .git/MERGE_HEAD");
    for (call, script) in [
        ("abort", "git merge --abort"),
        ("dropped", "rm .git/MERGE_HEAD; git commit -q -m single"),
        ("hidden", "git update-ref refs/heads/main $(git commit-tree -p HEAD -m x HEAD^{tree}); rm .git/MERGE_*"),
        ("branch", "git branch new; rm .git/MERGE_*"),
    ] {
        assert_eq!(line(&world, call, script), None, "{script}");
    }
    let mut changes = over(&world, "merge", "git commit -q -m merged");
    let list = changes.list();
    let git = inside(&list);
    assert!(git.iter().all(|change| change.flags.is_empty()), "{git:?}");
    assert!(git[0].summary.as_deref().unwrap().ends_with(" on main"), "{git:?}");
    let spent: Vec<&str> = git.iter().filter(|change| change.spent).map(|change| change.path.as_str()).collect();
    assert!(spent.contains(&".git/MERGE_HEAD") && spent.len() >= 3, "{spent:?}");
    commit(&mut changes);
    meanwhile(
        &world,
        "git fsck --strict; test $(git rev-list --parents -1 HEAD | wc -w) = 3; test ! -e .git/MERGE_HEAD",
    );
    undo(&mut changes);
    meanwhile(&world, "test -e .git/MERGE_HEAD; git commit -q -m merged");
}

#[test]
fn what_hides_behind_a_branch_is_listed_and_flagged() {
    let behind = [
        "echo x > .git/hooks/post-checkout",
        "git config core.pager x",
        "git config user.name B",
        "echo x >> .git/info/exclude",
        "git replace HEAD $(git commit-tree -m x HEAD^{tree})",
        "git tag v1",
        "git notes add -m x",
        "git update-ref refs/remotes/origin/main HEAD",
        "git update-ref refs/other/main HEAD",
        "git symbolic-ref refs/heads/second refs/heads/main",
        "git pack-refs --all",
        "git branch second",
        "git branch -D there",
        "git branch -f there main",
        "git rm -q --cached a",
        "echo x > x; git add x",
        "echo x | git hash-object -w --stdin",
        "echo ../../elsewhere > .git/objects/info/alternates",
        "echo x > .git/commondir",
        "echo x > .git/refs/heads/.hidden",
        "echo x >> .git/logs/refs/heads/main",
        "chmod 700 .git/refs",
        "rm .git/description",
    ];
    let firsts = ["git branch new", "git switch -q -c new", "git switch -q there"];
    let world = with_branches();
    for (at, first) in firsts.iter().enumerate() {
        for (number, second) in behind.iter().enumerate() {
            // There is nothing else that it could hide behind.
            if first.contains("there") && second.contains(" there") {
                continue;
            }
            let script = format!("{first}; {second}");
            assert_eq!(line(&world, &format!("call{at}-{number}"), &script), None, "{script}");
        }
    }
}

#[test]
fn what_only_looks_like_a_branch_is_listed_and_flagged() {
    let scripts = [
        "echo 1111111111111111111111111111111111111111 > .git/refs/heads/new",
        "git rev-parse HEAD^{tree} > .git/refs/heads/new",
        "echo ref: refs/heads/main > .git/refs/heads/new",
        "ln -s main .git/refs/heads/new",
        "git rev-parse HEAD > .git/refs/heads/new.lock",
        "git rev-parse HEAD > .git/refs/heads/--new",
        "git rev-parse HEAD > .git/refs/new",
        "git symbolic-ref HEAD refs/heads/nowhere",
        "git symbolic-ref HEAD refs/tags/v1",
        "echo ref: refs/heads/../heads/there > .git/HEAD",
        "rm .git/HEAD; ln -s refs/heads/there .git/HEAD",
        "git checkout -q --detach",
        "git checkout -q there~0",
        "git branch -m there moved",
        "git branch -f there main",
        "git worktree add -q tree",
        "git switch -q -c new; git commit -q --allow-empty -m x; git commit -q --allow-empty -m y; git tag v1",
    ];
    let world = with_branches();
    for (at, script) in scripts.iter().enumerate() {
        assert_eq!(line(&world, &format!("call{at}"), script), None, "{script}");
    }
}

#[test]
fn a_look_at_the_status_is_derived() {
    let world = repository();
    meanwhile(&world, "touch -d @1700000000 a");
    let changes = over(&world, "status", "git status");
    let list = changes.list();
    assert_eq!(list.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), [".git/index"]);
    assert!(list[0].derived && list[0].flags.is_empty());
}

#[test]
fn a_fetch_that_reaches_nobody_is_derived_and_one_that_brings_something_is_not() {
    let world = repository();
    let changes = over(&world, "nobody", "git fetch -q ./nowhere 2>/dev/null || true");
    let list = changes.list();
    assert_eq!(list.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), [".git/FETCH_HEAD"]);
    assert!(list[0].derived && list[0].flags.is_empty());
    let list = over(&world, "fetched", "git fetch -q .").list();
    assert!(list.iter().all(|change| !change.derived && !change.flags.is_empty()), "{list:?}");
}

#[test]
fn everything_else_is_listed_and_flagged() {
    let scripts = [
        "git config user.name B",
        "git commit -q --allow-empty -m x; git branch other",
        "git commit -q --allow-empty -m x; echo x > .git/hooks/post-commit",
        "git commit -q --allow-empty -m x; echo x > .git/info/exclude",
        "git update-ref refs/heads/main $(git commit-tree -m x HEAD^{tree}); rm .git/HEAD; echo ref: refs/heads/x > .git/HEAD",
        "git commit -q --amend -m better",
        "git update-ref refs/heads/main $(git commit-tree -m x HEAD^{tree})",
        "git commit -q --allow-empty -m x; git commit -q --allow-empty -m y",
        "git gc -q",
        "git tag v1",
        "echo 0000000000000000000000000000000000000000 > .git/refs/heads/main; echo x | git hash-object -w --stdin",
        "mkdir sub; git -C sub init -q",
    ];
    for script in scripts {
        let world = repository();
        let list = over(&world, "run", script).list();
        let git: Vec<&FileChange> = list.iter().filter(|change| change.path.contains(".git/")).collect();
        assert!(!git.is_empty(), "{script}");
        let flags = [ChangeFlag::InsideGit, ChangeFlag::GitHook, ChangeFlag::IgnoreRules, ChangeFlag::GitConfigCommand];
        let flagged = |change: &&FileChange| flags.iter().any(|flag| change.flags.contains(flag));
        assert!(git.iter().all(flagged) && git.iter().all(|change| change.summary.is_none()), "{script}: {git:?}");
        assert!(git.iter().all(|change| change.unit == git[0].unit), "{script}");
    }
}
