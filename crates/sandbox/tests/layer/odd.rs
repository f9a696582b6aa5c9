//! Odd names, odd kinds, closed folders, deep and wide trees.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use haft_sandbox::PathError;
use haft_sandbox::changes::{ChangeDirection, Changes, ChangesError, FileChangeKind, PathOrigin, Selection, remove};

use crate::overlay::{Run, now, on_a_copy, over, seen_in, sort};
use crate::support::{World, commit, kinds, mode, picture, set_mode, undo};

#[test]
fn what_no_commit_can_bring_is_left_out_and_said() {
    let world = World::new();
    world.file("was a file", "x\n");
    let script = "mkfifo pipe; mkdir new; mkfifo new/pipe; echo x > new/file; rm 'was a file'; mkfifo 'was a file'; \
                  python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"new/sock\")'; chmod 711 .";
    let (mut changes, taken) = Run::new(&world, "special", script).take();
    let expected = [
        (".", "the permissions of the workspace folder itself"),
        ("new/pipe", "a FIFO"),
        ("new/sock", "a socket"),
        ("pipe", "a FIFO"),
        ("was a file", "a FIFO"),
    ];
    assert_eq!(taken.left_out, expected.map(|(path, why)| (path.to_owned(), why)));
    assert_eq!(kinds(&changes.list()), [("new", FileChangeKind::Created), ("new/file", FileChangeKind::Created)]);
    commit(&mut changes);
    assert_eq!(world.picture().len(), 3);
    assert_eq!(world.read("was a file"), "x\n");
}

#[test]
fn hard_links_are_told_of_or_kept() {
    let world = World::new();
    world.file("one", "x\n");
    fs::hard_link(world.path("one"), world.path("two")).unwrap();
    let (mut changes, taken) = Run::new(&world, "links", "echo y >> one; echo n > a; ln a b; mkdir c; ln a c/d").take();
    assert_eq!(taken.notes.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["one"]);
    commit(&mut changes);
    assert_eq!((world.read("one"), world.read("two")), ("x\ny\n".to_owned(), "x\n".to_owned()));
    assert_eq!(world.read("c/d"), "n\n");
    undo(&mut changes);
    assert_eq!(world.picture().len(), 2);
    commit(&mut changes);
    assert_eq!(world.read("b"), "n\n");
}

#[test]
fn any_name_is_taken() {
    let world = World::new();
    let odd = OsStr::from_bytes(b"inv\xffalid");
    fs::write(world.root.path().join(odd), "old\n").unwrap();
    let script = "n=$(printf 'new\\nline'); echo x > \"$n\"; mkdir \"d$n\"; echo y > \"d$n/%41\"; \
                  echo more >> \"$(printf 'inv\\377alid')\"; echo z > \"$(printf 'dnew\\nline/\\376')\"";
    let copy = on_a_copy(&world, script);
    let before = world.picture();
    let mut changes = over(&world, "names", script);
    let list = changes.list();
    let paths: Vec<&str> = list.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["dnew%0Aline", "dnew%0Aline/%2541", "dnew%0Aline/%FE", "inv%FFalid", "new%0Aline"]);
    commit(&mut changes);
    assert_eq!(world.picture(), picture(copy.path()));
    undo(&mut changes);
    assert_eq!(world.picture(), before);
}

#[test]
fn closed_folders_and_files_do_not_stop_anything() {
    let world = World::new();
    world.file("hidden", "h\n");
    let script = "mkdir -p new/closed; echo y > new/closed/y; chmod 000 new/closed; chmod 000 hidden";
    let mut changes = over(&world, "closed", script);
    let expected = [
        ("hidden", FileChangeKind::Mode),
        ("new", FileChangeKind::Created),
        ("new/closed", FileChangeKind::Created),
        ("new/closed/y", FileChangeKind::Created),
    ];
    assert_eq!(kinds(&changes.list()), expected);
    commit(&mut changes);
    assert_eq!((mode(&world.path("new/closed")), mode(&world.path("hidden"))), (0o000, 0o000));
    // Whether anything has changed in a closed folder only root can see: an ordinary user opens it first.
    if !rustix::process::geteuid().is_root() {
        let refused = changes.turn(ChangeDirection::Undo, Selection::All);
        assert!(matches!(refused, Err(ChangesError::Path(PathError::Denied { .. }))), "{refused:?}");
        set_mode(&world.path("new/closed"), 0o700);
        assert_eq!(world.read("new/closed/y"), "y\n");
        return;
    }
    undo(&mut changes);
    assert_eq!(world.picture().len(), 1);
    assert_eq!(world.read("hidden"), "h\n");
}

