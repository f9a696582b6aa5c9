//! Planning, committing, undoing and discarding changes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use haft_sandbox::changes::{
    ChangeDirection, ChangeFlag, Changes, ChangesError, CommitDurability, Draft, Expected, FileChangeKind,
    FileChangeState, PlannedWrite, Selection, recover, remove,
};
use haft_sandbox::{PathError, Root};
use support::{World, commit, conflict, mode, set_mode, two_filesystems, undo};

/// A draft with one change of every kind.
fn everything(world: &World) -> Draft {
    world.file("src/replaced", "old\n");
    world.file("src/deleted", "bye\n");
    world.file("gone/a", "a\n");
    world.file("gone/deep/b", "b\n");
    world.file("mode", "m\n");
    set_mode(&world.path("mode"), 0o644);
    let mut draft = world.draft("all");
    draft.write(&world.place("src/replaced"), b"new\n", Expected::Anything).unwrap();
    draft.write(&world.place("new/deeper/file"), b"fresh\n", Expected::Nothing).unwrap();
    draft.delete(&world.place("src/deleted"), false).unwrap();
    draft.delete(&world.place("gone"), true).unwrap();
    draft.set_mode(&world.place("mode"), 0o755).unwrap();
    draft.link(&world.place("link"), Path::new("src/replaced")).unwrap();
    draft
}

#[test]
fn every_kind_is_committed_undone_and_committed_again() {
    let world = World::new();
    let draft = everything(&world);
    let before = world.picture();
    let mut changes = draft.seal().unwrap();
    assert_eq!(world.picture(), before, "planning touches nothing");
    let kinds: Vec<(String, FileChangeKind)> =
        changes.list().into_iter().map(|change| (change.path, change.kind)).collect();
    let expected = [
        ("gone", FileChangeKind::Deleted),
        ("gone/a", FileChangeKind::Deleted),
        ("gone/deep", FileChangeKind::Deleted),
        ("gone/deep/b", FileChangeKind::Deleted),
        ("link", FileChangeKind::Link),
        ("mode", FileChangeKind::Mode),
        ("new", FileChangeKind::Created),
        ("new/deeper", FileChangeKind::Created),
        ("new/deeper/file", FileChangeKind::Created),
        ("src/deleted", FileChangeKind::Deleted),
        ("src/replaced", FileChangeKind::Changed),
    ];
    assert_eq!(kinds, expected.map(|(path, kind)| (path.to_owned(), kind)));
    commit(&mut changes);
    let after = world.picture();
    assert_eq!(world.read("new/deeper/file"), "fresh\n");
    assert_eq!(world.read("link"), "new\n");
    assert_eq!(mode(&world.path("mode")), 0o755);
    assert!(!world.path("gone").exists() && !world.path("src/deleted").exists());
    for _ in 0..2 {
        let turned = undo(&mut Changes::open(&world.dir("all")).unwrap());
        assert!(turned.iter().all(|change| change.state == FileChangeState::Undone));
        assert_eq!(world.picture(), before);
        commit(&mut Changes::open(&world.dir("all")).unwrap());
        assert_eq!(world.picture(), after);
    }
    assert!(matches!(
        changes.turn(ChangeDirection::Commit, Selection::All),
        Err(ChangesError::WrongState { state: FileChangeState::Committed, .. })
    ));
    assert_eq!(recover(&world.dir("all")).unwrap().committed.len(), 8);
    remove(&world.dir("all")).unwrap();
    assert!(matches!(Changes::open(&world.dir("all")), Err(ChangesError::Gone)));
}

