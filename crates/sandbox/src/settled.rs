//! Files and folders whose stamp tells all: as long as it is the same, so is every byte or name.

use std::os::fd::{AsFd, AsRawFd};

use rustix::time::{ClockId, clock_gettime};

use crate::error::PathError;
use crate::folder::Folder;
use crate::medium::{BTRFS, EXT, F2FS, TMPFS, XFS, is_one_of};
use crate::root::Root;
use crate::stamp::{EntryKind, FileStamp, look, look_at};
use crate::workspace_path::WorkspacePath;

/// File systems that take times from this machine's clock, and tell the first write through every new mapping. Others
/// may, but are not known to: on tmpfs a mapping can be written without a trace, on overlayfs it cannot be noticed.
const FOR_FILES: &[u64] = &[EXT, XFS, BTRFS, F2FS];
/// Folders cannot be mapped.
const FOR_FOLDERS: &[u64] = &[EXT, XFS, BTRFS, F2FS, TMPFS];
/// Not among libc's constants; the same number on everything haft is built for.
const F_SETSIG: libc::c_int = 10;

impl Root {
    /// The stamp of a file that nobody is about to change: if it is the same later, the content is too. `None` means
    /// that the stamp could stay although the content changes.
    pub fn settled_stamp(&self, place: &WorkspacePath) -> Result<Option<FileStamp>, PathError> {
        // Invariant: the clock is read first. Whatever is written from now on is stamped with this time or a later one,
        // so only a stamp from before cannot be given twice.
        let now = now();
        let open = self.open_file(place)?;
        let stamp = open.meta.stamp;
        Ok((is_past(&stamp, now) && is_one_of(&open.file, FOR_FILES) && nobody_writes(&open.file)).then_some(stamp))
    }

    /// The stamp of a folder by its real place; `None` when there is none.
    pub fn folder_stamp(&self, place: &WorkspacePath) -> Option<FileStamp> {
        let seen = look_at(self.handle(), place.for_kernel()).ok()??;
        (seen.kind() == EntryKind::Directory).then_some(seen.stamp)
    }
}

impl Folder {
    /// The stamp of a folder whose names are about to be read: if [`Root::folder_stamp`] is the same later, so are the
    /// names. `None` means that the stamp could stay although a name comes or goes.
    pub fn settled_stamp(&self) -> Option<FileStamp> {
        // Invariant: the clock is read first, for the same reason.
        let now = now();
        let stamp = look(self.handle()).ok()?.stamp;
        (is_past(&stamp, now) && is_one_of(self.handle(), FOR_FOLDERS)).then_some(stamp)
    }
}

fn now() -> (i64, u32) {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Whether a stamp cannot be given again. One of whole seconds may be from a filesystem that knows no parts of them.
fn is_past(stamp: &FileStamp, now: (i64, u32)) -> bool {
    match stamp.ctime {
        (seconds, 0) => seconds < now.0,
        ctime => ctime < now,
    }
}

/// Whether nobody has the file open for writing. A long write is stamped when it begins, and a page that is mapped for
/// writing only when it is first written to: both change content under an old stamp, and both need the file open.
/// The kernel tells by granting or refusing a read lease, which is given back at once.
#[expect(unsafe_code, reason = "no safe crate knows leases")]
fn nobody_writes(file: impl AsFd) -> bool {
    let fd = file.as_fd().as_raw_fd();
    // Somebody who opens it for writing in this very moment waits until the lease is given back, and the kernel tells us
    // by a signal. It is set to one that is ignored, because the usual one would end the process.
    // SAFETY: the descriptor is open as long as `file` lives, and these commands take plain numbers.
    unsafe {
        libc::fcntl(fd, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) == 0
            && libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) == 0
    }
}
