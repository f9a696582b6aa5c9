//! Opening paths so that the kernel itself refuses to leave a folder.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::stamp::EntryKind;

/// How often an open is tried again when something was renamed while the kernel walked the path.
const TRIES: usize = 1000;

/// What happens to links on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// They are followed as long as they stay beneath the folder.
    Follow,
    /// They are an error.
    Refuse,
}

/// The longest path that the system takes at once, in bytes.
const LONGEST_AT_ONCE: usize = 4095;

/// Opens `path` beneath `dir`, however long it is; leaving it is `EXDEV`, a refused link `ELOOP`.
pub(crate) fn open(dir: impl AsFd, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
    let mut rest = path.as_os_str().as_bytes();
    let mut reached: Option<OwnedFd> = None;
    while rest.len() > LONGEST_AT_ONCE {
        let slash = rest[..LONGEST_AT_ONCE].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let (piece, after) = (&rest[..slash], &rest[slash + 1..]);
        let from = reached.as_ref().map_or(dir.as_fd(), AsFd::as_fd);
        reached = Some(open_at_once(from, path_of(piece), OFlags::PATH | OFlags::DIRECTORY, links)?);
        rest = after;
    }
    open_at_once(reached.as_ref().map_or(dir.as_fd(), AsFd::as_fd), path_of(rest), flags, links)
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn open_at_once(dir: BorrowedFd<'_>, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refuse {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    let mut last = Errno::AGAIN;
    for _ in 0..TRIES {
        match rustix::fs::openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(errno @ (Errno::AGAIN | Errno::INTR)) => last = errno,
            done => return done,
        }
    }
    Err(last)
}

/// Opens a folder for naming entries in it, not for reading it.
pub(crate) fn open_folder(dir: impl AsFd, path: &Path, links: Links) -> Result<OwnedFd, Errno> {
    open(dir, path, OFlags::PATH | OFlags::DIRECTORY, links)
}

/// Where an open file lies now, in the kernel's words.
pub(crate) fn whereabouts(fd: impl AsFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let target = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// Changes the permissions of exactly the open entry; by name, a link put there meanwhile would be followed.
pub(crate) fn chmod(fd: impl AsFd, mode: Mode) -> Result<(), Errno> {
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    rustix::fs::chmodat(CWD, link, mode, AtFlags::empty())
}

/// The names in a folder that was opened for reading, without `.` and `..`, in the folder's own order.
pub(crate) fn names(folder: impl AsFd) -> Result<Vec<OsString>, Errno> {
    Ok(entries(folder)?.into_iter().map(|(name, _)| name).collect())
}

/// The same with what each entry is, where the folder itself says so.
pub(crate) fn entries(folder: impl AsFd) -> Result<Vec<(OsString, Option<EntryKind>)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            let known = Some(entry.file_type()).filter(|kind| *kind != FileType::Unknown);
            let kind = known.map(|kind| EntryKind::from_mode(kind.as_raw_mode()));
            found.push((OsStr::from_bytes(name).to_owned(), kind));
        }
    }
    Ok(found)
}