#[test]
fn read_only_folders_come_and_go_as_any_other() {
    let world = World::new();
    for name in ["goes/sub/a", "replaced/a", "kept/a"] {
        world.file(name, "old\n");
    }
    for name in ["goes/sub", "goes", "replaced"] {
        set_mode(&world.path(name), 0o555);
    }
    let script = "mkdir -p new/sub; echo x > new/sub/x; chmod 555 new/sub new; chmod -R u+w goes replaced; \
                  rm -r goes replaced; mkdir replaced; echo b > replaced/b; chmod 555 replaced; \
                  echo b > kept/b; chmod 555 kept";
    let before = world.picture();
    let (run, seen) = Run::listing(&world, "read-only", script);
    let (mut changes, _) = run.take();
    for _ in 0..2 {
        commit(&mut changes);
        assert_eq!(seen_in(world.root.path()), seen);
        undo(&mut changes);
        assert_eq!(world.picture(), before);
    }
    // Whoever cleans up needs to write.
    for name in ["goes/sub", "goes", "replaced"] {
        set_mode(&world.path(name), 0o755);
    }
}

#[test]
fn marks_that_are_attributes_count_as_well() {
    let world = World::new();
    world.file("gone", "x\n");
    world.file("dir/a", "x\n");
    let mut draft = world.draft("marks");
    let upper = draft.layer().unwrap().join("upper");
    let began = now();
    fs::write(upper.join("gone"), "").unwrap();
    fs::create_dir(upper.join("dir")).unwrap();
    let set = |path: &str, name: &str| {
        rustix::fs::setxattr(upper.join(path), name, b"y", rustix::fs::XattrFlags::empty()).unwrap();
    };
    set("gone", "user.overlay.whiteout");
    set("dir", "user.overlay.opaque");
    draft.take_layer(began, &|_, _| PathOrigin::Source).unwrap();
    let mut changes = draft.seal().unwrap();
    let expected =
        [("dir", FileChangeKind::Changed), ("dir/a", FileChangeKind::Deleted), ("gone", FileChangeKind::Deleted)];
    assert_eq!(kinds(&changes.list()), expected);
    commit(&mut changes);
    assert_eq!(world.picture().len(), 1);
}

#[test]
fn a_tree_deeper_than_any_path_comes_and_goes() {
    let world = World::in_memory();
    let script = r#"python3 -c '
import os
for n in range(6000):
    os.mkdir("deeper")
    os.chdir("deeper")
open("end", "w").write("x")
'"#;
    let (mut changes, _) = Run::new(&world, "deep", script).take();
    assert_eq!(changes.list().len(), 6001);
    commit(&mut changes);
    undo(&mut changes);
    assert!(!world.path("deeper").exists());
    changes.discard().unwrap();
    remove(&world.dir("deep")).unwrap();
    // Killed before it is taken, or before it is sealed, it is removed as well.
    for taken in [false, true] {
        let mut run = Run::new(&world, "deep again", script);
        if taken {
            run.draft.take_layer(run.began, &sort).unwrap();
        }
        std::mem::forget(run.draft);
        assert!(matches!(Changes::open(&world.dir("deep again")), Err(ChangesError::Gone)));
        remove(&world.dir("deep again")).unwrap();
        assert!(!world.dir("deep again").exists());
    }
}

#[test]
fn an_edit_at_the_end_of_a_deep_tree_is_one_change() {
    let world = World::in_memory();
    world.deep("deeper", 6000);
    let script = r#"python3 -c '
import os
for n in range(6000): os.chdir("deeper")
open("end", "w").write("x")
'"#;
    let run = Run::new(&world, "edit", script);
    let began = Instant::now();
    let (mut changes, _) = run.take();
    println!("6,000 folders gone through in {:?}", began.elapsed());
    assert_eq!(changes.list().len(), 1);
    commit(&mut changes);
    undo(&mut changes);
    world.remove_deep("deeper");
}

#[test]
fn many_new_files_are_one_slot() {
    let world = World::in_memory();
    world.file("wide/kept", "x\n");
    let script = r#"python3 -c '
import os
os.mkdir("many")
for n in range(20000): open(f"many/{n}", "w").write(str(n))
for n in range(500): open(f"wide/{n}", "w").write(str(n))
'"#;
    let run = Run::new(&world, "many", script);
    let began = Instant::now();
    let (mut changes, _) = run.take();
    println!("20,500 files taken in {:?}", began.elapsed());
    assert_eq!(changes.list().len(), 20_501);
    let slots = fs::read_dir(world.dir("many")).unwrap().count();
    assert_eq!(slots, 1 + 1 + 500, "the plan, the new folder, and each file of the old one");
    commit(&mut changes);
    assert_eq!(world.read("many/19999"), "19999");
    undo(&mut changes);
    assert_eq!(world.picture().len(), 2);
}
