//! Some of the changes, whole units of them.

use haft_sandbox::changes::{ChangeDirection, ChangesError, FileChangeState, Selection};

use crate::overlay::over;
use crate::support::{World, commit, kinds, undo};

fn some(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn two_of_three_are_committed_and_the_third_is_discarded() {
    let world = World::new();
    for name in ["one", "two", "three"] {
        world.file(name, "old\n");
    }
    let mut changes = over(&world, "three", "echo new > one; echo new > two; rm three");
    changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["one", "three"]))).unwrap();
    changes.discard().unwrap();
    assert_eq!((world.read("one"), world.read("two")), ("new\n".to_owned(), "old\n".to_owned()));
    assert!(!world.path("three").exists());
    let states: Vec<FileChangeState> = changes.list().iter().map(|change| change.state).collect();
    assert_eq!(states, [FileChangeState::Committed, FileChangeState::Committed, FileChangeState::Discarded]);
    undo(&mut changes);
    assert_eq!(world.read("three"), "old\n");
}

#[test]
fn a_small_new_folder_is_chosen_from_and_a_large_one_is_not() {
    let world = World::new();
    let script = "mkdir -p small/sub large; echo 1 > small/a; echo 2 > small/sub/b; echo 3 > small/sub/c; \
                  for n in $(seq 65); do echo $n > large/$n; done; mkdir with; git -C with init -q";
    let mut changes = over(&world, "folders", script);
    changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["small/sub/b"]))).unwrap();
    assert_eq!(world.read("small/sub/b"), "2\n");
    assert!(!world.path("small/a").exists() && !world.path("small/sub/c").exists());
    for beneath in ["large/7", "with/.git/config"] {
        let refused = changes.turn(ChangeDirection::Commit, Selection::Some(&some(&[beneath])));
        assert!(matches!(refused, Err(ChangesError::NotAUnit { .. })), "{beneath}: {refused:?}");
    }
    changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["large"]))).unwrap();
    assert_eq!(world.read("large/65"), "65\n");
    commit(&mut changes);
    assert!(world.path("with/.git/config").exists());
    undo(&mut changes);
    assert_eq!(world.picture().len(), 0);
}

#[test]
fn a_replaced_folder_is_one_unit() {
    let world = World::new();
    world.file("dir/a", "old\n");
    let mut changes = over(&world, "replaced", "rm -r dir; mkdir dir; echo new > dir/b");
    let refused = changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["dir/b"])));
    assert!(matches!(refused, Err(ChangesError::NotAUnit { unit, .. }) if unit.len() == 3));
    assert_eq!(kinds(&changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["dir"]))).unwrap()).len(), 3);
    assert!(world.path("dir/b").exists() && !world.path("dir/a").exists());
}