#[test]
fn another_filesystem_makes_no_difference() {
    let Some((temp, shared)) = two_filesystems() else { return };
    for (workspace, data) in [(&temp, &shared), (&shared, &temp)] {
        let world = World::across(workspace, data);
        let draft = everything(&world);
        let mtime = fs::metadata(world.path("gone/deep/b")).unwrap().mtime_nsec();
        let before = world.picture();
        let mut changes = draft.seal().unwrap();
        commit(&mut changes);
        let after = world.picture();
        assert_ne!(before, after);
        for _ in 0..2 {
            undo(&mut changes);
            assert_eq!(world.picture(), before);
            assert_eq!(fs::metadata(world.path("gone/deep/b")).unwrap().mtime_nsec(), mtime);
            commit(&mut changes);
            assert_eq!(world.picture(), after);
        }
        undo(&mut changes);
        world.file("gone/deep/b", "c\n");
        assert_eq!(conflict(changes.turn(ChangeDirection::Commit, Selection::All)), ["gone"]);
    }
}

#[test]
fn an_undone_file_is_the_very_same_file() {
    let world = World::new();
    world.file("a", "old\n");
    set_mode(&world.path("a"), 0o640);
    let before = fs::metadata(world.path("a")).unwrap();
    let mut changes = world.written("call", "a", "new\n");
    commit(&mut changes);
    assert_eq!(mode(&world.path("a")), 0o640, "a written file keeps its mode");
    assert_eq!(fs::metadata(world.path("a")).unwrap().uid(), before.uid());
    undo(&mut changes);
    let after = fs::metadata(world.path("a")).unwrap();
    assert_eq!((after.ino(), after.mtime_nsec(), after.mode()), (before.ino(), before.mtime_nsec(), before.mode()));
}

#[test]
fn a_chosen_part_takes_its_new_folders_along() {
    let world = World::new();
    let mut changes = everything(&world).seal().unwrap();
    let some = |paths: &[&str]| -> Vec<String> { paths.iter().map(|path| (*path).to_owned()).collect() };
    let turned = changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["new/deeper/file"]))).unwrap();
    let turned: Vec<String> = turned.into_iter().map(|change| change.path).collect();
    assert_eq!(turned, ["new", "new/deeper", "new/deeper/file"]);
    assert!(world.path("gone/a").exists());
    match changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["gone/a"]))) {
        Err(ChangesError::NotAUnit { unit, .. }) => assert_eq!(unit, ["gone", "gone/a", "gone/deep", "gone/deep/b"]),
        other => panic!("{other:?}"),
    }
    match changes.turn(ChangeDirection::Undo, Selection::Some(&some(&["new"]))) {
        Err(ChangesError::NotAUnit { unit, .. }) => assert_eq!(unit, ["new", "new/deeper", "new/deeper/file"]),
        other => panic!("{other:?}"),
    }
    match changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["src/replacd"]))) {
        Err(ChangesError::UnknownPath { nearest, .. }) => assert_eq!(nearest[0], "src/replaced"),
        other => panic!("{other:?}"),
    }
    let again = changes.turn(ChangeDirection::Commit, Selection::Some(&some(&["new"])));
    assert!(matches!(again, Err(ChangesError::WrongState { state: FileChangeState::Committed, .. })));
    changes.turn(ChangeDirection::Undo, Selection::Some(&some(&["new/deeper/file"]))).unwrap();
    assert!(world.path("new/deeper").exists() && !world.path("new/deeper/file").exists());
    commit(&mut changes);
    assert!(!world.path("gone").exists() && world.path("new/deeper/file").exists());
}

