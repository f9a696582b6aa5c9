//! Sets of changes that an earlier version has left are turned like any other.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::fs;

use haft_sandbox::changes::{ChangeState, Changes, look, recover};
use support::{World, commit, undo};

/// Puts a set into the files in which it was kept before: the plan, its state, the mark of a turn.
fn as_before(world: &World, is_turning: bool) {
    let dir = world.dir("call");
    let course = fs::read_to_string(dir.join("course.jsonl")).unwrap();
    let mut lines = course.lines().filter(|line| !line.is_empty());
    fs::write(dir.join("plan.json"), lines.next().unwrap()).unwrap();
    if let Some(state) = lines.rfind(|line| line.starts_with('{')) {
        fs::write(dir.join("state.json"), state).unwrap();
    }
    if is_turning {
        fs::write(dir.join("state.json.tmp"), "").unwrap();
    }
    fs::remove_file(dir.join("course.jsonl")).unwrap();
}

#[test]
fn what_was_staged_can_be_committed_and_undone() {
    let world = World::new();
    world.file("a", "old\n");
    drop(world.written("call", "a", "new\n"));
    as_before(&world, false);
    assert!(look(&world.dir("call")).unwrap().has_staged);
    commit(&mut Changes::open(&world.dir("call")).unwrap());
    assert_eq!(world.read("a"), "new\n");
    undo(&mut Changes::open(&world.dir("call")).unwrap());
    assert_eq!(world.read("a"), "old\n");
    assert!(!world.dir("call").join("plan.json").exists(), "it is kept once");
}

#[test]
fn what_was_committed_is_known_to_be() {
    let world = World::new();
    world.file("a", "old\n");
    commit(&mut world.written("call", "a", "new\n"));
    as_before(&world, false);
    let mut changes = Changes::open(&world.dir("call")).unwrap();
    assert_eq!(changes.list()[0].state, ChangeState::Committed);
    undo(&mut changes);
    assert_eq!(world.read("a"), "old\n");
}

#[test]
fn a_turn_that_was_cut_short_is_put_back() {
    let world = World::new();
    world.file("a", "old\n");
    drop(world.written("call", "a", "new\n"));
    as_before(&world, true);
    // What the turn had done when its process died.
    let (slot, path, between) = (world.dir("call").join("slot-1"), world.path("a"), world.path("between"));
    fs::rename(&path, &between).unwrap();
    fs::rename(&slot, &path).unwrap();
    fs::rename(&between, &slot).unwrap();
    assert_eq!(recover(&world.dir("call")).unwrap().rolled_back, ["a"]);
    assert_eq!(world.read("a"), "old\n");
}
