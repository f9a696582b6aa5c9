//! Moving files and folders: one rename, undone by the reverse one.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use haft_sandbox::PathError;
use haft_sandbox::changes::{
    ChangeDirection, ChangeFlag, Changes, ChangesError, CommitDurability, Expected, FileChange, FileChangeKind,
    FileChangeState, Folders, Selection,
};
use support::{Mounted, World, commit, conflict, kinds, set_mode, two_filesystems, undo};

fn moved(world: &World, from: &str, to: &str) -> Changes {
    let mut draft = world.draft(&format!("{from}-{to}").replace('/', "."));
    draft.rename(&world.place(from), &world.place(to), Expected::Nothing).unwrap();
    draft.seal().unwrap()
}

#[test]
fn a_file_a_link_and_a_folder_go_and_come_back() {
    let world = World::new();
    world.file("a", "a\n");
    set_mode(&world.path("a"), 0o750);
    world.file("d/deep/x", "x\n");
    fs::create_dir(world.path("d/empty")).unwrap();
    symlink("a", world.path("link")).unwrap();
    world.file("to/keep", "k\n");
    let before = world.picture();
    let mut draft = world.draft("call");
    for (from, to) in [("a", "to/b"), ("d", "to/e"), ("link", "to/link")] {
        draft.rename(&world.place(from), &world.place(to), Expected::Nothing).unwrap();
    }
    let mut changes = draft.seal().unwrap();
    assert_eq!(world.picture(), before, "planning touches nothing");
    let listed: Vec<(String, FileChangeKind, Option<String>)> =
        changes.list().into_iter().map(|change| (change.path, change.kind, change.from)).collect();
    let renamed = |path: &str, from: &str| (path.to_owned(), FileChangeKind::Renamed, Some(from.to_owned()));
    assert_eq!(listed, [renamed("to/b", "a"), renamed("to/e", "d"), renamed("to/link", "link")]);
    let (ino, mtime) =
        (fs::metadata(world.path("a")).unwrap().ino(), fs::metadata(world.path("d")).unwrap().mtime_nsec());
    for _ in 0..3 {
        commit(&mut changes);
        assert_eq!(fs::metadata(world.path("to/b")).unwrap().ino(), ino);
        assert_eq!(world.read("to/e/deep/x"), "x\n");
        assert!(!world.path("a").exists() && !world.path("d").exists() && !world.path("link").is_symlink());
        assert_eq!(fs::read_link(world.path("to/link")).unwrap().to_str(), Some("a"));
        undo(&mut Changes::open(&world.dir("call")).unwrap());
        assert_eq!(world.picture(), before);
        assert_eq!(fs::metadata(world.path("d")).unwrap().mtime_nsec(), mtime);
        changes = Changes::open(&world.dir("call")).unwrap();
    }
}

#[test]
fn an_undo_is_shown_from_its_own_side() {
    let world = World::new();
    world.file("a", "new\n");
    world.file("b", "old one\n");
    let mut draft = world.draft("call");
    let replaced = draft.rename(&world.place("a"), &world.place("b"), Expected::Anything).unwrap();
    assert_eq!(replaced, Some(8));
    let mut changes = draft.seal().unwrap();
    let there = &changes.list()[0];
    assert_eq!((there.kind, there.replaces, there.added, there.removed), (FileChangeKind::Renamed, Some(8), 1, 1));
    assert!(there.diff.as_deref().unwrap().ends_with("-old one\n+new\n"));
    commit(&mut changes);
    let back = changes.preview_turn(ChangeDirection::Undo, Selection::All).unwrap();
    assert_eq!(kinds(&back), [("a", FileChangeKind::Renamed), ("b", FileChangeKind::Created)]);
    assert_eq!((back[0].from.as_deref(), back[1].size), (Some("b"), 8));
}

