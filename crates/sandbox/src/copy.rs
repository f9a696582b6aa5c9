//! Copying an entry, and everything beneath it, without ever taking a torn file for a whole one.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::Errno;

use crate::beneath;
use crate::stamp::{EntryIdentity, EntryKind, look, look_at};
use crate::transfer::EntryRef;
use crate::walk::{Descent, Visit, WalkStep, walk};

/// How much is copied by one system call.
const COPIED_AT_ONCE: u64 = 8 << 20;
/// Smaller files are not looked at for holes.
const MAY_HAVE_HOLES: u64 = 64 << 10;
/// How long a file may be changed again without its times showing it.
const COARSEST_TICK: Duration = Duration::from_millis(10);

/// What a copy keeps beside content, permissions and times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyAttributes {
    /// Everything that can be kept: the copy stands for the original.
    Everything,
    /// Neither the owner nor the right to run as somebody else: the copy is the caller's own.
    Plain,
}

/// Hears how many bytes were copied, and may end the copy.
pub(crate) type CopyCallback<'a> = &'a mut dyn FnMut(u64) -> Result<(), Errno>;

/// A copy that is being made while a walk goes over the original.
pub(crate) struct Copy<'a> {
    to: EntryRef<'a>,
    keep: CopyAttributes,
    target: Descent,
}

/// Copies an entry with everything beneath it; nothing may be at the target.
pub(crate) fn copy(from: EntryRef<'_>, to: EntryRef<'_>) -> Result<(), Errno> {
    let mut copy = Copy::new(to, CopyAttributes::Everything);
    walk(from.dir, from.name, |visit| match visit {
        Visit::Entry(step) => copy.enter(&step, &mut |_| Ok(())),
        Visit::Leave(step) => copy.leave(&step).map(|_| ()),
    })
}

impl<'a> Copy<'a> {
    pub(crate) fn new(to: EntryRef<'a>, keep: CopyAttributes) -> Copy<'a> {
        Copy { to, keep, target: Descent::default() }
    }

    /// Copies one entry; a folder is open for its entries until it is left.
    pub(crate) fn enter(&mut self, step: &WalkStep<'_>, tick: CopyCallback<'_>) -> Result<(), Errno> {
        let (dir, name) = self.spot(step)?;
        let path = Path::new(name);
        match step.seen.kind() {
            EntryKind::File => copy_file(step, (dir, path), self.keep, tick),
            EntryKind::Link => copy_link(step, dir, path, self.keep),
            EntryKind::Fifo => copy_fifo(step, dir, path, self.keep),
            // Sockets and devices are not content; nothing can restore them elsewhere.
            EntryKind::Socket | EntryKind::Device => Err(Errno::OPNOTSUPP),
            EntryKind::Directory => {
                rustix::fs::mkdirat(dir, path, Mode::RWXU)?;
                if step.depth == 0 {
                    self.target.enter(self.to.dir, self.to.name)
                } else {
                    self.target.enter_below(step.name)
                }
            }
        }
    }

    /// What the copy of an entry is that was just entered.
    pub(crate) fn look(&self, step: &WalkStep<'_>) -> Result<EntryIdentity, Errno> {
        if step.seen.kind() == EntryKind::Directory {
            return look(self.target.deepest()?);
        }
        let (dir, name) = self.spot(step)?;
        look_at(dir, name)?.ok_or(Errno::NOENT)
    }

    /// Ends a folder: filling it needs write permission and changes its time, so these come last.
    pub(crate) fn leave(&mut self, step: &WalkStep<'_>) -> Result<EntryIdentity, Errno> {
        let now = look_at(step.dir, step.name)?.ok_or(Errno::STALE)?;
        if now.stamp != step.seen.stamp {
            return Err(Errno::STALE);
        }
        let folder = self.target.deepest()?;
        if self.keep == CopyAttributes::Everything {
            keep_owner_of(folder, step.seen);
        }
        rustix::fs::fchmod(folder, self.keep.permissions(step.seen))?;
        rustix::fs::futimens(folder, &times(step.seen))?;
        let made = look(folder)?;
        self.target.leave()?;
        Ok(made)
    }

    fn spot<'s>(&'s self, step: &WalkStep<'s>) -> Result<(BorrowedFd<'s>, &'s OsStr), Errno> {
        if step.depth == 0 { Ok((self.to.dir, self.to.name)) } else { Ok((self.target.deepest()?, step.name)) }
    }
}

impl CopyAttributes {
    /// The permission bits of a copy.
    pub(crate) fn bits(self, seen: &EntryIdentity) -> u32 {
        match self {
            CopyAttributes::Everything => seen.stamp.mode & 0o7777,
            CopyAttributes::Plain => seen.stamp.mode & 0o1777,
        }
    }

    fn permissions(self, seen: &EntryIdentity) -> Mode {
        Mode::from_raw_mode(self.bits(seen))
    }
}

