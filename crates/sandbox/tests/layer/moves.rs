//! What a command moves is one rename.

use haft_sandbox::changes::{ChangeDirection, FileChangeKind, Selection};

use crate::overlay::{on_a_copy, over};
use crate::support::{World, commit, kinds, picture, undo};

fn moved(list: &[haft_sandbox::changes::FileChange]) -> Vec<(&str, Option<&str>)> {
    list.iter().map(|change| (change.path.as_str(), change.from.as_deref())).collect()
}

#[test]
fn files_and_folders_are_renamed() {
    let world = World::new();
    for name in ["a", "dir/one", "dir/deep/two", "b", "kept/x"] {
        world.file(name, &format!("this is {name}\n"));
    }
    let script = "mv a a2; mkdir new; mv b new/b; mv dir other; mkdir kept/sub";
    let copy = on_a_copy(&world, script);
    let before = world.picture();
    let mut changes = over(&world, "moved", script);
    let list = changes.list();
    let expected = [("a2", Some("a")), ("kept/sub", None), ("new", None), ("new/b", Some("b")), ("other", Some("dir"))];
    assert_eq!(moved(&list), expected);
    assert!(list.iter().filter(|change| change.from.is_some()).all(|change| change.kind == FileChangeKind::Renamed));
    commit(&mut changes);
    assert_eq!(world.picture(), picture(copy.path()));
    undo(&mut changes);
    assert_eq!(world.picture(), before);
    changes.turn(ChangeDirection::Commit, Selection::Some(&["new/b".to_owned()])).unwrap();
    assert_eq!(world.read("new/b"), "this is b\n");
    assert!(!world.path("b").exists() && world.path("a").exists());
}

#[test]
fn what_is_not_the_same_is_removed_and_made() {
    let world = World::new();
    for name in ["a", "b", "dir/one", "dir/two"] {
        world.file(name, &format!("this is {name}\n"));
    }
    // The same size and time, but other content; another mode; one file of a folder edited.
    let script = "cp -p a a2; printf 'THAT' | dd of=a2 conv=notrunc status=none; touch -r a a2; rm a; \
                  mv b b2; chmod 700 b2; mv dir dir2; echo more >> dir2/one";
    let changes = over(&world, "unlike", script);
    let created = [("a2", FileChangeKind::Created), ("b2", FileChangeKind::Created), ("dir2", FileChangeKind::Created)];
    let list = changes.list();
    for pair in created {
        assert!(kinds(&list).contains(&pair), "{pair:?} of {list:?}");
    }
    assert!(list.iter().all(|change| change.kind != FileChangeKind::Renamed));
}