#[test]
fn whatever_somebody_else_did_is_a_conflict() {
    let world = World::new();
    let draft = everything(&world);
    let mut changes = draft.seal().unwrap();
    let cases: [(&str, &dyn Fn()); 7] = [
        ("src/replaced", &|| world.file("src/replaced", "odd\n")),
        ("src/replaced", &|| {
            world.file("other", "x");
            fs::rename(world.path("other"), world.path("src/replaced")).unwrap();
        }),
        ("src/deleted", &|| fs::remove_file(world.path("src/deleted")).unwrap()),
        ("new", &|| fs::create_dir(world.path("new")).unwrap()),
        ("mode", &|| set_mode(&world.path("mode"), 0o600)),
        ("gone", &|| world.file("gone/deep/c", "new beneath")),
        ("link", &|| symlink("x", world.path("link")).unwrap()),
    ];
    let mut all = std::collections::BTreeSet::new();
    for (path, act) in cases {
        act();
        all.insert(path.to_owned());
        let before = world.picture();
        let found = conflict(changes.turn(ChangeDirection::Commit, Selection::All));
        assert_eq!(found, all.iter().cloned().collect::<Vec<_>>());
        assert_eq!(conflict(changes.preview_turn(ChangeDirection::Commit, Selection::All)), found);
        assert_eq!(world.picture(), before, "nothing is touched");
    }
}

#[test]
fn an_undo_refuses_what_was_edited_since() {
    let world = World::new();
    world.file("a", "old\n");
    let mut draft = world.draft("call");
    draft.write(&world.place("a"), b"new\n", Expected::Anything).unwrap();
    draft.write(&world.place("folder/b"), b"b\n", Expected::Anything).unwrap();
    let mut changes = draft.seal().unwrap();
    commit(&mut changes);
    world.file("a", "now\n");
    world.file("folder/theirs", "t\n");
    assert_eq!(conflict(changes.turn(ChangeDirection::Undo, Selection::All)), ["a", "folder/theirs"]);
    assert_eq!(world.read("a"), "now\n");
    fs::remove_file(world.path("folder/theirs")).unwrap();
    let paths = ["folder".to_owned(), "folder/b".to_owned()];
    changes.turn(ChangeDirection::Undo, Selection::Some(&paths)).unwrap();
    assert!(!world.path("folder").exists());
}

#[test]
fn the_preview_of_an_undo_shows_its_own_side() {
    let world = World::new();
    world.file("a", "one\n");
    let mut draft = world.draft("call");
    draft.write(&world.place("a"), b"two\n", Expected::Anything).unwrap();
    draft.write(&world.place("b"), b"b\n", Expected::Anything).unwrap();
    let mut changes = draft.seal().unwrap();
    commit(&mut changes);
    let back = changes.preview_turn(ChangeDirection::Undo, Selection::All).unwrap();
    assert_eq!(back[0].diff.as_deref(), Some("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-two\n+one\n"));
    assert_eq!(back[1].kind, FileChangeKind::Deleted);
    assert_eq!((back[1].added, back[1].removed), (0, 1));
}

#[test]
fn discarded_is_gone_and_undone_is_not() {
    let world = World::new();
    world.file("a", "old\n");
    let mut draft = world.draft("call");
    draft.write(&world.place("a"), b"new\n", Expected::Anything).unwrap();
    draft.write(&world.place("b"), b"b\n", Expected::Anything).unwrap();
    let mut changes = draft.seal().unwrap();
    changes.turn(ChangeDirection::Commit, Selection::Some(&["a".to_owned()])).unwrap();
    undo(&mut changes);
    changes.discard().unwrap();
    let states: Vec<FileChangeState> = changes.list().into_iter().map(|change| change.state).collect();
    assert_eq!(states, [FileChangeState::Undone, FileChangeState::Discarded]);
    commit(&mut changes);
    assert_eq!(world.read("a"), "new\n");
    assert!(!world.path("b").exists());
    let named = changes.turn(ChangeDirection::Commit, Selection::Some(&["b".to_owned()]));
    assert!(matches!(named, Err(ChangesError::WrongState { state: FileChangeState::Discarded, .. })));
}

