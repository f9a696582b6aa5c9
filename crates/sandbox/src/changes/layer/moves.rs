//! Finds what a command has moved: something that goes and something that comes and are the same.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::compare::same_content;
use super::git::is_git;
use super::split::real_paths;
use super::take::{OriginLookup, PathOrigin};
use crate::beneath::{self, Links};
use crate::changes::draft::Draft;
use crate::changes::ends::Ends;
use crate::changes::error::ChangesError;
use crate::changes::folder::ChangesFolder;
use crate::changes::plan::{Item, NestedEntry};
use crate::stamp::{EntryIdentity, EntryKind, FileStamp};
use crate::transfer::EntryRef;
use crate::workspace_path::WorkspacePath;

/// How many things that look alike are compared with one that comes.
const MOST_TRIES: usize = 8;

/// What two things must have in common before their content is compared: kind and permissions, and the size and time
/// of a file, or the number of entries of a folder.
type MoveFingerprint = (u32, u64, (i64, u32));

impl Draft {
    /// Turns a folder that goes and one that comes with the same content into one move.
    pub(super) fn find_moved_folders(&mut self, sort: OriginLookup<'_>) -> Result<(), ChangesError> {
        self.find_moves(EntryKind::Directory, sort)
    }

    /// The same for files.
    pub(super) fn find_moved_files(&mut self, sort: OriginLookup<'_>) -> Result<(), ChangesError> {
        self.find_moves(EntryKind::File, sort)
    }

    fn find_moves(&mut self, kind: EntryKind, sort: OriginLookup<'_>) -> Result<(), ChangesError> {
        let mut going: HashMap<MoveFingerprint, Vec<WorkspacePath>> = HashMap::new();
        let mut coming = Vec::new();
        for (place, item) in self.items.iter().filter(|(place, item)| may_be_moved(place, item)) {
            if let (Some(before), None) = (item.before, item.staged)
                && before.kind() == kind
            {
                going.entry(likeness(&before, &item.tree)).or_default().push(place.clone());
            }
            if let (None, Some(staged)) = (item.before, item.staged)
                && staged.kind() == kind
            {
                coming.push((likeness(&staged, &item.brings), place.clone()));
            }
        }
        for (likeness, to) in coming {
            self.check_stopped()?;
            let Some(alike) = going.get_mut(&likeness) else { continue };
            let Some(at) = alike.iter().take(MOST_TRIES).position(|from| self.is_moved(from, &to)) else { continue };
            let from = alike.remove(at);
            self.plan_found_move(&from, &to, sort)?;
        }
        Ok(())
    }

    /// Whether what goes from one place is what comes to the other, content and all.
    fn is_moved(&self, from: &WorkspacePath, to: &WorkspacePath) -> bool {
        let (Some(going), Some(coming)) = (self.items.get(from), self.items.get(to)) else { return false };
        let (Some(before), Some(staged)) = (going.before, coming.staged) else { return false };
        let mut pairs = going.tree.iter().zip(&coming.brings);
        let alike = |(one, other): (&NestedEntry, &NestedEntry)| {
            (one.depth, &one.name) == (other.depth, &other.name) && one.stamp.same_content(&other.stamp)
        };
        if going.tree.len() != coming.brings.len() || !pairs.all(alike) {
            return false;
        }
        let compare =
            |path: &Path, one: &FileStamp, other: &FileStamp| self.is_same_beneath((going, coming), path, (one, other));
        if before.kind() == EntryKind::File {
            return compare(Path::new(""), &before.stamp, &staged.stamp).unwrap_or(false);
        }
        let entries = real_paths(&going.tree).into_iter().zip(&going.tree).zip(&coming.brings);
        let mut contents = entries.filter(|((_, entry), _)| entry.stamp.kind() != EntryKind::Directory);
        contents.all(|((path, one), other)| compare(&path, &one.stamp, &other.stamp).unwrap_or(false))
    }

    /// Compares what lies beneath something that goes with what lies beneath something in a slot.
    fn is_same_beneath(
        &self,
        (going, coming): (&Item, &Item),
        path: &Path,
        (one, other): (&FileStamp, &FileStamp),
    ) -> Result<bool, ChangesError> {
        let failed = |errno| ChangesError::at(&going.path, errno);
        let mut there = going.place()?.as_path().to_owned();
        there.extend(path);
        let mut slot = PathBuf::from(ChangesFolder::slot_name(coming.slot));
        slot.extend(path);
        let there_in = self.root.open_folder_beneath(parent(&there)).map_err(failed)?;
        let slots = self.folder()?.handle();
        let slot_in = beneath::open_folder(slots, parent(&slot), Links::Refuse).map_err(failed)?;
        let (Some(there), Some(slot)) = (there.file_name(), slot.file_name()) else { return Ok(false) };
        let there = EntryRef { dir: there_in.as_fd(), name: there };
        Ok(same_content((there, one), (EntryRef { dir: slot_in.as_fd(), name: slot }, other)))
    }

    /// Plans the move in the place of both. What cannot be moved stays a removal and something new.
    fn plan_found_move(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        sort: OriginLookup<'_>,
    ) -> Result<(), ChangesError> {
        let Some(source) = self.items.get(from).and_then(|item| item.before) else { return Ok(()) };
        if !self.compare_mounts(from, &source, to).unwrap_or(false) {
            return Ok(());
        }
        let ends = Ends { from: from.clone(), source, to: to.clone(), there: None, same_mount: true };
        match self.plan_rename(&ends) {
            Ok(()) => {}
            Err(ChangesError::Path(_) | ChangesError::Unsteady { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        if let Some(item) = self.items.get_mut(to) {
            // What leaves its place for build output is missed where it was.
            item.derived = [from, to].iter().all(|place| sort(place, source.kind()) == PathOrigin::Derived);
        }
        self.forget(from)
    }
}

/// Folders without any file are alike too easily.
fn may_be_moved(place: &WorkspacePath, item: &Item) -> bool {
    let is_file = |entry: &NestedEntry| entry.stamp.kind() == EntryKind::File;
    let is_folder = item.staged.or(item.before).is_some_and(|seen| seen.kind() == EntryKind::Directory);
    let is_empty = is_folder && !item.tree.iter().chain(&item.brings).any(is_file);
    // What comes is called overtaken when it could not be told where from; here it is.
    let is_overtaken = item.overtaken && item.before.is_some();
    // Links in build output are judged where they come to, and a move lists none.
    let brings_links = item.derived && item.brings.iter().any(|entry| entry.stamp.kind() == EntryKind::Link);
    let is_plain = !is_overtaken && !brings_links && item.mode.is_none() && !item.is_end_of_a_move();
    is_plain && !is_empty && !place.as_path().iter().any(is_git)
}

fn likeness(seen: &EntryIdentity, beneath: &[NestedEntry]) -> MoveFingerprint {
    match seen.kind() {
        EntryKind::Directory => (seen.stamp.mode, beneath.len() as u64, (0, 0)),
        EntryKind::File | EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
            (seen.stamp.mode, seen.stamp.size, seen.stamp.mtime)
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
