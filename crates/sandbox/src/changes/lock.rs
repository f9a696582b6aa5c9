//! One turn at a time in a workspace, whatever process it comes from.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::ChangesError;
use crate::stamp::EntryIdentity;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Held while a workspace is changed; the kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    _held: Vec<OwnedFd>,
}

impl Lock {
    /// Takes the locks of all folders of a workspace in `locks/` beside the folder that holds all changes.
    pub(super) fn take(
        changes: BorrowedFd<'_>,
        mut folders: Vec<EntryIdentity>,
        wait: Duration,
    ) -> Result<Lock, ChangesError> {
        // Everybody takes them in the same order, so that nobody waits for one who waits for them.
        folders.sort_by_key(|folder| (folder.stamp.dev, folder.stamp.ino));
        let mut deadline = None;
        let held = folders.iter().map(|folder| take_one(changes, folder, wait, &mut deadline));
        Ok(Lock { _held: held.collect::<Result<_, _>>()? })
    }
}

fn take_one(
    changes: BorrowedFd<'_>,
    folder: &EntryIdentity,
    wait: Duration,
    deadline: &mut Option<Instant>,
) -> Result<OwnedFd, ChangesError> {
    let failed = |errno| ChangesError::kept("lock the workspace", errno);
    let file = open(changes, folder).map_err(failed)?;
    let mut pause = Duration::from_micros(200);
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(failed(errno)),
        }
        let now = Instant::now();
        if now >= *deadline.get_or_insert(now + wait) {
            return Err(ChangesError::Busy);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn open(changes: BorrowedFd<'_>, workspace: &EntryIdentity) -> Result<OwnedFd, Errno> {
    let name = format!("../../locks/{}-{}", workspace.stamp.dev, workspace.stamp.ino);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::openat(changes, &name, flags, mode) {
        Err(Errno::NOENT) => {
            match rustix::fs::mkdirat(changes, "../../locks", Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            rustix::fs::openat(changes, &name, flags, mode)
        }
        opened => opened,
    }
}