#[test]
fn what_makes_room_is_kept_and_comes_back() {
    let mut places = vec![World::new()];
    if let Some((temp, shared)) = two_filesystems() {
        places.extend([World::across(&temp, &shared), World::across(&shared, &temp)]);
    }
    for world in places {
        world.file("a", "new\n");
        world.file("b", "old\n");
        set_mode(&world.path("b"), 0o640);
        world.file("full/x", "x\n");
        fs::create_dir(world.path("empty")).unwrap();
        symlink("nowhere", world.path("link")).unwrap();
        world.file("c", "over a link\n");
        let mtime = fs::metadata(world.path("b")).unwrap().mtime_nsec();
        let before = world.picture();
        let mut draft = world.draft("call");
        for (from, to) in [("a", "b"), ("full", "empty"), ("c", "link")] {
            draft.rename(&world.place(from), &world.place(to), Expected::Anything).unwrap();
        }
        let mut changes = draft.seal().unwrap();
        for _ in 0..2 {
            commit(&mut changes);
            assert_eq!((world.read("b"), world.read("empty/x")), ("new\n".to_owned(), "x\n".to_owned()));
            assert_eq!(world.read("link"), "over a link\n");
            assert!(["a", "full", "c"].iter().all(|name| !world.path(name).exists()));
            assert_eq!(world.picture().len(), 4, "nothing else is left in the workspace");
            undo(&mut changes);
            assert_eq!(world.picture(), before);
            assert_eq!(fs::metadata(world.path("b")).unwrap().mtime_nsec(), mtime);
        }
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let world = World::new();
    world.file("a", "a\n");
    world.file("d/x", "x\n");
    world.file("e/y", "y\n");
    fs::hard_link(world.path("a"), world.path("same")).unwrap();
    symlink("d", world.path("to-d")).unwrap();
    symlink("..", world.path("out")).unwrap();
    let mut draft = world.draft("call");
    let mut rename =
        |from: &str, to: &str| draft.rename(&world.place(from), &world.place(to), Expected::Anything).unwrap_err();
    assert!(matches!(rename(".", "x"), ChangesError::RootItself));
    assert!(matches!(rename("a", "."), ChangesError::RootItself));
    assert!(matches!(rename("d", "d/x/y"), ChangesError::IntoItself { .. }));
    assert!(matches!(rename("d", "to-d/in"), ChangesError::IntoItself { .. }));
    assert!(matches!(rename("a", "a"), ChangesError::SameEntry { .. }));
    assert!(matches!(rename("a", "same"), ChangesError::SameEntry { .. }));
    assert!(matches!(rename("d", "e"), ChangesError::FolderInTheWay { .. }));
    assert!(matches!(rename("d/x", "d"), ChangesError::Path(PathError::IsDirectory { .. })));
    assert!(matches!(rename("d", "a"), ChangesError::Path(PathError::NotDirectory { .. })));
    assert!(matches!(rename("a", "no/where"), ChangesError::Path(PathError::NotFound { .. })));
    assert!(matches!(rename("nothing", "b"), ChangesError::Path(PathError::NotFound { .. })));
    assert!(matches!(rename("a", "out/b"), ChangesError::Path(PathError::Outside { .. })));
    let exists = world.draft("other").rename(&world.place("a"), &world.place("d/x"), Expected::Nothing);
    assert!(matches!(exists, Err(ChangesError::AlreadyExists { .. })));
    drop(draft);
    assert!(!world.dir("call").exists() && !world.dir("other").exists());
}

#[test]
fn secrets_do_not_move() {
    let world = World::new();
    world.file("plain", "p\n");
    world.file(".env", "secret\n");
    world.file("d/deep/id_rsa", "secret\n");
    world.file("sub/.env", "secret\n");
    world.file("other/keep", "k\n");
    fs::hard_link(world.path("sub/.env"), world.path("sub/harmless")).unwrap();
    let mut draft = world.draft("call");
    for (from, to) in [(".env", "x"), ("plain", ".ENV.local"), ("d", "e"), ("sub/harmless", "other/x"), ("sub", "e")] {
        let refused = draft.rename(&world.place(from), &world.place(to), Expected::Nothing);
        assert!(matches!(refused, Err(ChangesError::Path(PathError::Sensitive { .. }))), "{from} {refused:?}");
        let refused = draft.copy(&world.place(from), &world.place(to), Folders::Whole, Expected::Nothing);
        assert!(matches!(refused, Err(ChangesError::Path(PathError::Sensitive { .. }))), "{from} {refused:?}");
    }
    assert!(draft.seal().unwrap().list().is_empty());
}

#[test]
fn whatever_happened_to_either_end_is_a_conflict() {
    let world = World::new();
    for name in ["edited", "replaced", "removed", "taken", "mode"] {
        world.file(name, "old\n");
    }
    world.file("room", "r\n");
    world.file("for-room", "f\n");
    let mut draft = world.draft("call");
    for name in ["edited", "replaced", "removed", "taken", "mode"] {
        draft.rename(&world.place(name), &world.place(&format!("to-{name}")), Expected::Nothing).unwrap();
    }
    draft.rename(&world.place("for-room"), &world.place("room"), Expected::Anything).unwrap();
    let mut changes = draft.seal().unwrap();
    world.file("edited", "new\n");
    fs::rename(world.path("replaced"), world.path("aside")).unwrap();
    world.file("replaced", "another\n");
    fs::remove_file(world.path("removed")).unwrap();
    world.file("to-taken", "theirs\n");
    set_mode(&world.path("mode"), 0o600);
    world.file("room", "edited\n");
    let before = world.picture();
    let found = conflict(changes.turn(ChangeDirection::Commit, Selection::All));
    assert_eq!(found, ["room", "edited", "mode", "removed", "replaced", "to-taken"]);
    assert_eq!(world.picture(), before, "nothing is touched");
}

#[test]
fn an_undo_refuses_an_end_that_was_taken_and_carries_a_folder_s_news_along() {
    let world = World::new();
    world.file("a", "a\n");
    world.file("d/x", "x\n");
    let mut file = moved(&world, "a", "b");
    let mut folder = moved(&world, "d", "e");
    commit(&mut file);
    commit(&mut folder);
    world.file("a", "somebody's\n");
    world.file("e/new", "written since\n");
    assert_eq!(conflict(file.turn(ChangeDirection::Undo, Selection::All)), ["a"]);
    assert_eq!((world.read("a"), world.read("b")), ("somebody's\n".to_owned(), "a\n".to_owned()));
    undo(&mut folder);
    assert_eq!((world.read("d/x"), world.read("d/new")), ("x\n".to_owned(), "written since\n".to_owned()));
}

#[test]
fn a_move_is_chosen_by_either_end_and_goes_alone() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.file(name, "text\n");
    }
    let mut draft = world.draft("call");
    for name in ["a", "b", "c"] {
        draft.rename(&world.place(name), &world.place(&format!("{name}2")), Expected::Nothing).unwrap();
    }
    let mut changes = draft.seal().unwrap();
    let some =
        |changes: &mut Changes, path: &str, direction| changes.turn(direction, Selection::Some(&[path.to_owned()]));
    some(&mut changes, "a2", ChangeDirection::Commit).unwrap();
    some(&mut changes, "b", ChangeDirection::Commit).unwrap();
    assert!(world.path("a2").exists() && world.path("b2").exists() && world.path("c").exists());
    some(&mut changes, "a", ChangeDirection::Undo).unwrap();
    let states: Vec<FileChangeState> = changes.list().into_iter().map(|change| change.state).collect();
    assert_eq!(states, [FileChangeState::Undone, FileChangeState::Committed, FileChangeState::Staged]);
    changes.discard().unwrap();
    assert!(world.path("a").exists() && world.path("b2").exists() && world.path("c").exists());
}

