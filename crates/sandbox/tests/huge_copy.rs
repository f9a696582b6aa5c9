//! Copying a file that is larger than memory should be. Alone, because it measures the memory of its process.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;

use haft_sandbox::changes::{Expected, Folders};
use support::{World, commit};

#[test]
fn holes_stay_holes_and_huge_files_are_streamed() {
    let world = World::new();
    let mut file = fs::File::create(world.path("sparse")).unwrap();
    file.write_all(b"begin").unwrap();
    file.seek(SeekFrom::Start(3 << 30)).unwrap();
    file.write_all(b"middle").unwrap();
    file.set_len(4 << 30).unwrap();
    let resident = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().to_owned();
        line.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let before = resident();
    let mut draft = world.draft("call");
    let copied = draft.copy(&world.place("sparse"), &world.place("twin"), Folders::Refuse, Expected::Nothing).unwrap();
    let mut changes = draft.seal().unwrap();
    assert_eq!(copied.bytes, 4 << 30);
    assert!(resident() - before < 16 << 10, "{} KiB more than before", resident() - before);
    commit(&mut changes);
    let (one, other) = (fs::metadata(world.path("sparse")).unwrap(), fs::metadata(world.path("twin")).unwrap());
    assert_eq!((other.len(), other.mtime_nsec()), (one.len(), one.mtime_nsec()));
    assert!(other.blocks() * 512 < 1 << 20, "{} blocks", other.blocks());
    let read = |at: u64| {
        let mut piece = [0; 8];
        std::os::unix::fs::FileExt::read_exact_at(&fs::File::open(world.path("twin")).unwrap(), &mut piece, at)
            .unwrap();
        piece
    };
    assert_eq!((&read(0), &read((3 << 30) - 1)), (b"begin\0\0\0", b"\0middle\0"));
}
