//! What somebody else has changed while a command ran, or after it.

use haft_sandbox::changes::{ChangeDirection, ChangesError, Selection};

use crate::overlay::{Run, meanwhile, over};
use crate::support::{World, commit, conflict, kinds};

fn world() -> World {
    let world = World::new();
    for name in ["a", "b", "dir/x", "dir/y", "old/deep/z", "vanishes", "sub/vanishes"] {
        world.file(name, &format!("this is {name}\n"));
    }
    world
}

#[test]
fn what_was_changed_during_the_run_is_a_conflict_and_nothing_is_lost() {
    let scripts = [
        ("echo c >> a", "echo person >> a", "a"),
        ("rm a", "echo person >> a", "a"),
        ("chmod 700 a", "echo person >> a", "a"),
        ("rm -r old", "echo person > old/deep/new", "old"),
        ("rm -r old", "echo person >> old/deep/z", "old"),
        ("rm -r dir; mkdir dir; echo c > dir/x", "echo person >> dir/y", "dir"),
        ("echo c > fresh", "echo person > fresh", "fresh"),
        ("rm a; mkdir a; echo c > a/in", "chmod 600 a", "a"),
        ("ln -sf b a", "echo person > a", "a"),
        ("echo c >> sub/vanishes", "rm sub/vanishes", "sub/vanishes"),
        ("chmod 700 sub; echo c > sub/new", "rm -r sub", "sub"),
        ("mv a a2", "echo person >> a", "a"),
    ];
    for (script, person, path) in scripts {
        let world = world();
        let run = Run::new(&world, "run", script);
        meanwhile(&world, person);
        let before = world.picture();
        let (mut changes, _) = run.take();
        let found = conflict(changes.turn(ChangeDirection::Commit, Selection::All));
        assert!(found.contains(&path.to_owned()), "{script} | {person}: {found:?}");
        assert_eq!(world.picture(), before, "{script} | {person}");
        assert!(!changes.list().is_empty(), "what the command did is still there to see");
    }
}

#[test]
fn what_was_changed_after_the_run_is_a_conflict() {
    let scripts = [
        ("echo c >> a", "echo person >> a", "a"),
        ("rm -r old", "echo person > old/deep/new", "old"),
        ("rm -r dir; mkdir dir", "chmod 600 dir/x", "dir"),
        ("mv a c", "echo person > c", "c"),
    ];
    for (script, person, path) in scripts {
        let world = world();
        let mut changes = over(&world, "run", script);
        meanwhile(&world, person);
        let before = world.picture();
        assert_eq!(conflict(changes.turn(ChangeDirection::Commit, Selection::All)), [path], "{script} | {person}");
        assert_eq!(world.picture(), before);
    }
}

#[test]
fn what_others_changed_elsewhere_is_no_conflict() {
    let world = world();
    let run = Run::new(&world, "run", "echo c >> a; echo c > dir/new; mv dir/x dir/z");
    meanwhile(&world, "echo person >> b; echo person > dir/other; echo person >> dir/y");
    commit(&mut run.take().0);
    assert_eq!(world.read("dir/other"), "person\n");
    assert_eq!(world.read("dir/new"), "c\n");
    assert_eq!(world.read("dir/z"), "this is dir/x\n");
    assert!(!world.path("dir/x").exists());
}

#[test]
fn a_conflict_in_derived_paths_drops_only_those() {
    let world = world();
    world.file("main.o", "old\n");
    let run = Run::new(&world, "run", "echo c >> a; echo c > main.o; mkdir target; echo c > target/out; echo c > x.o");
    meanwhile(&world, "echo person > main.o; mkdir target; echo person > target/out");
    let mut changes = run.take().0;
    assert_eq!(changes.list().iter().filter(|change| change.derived).count(), 3);
    let shown = changes.preview_turn(ChangeDirection::Commit, Selection::All).unwrap();
    let turned = commit(&mut changes);
    assert_eq!(kinds(&turned).len(), 2, "{turned:?}");
    assert_eq!(kinds(&shown), kinds(&turned).clone());
    assert_eq!((world.read("main.o"), world.read("target/out")), ("person\n".to_owned(), "person\n".to_owned()));
    assert_eq!(world.read("x.o"), "c\n");
    let again = changes.turn(ChangeDirection::Commit, Selection::All);
    assert!(matches!(again, Err(ChangesError::Conflict { .. })), "nothing else is left to commit: {again:?}");
}
