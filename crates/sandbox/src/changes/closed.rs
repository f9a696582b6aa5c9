//! Folders that their owner may not write: the system refuses to give such a folder another parent, so it is writable
//! for the moment of a rename.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::beneath;
use crate::stamp::{EntryIdentity, EntryKind, look};
use crate::transfer::EntryRef;

/// The permission that a rename needs.
const WRITE: u32 = 0o200;

/// A folder that was made writable, wherever it lies by now.
struct WritableFolder {
    folder: OwnedFd,
    mode: u32,
}

/// One rename that was refused, with the folders made writable meanwhile.
pub(super) fn rename_opened(from: EntryRef<'_>, to: EntryRef<'_>, flags: RenameFlags) -> Result<(), Errno> {
    let moved = open(from)?;
    let exchanged = if flags.contains(RenameFlags::EXCHANGE) { open(to)? } else { None };
    let opened: Vec<WritableFolder> = moved.into_iter().chain(exchanged).collect();
    if opened.is_empty() {
        return Err(Errno::ACCESS);
    }
    let renamed = rustix::fs::renameat_with(from.dir, Path::new(from.name), to.dir, Path::new(to.name), flags);
    for WritableFolder { folder, mode } in opened {
        beneath::chmod(&folder, Mode::from_raw_mode(mode))?;
    }
    renamed
}

/// Closes again what a rename was stopped at, if it lies at one of these spots.
pub(super) fn close_again(spots: &[Option<EntryRef<'_>>], expected: &[Option<EntryIdentity>]) -> Result<(), Errno> {
    for spot in spots.iter().flatten() {
        let Some((folder, found)) = enter(*spot)? else { continue };
        let is_open = |seen: &&EntryIdentity| found.is(seen) && found.stamp.mode == seen.stamp.mode | WRITE;
        let Some(closed) = expected.iter().flatten().find(is_open) else { continue };
        if closed.stamp.mode != found.stamp.mode {
            beneath::chmod(&folder, Mode::from_raw_mode(closed.stamp.mode & 0o7777))?;
        }
    }
    Ok(())
}

/// Makes a folder writable that is not; anything else is none of our business.
fn open(spot: EntryRef<'_>) -> Result<Option<WritableFolder>, Errno> {
    let Some((folder, seen)) = enter(spot)? else { return Ok(None) };
    let mode = seen.stamp.mode & 0o7777;
    if mode & WRITE != 0 {
        return Ok(None);
    }
    match beneath::chmod(&folder, Mode::from_raw_mode(mode | WRITE)) {
        Ok(()) => Ok(Some(WritableFolder { folder, mode })),
        // It is somebody else's.
        Err(Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The folder at a spot, if there is one.
fn enter(spot: EntryRef<'_>) -> Result<Option<(OwnedFd, EntryIdentity)>, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::openat(spot.dir, Path::new(spot.name), flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let seen = look(&folder)?;
    Ok((seen.kind() == EntryKind::Directory).then_some((folder, seen)))
}
