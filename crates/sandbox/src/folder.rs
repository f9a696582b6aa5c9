//! An open folder of the workspace: its names, and what lies in it, without ever following a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FileType, OFlags, RawDir};
use rustix::io::Errno;

use crate::beneath::{self, Links};
use crate::error::PathError;
use crate::root::Root;
use crate::stamp::{EntryIdentity, EntryKind, Meta, look, look_at};
use crate::workspace_path::WorkspacePath;

/// The bytes of names that are asked for at once.
const READ_AT_ONCE: usize = 32 << 10;
/// A folder with a longer path, in bytes, is not gone into: some thousand levels are no tree that anybody made by hand.
const DEEPEST: usize = 16 << 10;

/// A folder that is open for reading.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    place: WorkspacePath,
    /// What has a sensitive name here or in the workspace folder, once it was asked for; `None` when that is hidden.
    secrets: OnceLock<Option<Vec<EntryIdentity>>>,
}

/// One entry of a folder.
#[derive(Clone, Debug)]
pub struct FolderEntry {
    /// What it is; links are not followed.
    pub meta: Meta,
    /// What it points to, if it is a link.
    pub target: Option<PathBuf>,
}

impl Root {
    /// Opens a folder for reading, following links that stay inside.
    pub fn open_folder(&self, place: &WorkspacePath) -> Result<Folder, PathError> {
        self.refuse_sensitive_folder(place, place)?;
        let (fd, resolved) =
            self.open_resolved(place, Folder::FLAGS).map_err(|error| self.with_nearest(error, place))?;
        self.refuse_sensitive_folder(&resolved, place)?;
        let seen = look(&fd).map_err(|errno| PathError::from_errno(place, errno))?;
        self.refuse_protected_at(&seen, &resolved, place)?;
        Ok(Folder { fd, place: resolved, secrets: OnceLock::new() })
    }

    /// Opens a folder by its real place, when the folder above it was opened before. A link on the way is an error.
    pub fn enter(&self, place: WorkspacePath) -> Result<Folder, PathError> {
        let fd = self.open_beneath(place.for_kernel(), Folder::FLAGS, Links::Refuse);
        self.entered(fd, place)
    }

    fn entered(&self, fd: Result<OwnedFd, Errno>, place: WorkspacePath) -> Result<Folder, PathError> {
        let failed = |errno| PathError::from_errno(&place, errno);
        let fd = fd.map_err(failed)?;
        let secret = self.names().hold_folder_called(&place) || self.is_protected(&look(&fd).map_err(failed)?);
        if secret {
            return Err(PathError::Sensitive { path: place.to_string() });
        }
        if place.as_path().as_os_str().len() > DEEPEST {
            return Err(PathError::Malformed { path: "a folder deep inside".to_owned(), why: "its path is too long" });
        }
        Ok(Folder { fd, place, secrets: OnceLock::new() })
    }
}

impl Folder {
    const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK);

    /// Where it really is, links resolved.
    pub fn place(&self) -> &WorkspacePath {
        &self.place
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Opens a folder of this one. A link is an error.
    pub fn enter(&self, root: &Root, name: &OsStr) -> Result<Folder, PathError> {
        let fd = beneath::open(&self.fd, Path::new(name), Folder::FLAGS, Links::Refuse);
        root.entered(fd, self.place.join(name))
    }

    /// Reads the next names, in the folder's own order, and whether there may be more. The kind is absent where the
    /// filesystem does not tell it with the name.
    pub fn read_on(&self, mut each: impl FnMut(&OsStr, Option<EntryKind>)) -> Result<bool, PathError> {
        let mut buffer = [const { MaybeUninit::<u8>::uninit() }; READ_AT_ONCE];
        let mut names = RawDir::new(&self.fd, &mut buffer);
        while let Some(entry) = names.next() {
            let entry = entry.map_err(|errno| self.failed(errno))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                each(OsStr::from_bytes(name), told_kind(entry.file_type()));
            }
            // Whatever is dropped of the buffer would never be read again.
            if names.is_buffer_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entry with this name, links not followed; `None` when it is gone.
    pub fn entry(&self, name: &OsStr) -> Result<Option<FolderEntry>, PathError> {
        let Some(seen) = look_at(&self.fd, name).map_err(|errno| self.failed(errno))? else { return Ok(None) };
        let target = if seen.kind() == EntryKind::Link { read_link(&self.fd, name) } else { None };
        Ok(Some(FolderEntry { meta: seen.meta(), target }))
    }

    /// The user and group that the entry with this name belongs to; `None` when it is gone.
    pub fn owner(&self, name: &OsStr) -> Result<Option<(u32, u32)>, PathError> {
        Ok(look_at(&self.fd, name).map_err(|errno| self.failed(errno))?.map(|seen| seen.owner))
    }

    /// Opens a regular file of this folder for reading; `None` when there is none with this name any more.
    pub fn open_file(&self, root: &Root, name: &OsStr) -> Result<Option<(File, Meta)>, PathError> {
        // Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = match beneath::open(&self.fd, Path::new(name), flags, Links::Refuse) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(None),
            Err(errno) => return Err(self.failed(errno)),
        };
        let seen = look(&fd).map_err(|errno| self.failed(errno))?;
        if seen.kind() != EntryKind::File {
            return Ok(None);
        }
        if seen.links > 1 && self.is_secret(root, &seen) {
            return Err(PathError::Sensitive { path: self.place.join(name).to_string() });
        }
        if root.names().hold_file_called(&self.place, name) {
            let place = self.place.join(name);
            return Ok(Some((root.clear(&fd, &place, &place)?, seen.meta())));
        }
        Ok(Some((File::from(fd), seen.meta())))
    }

    /// Whether the same file also has a sensitive name. Where that cannot be told, it has.
    fn is_secret(&self, root: &Root, seen: &EntryIdentity) -> bool {
        let secrets = self.secrets.get_or_init(|| root.secrets_beside(&self.place).ok());
        secrets.as_ref().is_none_or(|secrets| secrets.iter().any(|secret| secret.is(seen)))
    }

    fn failed(&self, errno: Errno) -> PathError {
        PathError::from_errno(&self.place, errno)
    }
}

/// What a link in an open folder points to.
pub(crate) fn read_link(folder: impl AsFd, name: &OsStr) -> Option<PathBuf> {
    let target = rustix::fs::readlinkat(folder, Path::new(name), Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

fn told_kind(kind: FileType) -> Option<EntryKind> {
    match kind {
        FileType::Unknown => None,
        FileType::RegularFile => Some(EntryKind::File),
        FileType::Directory => Some(EntryKind::Directory),
        FileType::Symlink => Some(EntryKind::Link),
        FileType::Fifo => Some(EntryKind::Fifo),
        FileType::Socket => Some(EntryKind::Socket),
        FileType::CharacterDevice | FileType::BlockDevice => Some(EntryKind::Device),
    }
}
