//! A small new folder becomes one item for each entry, so that they can be chosen one by one.

use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::git::is_git;
use super::take::{OriginLookup, PathOrigin};
use crate::beneath::{self, Links};
use crate::changes::draft::Draft;
use crate::changes::error::ChangesError;
use crate::changes::folder::ChangesFolder;
use crate::changes::plan::{Item, NestedEntry};
use crate::changes::swap::rename;
use crate::stamp::{EntryKind, FileStamp};
use crate::transfer::EntryRef;
use crate::workspace_path::{WorkspacePath, read_shown_name};

/// A folder with more entries stays one.
const MOST_ENTRIES: usize = 64;

impl Draft {
    /// Splits every new folder that has few entries.
    pub(super) fn split_folders(&mut self, sort: OriginLookup<'_>) -> Result<(), ChangesError> {
        let small: Vec<WorkspacePath> = self
            .items
            .iter()
            .filter(|(place, item)| !place.as_path().iter().any(is_git) && can_be_split(item))
            .map(|(place, _)| place.clone())
            .collect();
        small.iter().try_for_each(|place| self.split_folder(place, sort))
    }

    fn split_folder(&mut self, place: &WorkspacePath, sort: OriginLookup<'_>) -> Result<(), ChangesError> {
        self.check_stopped()?;
        let kept = |errno| ChangesError::kept("stage what a command has made", errno);
        let Some(mut item) = self.items.remove(place) else { return Ok(()) };
        let slots = rustix::io::dup(self.folder()?.handle()).map_err(kept)?;
        let top = ChangesFolder::slot_name(item.slot);
        let brings = std::mem::take(&mut item.brings);
        // From the end, so that a folder is empty when its turn comes.
        for (path, entry) in real_paths(&brings).into_iter().zip(&brings).rev() {
            let from = PathBuf::from(&top).join(&path);
            let (Some(parent), Some(name)) = (from.parent(), from.file_name()) else { continue };
            let parent = beneath::open_folder(&slots, parent, Links::Refuse).map_err(kept)?;
            let place = place.join(&path);
            let slot = self.slot_for(&place)?;
            let slot_name = ChangesFolder::slot_name(slot);
            let to = EntryRef { dir: slots.as_fd(), name: &slot_name };
            rename(EntryRef { dir: parent.as_fd(), name }, to, RenameFlags::NOREPLACE).map_err(kept)?;
            let staged = to.look().and_then(|staged| staged.ok_or(Errno::NOENT)).map_err(kept)?;
            let sketch = self.sketch_staged(&place, to, (&staged, None));
            let derived = sort(&place, entry.stamp.kind()) == PathOrigin::Derived;
            self.put(place, Item { slot, derived, ..Item::swap(Some(staged), None, sketch) });
        }
        item.staged = EntryRef { dir: slots.as_fd(), name: &top }.look().map_err(kept)?;
        self.put(place.clone(), item);
        Ok(())
    }
}

/// Whether it is a new folder with few entries, no git folder among them, that we can move one by one.
fn can_be_split(item: &Item) -> bool {
    let is_closed = |stamp: &FileStamp| stamp.kind() == EntryKind::Directory && stamp.mode & 0o300 != 0o300;
    let Some(staged) = item.staged.filter(|_| item.before.is_none() && !item.overtaken) else { return false };
    (1..=MOST_ENTRIES).contains(&item.brings.len())
        && !is_closed(&staged.stamp)
        && !item.brings.iter().any(|entry| is_closed(&entry.stamp) || is_git(&read_shown_name(&entry.name)))
}

/// The paths of entries, from the folder that they are beneath.
pub(in crate::changes) fn real_paths(entries: &[NestedEntry]) -> Vec<PathBuf> {
    let mut path = PathBuf::new();
    let mut depth = 0;
    let mut paths = Vec::with_capacity(entries.len());
    for entry in entries {
        while depth >= entry.depth {
            path.pop();
            depth -= 1;
        }
        path.push(read_shown_name(&entry.name));
        depth += 1;
        paths.push(path.clone());
    }
    paths
}