#[test]
fn expectations_are_checked_while_planning() {
    let world = World::new();
    world.file("a", "old\n");
    let stamp = world.root.open_file(&world.place("a")).unwrap().meta.stamp;
    let mut draft = world.draft("call");
    let exists = draft.write(&world.place("a"), b"x", Expected::Nothing);
    assert!(matches!(exists, Err(ChangesError::AlreadyExists { .. })));
    let written = draft.write(&world.place("a"), b"new", Expected::Exactly(stamp)).unwrap();
    assert_eq!(written, PlannedWrite { created: false, previous_size: Some(4) });
    world.file("a", "odd\n");
    let stale = world.draft("second").write(&world.place("a"), b"new", Expected::Exactly(stamp));
    assert!(matches!(stale, Err(ChangesError::Stale { .. })));
    assert!(!world.dir("second").exists(), "a dropped draft leaves nothing");
    let same = world.written("same", "a", "odd\n");
    assert!(same.list().is_empty(), "the same content is no change");
}

#[test]
fn the_last_word_about_a_path_wins() {
    let world = World::new();
    world.file("a", "a\n");
    world.file("folder/x", "x\n");
    let mut draft = world.draft("call");
    let place = |name: &str| world.place(name);
    draft.write(&place("a"), b"one\n", Expected::Anything).unwrap();
    draft.write(&place("a"), b"two\n", Expected::Anything).unwrap();
    draft.write(&place("b"), b"b\n", Expected::Anything).unwrap();
    draft.delete(&place("b"), false).unwrap();
    draft.delete(&place("folder"), true).unwrap();
    let beneath = draft.write(&place("folder/y"), b"y\n", Expected::Anything);
    assert!(matches!(beneath, Err(ChangesError::AlreadyPlanned { .. })));
    draft.write(&place("folder"), b"a file now\n", Expected::Nothing).unwrap();
    draft.make_dirs(&place("made")).unwrap();
    draft.write(&place("made/z"), b"z\n", Expected::Anything).unwrap();
    assert!(matches!(draft.delete(&place("made"), false), Err(ChangesError::NotEmpty { .. })));
    draft.delete(&place("made"), true).unwrap();
    assert!(matches!(draft.delete(&place("made"), true), Err(ChangesError::Path(PathError::NotFound { .. }))));
    let before = world.picture();
    let mut changes = draft.seal().unwrap();
    commit(&mut changes);
    assert_eq!(world.read("a"), "two\n");
    assert_eq!(world.read("folder"), "a file now\n");
    assert!(!world.path("b").exists() && !world.path("made").exists());
    undo(&mut changes);
    assert_eq!(world.picture(), before);
}

#[test]
fn what_must_not_go_does_not_go() {
    let world = World::new();
    world.file("folder/deep/.env", "secret");
    world.file("target", "t\n");
    symlink("target", world.path("link")).unwrap();
    let mut draft = world.draft("call");
    assert!(matches!(draft.delete(&world.place("."), true), Err(ChangesError::RootItself)));
    assert!(matches!(draft.delete(&world.place("folder"), false), Err(ChangesError::NotEmpty { .. })));
    let secret = draft.delete(&world.place("folder"), true);
    assert!(matches!(secret, Err(ChangesError::Path(PathError::Sensitive { .. }))));
    let write = draft.write(&world.place("folder/.ENV"), b"x", Expected::Anything);
    assert!(matches!(write, Err(ChangesError::Path(PathError::Sensitive { .. }))));
    draft.delete(&world.place("link"), true).unwrap();
    commit(&mut draft.seal().unwrap());
    assert!(world.path("target").exists() && fs::symlink_metadata(world.path("link")).is_err());
}

