//! Copying files and folders: what was there when it was planned, whole or not at all.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use haft_sandbox::changes::{
    ChangeDirection, ChangeFlag, Changes, ChangesError, ChangesProgress, CommitDurability, Draft, Expected,
    FileChangeKind, Folders, PlannedCopy, Selection,
};
use haft_sandbox::{PathError, Root};
use support::{Mounted, World, commit, conflict, kinds, mode, set_mode, two_filesystems, undo};

fn copied(world: &World, from: &str, to: &str) -> (PlannedCopy, Changes) {
    let mut draft = world.draft(&format!("{from}-{to}").replace('/', "."));
    let copied = draft.copy(&world.place(from), &world.place(to), Folders::Whole, Expected::Nothing).unwrap();
    (copied, draft.seal().unwrap())
}

/// A folder with something of everything that can be copied.
fn fill(world: &World) {
    world.file("d/deep/text", "text\n");
    world.file("d/script", "#!/bin/sh\n");
    set_mode(&world.path("d/script"), 0o755);
    fs::create_dir(world.path("d/empty")).unwrap();
    set_mode(&world.path("d/empty"), 0o700);
    symlink("deep/text", world.path("d/link")).unwrap();
    symlink("..", world.path("d/loop")).unwrap();
    fs::write(world.path("d").join("new\nline"), "n\n").unwrap();
    fs::write(world.path("d").join(OsStr::from_bytes(b"in\xffvalid")), "i\n").unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(world.path("d/deep/text")).unwrap().set_modified(old).unwrap();
    fs::File::open(world.path("d/deep")).unwrap().set_modified(old).unwrap();
}

#[test]
fn a_folder_is_one_unit_with_everything_in_it() {
    let mut places = vec![World::new()];
    if let Some((temp, shared)) = two_filesystems() {
        places.extend([World::across(&temp, &shared), World::across(&shared, &temp)]);
    }
    for world in places {
        fill(&world);
        let before = world.picture();
        let (copied, mut changes) = copied(&world, "d", "e");
        assert_eq!((copied.files, world.picture() == before), (6, true), "planning touches nothing");
        let list = changes.list();
        let expected = [
            ("e", FileChangeKind::Created),
            ("e/deep", FileChangeKind::Created),
            ("e/deep/text", FileChangeKind::Created),
            ("e/empty", FileChangeKind::Created),
            ("e/in%FFvalid", FileChangeKind::Created),
            ("e/link", FileChangeKind::Link),
            ("e/loop", FileChangeKind::Link),
            ("e/new%0Aline", FileChangeKind::Created),
            ("e/script", FileChangeKind::Created),
        ];
        let mut found = kinds(&list);
        found.sort_unstable_by_key(|(path, _)| *path);
        assert_eq!(found, expected);
        assert!(list.iter().find(|change| change.path == "e/script").unwrap().executable);
        assert_eq!(
            changes.diff("e/script").unwrap().unwrap(),
            "--- /dev/null\n+++ b/e/script\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
        );
        for _ in 0..2 {
            commit(&mut changes);
            let after = world.picture();
            for (path, seen) in before.iter().filter(|(path, _)| path.starts_with("d")) {
                let twin = std::path::Path::new("e").join(path.strip_prefix("d").unwrap());
                assert_eq!(after.get(&twin), Some(seen), "{path:?}");
                let time = |path| fs::symlink_metadata(world.root.path().join(path)).unwrap().modified().unwrap();
                assert_eq!(time(path.clone()), time(twin), "{path:?}");
            }
            undo(&mut changes);
            assert_eq!(world.picture(), before);
        }
    }
}

