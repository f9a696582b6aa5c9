//! Looking at what is kept of changes, and giving it up.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;

use haft_sandbox::changes::{ChangeDirection, Changes, ChangesError, GONE, Selection, give_up, look, remove_gone};
use support::World;

#[test]
fn what_is_kept_is_told_and_can_be_given_up() {
    let world = World::new();
    world.file("a", "old\n");
    let mut changes = world.written("call", "a", &"new\n".repeat(5000));
    let staged = look(&world.dir("call")).unwrap();
    assert!(staged.has_staged && staged.bytes > 20_000, "{staged:?}");
    changes.turn(ChangeDirection::Commit, Selection::All).unwrap();
    assert!(!look(&world.dir("call")).unwrap().has_staged);
    give_up(&world.dir("call")).unwrap();
    assert!(matches!(Changes::open(&world.dir("call")), Err(ChangesError::Gone)));
    assert!(matches!(give_up(&world.dir("call")), Err(ChangesError::Gone)));
    assert_eq!(world.read("a"), "new\n".repeat(5000));
    // Whoever had opened it before finds nothing to turn, and touches nothing.
    changes.turn(ChangeDirection::Undo, Selection::All).unwrap_err();
    assert_eq!(world.read("a"), "new\n".repeat(5000));
}

#[test]
fn a_turn_under_way_is_not_disturbed() {
    let world = World::new();
    drop(world.written("call", "a", "a\n"));
    let folder = fs::metadata(world.root.path()).unwrap();
    let locks = world.data.join("locks");
    fs::create_dir_all(&locks).unwrap();
    let lock = fs::File::create(locks.join(format!("{}-{}", folder.dev(), folder.ino()))).unwrap();
    lock.lock().unwrap();
    assert!(matches!(give_up(&world.dir("call")), Err(ChangesError::Busy)));
    assert!(look(&world.dir("call")).unwrap().has_staged);
    drop(lock);
    give_up(&world.dir("call")).unwrap();
}

#[test]
fn what_was_never_sealed_or_is_broken_goes_too() {
    let world = World::new();
    let unsealed = world.dir("unsealed");
    fs::create_dir_all(&unsealed).unwrap();
    fs::write(unsealed.join("slot-1"), "half").unwrap();
    assert!(!look(&unsealed).unwrap().has_staged);
    give_up(&unsealed).unwrap();
    drop(world.written("broken", "a", "a\n"));
    fs::write(world.dir("broken").join("log.jsonl"), "{\n").unwrap();
    assert!(!look(&world.dir("broken")).unwrap().has_staged);
    give_up(&world.dir("broken")).unwrap();
    // Killed in the middle, it leaves this; removing it twice is fine.
    let left = world.dir(&format!("{GONE}call"));
    fs::create_dir_all(left.join("slot-1/deep")).unwrap();
    remove_gone(&left).unwrap();
    remove_gone(&left).unwrap();
    assert_eq!(fs::read_dir(world.data.join("changes")).unwrap().count(), 0);
}

#[test]
fn a_workspace_that_is_gone_keeps_nothing() {
    let world = World::new();
    drop(world.written("call", "a", "a\n"));
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(world.root.path(), elsewhere.path().join("moved")).unwrap();
    give_up(&world.dir("call")).unwrap();
    fs::rename(elsewhere.path().join("moved"), world.root.path()).unwrap();
    assert_eq!(fs::read_dir(world.data.join("changes")).unwrap().count(), 0);
}
