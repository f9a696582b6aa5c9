//! Sets of changes that begin in a folder which lay ready.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use haft_sandbox::changes::{Changes, Draft, Expected, Folders, SPARE, Spares, remove_spare};
use support::{World, commit, filled, mode, picture, set_mode, spares_in, undo};

impl World {
    fn changes(&self) -> PathBuf {
        self.data.join("changes")
    }

    fn ready_draft(&self, call: &str, spares: &Spares) -> Draft {
        Draft::from_spare(&self.root, &self.dir(call), spares).unwrap()
    }

    /// Everything that lies beside the sets.
    fn names(&self) -> Vec<String> {
        fs::read_dir(self.changes()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Tells one folder or file from another.
fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

/// The names in a set, with modes and all content but the course's, which has times in it.
fn layout(dir: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let is_course = |path: &Path| path.ends_with("course.jsonl");
    let told = |(path, (mode, content)): (PathBuf, (u32, Vec<u8>))| match is_course(&path) {
        true => (path, mode, content.iter().filter(|byte| **byte == b'\n').copied().collect()),
        false => (path, mode, content),
    };
    let folder = (PathBuf::new(), fs::metadata(dir).unwrap().mode(), Vec::new());
    std::iter::once(folder).chain(picture(dir).into_iter().map(told)).collect()
}

#[test]
fn a_set_from_a_spare_is_like_any_other() {
    let world = World::new();
    let spares = filled(&world);
    let ready: BTreeSet<u64> = spares_in(&world.changes()).iter().map(|path| inode(path)).collect();
    let mut sets = Vec::new();
    for (call, name, mut draft) in
        [("ordinary", "a", world.draft("ordinary")), ("ready", "b", world.ready_draft("ready", &spares))]
    {
        world.file(name, "old\n");
        draft.write(&world.place(name), b"new\n", Expected::Anything).unwrap();
        sets.push((call, name, draft.seal().unwrap()));
    }
    assert!(ready.contains(&inode(&world.dir("ready"))), "it was a spare");
    assert_eq!(layout(&world.dir("ready")), layout(&world.dir("ordinary")));
    for (_, name, changes) in &mut sets {
        commit(changes);
        assert_eq!(world.read(name), "new\n");
    }
    assert_eq!(layout(&world.dir("ready")), layout(&world.dir("ordinary")));
    for (call, name, _) in &sets {
        undo(&mut Changes::open(&world.dir(call)).unwrap());
        assert_eq!(world.read(name), "old\n");
        commit(&mut Changes::open(&world.dir(call)).unwrap());
        assert_eq!(world.read(name), "new\n");
    }
    assert_eq!(layout(&world.dir("ready")), layout(&world.dir("ordinary")));
}

type Step = fn(&World, &mut Draft);

/// One way to begin a draft each; only the first uses what lies ready.
const STEPS: &[(&str, Step)] = &[
    ("write", |world, draft| {
        draft.write(&world.place("new"), b"new\n", Expected::Nothing).unwrap();
    }),
    ("empty", |world, draft| {
        draft.write(&world.place("file"), b"", Expected::Anything).unwrap();
    }),
    ("same", |world, draft| {
        draft.write(&world.place("file"), b"file\n", Expected::Anything).unwrap();
    }),
    ("deep", |world, draft| {
        draft.write(&world.place("x/y/z"), b"z\n", Expected::Nothing).unwrap();
    }),
    ("folder", |world, draft| assert!(draft.make_dirs(&world.place("x/y")).unwrap())),
    ("mode", |world, draft| assert!(draft.set_mode(&world.place("file"), 0o600).unwrap())),
    ("link", |world, draft| draft.link(&world.place("link"), Path::new("file")).unwrap()),
    ("delete", |world, draft| drop(draft.delete(&world.place("file"), false).unwrap())),
    ("move", |world, draft| {
        draft.rename(&world.place("file"), &world.place("to"), Expected::Nothing).unwrap();
    }),
    ("copy", |world, draft| {
        draft.copy(&world.place("file"), &world.place("to"), Folders::Refuse, Expected::Nothing).unwrap();
    }),
    ("twice", |world, draft| {
        draft.write(&world.place("new"), b"first\n", Expected::Nothing).unwrap();
        draft.write(&world.place("new"), b"second\n", Expected::Anything).unwrap();
    }),
    ("forgotten", |world, draft| {
        draft.write(&world.place("new"), b"new\n", Expected::Nothing).unwrap();
        draft.delete(&world.place("new"), false).unwrap();
    }),
    ("refused", |world, draft| {
        draft.write(&world.place("file/beneath"), b"new\n", Expected::Nothing).unwrap_err();
    }),
    ("nothing", |_, _| {}),
];

#[test]
fn whatever_comes_first_nothing_is_left_in_the_first_slot() {
    for (what, step) in STEPS {
        let worlds = [World::in_memory(), World::in_memory()];
        let spares = filled(&worlds[1]);
        let drafts = [worlds[0].draft("call"), worlds[1].ready_draft("call", &spares)];
        let ended: Vec<_> = worlds.iter().zip(drafts).map(|(world, draft)| end(world, draft, *step)).collect();
        assert_eq!(ended[0], ended[1], "{what}");
    }
}

/// What there is after a step was planned, committed and undone.
fn end(world: &World, mut draft: Draft, step: Step) -> [Vec<(PathBuf, u32, Vec<u8>)>; 6] {
    world.file("file", "file\n");
    step(world, &mut draft);
    let mut changes = draft.seal().unwrap();
    let dir = world.dir("call");
    let look = || [layout(&dir), layout(world.root.path())];
    let [staged, before] = look();
    commit(&mut changes);
    let [committed, after] = look();
    undo(&mut changes);
    let [undone, back] = look();
    [staged, before, committed, after, undone, back]
}

#[test]
fn a_file_is_as_old_as_its_write() {
    let world = World::new();
    let spares = filled(&world);
    let then = SystemTime::now() - Duration::from_secs(24 * 3600);
    for spare in spares_in(&world.changes()) {
        fs::File::options().write(true).open(spare.join("slot-1")).unwrap().set_modified(then).unwrap();
    }
    for (name, content) in [("empty", ""), ("filled", "filled\n")] {
        let mut draft = world.ready_draft(name, &spares);
        draft.write(&world.place(name), content.as_bytes(), Expected::Nothing).unwrap();
        commit(&mut draft.seal().unwrap());
        let age = fs::metadata(world.path(name)).unwrap().modified().unwrap().elapsed().unwrap_or_default();
        assert!(age < Duration::from_secs(12 * 3600), "{name}: {age:?}");
        assert_eq!(world.read(name), content);
    }
}

#[test]
fn a_written_file_keeps_its_mode() {
    let world = World::new();
    let spares = filled(&world);
    for bits in [0o600, 0o755, 0o640, 0o4711] {
        let name = format!("{bits:o}");
        world.file(&name, "old\n");
        set_mode(&world.path(&name), bits);
        let mut draft = world.ready_draft(&name, &spares);
        draft.write(&world.place(&name), b"new\n", Expected::Anything).unwrap();
        commit(&mut draft.seal().unwrap());
        assert_eq!((mode(&world.path(&name)), world.read(&name).as_str()), (bits, "new\n"));
    }
}

#[test]
fn dropped_without_being_sealed_it_leaves_nothing() {
    let world = World::new();
    let spares = filled(&world);
    drop(world.ready_draft("untouched", &spares));
    let mut draft = world.ready_draft("written", &spares);
    draft.write(&world.place("a"), b"a\n", Expected::Anything).unwrap();
    drop(draft);
    assert!(world.names().iter().all(|name| name.starts_with(SPARE)), "{:?}", world.names());
}

#[test]
fn a_spare_that_was_taken_away_is_not_missed() {
    let world = World::new();
    let ways: [fn(&Path); 4] = [
        |spare| remove_spare(spare).unwrap(),
        |spare| fs::remove_dir_all(spare).unwrap(),
        |spare| fs::remove_file(spare.join("slot-1")).unwrap(),
        |spare| fs::remove_file(spare.join("course.jsonl")).unwrap(),
    ];
    for (number, take_away) in ways.iter().enumerate() {
        let spares = filled(&world);
        spares_in(&world.changes()).iter().for_each(|spare| take_away(spare));
        let call = format!("call{number}");
        let mut draft = world.ready_draft(&call, &spares);
        draft.write(&world.place("a"), call.as_bytes(), Expected::Anything).unwrap();
        commit(&mut draft.seal().unwrap());
        assert_eq!(world.read("a"), call);
        undo(&mut Changes::open(&world.dir(&call)).unwrap());
    }
    // Everything may go, and what is under way goes on.
    let spares = filled(&world);
    fs::remove_dir_all(world.changes()).unwrap();
    drop(world.ready_draft("anew", &spares));
    drop(spares);
    assert!(world.names().is_empty(), "{:?}", world.names());
}

#[test]
fn a_name_that_is_taken_is_refused_as_ever() {
    let world = World::new();
    let spares = filled(&world);
    drop(world.written("call", "a", "a\n"));
    let before = layout(&world.dir("call"));
    assert!(Draft::from_spare(&world.root, &world.dir("call"), &spares).is_err());
    assert_eq!(layout(&world.dir("call")), before);
    assert_eq!(spares_in(&world.changes()).len(), 7, "the others are still of use");
    // And what belongs elsewhere is made there.
    let elsewhere = world.data.join("elsewhere/call");
    drop(Draft::from_spare(&world.root, &elsewhere, &spares).unwrap().seal().unwrap());
    assert!(elsewhere.join("course.jsonl").exists());
}

#[test]
fn many_take_at_once_and_each_has_its_own() {
    let world = World::in_memory();
    let spares = filled(&world);
    let ready = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (world, spares, ready) = (&world, &spares, &ready);
            scope.spawn(move || {
                for number in 0..50 {
                    let name = format!("{thread}-{number}");
                    let mut draft = world.ready_draft(&name, spares);
                    ready.fetch_add(usize::from(world.dir(&name).join("slot-1").exists()), Ordering::Relaxed);
                    draft.write(&world.place(&name), name.as_bytes(), Expected::Nothing).unwrap();
                    commit(&mut draft.seal().unwrap());
                }
            });
        }
    });
    assert!(ready.into_inner() >= 7, "spares were used");
    for thread in 0..4 {
        for number in 0..50 {
            let name = format!("{thread}-{number}");
            assert_eq!(world.read(&name), name);
            assert_eq!(Changes::open(&world.dir(&name)).unwrap().list()[0].path, name);
        }
    }
    drop(spares);
    assert_eq!(world.names().len(), 200, "{:?}", world.names());
}

#[test]
fn what_was_not_needed_goes_with_them() {
    let world = World::new();
    let spares = filled(&world);
    drop(spares);
    assert!(world.names().is_empty(), "{:?}", world.names());
    let spares = filled(&world);
    spares.end();
    assert!(world.names().is_empty(), "{:?}", world.names());
    // After that everything is made when it is needed.
    drop(world.ready_draft("a", &spares));
    drop(world.ready_draft("b", &spares));
    drop(world.ready_draft("c", &spares));
    assert!(world.names().is_empty(), "{:?}", world.names());
}