#[test]
fn both_ends_of_a_move_belong_to_it_alone() {
    let world = World::new();
    world.file("d/a", "a\n");
    world.file("x", "x\n");
    let place = |name: &str| world.place(name);
    let mut draft = world.draft("call");
    draft.make_dirs(&place("new/deep")).unwrap();
    draft.rename(&place("d"), &place("new/deep/e"), Expected::Nothing).unwrap();
    let planned = |refused: Result<(), ChangesError>| {
        assert!(matches!(refused, Err(ChangesError::AlreadyPlanned { .. })), "{refused:?}");
    };
    planned(draft.write(&place("d/a"), b"w", Expected::Anything).map(|_| ()));
    planned(draft.write(&place("new/deep/e/b"), b"w", Expected::Anything).map(|_| ()));
    planned(draft.delete(&place("d"), true).map(|_| ()));
    planned(draft.delete(&place("new"), true).map(|_| ()));
    planned(draft.delete(&place("new/deep/e"), true).map(|_| ()));
    planned(draft.rename(&place("d"), &place("f"), Expected::Nothing).map(|_| ()));
    planned(draft.rename(&place("x"), &place("d/x"), Expected::Nothing).map(|_| ()));
    planned(draft.copy(&place("d/a"), &place("f"), Folders::Whole, Expected::Nothing).map(|_| ()));
    let before = world.picture();
    let mut changes = draft.seal().unwrap();
    commit(&mut changes);
    assert_eq!(world.read("new/deep/e/a"), "a\n");
    undo(&mut changes);
    assert_eq!(world.picture(), before);
}

