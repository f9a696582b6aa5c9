//! An entry named by its open folder, and removing one, whatever its depth.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath;
use crate::stamp::{EntryIdentity, EntryKind, look_at};
use crate::walk::{Visit, WalkStep, walk};

/// An entry named by its open folder.
#[derive(Clone, Copy)]
pub(crate) struct EntryRef<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
}

impl EntryRef<'_> {
    /// What is there now.
    pub(crate) fn look(&self) -> Result<Option<EntryIdentity>, Errno> {
        look_at(self.dir, self.name)
    }
}

/// Removes an entry with everything beneath it; nothing there is fine.
pub(crate) fn remove(spot: EntryRef<'_>) -> Result<(), Errno> {
    // Most slots hold a file: try that before looking.
    match rustix::fs::unlinkat(spot.dir, Path::new(spot.name), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    walk(spot.dir, spot.name, |visit| match visit {
        Visit::Entry(step) => match step.seen.kind() {
            EntryKind::Directory => make_writable(&step),
            EntryKind::File | EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
                unlink(step.dir, step.name, AtFlags::empty())
            }
        },
        Visit::Leave(step) => unlink(step.dir, step.name, AtFlags::REMOVEDIR),
    })
}

fn make_writable(step: &WalkStep<'_>) -> Result<(), Errno> {
    if step.seen.stamp.mode & 0o700 == 0o700 {
        return Ok(());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(step.dir, Path::new(step.name), flags, Mode::empty())?;
    beneath::chmod(&folder, Mode::RWXU)
}

fn unlink(dir: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
    match rustix::fs::unlinkat(dir, Path::new(name), flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}