#[test]
fn writing_through_a_link_changes_its_target() {
    let world = World::new();
    world.file("real/file", "old\n");
    symlink("real", world.path("by-folder")).unwrap();
    symlink("nowhere", world.path("dangling")).unwrap();
    symlink("/", world.path("out")).unwrap();
    let mut draft = world.draft("call");
    draft.write(&world.place("by-folder/file"), b"new\n", Expected::Anything).unwrap();
    let dangling = draft.write(&world.place("dangling"), b"x", Expected::Anything);
    assert!(matches!(dangling, Err(ChangesError::Path(PathError::NotFound { .. }))));
    let outside = draft.write(&world.place("out/tmp/x"), b"x", Expected::Anything);
    assert!(matches!(outside, Err(ChangesError::Path(PathError::Outside { .. }))));
    let mut changes = draft.seal().unwrap();
    assert_eq!(changes.list()[0].path, "real/file");
    // A link put in the way afterwards is never followed.
    fs::rename(world.path("real"), world.path("moved")).unwrap();
    symlink("moved", world.path("real")).unwrap();
    assert_eq!(conflict(changes.turn(ChangeDirection::Commit, Selection::All)), ["real/file"]);
    assert_eq!(world.read("moved/file"), "old\n");
}

#[test]
fn odd_names_are_kept_and_can_be_chosen() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let odd = std::ffi::OsStr::from_bytes(b"in\xffvalid");
    for place in [world.place("new\nline"), world.place("100%41"), world.place(".").join(odd)] {
        fs::write(world.root.path().join(place.as_path()), "old\n").unwrap();
    }
    let before = world.picture();
    let mut draft = world.draft("call");
    draft.write(&world.place("new\nline"), b"new\n", Expected::Anything).unwrap();
    draft.write(&world.place("100%41"), b"new\n", Expected::Anything).unwrap();
    draft.delete(&world.place(".").join(odd), false).unwrap();
    draft.seal().unwrap();
    let mut changes = Changes::open(&world.dir("call")).unwrap();
    let paths: Vec<String> = changes.list().into_iter().map(|change| change.path).collect();
    assert_eq!(paths, ["100%2541", "in%FFvalid", "new%0Aline"]);
    for path in paths {
        changes.turn(ChangeDirection::Commit, Selection::Some(&[path])).unwrap();
    }
    assert_eq!(world.read("new\nline"), "new\n");
    undo(&mut changes);
    assert_eq!(world.picture(), before);
}

#[test]
fn a_tree_deeper_than_any_path_goes_and_comes_back() {
    let world = World::in_memory();
    let deep = 6000;
    world.deep("d", deep);
    let mut draft = world.draft("call");
    assert_eq!(draft.delete(&world.place("d"), true).unwrap().len(), deep);
    let mut changes = draft.seal().unwrap();
    commit(&mut changes);
    assert!(!world.path("d").exists());
    undo(&mut changes);
    assert!(world.path("d/d/d").exists());
    // Committed again, so that removing the changes also removes what no temporary folder could clean up.
    commit(&mut changes);
    remove(&world.dir("call")).unwrap();
}

#[test]
fn ten_thousand_files_go_at_once() {
    let world = World::in_memory();
    for number in 0..10_000 {
        world.file(&format!("many/{}/{number}", number % 20), "x\n");
    }
    let mut draft = world.draft("call");
    assert_eq!(draft.delete(&world.place("many"), true).unwrap().len(), 10_021);
    let mut changes = draft.seal().unwrap();
    assert_eq!(changes.list().len(), 10_021);
    commit(&mut changes);
    assert!(!world.path("many").exists());
    undo(&mut changes);
    assert_eq!(fs::read_dir(world.path("many/7")).unwrap().count(), 500);
    let stop = Arc::new(AtomicBool::new(true));
    let stopped = world.draft("stopped").stop_when(stop).delete(&world.place("many"), true);
    assert!(matches!(stopped, Err(ChangesError::Stopped)));
}