#[test]
fn what_becomes_live_by_a_move_is_flagged() {
    let world = World::new();
    world.file("kit/hooks/pre-commit", "#!/bin/sh\n");
    world.file("kit/notes/x", "x\n");
    world.file("kit/config", "[core]\n\tsshCommand = evil\n");
    fs::create_dir(world.path("deep")).unwrap();
    world.file("deep/er/file", "f\n");
    symlink("../../file", world.path("deep/er/link")).unwrap();
    let hook = moved(&world, "kit", ".git");
    let flagged: Vec<(String, Vec<ChangeFlag>)> = hook
        .list()
        .into_iter()
        .filter(|change| !change.flags.is_empty())
        .map(|change| (change.path, change.flags))
        .collect();
    let expected = [
        (".git/config", ChangeFlag::GitConfigCommand),
        (".git/hooks", ChangeFlag::InsideGit),
        (".git/hooks/pre-commit", ChangeFlag::GitHook),
        (".git/notes", ChangeFlag::InsideGit),
        (".git/notes/x", ChangeFlag::InsideGit),
    ];
    assert_eq!(flagged, expected.map(|(path, flag)| (path.to_owned(), vec![flag])));
    let list = moved(&world, "deep/er", "er").list();
    let shown: Vec<(&str, &[ChangeFlag])> =
        list.iter().map(|change| (change.path.as_str(), change.flags.as_slice())).collect();
    assert_eq!(shown, [("er", &[][..]), ("er/link", &[ChangeFlag::LinkOutside])], "only what is flagged is listed");
    assert_eq!(list[1].from.as_deref(), Some("deep/er/link"));
}

#[test]
fn ten_thousand_files_move_by_one_rename() {
    let world = World::in_memory();
    for number in 0..10_000 {
        world.file(&format!("many/{}/{number}", number % 20), "x\n");
    }
    let mut draft = world.draft("call");
    draft.rename(&world.place("many"), &world.place("moved"), Expected::Nothing).unwrap();
    let mut changes = draft.seal().unwrap();
    assert_eq!(changes.list().len(), 1);
    assert_eq!(fs::read_dir(world.dir("call")).unwrap().count(), 1, "there is a plan and nothing else");
    let plan = fs::metadata(world.dir("call").join("log.jsonl")).unwrap().len();
    assert!(plan < 2000, "the plan has {plan} bytes");
    commit(&mut changes);
    assert_eq!(fs::read_dir(world.path("moved/7")).unwrap().count(), 500);
    undo(&mut changes);
    assert!(world.path("many/7").exists() && !world.path("moved").exists());
}

#[test]
fn a_tree_deeper_than_any_path_moves() {
    let world = World::in_memory();
    world.deep("d", 6000);
    let mut changes = moved(&world, "d", "e");
    commit(&mut changes);
    assert!(world.path("e/d/d").exists() && !world.path("d").exists());
    undo(&mut changes);
    world.remove_deep("d");
}

