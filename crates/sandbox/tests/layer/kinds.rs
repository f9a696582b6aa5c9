//! Every kind of change ends as the same script on a plain copy does.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_sandbox::changes::{
    ChangeDirection, ChangeFlag, Changes, ChangesError, FileChangeKind, PathOrigin, Selection, remove,
};

use crate::overlay::{Run, on_a_copy, over, seen_in};
use crate::support::{Picture, World, commit, kinds, mode, picture, set_mode, two_filesystems, undo};

/// A workspace with something of everything.
fn furnished() -> World {
    furnish(World::new())
}

fn furnish(world: World) -> World {
    set_mode(world.root.path(), 0o755);
    for name in ["edited", "deleted", "mode", "becomes folder", "same", "becomes link", "src/kept", "src/edited"] {
        world.file(name, &format!("this is {name}\n"));
        set_mode(&world.path(name), 0o644);
    }
    for name in ["gone/a", "gone/deep/b", "replaced/old", "replaced/both", "becomes file/a", "folder mode/a"] {
        world.file(name, &format!("this is {name}\n"));
    }
    symlink("edited", world.path("link")).unwrap();
    world
}

const EVERYTHING: &str = r#"
    echo more >> edited
    echo other > src/edited
    touch -d @1700000000.123456789 src/edited
    rm deleted
    rm -r gone
    chmod 755 mode
    chmod 700 'folder mode'
    rm -r replaced; mkdir replaced; echo new > replaced/new; echo new > replaced/both
    rm 'becomes folder'; mkdir 'becomes folder'; echo in > 'becomes folder/in'
    rm -r 'becomes file'; echo flat > 'becomes file'
    ln -sfn src/kept link
    rm 'becomes link'; ln -s src 'becomes link'
    mkdir -p new/deeper
    echo fresh > new/deeper/file
    : > new/empty
    printf 'a\0b' > new/binary
    chmod 600 new/binary
    mkdir 'nothing in it'
    cat same > copy; cat copy > same; rm copy
    touch -r src/kept same
"#;

#[test]
fn every_kind_is_as_on_a_plain_copy_and_can_be_undone_and_redone() {
    try_everything(&furnished());
}

#[test]
fn every_kind_goes_to_another_filesystem() {
    if let Some((temp, shared)) = two_filesystems() {
        try_everything(&furnish(World::across(&temp, &shared)));
        try_everything(&furnish(World::across(&shared, &temp)));
    }
}

fn try_everything(world: &World) {
    // The time of what is not changed in content is not brought along.
    fs::File::open(world.path("same"))
        .unwrap()
        .set_modified(fs::metadata(world.path("src/kept")).unwrap().modified().unwrap())
        .unwrap();
    let (before, seen_before) = (world.picture(), seen_in(world.root.path()));
    let copy = on_a_copy(world, EVERYTHING);
    let (run, seen) = Run::listing(world, "all", EVERYTHING);
    let (mut changes, taken) = run.take();
    assert_eq!((taken.left_out, taken.notes), (vec![], vec![]));
    assert_eq!(seen_in(world.root.path()), seen_before, "nothing is touched before the commit");
    let expected = [
        ("becomes file", FileChangeKind::Changed),
        ("becomes file/a", FileChangeKind::Deleted),
        ("becomes folder", FileChangeKind::Changed),
        ("becomes folder/in", FileChangeKind::Created),
        ("becomes link", FileChangeKind::Link),
        ("deleted", FileChangeKind::Deleted),
        ("edited", FileChangeKind::Changed),
        ("folder mode", FileChangeKind::Mode),
        ("gone", FileChangeKind::Deleted),
        ("gone/a", FileChangeKind::Deleted),
        ("gone/deep", FileChangeKind::Deleted),
        ("gone/deep/b", FileChangeKind::Deleted),
        ("link", FileChangeKind::Link),
        ("mode", FileChangeKind::Mode),
        ("new", FileChangeKind::Created),
        ("new/binary", FileChangeKind::Created),
        ("new/deeper", FileChangeKind::Created),
        ("new/deeper/file", FileChangeKind::Created),
        ("new/empty", FileChangeKind::Created),
        ("nothing in it", FileChangeKind::Created),
        ("replaced", FileChangeKind::Changed),
        ("replaced/both", FileChangeKind::Changed),
        ("replaced/old", FileChangeKind::Deleted),
        ("replaced/new", FileChangeKind::Created),
        ("src/edited", FileChangeKind::Changed),
    ];
    assert_eq!(kinds(&changes.list()), expected);
    let list = changes.list();
    let of = |path: &str| list.iter().find(|change| change.path == path).unwrap();
    assert_eq!(of("edited").diff.as_deref().unwrap().lines().last(), Some("+more"));
    assert_eq!((of("edited").added, of("edited").removed), (1, 0));
    assert!(of("new/binary").binary && of("mode").executable && of("new").directory);
    assert_eq!(changes.diff("replaced/both").unwrap().unwrap().matches("\n-this").count(), 1);
    assert_eq!(changes.diff("replaced/old").unwrap().unwrap().matches("\n+").count(), 1, "only the header");
    commit(&mut changes);
    assert_eq!(seen_in(world.root.path()), seen, "times and all");
    assert_eq!(world.picture(), picture(copy.path()));
    there_and_back(world, "all", (&before, &picture(copy.path())));
    assert_eq!(seen_in(world.root.path()), seen);
}

