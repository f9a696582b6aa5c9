//! Putting restored folders in the place of the old ones. A killed restore leaves the old data or, once it is decided, the new:
//! whichever haft comes next finishes what was decided.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::folders::{self, beside};

/// What is being restored, before and after it is decided, and what it takes the place of.
const RESTORING: &str = ".restoring";
const RESTORED: &str = ".restored";
const REPLACED: &str = ".replaced";

/// Each folder of a restore with the place where it goes.
fn places(data: &Path) -> [(&'static str, PathBuf); 3] {
    // The data comes last: it is what everything else is found by.
    [("workspaces", folders::workspaces(data)), ("servers", folders::servers(data)), ("data", data.to_owned())]
}

/// Where a restore is prepared.
pub(super) fn staging(data: &Path) -> PathBuf {
    beside(data, RESTORING)
}

/// Decides that what was prepared counts, and puts it in its place.
pub(super) fn decide(data: &Path) -> Result<()> {
    let staging = staging(data);
    // What an earlier restore was about to remove when it was killed would be in the way.
    match fs::remove_dir_all(beside(data, REPLACED)) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => {
            return Err(err).context("cannot remove what was replaced before");
        }
        Ok(()) | Err(_) => {}
    }
    let prepared = File::open(&staging)?;
    rustix::fs::syncfs(&prepared)?;
    fs::rename(&staging, beside(data, RESTORED)).context("cannot put the restored data in its place")?;
    sync_folder(data);
    finish(data)
}

/// Finishes a restore that was decided, whoever began it; nothing to do is the rule.
pub(crate) fn finish(data: &Path) -> Result<()> {
    let restored = beside(data, RESTORED);
    if !restored.exists() {
        return Ok(());
    }
    let replaced = beside(data, REPLACED);
    let failed = || format!("a restore was decided and cannot be finished; look at {}", restored.display());
    fs::create_dir_all(&replaced).with_context(failed)?;
    for (name, place) in places(data) {
        put(&restored.join(name), &place, &replaced.join(name)).with_context(failed)?;
    }
    sync_folder(data);
    fs::remove_dir_all(&restored).ok();
    fs::remove_dir_all(&replaced).ok();
    Ok(())
}

/// One folder into its place. Another process may do the same at this moment.
fn put(new: &Path, place: &Path, old: &Path) -> io::Result<()> {
    let is_empty = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if !new.exists() || (is_empty(new) && !place.exists()) {
        return Ok(());
    }
    match fs::rename(place, old) {
        // Nothing was there, or the other one has put the new one there.
        Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {}
        moved => moved?,
    }
    match fs::rename(new, place) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved,
    }
}

fn sync_folder(data: &Path) {
    // A file system that cannot flush a folder keeps its order anyway.
    if let Some(folder) = data.parent().and_then(|folder| File::open(folder).ok()) {
        folder.sync_all().ok();
    }
}
