//! Files with sensitive names that are shown all the same: the commit that is checked out has the very same bytes.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::beneath::{self, Links};
use crate::error::PathError;
use crate::git_head::{HeadEntry, HeadReader};
use crate::root::Root;
use crate::sealed_file::sealed_file;
use crate::stamp::{EntryKind, look, look_at};
use crate::workspace_path::WorkspacePath;

/// The largest file that is compared with a commit.
pub(crate) const LARGEST: usize = 16 << 20;

impl Root {
    /// Refuses a real place that holds secrets by its own name or by the one that was typed, unless the commit that is
    /// checked out has the very same file there.
    pub(crate) fn refuse_sensitive(&self, resolved: &WorkspacePath, typed: &WorkspacePath) -> Result<(), PathError> {
        let is_one_of = |hold: &dyn Fn(&Path) -> bool| hold(resolved.as_path()) || hold(typed.as_path());
        if !is_one_of(&|path| self.names().hold_file(path)) {
            return Ok(());
        }
        // Some names say so of files alone.
        let is_folder = || look_at(self.handle(), resolved.for_kernel()).is_ok_and(is_directory);
        if !is_one_of(&|path| self.names().hold_folder(path)) && is_folder() {
            return Ok(());
        }
        match self.cleared_at(resolved) {
            Some(_) => Ok(()),
            None => Err(PathError::Sensitive { path: typed.to_string() }),
        }
    }

    /// The same for a folder, of which no commit has anything to say.
    pub(crate) fn refuse_sensitive_folder(
        &self,
        resolved: &WorkspacePath,
        typed: &WorkspacePath,
    ) -> Result<(), PathError> {
        if self.names().hold_folder(resolved.as_path()) || self.names().hold_folder(typed.as_path()) {
            return Err(PathError::Sensitive { path: typed.to_string() });
        }
        Ok(())
    }

    /// An open file with what it holds if the commit has the same bytes for it. Whoever writes to the file from now on is
    /// not read any more.
    pub(crate) fn clear(
        &self,
        file: &OwnedFd,
        resolved: &WorkspacePath,
        typed: &WorkspacePath,
    ) -> Result<File, PathError> {
        let refused = || PathError::Sensitive { path: typed.to_string() };
        let bytes = self.cleared(file, resolved).ok_or_else(refused)?;
        sealed_file("shown", &bytes).map_err(|source| PathError::Io { path: typed.to_string(), source })
    }

    /// The bytes of the file at a real place, if the commit has the same.
    pub(crate) fn cleared_at(&self, place: &WorkspacePath) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.cleared(&beneath::open(self.handle(), place.for_kernel(), flags, Links::Refuse).ok()?, place)
    }

    fn cleared(&self, file: &OwnedFd, place: &WorkspacePath) -> Option<Vec<u8>> {
        let bytes = read_whole(file)?;
        match HeadReader::new(self).entry(place)? {
            HeadEntry::File(head) if head.bytes == bytes => Some(bytes),
            HeadEntry::File(_) | HeadEntry::Link(_) | HeadEntry::Folder => None,
        }
    }
}

fn is_directory(seen: Option<crate::stamp::EntryIdentity>) -> bool {
    seen.is_some_and(|seen| seen.kind() == EntryKind::Directory)
}

/// All that a plain file holds, from its beginning, unless it is large.
pub(crate) fn read_whole(file: &OwnedFd) -> Option<Vec<u8>> {
    let seen = look(file).ok()?;
    if seen.kind() != EntryKind::File || seen.stamp.size > LARGEST as u64 {
        return None;
    }
    let file = File::from(rustix::io::fcntl_dupfd_cloexec(file, 0).ok()?);
    let mut bytes = vec![0; usize::try_from(seen.stamp.size).ok()? + 1];
    let mut length = 0;
    while let Some(room) = bytes.get_mut(length..).filter(|room| !room.is_empty()) {
        match file.read_at(room, length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    // It has grown while it was read.
    if length == bytes.len() {
        return None;
    }
    bytes.truncate(length);
    Some(bytes)
}