#[test]
fn long_diffs_are_shown_on_demand() {
    let world = World::new();
    let long = "a line that is repeated often enough\n".repeat(4000);
    world.file("long", &long);
    world.file("gone/long", &long);
    world.file("binary", "b\0\n");
    let mut draft = world.draft("call");
    draft.write(&world.place("long"), b"short\n", Expected::Anything).unwrap();
    draft.write(&world.place("binary"), b"c\0\n", Expected::Anything).unwrap();
    draft.delete(&world.place("gone"), true).unwrap();
    let mut changes = draft.seal().unwrap();
    let list = changes.list();
    assert!(list[0].binary && list[0].diff.is_none());
    assert!(list.iter().filter(|change| change.path.ends_with("long")).all(|change| change.diff.is_none()));
    assert_eq!((list[3].added, list[3].removed), (1, 4000));
    for _ in 0..2 {
        let diff = changes.diff("long").unwrap().unwrap();
        assert!(diff.ends_with("+short\n") && diff.lines().count() == 4004, "{}", diff.lines().count());
        let diff = changes.diff("gone/long").unwrap().unwrap();
        assert!(diff.starts_with("--- a/gone/long\n+++ /dev/null\n"));
        assert!(matches!(changes.diff("lon"), Err(ChangesError::UnknownPath { .. })));
        if changes.list()[0].state == FileChangeState::Staged {
            commit(&mut changes);
        }
    }
}

#[test]
fn what_runs_by_itself_is_flagged() {
    let world = World::new();
    let mut draft = world.draft("call");
    draft.write(&world.place(".git/hooks/pre-commit"), b"#!/bin/sh\n", Expected::Anything).unwrap();
    draft.write(&world.place("tool"), b"x", Expected::Anything).unwrap();
    draft.set_mode(&world.place("tool"), 0o4755).unwrap();
    draft.link(&world.place("inside/link"), Path::new("../tool")).unwrap();
    draft.link(&world.place("inside/out"), Path::new("../../etc")).unwrap();
    let changes = draft.seal().unwrap();
    let flags = |path: &str| changes.list().into_iter().find(|change| change.path == path).unwrap().flags;
    assert_eq!(flags(".git/hooks/pre-commit"), [ChangeFlag::GitHook]);
    assert_eq!(flags("tool"), [ChangeFlag::SetUid]);
    assert_eq!(flags("inside/link"), []);
    assert_eq!(flags("inside/out"), [ChangeFlag::LinkOutside]);
}

#[test]
fn one_turn_at_a_time() {
    let world = World::new();
    let changes = world.written("call", "a", "a\n");
    let meta = fs::metadata(world.root.path()).unwrap();
    fs::create_dir_all(world.data.join("locks")).unwrap();
    let lock = fs::File::create(world.data.join(format!("locks/{}-{}", meta.dev(), meta.ino()))).unwrap();
    lock.lock().unwrap();
    let mut changes = changes.waiting(Duration::from_millis(5));
    assert!(matches!(changes.turn(ChangeDirection::Commit, Selection::All), Err(ChangesError::Busy)));
    assert!(changes.turn_at_once(ChangeDirection::Commit, Selection::All).unwrap().is_none(), "it would wait");
    drop(lock);
    commit(&mut changes);
}

#[test]
fn only_what_is_small_is_turned_at_once() {
    let world = World::new();
    let mut small = world.written("small", "a", "a\n");
    let turned = small.turn_at_once(ChangeDirection::Commit, Selection::All).unwrap().unwrap();
    assert_eq!((turned.len(), turned[0].state, world.read("a")), (1, FileChangeState::Committed, "a\n".to_owned()));
    let mut large = world.written("large", "b", &"b".repeat(1 << 17));
    assert!(large.turn_at_once(ChangeDirection::Commit, Selection::All).unwrap().is_none());
    let mut draft = world.draft("many");
    for name in ["c", "d", "e", "f", "g"] {
        draft.write(&world.place(name), b"x", Expected::Nothing).unwrap();
    }
    let mut many = draft.seal().unwrap();
    assert!(many.turn_at_once(ChangeDirection::Commit, Selection::All).unwrap().is_none());
    let mut draft = world.draft("disk").surviving(CommitDurability::Disk);
    draft.write(&world.place("h"), b"x", Expected::Nothing).unwrap();
    let mut flushed = draft.seal().unwrap();
    assert!(flushed.turn_at_once(ChangeDirection::Commit, Selection::All).unwrap().is_none(), "it waits for the disk");
    assert!(!world.path("h").exists());
}