fn there_and_back(world: &World, call: &str, (before, after): (&Picture, &Picture)) {
    for _ in 0..2 {
        undo(&mut Changes::open(&world.dir(call)).unwrap());
        assert_eq!(world.picture(), *before);
        commit(&mut Changes::open(&world.dir(call)).unwrap());
        assert_eq!(world.picture(), *after);
    }
}

#[test]
fn what_was_only_touched_or_looked_at_is_no_change() {
    let world = furnished();
    let script = "touch edited src/kept; cat gone/deep/b; : >> deleted; mkdir x; rmdir x; chmod 644 mode; \
                  cp src/kept y; rm y; touch gone/deep; ln -sfn edited link";
    let changes = over(&world, "touched", script);
    assert_eq!(kinds(&changes.list()), []);
    assert!(
        matches!(Changes::open(&world.dir("touched")).unwrap().turn(ChangeDirection::Commit, Selection::All), Ok(list) if list.is_empty())
    );
}

#[test]
fn the_time_of_derived_files_is_a_change_and_survives() {
    let world = furnished();
    world.file("main.o", "object\n");
    world.file("target/a", "built\n");
    let (mut changes, _) = {
        let run = Run::new(
            &world,
            "built",
            "touch -d @4000000000.25 main.o; touch -d @3999999999 target/a; touch -d @1 edited",
        );
        run.take()
    };
    let list = changes.list();
    assert_eq!(kinds(&list), [("main.o", FileChangeKind::Changed), ("target/a", FileChangeKind::Changed)]);
    assert!(list.iter().all(|change| change.derived && change.diff.is_none()));
    commit(&mut changes);
    let meta = fs::metadata(world.path("main.o")).unwrap();
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (4_000_000_000, 250_000_000));
    assert_eq!(world.read("main.o"), "object\n");
}

#[test]
fn flags_are_told_from_paths_modes_links_and_content() {
    let world = furnished();
    world.file(".git/config", "[core]\n\tbare = false\n");
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    let script = r#"
        mkdir -p .git/hooks .github/workflows
        echo run > .git/hooks/pre-commit
        printf '[core]\n\tbare = false\n\tsshCommand = evil\n' > .git/config
        echo on > .github/workflows/ci.yml
        ln -s /etc outside
        ln -s src inside
        echo x > tool; chmod 4755 tool
        echo '*' > .gitignore
        echo x > haft.toml
        mkdir two; ln -s .. two/up; ln -s up/../.. two/over; ln -s ../src two/src
        mkdir sub; ln -s ../../.. sub/out; echo secret > sub/.env
    "#;
    let changes = over(&world, "flags", script);
    let list = changes.list();
    let flags = |path: &str| list.iter().find(|change| change.path == path).unwrap().flags.clone();
    assert_eq!(flags(".git/hooks/pre-commit"), [ChangeFlag::GitHook]);
    assert_eq!(flags(".git/config"), [ChangeFlag::GitConfigCommand]);
    assert_eq!(flags(".github/workflows/ci.yml"), [ChangeFlag::RunsByItself]);
    assert_eq!(flags("outside"), [ChangeFlag::LinkOutside]);
    assert_eq!(flags("inside"), []);
    assert_eq!(flags("tool"), [ChangeFlag::SetUid]);
    assert_eq!(flags(".gitignore"), [ChangeFlag::IgnoreRules]);
    assert_eq!(flags("haft.toml"), [ChangeFlag::HaftFiles]);
    assert_eq!(flags("sub/out"), [ChangeFlag::LinkOutside]);
    assert_eq!(flags("sub/.env"), [ChangeFlag::SensitiveName]);
    assert_eq!(flags("two/over"), [ChangeFlag::LinkOutside], "the first link leads inside, the second over it outside");
    assert_eq!((flags("two/up"), flags("two/src")), (vec![], vec![]));
    let plain = over(&world, "plain", "printf '[core]\\n\\tbare = true\\n' > .git/config");
    assert_eq!(plain.list()[0].flags, [ChangeFlag::InsideGit]);
}