#[test]
fn another_mount_inside_the_workspace_gets_a_copy_and_a_deletion_that_go_together() {
    let world = World::new();
    let Some(_mounted) = Mounted::tmpfs(&world.path("mnt"), "size=8m") else { return };
    world.file("d/deep/x", "x\n");
    set_mode(&world.path("d/deep/x"), 0o4750);
    fs::create_dir(world.path("d/empty")).unwrap();
    symlink("x", world.path("d/deep/link")).unwrap();
    world.file("mnt/back", "b\n");
    let mtime = fs::metadata(world.path("d/deep/x")).unwrap().mtime_nsec();
    let before = world.picture();
    let mut draft = world.draft("call").surviving(CommitDurability::Disk);
    draft.rename(&world.place("d"), &world.place("mnt/d"), Expected::Nothing).unwrap();
    draft.rename(&world.place("mnt/back"), &world.place("back"), Expected::Nothing).unwrap();
    let mount_point = world.draft("mount").rename(&world.place("mnt"), &world.place("elsewhere"), Expected::Nothing);
    assert!(matches!(mount_point, Err(ChangesError::Path(PathError::NotRegular { what: "a mount point", .. }))));
    let mut changes = draft.seal().unwrap();
    let paths = |list: &[FileChange]| -> Vec<String> { list.iter().map(|change| change.path.clone()).collect() };
    for _ in 0..2 {
        let turned = changes.turn(ChangeDirection::Commit, Selection::Some(&["mnt/d".to_owned()])).unwrap();
        assert!(paths(&turned).contains(&"d".to_owned()), "the deletion goes with the copy");
        assert!(!world.path("d").exists() && world.path("mnt/d/empty").is_dir());
        let meta = fs::metadata(world.path("mnt/d/deep/x")).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.mtime_nsec()), (0o4750, mtime), "a move keeps everything");
        assert!(world.path("mnt/back").exists());
        commit(&mut changes);
        assert_eq!(world.read("back"), "b\n");
        undo(&mut changes);
        assert_eq!(world.picture(), before);
        assert_eq!(fs::metadata(world.path("d/deep/x")).unwrap().mtime_nsec(), mtime);
    }
    world.file("d/deep/x", "edited\n");
    assert_eq!(conflict(changes.turn(ChangeDirection::Commit, Selection::Some(&["d".to_owned()]))), ["d"]);
}

/// Says so in the end, also when a check has failed.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Ends the other thread, also when an assertion fails.
struct Finish<'a>(&'a AtomicBool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Somebody keeps replacing the file that is moved, as editors do: what they wrote is moved or stays, never lost.
#[test]
fn no_edit_is_lost_by_a_move() {
    let world = World::new();
    world.file("a", "0");
    let done = AtomicBool::new(false);
    let (mut moves, mut conflicts) = (0, 0);
    std::thread::scope(|scope| {
        let _done = Done(&done);
        scope.spawn(|| {
            for number in 1.. {
                if done.load(Ordering::SeqCst) {
                    return;
                }
                fs::write(world.data.join("editing"), number.to_string()).unwrap();
                fs::rename(world.data.join("editing"), world.path("a")).unwrap();
                for _ in 0..(number % 7) * 40 {
                    std::thread::yield_now();
                }
            }
        });
        let _finish = Finish(&done);
        for round in 0..200 {
            let seen: usize = world.read("a").parse().unwrap();
            let mut draft = world.draft(&format!("round{round}"));
            draft.rename(&world.place("a"), &world.place("b"), Expected::Nothing).unwrap();
            match draft.seal().unwrap().turn(ChangeDirection::Commit, Selection::All) {
                Ok(_) => {
                    moves += 1;
                    let moved: usize = world.read("b").parse().unwrap();
                    assert!(moved >= seen, "{moved} was moved, but {seen} was newer");
                    // Nothing but a later edit may have taken its place.
                    while !world.path("a").exists() {
                        std::thread::yield_now();
                    }
                    assert!(world.read("a").parse::<usize>().unwrap() > moved);
                    fs::remove_file(world.path("b")).unwrap();
                }
                Err(ChangesError::Conflict { .. }) => {
                    conflicts += 1;
                    assert!(!world.path("b").exists(), "half a move");
                    assert!(world.read("a").parse::<usize>().unwrap() >= seen);
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    println!("{moves} moves, {conflicts} conflicts");
    assert_eq!(moves + conflicts, 200);
}
