//! The folder that keeps one set of changes: `log.jsonl`, `siblings.json` and the slots.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{ChangesError, kept_io};
use super::plan::CommitDurability;
use crate::stamp::look_at;
use crate::transfer::{self, EntryRef};

pub(super) const SIBLINGS: &str = "siblings.json";

/// The open folder of one set of changes.
#[derive(Debug)]
pub(super) struct ChangesFolder {
    handle: OwnedFd,
    path: PathBuf,
    pub(super) sync: CommitDurability,
}

impl ChangesFolder {
    /// Makes the folder, for us alone.
    pub(super) fn create(path: &Path) -> Result<ChangesFolder, ChangesError> {
        let failed = |errno| ChangesError::kept("make the folder", errno);
        match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
            Err(Errno::NOENT) => {
                make_parents(path)?;
                rustix::fs::mkdirat(CWD, path, Mode::RWXU).map_err(failed)?;
            }
            made => made.map_err(failed)?,
        }
        let handle = open_dir(path).map_err(failed)?;
        Ok(ChangesFolder { handle, path: path.to_owned(), sync: CommitDurability::Process })
    }

    /// Opens the folder; one that is not there is gone.
    pub(super) fn open(path: &Path) -> Result<ChangesFolder, ChangesError> {
        match open_dir(path) {
            Ok(handle) => Ok(ChangesFolder { handle, path: path.to_owned(), sync: CommitDurability::Process }),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(ChangesError::Gone),
            Err(errno) => Err(ChangesError::kept("open the folder", errno)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    pub(super) fn has(&self, name: &str) -> Result<bool, ChangesError> {
        Ok(look_at(&self.handle, name).map_err(|errno| ChangesError::kept("look", errno))?.is_some())
    }

    /// Reads one of our files; `None` when it is not there.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ChangesError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(file) => std::fs::File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(ChangesError::kept("open a file", errno)),
        };
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &file, &mut bytes)
            .map_err(|source| ChangesError::Io { what: "read a file", source })?;
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| ChangesError::Corrupt { what: format!("{name}: {error}") })
    }

    /// Writes a whole file in one step; what an earlier, killed attempt left is replaced.
    pub(super) fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), ChangesError> {
        let failed = |errno| ChangesError::kept("write a file", errno);
        let temporary = format!("{name}.new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let begun = rustix::fs::openat(&self.handle, &temporary, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        let mut file = std::fs::File::from(begun);
        std::io::Write::write_all(&mut file, &json(value)?).map_err(|source| kept_io("write a file", source))?;
        if self.sync == CommitDurability::Disk {
            file.sync_all().map_err(|source| kept_io("flush a file", source))?;
        }
        rustix::fs::renameat(&self.handle, &temporary, &self.handle, name).map_err(failed)?;
        self.flush()
    }

    pub(super) fn unlink(&self, name: &str) -> Result<(), ChangesError> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(ChangesError::kept("remove a file", errno)),
        }
    }

    /// Flushes the folder itself, if that is wanted.
    pub(super) fn flush(&self) -> Result<(), ChangesError> {
        match self.sync {
            CommitDurability::Process => Ok(()),
            CommitDurability::Disk => {
                rustix::fs::fsync(&self.handle).map_err(|errno| ChangesError::kept("flush", errno))
            }
        }
    }

    /// The name of a slot relative to this folder.
    pub(super) fn slot_name(slot: usize) -> OsString {
        OsString::from(format!("slot-{slot}"))
    }

    /// Removes what lies in a slot.
    pub(super) fn empty_slot(&self, slot: usize) -> Result<(), ChangesError> {
        transfer::remove(EntryRef { dir: self.handle(), name: &ChangesFolder::slot_name(slot) })
            .map_err(|errno| ChangesError::kept("empty a slot", errno))
    }

    /// Removes the whole folder.
    pub(super) fn remove(&self) -> Result<(), ChangesError> {
        let failed = |errno| ChangesError::kept("remove the folder", errno);
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Ok(());
        };
        let parent = open_dir(parent).map_err(failed)?;
        transfer::remove(EntryRef { dir: parent.as_fd(), name }).map_err(failed)
    }
}

/// How everything that is kept is written.
pub(super) fn json(value: &impl Serialize) -> Result<Vec<u8>, ChangesError> {
    serde_json::to_vec(value).map_err(|error| ChangesError::Corrupt { what: error.to_string() })
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, dir_flags(), Mode::empty())
}

fn make_parents(path: &Path) -> Result<(), ChangesError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
    builder.create(parent).map_err(|source| kept_io("make the folder", source))
}
