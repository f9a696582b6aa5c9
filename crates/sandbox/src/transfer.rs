//! Copying an entry to another filesystem and removing one, whatever its depth.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::Errno;

use crate::beneath;
use crate::stamp::{EntryKind, Seen, look_at};
use crate::walk::{Descent, Step, Visit, walk};

/// How much is copied by one system call.
const COPIED_AT_ONCE: usize = 1 << 20;

/// An entry named by its open folder.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
}

impl Spot<'_> {
    /// What is there now.
    pub(crate) fn look(&self) -> Result<Option<Seen>, Errno> {
        look_at(self.dir, self.name)
    }
}

/// Copies an entry with everything beneath it; nothing may be at the target. Mode, time and owner are kept.
pub(crate) fn copy(from: Spot<'_>, to: Spot<'_>) -> Result<(), Errno> {
    let mut target = Descent::default();
    walk(from.dir, from.name, |visit| match visit {
        Visit::Entry(step) => {
            let (dir, name) = if step.depth == 0 { (to.dir, to.name) } else { (target.deepest()?, step.name) };
            copy_entry(&step, dir, name)?;
            if step.seen.kind() != EntryKind::Directory {
                return Ok(());
            }
            if step.depth == 0 { target.enter(to.dir, to.name) } else { target.enter_below(step.name) }
        }
        // A folder's time and mode come last: filling it needs write permission and changes its time.
        Visit::Leave(step) => {
            keep_folder(target.deepest()?, step.seen)?;
            target.leave()
        }
    })
}

fn copy_entry(step: &Step<'_>, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let name = Path::new(name);
    match step.seen.kind() {
        EntryKind::Directory => rustix::fs::mkdirat(dir, name, Mode::RWXU),
        EntryKind::Link => {
            let target = rustix::fs::readlinkat(step.dir, Path::new(step.name), Vec::new())?;
            rustix::fs::symlinkat(target.as_c_str(), dir, name)?;
            keep_owner(dir, name, step.seen);
            rustix::fs::utimensat(dir, name, &times(step.seen), AtFlags::SYMLINK_NOFOLLOW)
        }
        EntryKind::File => copy_file(step, dir, name),
        EntryKind::Fifo => rustix::fs::mkfifoat(dir, name, permissions(step.seen)),
        // Sockets and devices are not content; nothing can restore them elsewhere.
        EntryKind::Socket | EntryKind::Device => Err(Errno::OPNOTSUPP),
    }
}

fn copy_file(step: &Step<'_>, dir: BorrowedFd<'_>, name: &Path) -> Result<(), Errno> {
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let from = rustix::fs::openat(step.dir, Path::new(step.name), read, Mode::empty())?;
    let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let to = rustix::fs::openat(dir, name, write, Mode::RUSR | Mode::WUSR)?;
    copy_bytes(&from, &to)?;
    keep_owner_of(&to, step.seen);
    rustix::fs::fchmod(&to, permissions(step.seen))?;
    rustix::fs::futimens(&to, &times(step.seen))
}

fn copy_bytes(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    loop {
        match rustix::fs::copy_file_range(from, None, to, None, COPIED_AT_ONCE) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => return copy_by_reading(from, to),
            Err(errno) => return Err(errno),
        }
    }
}

fn copy_by_reading(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let failed = |error: io::Error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let mut from = std::fs::File::from(from.try_clone().map_err(failed)?);
    let mut to = std::fs::File::from(to.try_clone().map_err(failed)?);
    io::copy(&mut from, &mut to).map_err(failed)?;
    Ok(())
}

fn keep_folder(folder: BorrowedFd<'_>, seen: &Seen) -> Result<(), Errno> {
    keep_owner_of(folder, seen);
    rustix::fs::fchmod(folder, permissions(seen))?;
    rustix::fs::futimens(folder, &times(seen))
}

/// Keeps the owner where that is allowed; an ordinary user owns what they copy anyway.
fn keep_owner(dir: BorrowedFd<'_>, name: &Path, seen: &Seen) {
    let (user, group) = (Uid::from_raw(seen.owner.0), Gid::from_raw(seen.owner.1));
    let _not_allowed = rustix::fs::chownat(dir, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
}

/// The same for an open file.
pub(crate) fn keep_owner_of(file: impl AsFd, seen: &Seen) {
    let (user, group) = (Uid::from_raw(seen.owner.0), Gid::from_raw(seen.owner.1));
    let _not_allowed = rustix::fs::fchown(file, Some(user), Some(group));
}

/// The permission bits of an entry.
pub(crate) fn permissions(seen: &Seen) -> Mode {
    Mode::from_raw_mode(seen.stamp.mode & 0o7777)
}

fn times(seen: &Seen) -> Timestamps {
    let (seconds, nanoseconds) = seen.stamp.mtime;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}

/// Removes an entry with everything beneath it; nothing there is fine.
pub(crate) fn remove(spot: Spot<'_>) -> Result<(), Errno> {
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

fn make_writable(step: &Step<'_>) -> Result<(), Errno> {
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
