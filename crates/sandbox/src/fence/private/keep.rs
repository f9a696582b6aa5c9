//! Keeping what a call wrote into its private layers, or throwing it away.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::lock;
use super::merge::Merge;
use super::record::{CACHES, PrivateLayer, PrivateRecord, RECORD, SEEDS, WORKSPACE, boot};
use crate::beneath;
use crate::transfer::{self, EntryRef};

/// Keeps what a call wrote: merges its layers into those of the workspace, then removes `dir`.
///
/// It may be killed at any moment and called again, by several processes at once: whatever has moved is not in the
/// layer any more, and a folder without its record has been merged whole. Only a mode that kept the owner out of a folder
/// may be lost when it is killed. Nothing there is fine.
pub fn keep(dir: &Path) -> io::Result<()> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("keep what was written privately: {error}"));
    if let Some(record) = PrivateRecord::read(dir).map_err(failed)? {
        keep_layers(dir, &record).map_err(failed)?;
    }
    throw_away(dir)
}

/// Removes the layers of a call with everything in them, however deep and whatever their modes. Nothing there is fine.
pub fn throw_away(dir: &Path) -> io::Result<()> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("remove the private layers: {error}"));
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else { return Ok(()) };
    match File::open(parent) {
        Ok(parent) => remove(&parent, name).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn keep_layers(dir: &Path, record: &PrivateRecord) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&record.home)?;
    let _lock = lock::take(&record.home)?;
    // Another process may have kept it while this one waited.
    if PrivateRecord::read(dir)?.is_none() {
        return Ok(());
    }
    match symlink(&record.workspace, record.home.join(WORKSPACE)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let same_boot = boot()? == record.boot;
    for layer in record.layers.iter().filter(|layer| layer.over.is_some() || same_boot) {
        keep_layer(dir, record, layer)?;
    }
    match fs::remove_file(dir.join(RECORD)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn keep_layer(dir: &Path, record: &PrivateRecord, layer: &PrivateLayer) -> io::Result<()> {
    let from = match File::open(dir.join(&layer.name)) {
        Ok(from) => from,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !has_entries(&from)? {
        return Ok(());
    }
    let into = record.gathered(layer);
    let (Some(above), Some(name)) = (into.parent(), into.file_name()) else { return Ok(()) };
    if !above.is_dir() {
        fs::DirBuilder::new().mode(0o700).create(above)?;
        if layer.over.is_none() {
            remove_old_sessions(&record.home, above)?;
        }
    }
    let (above, old) = (File::open(above)?, open_old(dir)?);
    let upper = EntryRef { dir: from.as_fd(), name: OsStr::new("upper") };
    Merge::new(old.as_fd(), layer.over.as_deref()).run(upper, EntryRef { dir: above.as_fd(), name })?;
    Ok(())
}

/// Whether something was written into the layer that is still there.
fn has_entries(layer: &File) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(layer, "upper", flags, Mode::empty()) {
        Ok(upper) => Ok(!beneath::names(upper)?.is_empty()),
        Err(Errno::NOENT) => Ok(false),
        // A folder that we may not read until the merge has changed its mode.
        Err(Errno::ACCESS) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// The folder that takes what the layer replaces; it goes with the layers.
fn open_old(dir: &Path) -> io::Result<File> {
    let old = dir.join("old");
    match fs::create_dir(&old) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => File::open(old),
    }
}

/// Removes the sessions of earlier boots and those that have rested.
fn remove_old_sessions(home: &Path, session: &Path) -> io::Result<()> {
    let folder = File::open(home)?;
    for entry in home.read_dir()? {
        let entry = entry?;
        let lasts = [CACHES, SEEDS].iter().any(|name| entry.file_name() == *name);
        if entry.file_type()?.is_dir() && !lasts && entry.path() != session {
            remove(&folder, &entry.file_name())?;
        }
    }
    Ok(())
}

fn remove(folder: &File, name: &OsStr) -> io::Result<()> {
    match transfer::remove(EntryRef { dir: folder.as_fd(), name }) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
