//! The two ends of a copy or a move: where it comes from, where it goes, and what is there.

use std::os::fd::AsFd;

use super::draft::{Draft, Expected, check_expected};
use super::error::ChangesError;
use super::plan::Item;
use super::swap::is_empty;
use crate::error::PathError;
use crate::stamp::{EntryIdentity, EntryKind, look};
use crate::transfer::EntryRef;
use crate::workspace_path::WorkspacePath;

/// Both ends, by their real places.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) from: WorkspacePath,
    /// What is there; never a mount point.
    pub(super) source: EntryIdentity,
    pub(super) to: WorkspacePath,
    /// What would make room.
    pub(super) there: Option<EntryIdentity>,
    /// Whether a rename leads from one to the other.
    pub(super) same_mount: bool,
}

impl Draft {
    /// Finds both ends and refuses what cannot be meant. Links on the way are followed, one at the end never.
    pub(super) fn ends(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        expected: Expected,
    ) -> Result<Ends, ChangesError> {
        self.check_stopped()?;
        if from.is_root() || to.is_root() {
            return Err(ChangesError::RootItself);
        }
        let (real_from, real_to) = (self.root.resolve_entry(from)?, self.root.resolve_entry(to)?);
        let Some(source) = self.root.look_real(&real_from)? else {
            let nearest = self.root.nearest(from);
            return Err(PathError::NotFound { path: from.to_string(), nearest }.into());
        };
        self.root.refuse_twin(&source, &real_from, from)?;
        if real_to.as_path().starts_with(real_from.as_path()) && real_to != real_from {
            return Err(ChangesError::IntoItself { path: from.to_string() });
        }
        self.refuse_planned(&real_from, from)?;
        self.refuse_planned(&real_to, to)?;
        let there = self.root.look_real(&real_to)?;
        if there.is_some_and(|there| there.is(&source)) {
            return Err(ChangesError::SameEntry { path: to.to_string() });
        }
        check_expected(to, expected, there.is_some(), there.as_ref())?;
        if let Some(there) = &there {
            self.refuse_in_the_way(&source, there, &real_to, to)?;
        }
        let same_mount = self.compare_mounts(&real_from, &source, &real_to)?;
        Ok(Ends { from: real_from, source, to: real_to, there, same_mount })
    }

    /// A folder takes the place of an empty folder only, and anything else that of anything but a folder.
    fn refuse_in_the_way(
        &self,
        source: &EntryIdentity,
        there: &EntryIdentity,
        to: &WorkspacePath,
        typed: &WorkspacePath,
    ) -> Result<(), ChangesError> {
        let path = typed.to_string();
        let is_folder = |seen: &EntryIdentity| seen.kind() == EntryKind::Directory;
        match (is_folder(source), is_folder(there)) {
            (false, false) => Ok(()),
            (false, true) => Err(PathError::IsDirectory { path }.into()),
            (true, false) => Err(PathError::NotDirectory { path }.into()),
            (true, true) => {
                let parent = self.root.open_real_folder(&to.parent().unwrap_or_else(WorkspacePath::root))?;
                let name = to.name().ok_or(ChangesError::RootItself)?;
                let spot = EntryRef { dir: parent.as_fd(), name };
                let empty = is_empty(spot).map_err(|errno| ChangesError::at(typed, errno))?;
                if empty { Ok(()) } else { Err(ChangesError::FolderInTheWay { path }) }
            }
        }
    }

    /// Whether a rename leads from one end to the other.
    pub(super) fn compare_mounts(
        &self,
        from: &WorkspacePath,
        source: &EntryIdentity,
        to: &WorkspacePath,
    ) -> Result<bool, ChangesError> {
        let here = self.folder_of(from)?;
        if !source.shares_mount(&here) {
            return Err(PathError::NotRegular { path: from.to_string(), what: "a mount point" }.into());
        }
        Ok(here.shares_mount(&self.folder_of(to)?))
    }

    /// The folder that holds a place, or will hold it: one that this draft makes will lie on its own folder's mount.
    fn folder_of(&self, place: &WorkspacePath) -> Result<EntryIdentity, ChangesError> {
        let mut parent = place.parent().unwrap_or_else(WorkspacePath::root);
        while self.items.get(&parent).is_some_and(Item::makes_folder) {
            parent = parent.parent().unwrap_or_else(WorkspacePath::root);
        }
        let folder = self.root.open_real_folder(&parent)?;
        look(&folder).map_err(|errno| ChangesError::at(&parent, errno))
    }
}
