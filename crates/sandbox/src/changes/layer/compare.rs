//! Whether two files or links have the same content.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::folder::read_link;
use crate::stamp::{EntryKind, FileStamp};
use crate::transfer::EntryRef;

/// How much is compared at once.
const AT_ONCE: usize = 64 << 10;

/// Whether both have the same content. What cannot be read is not the same as anything.
pub(super) fn same_content(
    (one, stamp): (EntryRef<'_>, &FileStamp),
    (other, other_stamp): (EntryRef<'_>, &FileStamp),
) -> bool {
    if stamp.kind() != other_stamp.kind() || stamp.size != other_stamp.size {
        return false;
    }
    match stamp.kind() {
        EntryKind::File => same_bytes(one, other).unwrap_or(false),
        EntryKind::Link => {
            read_link(one.dir, one.name).is_some_and(|target| Some(target) == read_link(other.dir, other.name))
        }
        EntryKind::Directory | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => false,
    }
}

fn same_bytes(one: EntryRef<'_>, other: EntryRef<'_>) -> io::Result<bool> {
    let (mut one, mut other) = (open(one)?, open(other)?);
    let (mut left, mut right) = (vec![0; AT_ONCE], vec![0; AT_ONCE]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(other.read(&mut right)? == 0);
        }
        match other.read_exact(&mut right[..read]) {
            Ok(()) if left[..read] == right[..read] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

fn open(spot: EntryRef<'_>) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(spot.dir, Path::new(spot.name), flags, Mode::empty())?))
}
