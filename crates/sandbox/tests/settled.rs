//! A settled stamp never lies: whatever is done to a file, an answer that was kept under its stamp is not given again
//! once the content is another.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "files are mapped, as other programs do")]

mod support;

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use haft_sandbox::FileStamp;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::{ClockId, clock_gettime};
use support::World;

const LENGTH: usize = 5000;

/// Remembers one answer, as the cache does.
#[derive(Default)]
struct Memory {
    kept: Option<(FileStamp, Vec<u8>)>,
    hits: u32,
}

impl Memory {
    /// What a reader would be told now.
    fn read(&mut self, world: &World) -> Vec<u8> {
        let place = world.place("f");
        let before = world.root.settled_stamp(&place).unwrap();
        if let (Some((stamp, content)), Some(now)) = (&self.kept, &before)
            && stamp == now
        {
            self.hits += 1;
            return content.clone();
        }
        let content = fs::read(world.path("f")).unwrap();
        self.kept = None;
        if let Some(before) = before
            && world.root.settled_stamp(&place).unwrap() == Some(before)
        {
            self.kept = Some((before, content.clone()));
        }
        content
    }
}

/// A file that is written through a mapping.
struct Mapped(*mut u8);

impl Mapped {
    fn new(path: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let (both, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place that the system chooses; the file is never made shorter while it lives.
        let at = unsafe { mmap(std::ptr::null_mut(), LENGTH, both, shared, &file, 0).unwrap() };
        Self(at.cast())
    }

    fn write(&self, content: &[u8]) {
        assert_eq!(content.len(), LENGTH);
        // SAFETY: the mapping is `LENGTH` long and nothing else writes to it.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), self.0, LENGTH) };
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new`, and this is its only end.
        unsafe { munmap(self.0.cast(), LENGTH).unwrap() };
    }
}

fn in_place(path: &Path, content: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(content, 0).unwrap();
}

fn with_old_time(path: &Path, edit: impl FnOnce()) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    edit();
    File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(modified)).unwrap();
}

/// Every way to change a file that leaves as little trace as possible: the size is always the same.
fn edit(world: &World, way: u64, content: &[u8]) {
    let path = world.path("f");
    match way {
        0 => fs::write(&path, content).unwrap(),
        1 => with_old_time(&path, || in_place(&path, content)),
        2 => {
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            let other = world.path("other");
            let mut file = File::create(&other).unwrap();
            file.write_all(content).unwrap();
            file.set_times(FileTimes::new().set_modified(modified)).unwrap();
            fs::rename(&other, &path).unwrap();
        }
        3 => {
            let twin = world.path("twin");
            let _ = fs::remove_file(&twin);
            fs::hard_link(&path, &twin).unwrap();
            with_old_time(&twin, || in_place(&twin, content));
        }
        4 => {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(0).unwrap();
            file.set_len(LENGTH as u64).unwrap();
            file.write_all_at(content, 0).unwrap();
        }
        5 => with_old_time(&path, || Mapped::new(&path).write(content)),
        6 => {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all_at(content, 0).unwrap();
            file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH)).unwrap();
        }
        other => unreachable!("{other}"),
    }
}
const WAYS: u64 = 7;

/// Waits until the clock that stamps files has passed this moment. Newer kernels stamp a file that was looked at with the
/// exact time, which that clock reaches up to two of its ticks later.
fn next_tick() {
    let begin = clock_gettime(ClockId::Realtime);
    while clock_gettime(ClockId::RealtimeCoarse) <= begin {
        std::hint::spin_loop();
    }
}

/// The same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn content(version: u64) -> Vec<u8> {
    let line = format!("version {version:>8}\n");
    line.bytes().cycle().take(LENGTH).collect()
}

/// Whether stamps can be trusted on the file system of the temporary folder.
fn is_known(world: &World) -> bool {
    let kind = rustix::fs::statfs(world.root.path()).unwrap().f_type;
    [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010].contains(&kind)
}

#[test]
fn whatever_is_done_to_a_file_no_old_answer_is_given() {
    let world = World::new();
    let mut memory = Memory::default();
    let mut numbers = Numbers(7);
    fs::write(world.path("f"), content(0)).unwrap();
    for version in 1..=3000 {
        let way = numbers.below(WAYS);
        edit(&world, way, &content(version));
        // Often at once, so that the next edit falls into the same tick; sometimes when the file is at rest.
        if numbers.below(4) == 0 {
            next_tick();
        }
        for _ in 0..numbers.below(4) {
            assert!(memory.read(&world) == content(version), "stale after way {way}, version {version}");
        }
    }
    assert!(!is_known(&world) || memory.hits > 100, "only {} answers were remembered", memory.hits);
}

#[test]
fn a_file_that_was_written_in_this_tick_is_not_settled() {
    let world = World::new();
    let settled_at_once = |version: u64| {
        fs::write(world.path("f"), content(version)).unwrap();
        world.root.settled_stamp(&world.place("f")).unwrap().is_some()
    };
    // The clock may move on between the two, but not each time.
    let settled = (0..100).filter(|version| settled_at_once(*version)).count();
    assert!(settled < 50, "{settled} of 100");
}

#[test]
fn a_file_that_somebody_can_still_write_to_is_not_remembered() {
    let world = World::new();
    let mut memory = Memory::default();
    fs::write(world.path("f"), content(0)).unwrap();
    for version in 1..200 {
        // The first write through a mapping is stamped, a later one to the same page is not.
        let (held, mapped);
        let write: &dyn Fn(&[u8]) = if version % 2 == 0 {
            mapped = Mapped::new(&world.path("f"));
            &|content| mapped.write(content)
        } else {
            held = OpenOptions::new().write(true).open(world.path("f")).unwrap();
            &|content| held.write_all_at(content, 0).unwrap()
        };
        for step in 0..4 {
            let now = content(version * 10 + step);
            write(&now);
            next_tick();
            assert!(memory.read(&world) == now && memory.read(&world) == now, "stale, version {version}.{step}");
        }
    }
    assert_eq!(memory.hits, 0);
    next_tick();
    memory.read(&world);
    memory.read(&world);
    assert_eq!(memory.hits, u32::from(is_known(&world)), "and is once it is at rest");
}

#[test]
fn where_a_mapping_leaves_no_trace_nothing_is_settled() {
    let world = World::in_memory();
    fs::write(world.path("f"), content(0)).unwrap();
    next_tick();
    let settled = world.root.settled_stamp(&world.place("f")).unwrap();
    assert_eq!(settled.is_some(), is_known(&world));
}

#[test]
fn what_may_not_be_read_has_no_stamp() {
    let world = World::new();
    world.file(".env", "KEY=1\n");
    assert!(world.root.settled_stamp(&world.place(".env")).is_err());
    assert!(world.root.settled_stamp(&world.place("absent")).is_err());
    assert!(world.root.settled_stamp(&world.place(".")).is_err());
}
