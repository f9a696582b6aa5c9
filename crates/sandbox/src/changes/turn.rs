//! The engine: swaps all chosen items or none.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::change::{ChangeDirection, FileChangeState};
use super::change_log::ChangeLog;
use super::cross_filesystem_copies::{self, CrossFilesystemCopies};
use super::error::ChangesError;
use super::folder::ChangesFolder;
use super::plan::{ChangePlan, CommitDurability, Item, ItemState, ItemStates};
use super::recover::roll_back;
use super::rename::{self, MoveOutcome, MovePaths, MoveSource};
use super::swap::{self, Pair};
use super::tree::is_intact;
use crate::error::PathError;
use crate::root::Root;
use crate::stamp::{EntryIdentity, EntryKind};
use crate::transfer::EntryRef;
use crate::workspace_path::WorkspacePath;

/// Everything a turn works on; the workspace's lock is held meanwhile.
#[derive(Clone, Copy)]
pub(super) struct TurnContext<'a> {
    pub(super) folder: &'a ChangesFolder,
    pub(super) log: &'a ChangeLog,
    pub(super) root: &'a Root,
    pub(super) plan: &'a ChangePlan,
    pub(super) state: &'a ItemStates,
}

/// Swaps the chosen items in order and gives the new state; on any surprise everything is put back.
pub(super) fn turn(
    context: TurnContext<'_>,
    direction: ChangeDirection,
    chosen: &[usize],
    parents: &mut Parents<'_>,
) -> Result<ItemStates, ChangesError> {
    context.log.begin()?;
    match swap_all(context, direction, (chosen, parents)) {
        // The turn is decided: what cannot be brought home now is brought home by the next one to open the changes.
        Ok(next) if next.is_unfinished() => {
            Ok(cross_filesystem_copies::finish(TurnContext { state: &next, ..context }).unwrap_or(next))
        }
        Ok(next) => Ok(next),
        Err(error) => {
            // If this fails as well, the turn stays undecided and the next one to open the changes recovers.
            let _recovered_later = roll_back(context);
            Err(error)
        }
    }
}

