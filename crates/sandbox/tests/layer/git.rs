//! What git does beneath `.git`.

use haft_sandbox::changes::{Change, Direction, Flag, Selection};

use crate::overlay::{meanwhile, over};
use crate::support::{World, commit, undo};

fn repository() -> World {
    let world = World::new();
    world.file("a", "one\n");
    meanwhile(&world, "git init -q -b main; git add a; git commit -q -m first");
    world
}

fn inside(list: &[Change]) -> Vec<&Change> {
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
    changes.turn(Direction::Commit, Selection::Some(&[".git/index".to_owned()])).unwrap();
    let head = world.read(".git/refs/heads/main");
    assert_eq!(summaries, [format!("commit {} on main", &head[..7])]);
    meanwhile(&world, "git fsck --strict; test \"$(git log --format=%s | head -1)\" = second");
    let back = changes.preview_turn(Direction::Undo, Selection::All).unwrap();
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
fn everything_else_is_listed_and_flagged() {
    let scripts = [
        "git checkout -q -b other",
        "git branch other",
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
        let git: Vec<&Change> = list.iter().filter(|change| change.path.contains(".git/")).collect();
        assert!(!git.is_empty(), "{script}");
        let flags = [Flag::InsideGit, Flag::GitHook, Flag::IgnoreRules, Flag::GitConfigCommand];
        let flagged = |change: &&Change| flags.iter().any(|flag| change.flags.contains(flag));
        assert!(git.iter().all(flagged) && git.iter().all(|change| change.summary.is_none()), "{script}: {git:?}");
        assert!(git.iter().all(|change| change.unit == git[0].unit), "{script}");
    }
}
