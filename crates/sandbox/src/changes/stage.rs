//! Putting new things into slots.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::error::ChangesError;
use super::folder::ChangesFolder;
use super::plan::CommitDurability;
use crate::copy::keep_owner_of;
use crate::stamp::{EntryIdentity, look, look_at};

/// The permissions of a new file, before the umask takes its part.
const ALL: u32 = 0o666;

/// Makes a file in a slot; it takes owner and mode of `like`, or what the umask leaves.
pub(super) fn file(
    folder: &ChangesFolder,
    slot: usize,
    content: &[u8],
    like: Option<&EntryIdentity>,
) -> Result<EntryIdentity, ChangesError> {
    let mode = like.map_or(ALL, |like| like.stamp.mode & 0o777);
    let made = make_file(folder, slot, mode).and_then(|file| fill(folder, &file, content, like));
    made.map_err(|errno| ChangesError::kept("stage a file", errno))
}

fn make_file(folder: &ChangesFolder, slot: usize, mode: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let name = ChangesFolder::slot_name(slot);
    rustix::fs::openat(folder.handle(), Path::new(&name), flags, Mode::from_raw_mode(mode))
}

fn fill(
    folder: &ChangesFolder,
    file: &OwnedFd,
    content: &[u8],
    like: Option<&EntryIdentity>,
) -> Result<EntryIdentity, Errno> {
    write_all(file, content)?;
    if folder.sync == CommitDurability::Disk {
        rustix::fs::fsync(file)?;
    }
    let seen = look(file)?;
    let Some(like) = like else { return Ok(seen) };
    if seen.owner == like.owner && seen.stamp.mode == like.stamp.mode {
        return Ok(seen);
    }
    // The owner first: changing it takes the set-uid bit away.
    if seen.owner != like.owner {
        keep_owner_of(file, like);
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(like.stamp.mode & 0o7777))?;
    look(file)
}

fn write_all(file: &OwnedFd, mut content: &[u8]) -> Result<(), Errno> {
    while !content.is_empty() {
        match rustix::io::write(file, content) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => content = &content[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes an empty folder in a slot, with what the umask leaves of all permissions.
pub(super) fn folder(folder: &ChangesFolder, slot: usize) -> Result<EntryIdentity, ChangesError> {
    let name = ChangesFolder::slot_name(slot);
    rustix::fs::mkdirat(folder.handle(), Path::new(&name), Mode::from_raw_mode(0o777))
        .and_then(|()| look_again(folder, slot))
        .map_err(|errno| ChangesError::kept("stage a folder", errno))
}

/// Makes a link in a slot.
pub(super) fn link(folder: &ChangesFolder, slot: usize, target: &Path) -> Result<EntryIdentity, ChangesError> {
    let name = ChangesFolder::slot_name(slot);
    rustix::fs::symlinkat(target, folder.handle(), Path::new(&name))
        .and_then(|()| look_again(folder, slot))
        .map_err(|errno| ChangesError::kept("stage a link", errno))
}

/// Changes the permissions of what lies in a slot.
pub(super) fn mode(folder: &ChangesFolder, slot: usize, mode: u32) -> Result<EntryIdentity, ChangesError> {
    let name = ChangesFolder::slot_name(slot);
    rustix::fs::chmodat(folder.handle(), Path::new(&name), Mode::from_raw_mode(mode), AtFlags::empty())
        .and_then(|()| look_again(folder, slot))
        .map_err(|errno| ChangesError::kept("stage a mode", errno))
}

fn look_again(folder: &ChangesFolder, slot: usize) -> Result<EntryIdentity, Errno> {
    look_at(folder.handle(), ChangesFolder::slot_name(slot))?.ok_or(Errno::NOENT)
}
