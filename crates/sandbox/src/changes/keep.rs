//! What is kept of all sets of changes, and giving up what is not needed any more.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::change::FileChangeState;
use super::change_log::ChangeLog;
use super::error::ChangesError;
use super::folder::ChangesFolder;
use super::lock::Lock;
use super::plan::ItemStates;
use super::recover::{NO_WAIT, is_half_turned, recover};
use super::sealed::open_root;
use crate::transfer::{self, EntryRef};

/// Before the name of a set that is being removed. One that was given up half-way is found by it.
pub const GONE: &str = "gone-";

/// What is kept of one set of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesSummary {
    /// How much space it takes.
    pub bytes: u64,
    /// Whether something of it waits to be committed.
    pub has_staged: bool,
}

/// Looks at a set; one that was never sealed or cannot be read has nothing staged that could be committed.
pub fn look(dir: &Path) -> Result<ChangesSummary, ChangesError> {
    let folder = ChangesFolder::open(dir)?;
    let bytes = bytes_beneath(dir);
    let Ok(Some((log, plan))) = ChangeLog::open(folder.handle()) else {
        return Ok(ChangesSummary { bytes, has_staged: false });
    };
    let state = log.standing().ok().and_then(|standing| standing.state).unwrap_or_else(|| ItemStates::staged(&plan));
    let has_staged = state.items.iter().any(|rest| rest.state == FileChangeState::Staged);
    Ok(ChangesSummary { bytes, has_staged })
}

/// Removes a set with everything it keeps. A turn that is under way is not disturbed (`Busy`), a half one is healed
/// first. Killed in the middle, it leaves a folder named [`GONE`] that can be removed without a look.
pub fn give_up(dir: &Path) -> Result<(), ChangesError> {
    let folder = ChangesFolder::open(dir)?;
    let failed = |errno| ChangesError::kept("remove the folder", errno);
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else { return Err(ChangesError::Gone) };
    let gone = parent.join([OsStr::new(GONE), name].join(OsStr::new("")));
    // What cannot be read any more can neither be turned nor healed.
    if let Ok(Some((log, plan))) = ChangeLog::open(folder.handle()) {
        let half_turned = || is_half_turned(&folder, &log.standing()?);
        if half_turned()? && open_root(&plan).is_ok() {
            recover(dir)?;
        }
        let _lock = Lock::take(folder.handle(), plan.folders(), NO_WAIT)?;
        if half_turned()? && open_root(&plan).is_ok() {
            return Err(ChangesError::Busy);
        }
        rustix::fs::rename(dir, &gone).map_err(failed)?;
    } else {
        rustix::fs::rename(dir, &gone).map_err(failed)?;
    }
    remove_gone(&gone)
}

/// Removes what an interrupted [`give_up`] has left.
pub fn remove_gone(gone: &Path) -> Result<(), ChangesError> {
    let failed = |errno| ChangesError::kept("remove the folder", errno);
    let (Some(parent), Some(name)) = (gone.parent(), gone.file_name()) else { return Ok(()) };
    let parent = std::fs::File::open(parent).map_err(|source| ChangesError::Io { what: "open the folder", source })?;
    match transfer::remove(EntryRef { dir: parent.as_fd(), name }) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// The space that everything beneath a folder takes on the disk, as far as it can be seen.
fn bytes_beneath(dir: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            bytes += meta.blocks() * 512;
            if meta.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    bytes
}
