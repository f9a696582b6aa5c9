//! What overlayfs says by its own marks on an entry of a layer.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::permissions::set_mode;
use crate::stamp::{EntryIdentity, EntryKind};
use crate::transfer::EntryRef;

/// What all marks begin with.
const PREFIX: &[u8] = b"user.overlay.";
/// The longest list of attributes that the system gives.
const LONGEST_LIST: usize = 64 << 10;

/// The marks on one entry.
pub(super) struct Marks(Vec<OsString>);

/// What a command has left at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerEntry {
    /// Nothing: what the workspace has there was deleted.
    Nothing,
    /// A file.
    File,
    /// A link.
    Link,
    /// A folder whose entries are seen together with those of the workspace.
    Folder,
    /// A folder that hides what the workspace has there.
    FolderAnew,
    /// Something that no commit can bring along.
    Special(&'static str),
}

impl Marks {
    /// Reads the marks; only files and folders have any.
    pub(super) fn read(spot: EntryRef<'_>, seen: &EntryIdentity) -> Result<Marks, Errno> {
        if !matches!(seen.kind(), EntryKind::File | EntryKind::Directory) {
            return Ok(Marks(Vec::new()));
        }
        let path = by_handle(spot);
        let mut short = [0; 512];
        let mut long = Vec::new();
        let list: &[u8] = match rustix::fs::llistxattr(&path, &mut short) {
            Ok(length) => &short[..length],
            Err(Errno::OPNOTSUPP) => &[],
            Err(Errno::RANGE) => {
                long.resize(LONGEST_LIST, 0);
                let length = rustix::fs::llistxattr(&path, long.as_mut_slice())?;
                &long[..length]
            }
            Err(errno) => return Err(errno),
        };
        let ours = list.split(|byte| *byte == 0).filter(|name| name.starts_with(PREFIX));
        Ok(Marks(ours.map(|name| OsStr::from_bytes(name).to_owned()).collect()))
    }

    /// What the entry means.
    pub(super) fn meaning(&self, spot: EntryRef<'_>, seen: &EntryIdentity) -> Result<LayerEntry, Errno> {
        Ok(match seen.kind() {
            EntryKind::File if seen.stamp.size == 0 && self.has("whiteout") => LayerEntry::Nothing,
            EntryKind::File => LayerEntry::File,
            EntryKind::Link => LayerEntry::Link,
            EntryKind::Directory if self.has("opaque") && is_opaque(spot)? => LayerEntry::FolderAnew,
            EntryKind::Directory => LayerEntry::Folder,
            EntryKind::Device if is_whiteout(spot)? => LayerEntry::Nothing,
            kind @ (EntryKind::Fifo | EntryKind::Socket | EntryKind::Device) => LayerEntry::Special(kind.described()),
        })
    }

    /// Whether it is, or once was, an entry of the workspace.
    pub(super) fn is_copy(&self) -> bool {
        self.has("origin")
    }

    /// Takes the marks away: they mean nothing outside of a layer. `mode` is what the entry has.
    pub(super) fn strip(&self, spot: EntryRef<'_>, mode: u32) -> Result<(), Errno> {
        if self.0.is_empty() {
            return Ok(());
        }
        // Whoever is not root needs write permission for this.
        let read_only = mode & 0o200 == 0;
        if read_only {
            set_mode(spot, mode | 0o200)?;
        }
        let path = by_handle(spot);
        for name in &self.0 {
            match rustix::fs::lremovexattr(&path, name) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(errno),
            }
        }
        if read_only { set_mode(spot, mode) } else { Ok(()) }
    }

    fn has(&self, mark: &str) -> bool {
        self.0.iter().any(|name| &name.as_bytes()[PREFIX.len()..] == mark.as_bytes())
    }
}

fn is_opaque(spot: EntryRef<'_>) -> Result<bool, Errno> {
    let mut value = [0; 8];
    let length = rustix::fs::lgetxattr(by_handle(spot), "user.overlay.opaque", &mut value)?;
    Ok(&value[..length] == b"y")
}

/// A character device with the number 0:0, which anybody may make.
fn is_whiteout(spot: EntryRef<'_>) -> Result<bool, Errno> {
    let found = rustix::fs::statat(spot.dir, spot.name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(found.st_rdev == 0 && rustix::fs::FileType::from_raw_mode(found.st_mode).is_char_device())
}

/// A path for calls that take no folder handle. It stays right however deep the folder lies.
fn by_handle(spot: EntryRef<'_>) -> PathBuf {
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", spot.dir.as_raw_fd()));
    path.push(spot.name);
    path
}
