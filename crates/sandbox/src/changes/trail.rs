//! Where a walk over something that goes, comes or moves is, and why it ended.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::draft::Draft;
use super::error::ChangesError;
use super::show::LONGEST_SIDE;
use crate::error::PathError;
use crate::stamp::{EntryIdentity, EntryKind};
use crate::transfer::EntryRef;
use crate::workspace_path::WorkspacePath;

/// Why a walk ended early.
pub(super) enum WalkError {
    System(Errno),
    Refused(ChangesError),
}

impl From<Errno> for WalkError {
    fn from(errno: Errno) -> WalkError {
        WalkError::System(errno)
    }
}

impl From<ChangesError> for WalkError {
    fn from(error: ChangesError) -> WalkError {
        WalkError::Refused(error)
    }
}

/// The path of the entry that a walk is at, at both ends.
#[derive(Debug)]
pub(super) struct Trail {
    from: WorkspacePath,
    to: WorkspacePath,
    depth: usize,
    top: EntryIdentity,
}

impl Trail {
    /// A walk over `top` at `from`, whose entries will be found at `to`.
    pub(super) fn new(from: &WorkspacePath, to: &WorkspacePath, top: EntryIdentity) -> Trail {
        Trail { from: from.clone(), to: to.clone(), depth: 0, top }
    }

    pub(super) fn go_to(&mut self, depth: usize, name: &OsStr) {
        while self.depth > 0 && self.depth >= depth {
            self.from.leave();
            self.to.leave();
            self.depth -= 1;
        }
        if depth > 0 {
            self.from.enter(name);
            self.to.enter(name);
            self.depth = depth;
        }
    }

    /// Where the entry is.
    pub(super) fn from(&self) -> &WorkspacePath {
        &self.from
    }

    /// Where it will be.
    pub(super) fn to(&self) -> &WorkspacePath {
        &self.to
    }

    /// What ended the walk, about the entry that it was at.
    pub(super) fn error(&self, ended: WalkError) -> ChangesError {
        let path = self.from().to_string();
        match ended {
            WalkError::Refused(error) => error,
            WalkError::System(Errno::CANCELED) => ChangesError::Stopped,
            WalkError::System(Errno::STALE | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                ChangesError::Unsteady { path }
            }
            WalkError::System(Errno::OPNOTSUPP) => PathError::NotRegular { path, what: "a socket or a device" }.into(),
            WalkError::System(errno) => ChangesError::at(&path, errno),
        }
    }
}

impl Draft {
    /// Refuses what no tool may touch, and mount points, which no rename takes along. `seen` may be left out for what
    /// is neither a folder nor looked at.
    pub(super) fn refuse_step(&self, seen: Option<&EntryIdentity>, trail: &Trail) -> Result<(), ChangesError> {
        let path = trail.from().as_path();
        let is_folder = seen.is_some_and(|seen| seen.kind() == EntryKind::Directory);
        let is_secret = match is_folder {
            true => self.root.names().hold_folder(path),
            false => self.root.names().hold_file(path) && self.root.cleared_at(trail.from()).is_none(),
        };
        if is_secret || seen.is_some_and(|seen| self.root.is_protected(seen)) {
            return Err(PathError::Sensitive { path: trail.from().to_string() }.into());
        }
        if seen.is_some_and(|seen| !seen.shares_mount(&trail.top)) {
            return Err(PathError::NotRegular { path: trail.from().to_string(), what: "a mount point" }.into());
        }
        Ok(())
    }
}

/// The content of a file that is short enough to be compared.
pub(super) fn read_small(spot: EntryRef<'_>, seen: &EntryIdentity) -> Option<Vec<u8>> {
    if seen.stamp.size > LONGEST_SIDE {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::openat(spot.dir, Path::new(spot.name), flags, Mode::empty()).ok()?);
    let mut content = Vec::with_capacity(usize::try_from(seen.stamp.size).ok()?);
    file.take(LONGEST_SIDE + 1).read_to_end(&mut content).ok()?;
    Some(content)
}
