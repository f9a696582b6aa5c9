//! What a write would replace, found without following a link out of the workspace.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::beneath::{self, Links};
use crate::error::PathError;
use crate::git_folder::DOOR;
use crate::root::Root;
use crate::stamp::{EntryIdentity, EntryKind, look, look_at};
use crate::workspace_path::WorkspacePath;

/// The longest content that is read for comparison.
const LONGEST: u64 = 1 << 20;

/// The real place that a write goes to, and what is there now.
#[derive(Debug)]
pub(crate) struct WriteTarget {
    pub(crate) place: WorkspacePath,
    pub(crate) seen: Option<EntryIdentity>,
    file: Option<File>,
}

impl WriteTarget {
    /// The content that is there now, unless it is long or not a file.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>, PathError> {
        let (Some(file), Some(seen)) = (&self.file, &self.seen) else { return Ok(None) };
        if seen.kind() != EntryKind::File || seen.stamp.size > LONGEST {
            return Ok(None);
        }
        let mut content = Vec::with_capacity(usize::try_from(seen.stamp.size).unwrap_or_default() + 1);
        file.take(LONGEST + 1)
            .read_to_end(&mut content)
            .map_err(|source| PathError::Io { path: self.place.to_string(), source })?;
        Ok(Some(content))
    }
}

impl Root {
    /// Finds what a write to `place` would replace; links that stay inside are followed.
    pub(crate) fn target(&self, place: &WorkspacePath) -> Result<WriteTarget, PathError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (file, resolved) = match self.open_resolved(place, flags) {
            Ok(found) => found,
            Err(PathError::NotFound { .. }) => {
                return Ok(WriteTarget { place: self.resolve(place)?, seen: None, file: None });
            }
            Err(error) => return Err(self.or_sensitive(error, place)),
        };
        let seen = look(&file).map_err(|errno| PathError::from_errno(place, errno))?;
        self.refuse_protected_at(&seen, &resolved, place)?;
        self.refuse_twin(&seen, &resolved, place)?;
        let is_sensitive = [place, &resolved].iter().any(|place| self.names().hold_file(place.as_path()));
        let file = if is_sensitive { self.clear(&file, &resolved, place)? } else { File::from(file) };
        Ok(WriteTarget { place: resolved, seen: Some(seen), file: Some(file) })
    }

    /// Looks at an entry by its real place; a link on the way to it is an error.
    pub(crate) fn look_real(&self, place: &WorkspacePath) -> Result<Option<EntryIdentity>, PathError> {
        let failed = |errno| PathError::from_errno(place, errno);
        let (Some(parent), Some(name)) = (place.parent(), place.name()) else {
            return look(self.handle()).map(Some).map_err(failed);
        };
        if parent.is_root() {
            return look_at(self.handle(), name).map_err(failed);
        }
        match self.open_folder_beneath(parent.for_kernel()) {
            Ok(folder) => look_at(&folder, name).map_err(failed),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Whether a link at `place` would lead out of the workspace, as far as can be told now.
    pub(crate) fn link_leads_outside(&self, place: &WorkspacePath, target: &Path) -> bool {
        let parent = place.parent().unwrap_or_else(WorkspacePath::root);
        // What lies in a git folder outside stays inside only if it stays in that.
        let outside = self.git_folder().and_then(|git| Some((git, parent.as_path().strip_prefix(DOOR).ok()?)));
        let (top, handle, parent) = match outside {
            Some((git, parent)) => (git.path(), git.handle(), parent),
            None => (self.path(), self.handle(), parent.as_path()),
        };
        let path = if target.is_absolute() {
            let Ok(inside) = target.strip_prefix(top) else { return true };
            inside.to_owned()
        } else {
            parent.join(target)
        };
        if WorkspacePath::relative(&path, "").is_err() {
            return true;
        }
        // Links on the way may lead out even where the words do not.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        matches!(beneath::open(handle, path, OFlags::PATH, Links::Follow), Err(Errno::XDEV))
    }
}