#[test]
fn what_was_read_is_replaced_and_nothing_else() {
    let world = World::new();
    world.file("a", "old\n");
    let open = world.root.open_file(&world.place("a")).unwrap();
    let mut same = world.draft("same");
    same.replace(&open, b"old\n", b"old\n").unwrap();
    assert!(same.seal().unwrap().is_empty(), "the same content is no change");
    let mut draft = world.draft("call");
    draft.replace(&open, b"old\n", b"new\n").unwrap();
    let twice = draft.replace(&open, b"old\n", b"newer\n");
    assert!(matches!(twice, Err(ChangesError::AlreadyPlanned { .. })), "it was read before the first plan");
    let mut changes = draft.seal().unwrap();
    assert_eq!((changes.list()[0].added, changes.list()[0].removed), (1, 1));
    commit(&mut changes);
    assert_eq!(world.read("a"), "new\n");
    // Once another file lies there, or other bytes, what was read is stale.
    let replaced = world.draft("replaced").replace(&open, b"old\n", b"x");
    assert!(matches!(replaced, Err(ChangesError::Stale { .. })));
    let open = world.root.open_file(&world.place("a")).unwrap();
    world.file("a", "odd\n");
    let stale = world.draft("stale").replace(&open, b"new\n", b"x");
    assert!(matches!(stale, Err(ChangesError::Stale { .. })));
}

#[test]
fn another_folder_at_the_same_path_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    let dir = home.path().join("changes/call");
    let root = Arc::new(Root::open(&workspace, &[]).unwrap());
    let mut draft = Draft::new(&root, &dir).unwrap().surviving(CommitDurability::Disk);
    draft.write(&root.place("a").unwrap(), b"a", Expected::Anything).unwrap();
    let mut at_hand = draft.seal().unwrap();
    let moved = home.path().join("moved");
    fs::rename(&workspace, &moved).unwrap();
    let refused = at_hand.turn(ChangeDirection::Commit, Selection::All);
    assert!(matches!(refused, Err(ChangesError::OtherWorkspace)), "there is none");
    fs::create_dir(&workspace).unwrap();
    let mut changes = Changes::open(&dir).unwrap();
    assert_eq!(changes.root_path(), workspace);
    for changes in [&mut changes, &mut at_hand] {
        let refused = changes.turn(ChangeDirection::Commit, Selection::All);
        assert!(matches!(refused, Err(ChangesError::OtherWorkspace)));
        assert!(matches!(
            changes.preview_turn(ChangeDirection::Commit, Selection::All),
            Err(ChangesError::OtherWorkspace)
        ));
    }
    // A link at the path leads to the same folder.
    fs::remove_dir(&workspace).unwrap();
    symlink(&moved, &workspace).unwrap();
    commit(&mut at_hand);
    assert_eq!(fs::read_to_string(moved.join("a")).unwrap(), "a");
}

#[test]
fn a_folder_that_cannot_be_written_leaves_everything_as_it_was() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    world.file("open/a", "a\n");
    world.file("shut/b", "b\n");
    let mut draft = world.draft("call");
    draft.write(&world.place("open/a"), b"new\n", Expected::Anything).unwrap();
    draft.write(&world.place("shut/b"), b"new\n", Expected::Anything).unwrap();
    let mut changes = draft.seal().unwrap();
    set_mode(&world.path("shut"), 0o555);
    let before = world.picture();
    let denied = changes.turn(ChangeDirection::Commit, Selection::All);
    assert!(matches!(denied, Err(ChangesError::Path(PathError::Denied { .. }))), "{denied:?}");
    assert_eq!(world.picture(), before);
    set_mode(&world.path("shut"), 0o755);
    commit(&mut changes);
    assert_eq!(world.read("shut/b"), "new\n");
}