fn copy_link(step: &WalkStep<'_>, dir: BorrowedFd<'_>, name: &Path, keep: CopyAttributes) -> Result<(), Errno> {
    let target = rustix::fs::readlinkat(step.dir, Path::new(step.name), Vec::new())?;
    rustix::fs::symlinkat(target.as_c_str(), dir, name)?;
    if keep == CopyAttributes::Everything {
        let (user, group) = (Uid::from_raw(step.seen.owner.0), Gid::from_raw(step.seen.owner.1));
        let _not_allowed = rustix::fs::chownat(dir, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
    }
    rustix::fs::utimensat(dir, name, &times(step.seen), AtFlags::SYMLINK_NOFOLLOW)
}

fn copy_fifo(step: &WalkStep<'_>, dir: BorrowedFd<'_>, name: &Path, keep: CopyAttributes) -> Result<(), Errno> {
    rustix::fs::mkfifoat(dir, name, Mode::RUSR | Mode::WUSR)?;
    // Opened for naming only: for reading or writing it would wait for the other side.
    let made = rustix::fs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if keep == CopyAttributes::Everything {
        let (user, group) = (Uid::from_raw(step.seen.owner.0), Gid::from_raw(step.seen.owner.1));
        let _not_allowed = rustix::fs::chownat(&made, "", Some(user), Some(group), AtFlags::EMPTY_PATH);
    }
    beneath::chmod(&made, keep.permissions(step.seen))?;
    rustix::fs::utimensat(dir, name, &times(step.seen), AtFlags::SYMLINK_NOFOLLOW)
}

fn copy_file(
    step: &WalkStep<'_>,
    (dir, name): (BorrowedFd<'_>, &Path),
    keep: CopyAttributes,
    tick: CopyCallback<'_>,
) -> Result<(), Errno> {
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let from = rustix::fs::openat(step.dir, Path::new(step.name), read, Mode::empty())?;
    let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let to = rustix::fs::openat(dir, name, write, Mode::RUSR | Mode::WUSR)?;
    copy_content(&from, &to, step.seen.stamp.size, tick)?;
    // Invariant: a copy counts only if the original was the same before and after.
    if !look(&from)?.stamp.untouched(&step.seen.stamp) {
        return Err(Errno::STALE);
    }
    if keep == CopyAttributes::Everything {
        keep_owner_of(&to, step.seen);
    }
    rustix::fs::fchmod(&to, keep.permissions(step.seen))?;
    rustix::fs::futimens(&to, &times(step.seen))
}

/// A file that was changed a moment ago may be changed again within the same tick of the filesystem's clock, which its
/// stamp would not show. Whoever copies what others may be writing waits that tick first.
pub(crate) fn wait_for_a_tick(seen: &EntryIdentity) {
    let (seconds, nanoseconds) = seen.stamp.ctime;
    let Ok(seconds) = u64::try_from(seconds) else { return };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    let age = SystemTime::now().duration_since(changed).unwrap_or(COARSEST_TICK);
    if age < COARSEST_TICK {
        std::thread::sleep(COARSEST_TICK - age);
    }
}

/// Copies the content and leaves holes as they are.
fn copy_content(from: &OwnedFd, to: &OwnedFd, size: u64, tick: CopyCallback<'_>) -> Result<(), Errno> {
    if size < MAY_HAVE_HOLES {
        return copy_range(from, to, (0, size), tick);
    }
    let mut end = 0;
    while end < size {
        let start = match rustix::fs::seek(from, SeekFrom::Data(end)) {
            Ok(start) => start,
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => return copy_range(from, to, (end, size), tick),
            Err(errno) => return Err(errno),
        };
        end = rustix::fs::seek(from, SeekFrom::Hole(start))?.min(size);
        copy_range(from, to, (start, end), tick)?;
    }
    rustix::fs::ftruncate(to, size)
}

fn copy_range(from: &OwnedFd, to: &OwnedFd, (start, end): (u64, u64), tick: CopyCallback<'_>) -> Result<(), Errno> {
    let (mut read, mut written) = (start, start);
    while read < end {
        let most = usize::try_from((end - read).min(COPIED_AT_ONCE)).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), most) {
            // It is shorter than it was; the stamps will tell.
            Ok(0) => return Ok(()),
            Ok(copied) => tick(copied as u64)?,
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return copy_by_reading(from, to, (read, end), tick);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn copy_by_reading(
    from: &OwnedFd,
    to: &OwnedFd,
    (mut at, end): (u64, u64),
    tick: CopyCallback<'_>,
) -> Result<(), Errno> {
    let mut buffer = vec![0; usize::try_from((end - at).min(256 << 10)).unwrap_or(256 << 10)];
    while at < end {
        let most = usize::try_from(end - at).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = match rustix::io::pread(from, &mut buffer[..most], at) {
            Ok(0) => return Ok(()),
            Err(Errno::INTR) => continue,
            read => read?,
        };
        let mut done = 0;
        while done < read {
            match rustix::io::pwrite(to, &buffer[done..read], at + done as u64) {
                Ok(0) => return Err(Errno::IO),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        at += read as u64;
        tick(read as u64)?;
    }
    Ok(())
}

/// Keeps the owner where that is allowed; an ordinary user owns what they copy anyway.
pub(crate) fn keep_owner_of(file: impl AsFd, seen: &EntryIdentity) {
    let (user, group) = (Uid::from_raw(seen.owner.0), Gid::from_raw(seen.owner.1));
    let _not_allowed = rustix::fs::fchown(file, Some(user), Some(group));
}

fn times(seen: &EntryIdentity) -> Timestamps {
    let (seconds, nanoseconds) = seen.stamp.mtime;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}
