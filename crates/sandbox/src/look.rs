//! Reading: files and entries beneath the root.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::beneath::{self, Links};
use crate::error::PathError;
use crate::root::Root;
use crate::sensitive::fold;
use crate::stamp::{EntryIdentity, EntryKind, Meta, look, look_at};
use crate::workspace_path::WorkspacePath;

/// How many names are offered for a missing one.
const SUGGESTIONS: usize = 3;
/// How many names of a folder are compared with a missing one.
const COMPARED: usize = 10_000;
/// How alike two names must be, from 0 to 1.
const ALIKE: f64 = 0.6;

/// A regular file that was opened for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The open file.
    pub file: File,
    /// What it was when it was opened.
    pub meta: Meta,
    /// Where it really is, links resolved.
    pub place: WorkspacePath,
    pub(crate) seen: EntryIdentity,
    /// The file itself, where `file` only holds what was in it.
    itself: Option<OwnedFd>,
}

impl OpenFile {
    /// What the file is now.
    pub(crate) fn look_again(&self) -> Result<EntryIdentity, Errno> {
        self.itself.as_ref().map_or_else(|| look(&self.file), look)
    }
}

impl Root {
    /// Opens a regular file for reading, following links that stay inside.
    pub fn open_file(&self, place: &WorkspacePath) -> Result<OpenFile, PathError> {
        // Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (fd, resolved) = self.open_resolved(place, flags).map_err(|error| {
            let error = self.with_nearest(error, place);
            self.or_sensitive(error, place)
        })?;
        let seen = look(&fd).map_err(|errno| PathError::from_errno(place, errno))?;
        let is_sensitive = [place, &resolved].iter().any(|place| self.names().hold_file(place.as_path()));
        match seen.kind() {
            EntryKind::File => {}
            EntryKind::Directory => return Err(PathError::IsDirectory { path: place.to_string() }),
            kind @ (EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device) => {
                return Err(PathError::NotRegular { path: place.to_string(), what: kind.described() });
            }
        }
        self.refuse_protected_at(&seen, &resolved, place)?;
        self.refuse_twin(&seen, &resolved, place)?;
        if is_sensitive {
            let file = self.clear(&fd, &resolved, place)?;
            return Ok(OpenFile { file, meta: seen.meta(), place: resolved, seen, itself: Some(fd) });
        }
        Ok(OpenFile { file: File::from(fd), meta: seen.meta(), place: resolved, seen, itself: None })
    }

    /// The entry itself, links not followed; `None` when nothing is there.
    pub fn meta(&self, place: &WorkspacePath) -> Result<Option<Meta>, PathError> {
        let failed = |errno| PathError::from_errno(place, errno);
        let (Some(parent), Some(name)) = (place.parent(), place.name()) else {
            return look(self.handle()).map(|seen| Some(seen.meta())).map_err(failed);
        };
        let folder = match self.open_beneath(parent.for_kernel(), OFlags::PATH | OFlags::DIRECTORY, Links::Follow) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        };
        Ok(look_at(&folder, Path::new(name)).map_err(failed)?.map(|seen| seen.meta()))
    }

    /// Existing paths whose name is like that of a missing one, best first.
    pub fn nearest(&self, place: &WorkspacePath) -> Vec<String> {
        let (Some(parent), Some(name)) = (place.parent(), place.name()) else { return Vec::new() };
        if self.names().hold_folder(parent.as_path()) {
            return Vec::new();
        }
        let Ok((folder, _)) = self.open_resolved(&parent, OFlags::RDONLY | OFlags::DIRECTORY) else {
            return Vec::new();
        };
        let wanted = fold(name);
        let mut alike: Vec<(f64, OsString)> = beneath::names(&folder)
            .unwrap_or_default()
            .into_iter()
            .take(COMPARED)
            .map(|name| (likeness(&wanted, &name), name))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .collect();
        alike.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        alike.into_iter().take(SUGGESTIONS).map(|(_, name)| parent.join(name).to_string()).collect()
    }

    pub(crate) fn with_nearest(&self, error: PathError, place: &WorkspacePath) -> PathError {
        if matches!(error, PathError::NotFound { .. }) {
            return PathError::NotFound { path: place.to_string(), nearest: self.nearest(place) };
        }
        error
    }

    /// Refuses a file that is also reachable by a sensitive name beside it or in the workspace folder.
    pub(crate) fn refuse_twin(
        &self,
        seen: &EntryIdentity,
        resolved: &WorkspacePath,
        typed: &WorkspacePath,
    ) -> Result<(), PathError> {
        if seen.links < 2 || seen.kind() == EntryKind::Directory {
            return Ok(());
        }
        // A folder that cannot be listed hides whether there is a twin; then the answer is no.
        let beside = self.secrets_beside(&resolved.parent().unwrap_or_else(WorkspacePath::root));
        if beside.is_ok_and(|secrets| !secrets.iter().any(|twin| twin.is(seen))) {
            return Ok(());
        }
        Err(PathError::Sensitive { path: typed.to_string() })
    }

    /// What has a sensitive name in a folder or in the workspace folder.
    pub(crate) fn secrets_beside(&self, folder: &WorkspacePath) -> Result<Vec<EntryIdentity>, Errno> {
        let mut secrets = self.secrets_in(folder)?;
        secrets.extend(self.secrets_in(&WorkspacePath::root())?);
        Ok(secrets)
    }

    /// What has a sensitive name in a folder, which a harmless name elsewhere may be another name of.
    pub(crate) fn secrets_in(&self, folder: &WorkspacePath) -> Result<Vec<EntryIdentity>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = self.open_beneath(folder.for_kernel(), flags, Links::Refuse)?;
        let names = beneath::names(&open)?;
        let mut secrets = Vec::new();
        for name in names {
            let place = folder.join(&name);
            let found =
                if self.names().hold_file(place.as_path()) { look_at(&open, &name).ok().flatten() } else { None };
            // What a commit shows is no secret by any name.
            secrets.extend(found.filter(|found| found.links < 2 || self.cleared_at(&place).is_none()));
        }
        Ok(secrets)
    }
}

fn likeness(wanted: &str, name: &OsStr) -> f64 {
    strsim::normalized_damerau_levenshtein(wanted, &fold(name))
}