#[test]
fn a_fifo_is_copied_deleted_and_taken_back_on_every_filesystem() {
    let mut places = vec![World::new()];
    if let Some((temp, shared)) = two_filesystems() {
        places.extend([World::across(&temp, &shared), World::across(&shared, &temp)]);
    }
    for world in places {
        fs::create_dir(world.path("d")).unwrap();
        let fifo = world.path("d/fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        set_mode(&fifo, 0o622);
        // Nobody may open it: that would wait for a writer.
        let facts = || fs::symlink_metadata(&fifo).map(|seen| (seen.mode(), seen.modified().unwrap())).ok();
        let before = facts();
        let (_, mut changes) = copied(&world, "d", "e");
        let mut draft = world.draft("delete");
        draft.delete(&world.place("d"), true).unwrap();
        let mut deletion = draft.seal().unwrap();
        for _ in 0..2 {
            commit(&mut changes);
            commit(&mut deletion);
            assert!(facts().is_none() && world.path("e/fifo").symlink_metadata().is_ok());
            undo(&mut deletion);
            undo(&mut changes);
            assert!(facts() == before && !world.path("e").exists());
        }
    }
}

#[test]
fn a_part_of_a_copied_folder_cannot_be_chosen() {
    let world = World::new();
    fill(&world);
    let (_, mut changes) = copied(&world, "d", "e");
    let some = changes.turn(ChangeDirection::Commit, Selection::Some(&["e/script".to_owned()]));
    assert!(matches!(some, Err(ChangesError::NotAUnit { .. })), "{some:?}");
    changes.turn(ChangeDirection::Commit, Selection::Some(&["e".to_owned(), "e/script".to_owned()])).unwrap();
    assert!(world.path("e/script").exists());
}

#[test]
fn a_file_shows_its_diff_and_keeps_what_it_replaces() {
    let world = World::new();
    world.file("a", "new\n");
    world.file("b", "old\n");
    set_mode(&world.path("a"), 0o6755);
    set_mode(&world.path("b"), 0o600);
    let before = world.picture();
    let mut draft = world.draft("call");
    let refused = draft.copy(&world.place("a"), &world.place("b"), Folders::Refuse, Expected::Nothing);
    assert!(matches!(refused, Err(ChangesError::AlreadyExists { .. })));
    draft.copy(&world.place("a"), &world.place("b"), Folders::Refuse, Expected::Anything).unwrap();
    draft.copy(&world.place("a"), &world.place("c"), Folders::Refuse, Expected::Nothing).unwrap();
    let mut changes = draft.seal().unwrap();
    let list = changes.list();
    assert_eq!(kinds(&list), [("b", FileChangeKind::Changed), ("c", FileChangeKind::Created)]);
    assert_eq!(list[0].diff.as_deref(), Some("--- a/b\n+++ b/b\n@@ -1 +1 @@\n-old\n+new\n"));
    assert!(list.iter().all(|change| change.flags.is_empty()), "{list:?}");
    // What was there when it was planned is what comes, whatever happens to the original.
    world.file("a", "edited since\n");
    commit(&mut changes);
    assert_eq!((world.read("b"), mode(&world.path("b"))), ("new\n".to_owned(), 0o755), "a copy runs as nobody else");
    undo(&mut changes);
    assert_eq!(world.picture().get(std::path::Path::new("b")), before.get(std::path::Path::new("b")));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let world = World::new();
    world.file("a", "a\n");
    world.file("d/x", "x\n");
    world.file("e/y", "y\n");
    let _socket = std::os::unix::net::UnixListener::bind(world.path("e/socket")).unwrap();
    let mut draft = world.draft("call");
    let mut copy = |from: &str, to: &str, folders| {
        draft.copy(&world.place(from), &world.place(to), folders, Expected::Anything).unwrap_err()
    };
    assert!(matches!(copy("d", "f", Folders::Refuse), ChangesError::Path(PathError::IsDirectory { .. })));
    assert!(matches!(copy("d", "d/f", Folders::Whole), ChangesError::IntoItself { .. }));
    assert!(matches!(copy("a", "a", Folders::Whole), ChangesError::SameEntry { .. }));
    assert!(matches!(copy("d", "e", Folders::Whole), ChangesError::FolderInTheWay { .. }));
    assert!(matches!(copy(".", "f", Folders::Whole), ChangesError::RootItself));
    let socket = copy("e", "f", Folders::Whole);
    assert!(
        matches!(&socket, ChangesError::Path(PathError::NotRegular { path, .. }) if path == "e/socket"),
        "{socket}"
    );
    assert_eq!(fs::read_dir(world.dir("call")).unwrap().count(), 0, "nothing half copied stays");
}

#[test]
fn a_harmless_name_of_a_secret_is_not_copied() {
    let world = World::new();
    world.file(".env", "secret\n");
    world.file("d/x", "x\n");
    fs::hard_link(world.path(".env"), world.path("d/harmless")).unwrap();
    fs::hard_link(world.path("d/x"), world.path("d/y")).unwrap();
    let mut draft = world.draft("call");
    for from in ["d", "d/harmless"] {
        let refused = draft.copy(&world.place(from), &world.place("e"), Folders::Whole, Expected::Nothing);
        assert!(matches!(refused, Err(ChangesError::Path(PathError::Sensitive { .. }))), "{from}: {refused:?}");
    }
    draft.copy(&world.place("d/y"), &world.place("e"), Folders::Whole, Expected::Nothing).unwrap();
}

#[test]
fn what_comes_to_life_by_a_copy_is_flagged() {
    let world = World::new();
    world.file("kit/hooks/pre-commit", "#!/bin/sh\n");
    symlink("../../x", world.path("kit/up")).unwrap();
    let (_, changes) = copied(&world, "kit", ".git");
    let flags = |path: &str| changes.list().into_iter().find(|change| change.path == path).unwrap().flags;
    assert_eq!(flags(".git/hooks/pre-commit"), [ChangeFlag::GitHook]);
    assert_eq!(flags(".git/up"), [ChangeFlag::GitConfigCommand, ChangeFlag::LinkOutside]);
}

#[test]
fn an_undo_takes_back_only_what_is_still_as_it_came() {
    let world = World::new();
    fill(&world);
    let (_, mut changes) = copied(&world, "d", "e");
    commit(&mut changes);
    // A later call that was undone is no change.
    let mut edit = world.written("edit", "e/deep/text", "edited\n");
    commit(&mut edit);
    assert_eq!(conflict(changes.turn(ChangeDirection::Undo, Selection::All)), ["e"]);
    undo(&mut edit);
    undo(&mut changes);
    commit(&mut changes);
    world.file("e/deep/theirs", "t\n");
    assert_eq!(conflict(changes.turn(ChangeDirection::Undo, Selection::All)), ["e"]);
    assert!(world.path("e/deep/theirs").exists());
    fs::remove_file(world.path("e/deep/theirs")).unwrap();
    undo(&mut changes);
    world.file("e", "somebody's\n");
    assert_eq!(conflict(changes.turn(ChangeDirection::Commit, Selection::All)), ["e"]);
}

#[test]
fn a_tree_deeper_than_any_path_is_copied() {
    let world = World::in_memory();
    world.deep("d", 6000);
    let (_, mut changes) = copied(&world, "d", "e");
    commit(&mut changes);
    assert!(world.path("e/d/d").exists());
    undo(&mut changes);
    assert!(!world.path("e").exists());
    world.remove_deep("d");
    haft_sandbox::changes::remove(&world.dir("d-e")).unwrap();
}

#[test]
fn ten_thousand_files_tell_how_far_they_are_and_stop_when_they_must() {
    let world = World::in_memory();
    for number in 0..10_000 {
        world.file(&format!("many/{}/{number}", number % 20), "x\n");
    }
    let told: Arc<Mutex<Vec<ChangesProgress>>> = Arc::default();
    let stop = Arc::new(AtomicBool::new(false));
    let (heard, halt) = (Arc::clone(&told), Arc::clone(&stop));
    let mut draft = world.draft("call").stop_when(Arc::clone(&stop)).telling(move |progress| {
        heard.lock().unwrap().push(progress);
        halt.store(true, Ordering::Relaxed);
    });
    // Again and again until it lasts long enough to be told of.
    let stopped = (0..).find_map(|number| {
        let copied =
            draft.copy(&world.place("many"), &world.place(&format!("e{number}")), Folders::Whole, Expected::Nothing);
        copied.err()
    });
    assert!(matches!(stopped, Some(ChangesError::Stopped)), "{stopped:?}");
    let progress = told.lock().unwrap()[0];
    assert!(progress.paths >= 64 && progress.bytes > 0, "{progress:?}");
    drop(draft);
    assert!(!world.dir("call").exists(), "a stopped copy leaves nothing behind");
}

#[test]
fn a_full_disk_leaves_nothing_half_done() {
    let home = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::tmpfs(&home.path().join("data"), "size=2m") else { return };
    let workspace = home.path().join("workspace");
    fs::create_dir_all(workspace.join("d")).unwrap();
    for number in 0..6 {
        fs::write(workspace.join(format!("d/{number}")), vec![b'x'; 600 << 10]).unwrap();
    }
    let root = Arc::new(Root::open(&workspace, &[]).unwrap());
    let dir = home.path().join("data/changes/call");
    let before = support::picture(&workspace);
    let mut draft = Draft::new(&root, &dir).unwrap();
    let full = draft.copy(&root.place("d").unwrap(), &root.place("e").unwrap(), Folders::Whole, Expected::Nothing);
    match full {
        Err(ChangesError::Path(PathError::Full { path })) => assert!(path.starts_with("d/"), "{path}"),
        other => panic!("{other:?}"),
    }
    // What fits still fits, and what does not fit beside it fails as a whole.
    draft.copy(&root.place("d/1").unwrap(), &root.place("one").unwrap(), Folders::Whole, Expected::Nothing).unwrap();
    drop(draft);
    assert!(!dir.exists());
    assert_eq!(support::picture(&workspace), before);
}

#[test]
fn a_full_workspace_takes_nothing_of_a_commit() {
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("workspace");
    let Some(_mounted) = Mounted::tmpfs(&workspace, "size=2m") else { return };
    fs::create_dir(workspace.join("d")).unwrap();
    for number in 0..2 {
        fs::write(workspace.join(format!("d/{number}")), vec![b'x'; 600 << 10]).unwrap();
    }
    let root = Arc::new(Root::open(&workspace, &[]).unwrap());
    let mut draft = Draft::new(&root, &home.path().join("data/changes/call")).unwrap();
    draft.copy(&root.place("d").unwrap(), &root.place("e").unwrap(), Folders::Whole, Expected::Nothing).unwrap();
    let mut changes = draft.seal().unwrap();
    let before = support::picture(&workspace);
    let full = changes.turn(ChangeDirection::Commit, Selection::All);
    assert!(matches!(full, Err(ChangesError::Path(PathError::Full { .. }))), "{full:?}");
    assert_eq!(support::picture(&workspace), before);
    fs::remove_file(workspace.join("d/1")).unwrap();
    commit(&mut changes);
    assert!(workspace.join("e/1").exists());
}

#[test]
fn a_file_that_is_written_meanwhile_is_never_torn() {
    let world = World::new();
    let page = |number: u8| vec![number; 4 << 20];
    fs::write(world.path("busy"), page(0)).unwrap();
    let done = AtomicBool::new(false);
    let (mut whole, mut unsteady) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = fs::OpenOptions::new().write(true).open(world.path("busy")).unwrap();
            for number in (0_u8..=255).cycle() {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                std::os::unix::fs::FileExt::write_all_at(&file, &page(number), 0).unwrap();
            }
        });
        for round in 0..60 {
            let mut draft = world.draft(&format!("round{round}"));
            match draft.copy(&world.place("busy"), &world.place("twin"), Folders::Refuse, Expected::Nothing) {
                Ok(_) => {
                    commit(&mut draft.seal().unwrap());
                    // No stamp shows how far a single write has come; pieces of several writes it does show.
                    let twin = fs::read(world.path("twin")).unwrap();
                    let turns = twin.windows(2).filter(|pair| pair[0] != pair[1]).count();
                    assert!(turns <= 1, "a torn copy: {turns} seams");
                    fs::remove_file(world.path("twin")).unwrap();
                    whole += 1;
                }
                Err(ChangesError::Unsteady { path }) => {
                    assert_eq!(path, "busy");
                    unsteady += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{whole} whole, {unsteady} refused");
    assert!(unsteady > 0, "nothing was ever written meanwhile");
}

#[test]
fn a_copy_can_survive_a_power_cut_too() {
    let world = World::new();
    fill(&world);
    let mut draft = world.draft("call").surviving(CommitDurability::Disk);
    draft.copy(&world.place("d"), &world.place("e"), Folders::Whole, Expected::Nothing).unwrap();
    commit(&mut draft.seal().unwrap());
    assert_eq!(world.read("e/deep/text"), "text\n");
    assert_eq!(fs::metadata(world.path("e/empty")).unwrap().permissions().mode() & 0o777, 0o700);
}