#[test]
fn nothing_of_the_layer_is_left_on_what_is_committed() {
    let world = furnished();
    let script = "echo x >> edited; chmod 444 edited; rm -r replaced; mkdir replaced; mv src/kept replaced/; \
                  chmod 444 replaced/kept; mkdir new; mv src/edited new/";
    commit(&mut over(&world, "marks", script));
    for name in ["edited", "replaced", "replaced/kept", "new", "new/edited", "src"] {
        let mut list = [0; 1024];
        let length = rustix::fs::llistxattr(world.path(name), &mut list).unwrap();
        assert_eq!(String::from_utf8_lossy(&list[..length]), "", "{name}");
    }
    assert_eq!((mode(&world.path("edited")), mode(&world.path("replaced/kept"))), (0o444, 0o444));
}

#[test]
fn what_another_user_has_made_belongs_to_the_owner_of_the_workspace() {
    // Only root runs commands as somebody else; an ordinary user's files stay the user's own.
    let is_root = rustix::process::geteuid().is_root();
    let world = furnished();
    set_mode(&world.path("edited"), 0o666);
    let mine = fs::metadata(world.root.path()).unwrap();
    if is_root {
        chown(world.path("edited"), Some(4711), Some(4712)).unwrap();
    }
    let script = "echo x >> edited; mkdir -p new/more; echo y > new/more/y; ln -s y new/more/l; \
                  echo z > tool; chmod 6755 tool; for n in $(seq 70); do : > new/$n; done";
    let as_other = format!("exec setpriv --reuid 4242 --regid 4243 --clear-groups sh -euc '{script}'");
    let script = if is_root { as_other.as_str() } else { script };
    let run = Run::with(&world, "other", &[script.as_ref()], |layer| {
        if is_root {
            chown(layer.join("upper"), Some(4242), Some(4243)).unwrap();
        }
    });
    let (mut changes, _) = run.take();
    commit(&mut changes);
    for name in ["new", "new/more", "new/more/y", "new/more/l", "new/7", "tool"] {
        let meta = fs::symlink_metadata(world.path(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (mine.uid(), mine.gid()), "{name}");
    }
    assert_eq!(mode(&world.path("tool")), 0o6755);
    let edited = fs::metadata(world.path("edited")).unwrap();
    let kept = if is_root { (4711, 4712) } else { (mine.uid(), mine.gid()) };
    assert_eq!((edited.uid(), edited.gid()), kept);
}

#[test]
fn a_layer_is_like_the_workspace_folder_and_goes_with_its_draft() {
    let world = furnished();
    set_mode(world.root.path(), 0o751);
    let draft = world.draft("made");
    let layer = draft.layer().unwrap();
    assert_eq!(layer, world.dir("made").join("layer"));
    assert_eq!((mode(&layer.join("upper")), mode(&layer)), (0o751, 0o700));
    assert!(layer.join("work").is_dir());
    drop(draft);
    assert!(!world.dir("made").exists());
    // Nobody has sealed these: there is nothing to commit, and they can be removed.
    let run = Run::new(&world, "killed", "mkdir closed; echo x > closed/x; chmod 000 closed; rm -r gone");
    std::mem::forget(run);
    assert!(matches!(Changes::open(&world.dir("killed")), Err(ChangesError::Gone)));
    remove(&world.dir("killed")).unwrap();
    assert!(!world.dir("killed").exists());
}

#[test]
fn a_take_that_is_stopped_or_killed_leaves_nothing_behind() {
    let world = furnished();
    let before = world.picture();
    let closing = format!("{EVERYTHING} mkdir -p shut/up; echo x > shut/up/x; chmod 000 shut/up; chmod 555 shut");
    for (calls, killed) in [(0, false), (1, true), (3, true), (6, false), (9, true), (14, true)] {
        let stop = Arc::new(AtomicBool::new(false));
        let Run { draft, began } = Run::new(&world, "stopped", &closing);
        let mut draft = draft.stop_when(Arc::clone(&stop));
        let left: Cell<usize> = Cell::new(calls);
        let stopped = draft.take_layer(began, &|_, _| {
            stop.store(left.get() == 0, Ordering::Relaxed);
            left.set(left.get().saturating_sub(1));
            PathOrigin::Source
        });
        assert!(matches!(stopped, Err(ChangesError::Stopped)), "after {calls}: {stopped:?}");
        if killed {
            std::mem::forget(draft);
            assert!(matches!(Changes::open(&world.dir("stopped")), Err(ChangesError::Gone)));
            remove(&world.dir("stopped")).unwrap();
        } else {
            drop(draft);
        }
        assert!(!world.dir("stopped").exists(), "after {calls}");
        assert_eq!(world.picture(), before);
    }
}
