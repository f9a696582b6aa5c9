//! Private folders of workspaces that are gone.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::record::{FOLDER, WORKSPACE};
use crate::transfer::{self, EntryRef};
use crate::walk::{Visit, walk};

/// What is being removed has this before its name, so that what is left of it when haft is killed goes the next time.
const GOING: &str = "going-";
/// A folder that does not say whose it is may be a call's that has only begun.
const YOUNG: Duration = Duration::from_secs(24 * 60 * 60);

/// The private folders of a workspace that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedFolders {
    path: PathBuf,
    /// How much space they take.
    pub bytes: u64,
}

/// Everything in haft's data folder that is private to workspaces that are gone.
pub fn abandoned(data: &Path) -> io::Result<Vec<AbandonedFolders>> {
    let entries = match data.join(FOLDER).read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if is_abandoned(&path)? {
            found.push(AbandonedFolders { bytes: bytes_in(&path)?, path });
        }
    }
    Ok(found)
}

impl AbandonedFolders {
    /// Removes them, however deep and whatever their modes.
    pub fn remove(self) -> io::Result<()> {
        let (Some(above), Some(name)) = (self.path.parent(), self.path.file_name()) else { return Ok(()) };
        let mut going = name.to_owned();
        if !name.as_encoded_bytes().starts_with(GOING.as_bytes()) {
            going = OsStr::new(GOING).to_owned();
            going.push(name);
            fs::rename(&self.path, above.join(&going))?;
        }
        let above = File::open(above)?;
        Ok(transfer::remove(EntryRef { dir: above.as_fd(), name: &going })?)
    }
}

fn is_abandoned(path: &Path) -> io::Result<bool> {
    if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(GOING.as_bytes())) {
        return Ok(true);
    }
    match fs::read_link(path.join(WORKSPACE)) {
        // What cannot be looked at, as on a disk that does not answer, may be there.
        Ok(workspace) => {
            Ok(matches!(workspace.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = path.symlink_metadata()?.modified()?.elapsed().unwrap_or_default();
            Ok(age > YOUNG)
        }
        Err(_) => Ok(false),
    }
}

/// How many bytes lie in a folder.
pub fn bytes_in(path: &Path) -> io::Result<u64> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(0) };
    let mut bytes = 0;
    // A folder that cannot be looked into is counted with what was seen before.
    let _ = walk(File::open(above)?.as_fd(), name, |visit| {
        if let Visit::Entry(step) = visit {
            bytes += step.seen.stamp.size;
        }
        Ok::<(), rustix::io::Errno>(())
    });
    Ok(bytes)
}