fn swap_all(
    context: TurnContext<'_>,
    direction: ChangeDirection,
    (chosen, parents): (&[usize], &mut Parents<'_>),
) -> Result<ItemStates, ChangesError> {
    let siblings = cross_filesystem_copies::prepare(context, chosen, parents)?;
    let mut next = context.state.clone();
    for &index in chosen {
        next.items[index] = swap_one(context, direction, index, (&mut *parents, &siblings))?;
    }
    if context.plan.sync == CommitDurability::Disk {
        context.folder.flush()?;
    }
    context.log.settle(&next)?;
    Ok(next)
}

fn swap_one(
    context: TurnContext<'_>,
    direction: ChangeDirection,
    index: usize,
    (parents, siblings): (&mut Parents<'_>, &CrossFilesystemCopies),
) -> Result<ItemState, ChangesError> {
    let (item, rest) = (&context.plan.items[index], &context.state.items[index]);
    let place = item.place()?;
    let failed = |errno| ChangesError::at(&place, errno);
    let name = place.name().ok_or(ChangesError::RootItself)?;
    let path = EntryRef { dir: parents.open(&place).map_err(failed)?, name };
    let state = match direction {
        ChangeDirection::Commit => FileChangeState::Committed,
        ChangeDirection::Undo => FileChangeState::Undone,
    };
    if let Some(mode) = item.mode_towards(direction) {
        return change_mode(item, rest, path, mode).map(|path| ItemState { state, path: Some(path), ..rest.clone() });
    }
    let sibling = siblings.of(index);
    let held = sibling.map_or(rest.slot, |sibling| sibling.copy);
    let aside = AsideLocation::open(context, item, sibling.map(|sibling| sibling.folder.as_str()))?;
    if item.moved.is_some() {
        let rest = ItemState { state, slot: held, in_sibling: sibling.is_some(), ..rest.clone() };
        return move_one(context, direction, item, (path, aside.spot()), &rest);
    }
    let pair = Pair { aside: aside.spot(), path };
    swap::swap(pair, held.as_ref(), rest.path.as_ref()).map_err(|errno| refused(item, errno))?;
    let displaced = inspect(item, rest, pair.aside)?;
    if context.plan.sync == CommitDurability::Disk {
        flush(path.dir).map_err(failed)?;
    }
    let now = if held.is_some() { path.look().map_err(failed)? } else { None };
    Ok(ItemState { state, slot: displaced, path: now, in_sibling: sibling.is_some(), ..rest.clone() })
}

/// What the system says to a rename.
fn refused(item: &Item, errno: Errno) -> ChangesError {
    match errno {
        // Some filesystems refuse renames within one mount; that has nothing to do with leading outside.
        Errno::XDEV => ChangesError::Path(PathError::Io { path: item.path.clone(), source: errno.into() }),
        Errno::EXIST | Errno::NOENT => surprise(item),
        errno if swap::is_no_swap(errno) => ChangesError::NoSwap { path: item.path.clone() },
        other => ChangesError::at(&item.path, other),
    }
}

/// Moves an entry to its path, or back to where it came from. `rest` says what lies where before that.
fn move_one(
    context: TurnContext<'_>,
    direction: ChangeDirection,
    item: &Item,
    (path, aside): (EntryRef<'_>, EntryRef<'_>),
    rest: &ItemState,
) -> Result<ItemState, ChangesError> {
    let moved = item.moved.as_ref().ok_or_else(|| surprise(item))?;
    let failed = |errno| refused(item, errno);
    let source = MoveSource::open(context.root, moved)?.map_err(failed)?;
    let way = MovePaths { from: source.spot()?, path, aside: item.before.map(|_| aside) };
    let (seen, replaced) = match direction {
        ChangeDirection::Commit => (rest.from, rest.path),
        ChangeDirection::Undo => (rest.path, rest.slot),
    };
    let seen = seen.ok_or_else(|| surprise(item))?;
    match rename::turn(way, direction, &seen, replaced.as_ref()).map_err(failed)? {
        MoveOutcome::Done => {}
        MoveOutcome::PutBack => return Err(surprise(item)),
        MoveOutcome::Overtaken(left) => {
            cross_filesystem_copies::set_aside(context.folder, left, item).map_err(failed)?;
            return Err(surprise(item));
        }
    }
    if context.plan.sync == CommitDurability::Disk {
        flush(way.from.dir).and_then(|()| flush(path.dir)).map_err(failed)?;
    }
    let look = |spot: EntryRef<'_>| spot.look().map_err(failed);
    let slot = way.aside.map(look).transpose()?.flatten();
    Ok(ItemState { slot, path: look(path)?, from: look(way.from)?, ..rest.clone() })
}

fn change_mode(item: &Item, rest: &ItemState, path: EntryRef<'_>, mode: u32) -> Result<EntryIdentity, ChangesError> {
    let failed = |errno| ChangesError::at(&item.path, errno);
    let before = rest.path.as_ref().ok_or_else(|| surprise(item))?;
    if !swap::change_mode(path, before, mode).map_err(failed)? {
        return Err(surprise(item));
    }
    path.look().map_err(failed)?.ok_or_else(|| surprise(item))
}

/// Looks at what a swap has displaced: it must be what was expected there, untouched.
fn inspect(item: &Item, rest: &ItemState, aside: EntryRef<'_>) -> Result<Option<EntryIdentity>, ChangesError> {
    let Some(expected) = &rest.path else { return Ok(None) };
    let failed = |errno| ChangesError::at(&item.path, errno);
    let displaced = aside.look().map_err(failed)?.ok_or_else(|| surprise(item))?;
    if !displaced.is_unchanged(expected) {
        return Err(surprise(item));
    }
    if displaced.kind() == EntryKind::Directory
        && !is_intact(aside, item, rest.side_at_path(), rest.likeness()).map_err(failed)?
    {
        return Err(surprise(item));
    }
    Ok(Some(displaced))
}

fn surprise(item: &Item) -> ChangesError {
    ChangesError::Conflict { paths: vec![(item.path.clone(), "it was changed during the commit".to_owned())] }
}

fn flush(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(folder, ".", flags, Mode::empty()).and_then(rustix::fs::fsync)
}

impl Item {
    /// The permission bits to set, if this changes nothing else.
    pub(super) fn mode_towards(&self, direction: ChangeDirection) -> Option<u32> {
        let after = self.mode?;
        match direction {
            ChangeDirection::Commit => Some(after),
            ChangeDirection::Undo => self.before.map(|before| before.stamp.mode & 0o7777),
        }
    }
}

/// Where a thing lies that is not at its path: in its slot, or beside the path on another filesystem.
pub(super) enum AsideLocation<'a> {
    Slot(BorrowedFd<'a>, std::ffi::OsString),
    Sibling(OwnedFd, std::ffi::OsString),
}

impl<'a> AsideLocation<'a> {
    /// Opens the slot, or the sibling if the folder it lies in is given.
    pub(super) fn open(
        context: TurnContext<'a>,
        item: &Item,
        sibling_in: Option<&str>,
    ) -> Result<AsideLocation<'a>, ChangesError> {
        match sibling_in {
            None => Ok(AsideLocation::Slot(context.folder.handle(), ChangesFolder::slot_name(item.slot))),
            Some(folder) => {
                let (folder, name) = cross_filesystem_copies::open(context.root, context.plan, item, folder)?;
                Ok(AsideLocation::Sibling(folder, name))
            }
        }
    }

    pub(super) fn spot(&self) -> EntryRef<'_> {
        match self {
            AsideLocation::Slot(dir, name) => EntryRef { dir: *dir, name },
            AsideLocation::Sibling(dir, name) => EntryRef { dir: dir.as_fd(), name },
        }
    }
}

/// Opens the folders of paths beneath the root, keeping the last one open for its neighbours.
pub(super) struct Parents<'a> {
    root: &'a Root,
    last: Option<(WorkspacePath, OwnedFd)>,
}

impl<'a> Parents<'a> {
    pub(super) fn new(root: &'a Root) -> Parents<'a> {
        Parents { root, last: None }
    }

    /// The open folder that holds a place; a link on the way is an error.
    pub(super) fn open(&mut self, place: &WorkspacePath) -> Result<BorrowedFd<'_>, Errno> {
        let parent = place.as_path().parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok(self.root.handle());
        }
        if self.last.as_ref().is_none_or(|(last, _)| last.as_path() != parent) {
            let folder = self.root.open_folder_beneath(parent)?;
            self.last = Some((WorkspacePath::known(parent.to_owned()), folder));
        }
        self.last.as_ref().map(|(_, folder)| folder.as_fd()).ok_or(Errno::BADF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::plan::Sketch;

    #[test]
    fn a_filesystem_that_cannot_swap_is_named_as_that() {
        let item = Item { path: "a".to_owned(), ..Item::swap(None, None, Sketch::default()) };
        for errno in [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP] {
            assert!(matches!(refused(&item, errno), ChangesError::NoSwap { path } if path == "a"));
        }
        assert!(matches!(refused(&item, Errno::NOSPC), ChangesError::Path(_)));
    }
}
