//! Files that a command sees as they were, whatever becomes of them in the workspace while it runs.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::take::{LAYER, UPPER};
use crate::beneath::{self, Links};
use crate::changes::draft::Draft;
use crate::changes::error::ChangesError;
use crate::stamp::{EntryIdentity, EntryKind, look};
use crate::workspace_path::WorkspacePath;

impl Draft {
    /// Lays a file of the workspace into the layer with exactly these bytes. The layer must have been made and not be in
    /// use yet.
    pub fn pin(&self, place: &WorkspacePath, bytes: &[u8]) -> Result<(), ChangesError> {
        let pin = || -> Result<(), Errno> {
            let folder = self.parent_in_layer(place)?;
            let name = Path::new(place.name().ok_or(Errno::ISDIR)?);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = opened_up(&folder, || rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR))?;
            let mut file = File::from(file);
            file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            give(&file, &self.beneath(place.as_path())?)
        };
        pin().map_err(|errno| ChangesError::kept("lay a file into a layer", errno))
    }

    /// Takes a file that was laid into the layer out again if the command has left it as it was: it is none of the
    /// command's changes, whatever somebody else has made of it in the workspace meanwhile.
    pub fn unpin(&self, place: &WorkspacePath, bytes: &[u8]) -> Result<(), ChangesError> {
        let unpin = || -> Result<(), Errno> {
            let upper = self.upper()?;
            let parent = place.as_path().parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = beneath::open(&upper, parent.unwrap_or(Path::new(".")), OFlags::PATH, Links::Refuse)?;
            let name = Path::new(place.name().ok_or(Errno::ISDIR)?);
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&parent, name, flags, Mode::empty())?;
            let left = look(&file)?;
            let mut found = Vec::new();
            let read = File::from(file).take(bytes.len() as u64 + 1).read_to_end(&mut found);
            let same_mode = self.beneath(place.as_path()).is_ok_and(|now| now.stamp.mode == left.stamp.mode);
            if left.kind() == EntryKind::File && read.is_ok() && found == bytes && same_mode {
                rustix::fs::unlinkat(&parent, name, AtFlags::empty())?;
            }
            Ok(())
        };
        match unpin() {
            // The command has put something else there, or nothing.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NXIO) => Ok(()),
            Err(errno) => Err(ChangesError::kept("take a file out of a layer", errno)),
        }
    }

    /// The folder of the layer for what lies at a place, made like those of the workspace, which it does not hide.
    pub(super) fn parent_in_layer(&self, place: &WorkspacePath) -> Result<OwnedFd, Errno> {
        let mut folder = self.upper()?;
        let mut reached = PathBuf::new();
        for part in place.as_path().parent().unwrap_or_else(|| Path::new("")) {
            reached.push(part);
            folder = self.folder_like(&reached, &folder, Path::new(part))?;
        }
        Ok(folder)
    }

    fn upper(&self) -> Result<OwnedFd, Errno> {
        let upper = self.folder().map_err(|_| Errno::NOENT)?.path().join(LAYER).join(UPPER);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(&upper, flags, Mode::empty())
    }

    /// A folder of the layer like the one in the workspace, which it does not hide.
    fn folder_like(&self, path: &Path, within: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
        let made = opened_up(within, || rustix::fs::mkdirat(within, name, Mode::RWXU));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match made {
            Ok(()) => {}
            Err(Errno::EXIST) => return rustix::fs::openat(within, name, flags, Mode::empty()),
            Err(errno) => return Err(errno),
        }
        let folder = rustix::fs::openat(within, name, flags, Mode::empty())?;
        give(&folder, &self.beneath(path)?)?;
        Ok(folder)
    }

    fn beneath(&self, path: &Path) -> Result<EntryIdentity, Errno> {
        look(self.root.open_beneath(path, OFlags::PATH, Links::Refuse)?)
    }
}

/// Makes something in a folder of the layer, also in one that nobody may write: nobody uses the layer yet.
fn opened_up<T>(folder: &OwnedFd, make: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let mode = look(folder)?.stamp.mode & 0o7777;
    rustix::fs::fchmod(folder, Mode::from_raw_mode(mode | 0o700))?;
    let made = make();
    rustix::fs::fchmod(folder, Mode::from_raw_mode(mode))?;
    made
}

/// Gives something the owner, the permissions and the time of what it stands for.
fn give(made: impl AsFd, like: &EntryIdentity) -> Result<(), Errno> {
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(like.owner.0), Gid::from_raw(like.owner.1));
        rustix::fs::chownat(&made, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    rustix::fs::fchmod(&made, Mode::from_raw_mode(like.stamp.mode & 0o7777))?;
    let (seconds, nanoseconds) = like.stamp.mtime;
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    rustix::fs::futimens(&made, &Timestamps { last_access: time, last_modification: time })
}
