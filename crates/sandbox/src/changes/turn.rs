//! The engine: swaps all chosen items or none.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::change::{ChangeState, Direction};
use super::change_log::ChangeLog;
use super::error::ChangesError;
use super::folder::Folder;
use super::plan::{Item, Plan, Rest, State, Sync};
use super::recover::roll_back;
use super::rename::{self, Source, Turned, Way};
use super::siblings::{self, Siblings};
use super::swap::{self, Pair};
use super::tree::is_intact;
use crate::beneath::{self, Links};
use crate::error::PathError;
use crate::place::Place;
use crate::root::Root;
use crate::stamp::{EntryKind, Seen};
use crate::transfer::Spot;

/// Everything a turn works on; the workspace's lock is held meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Bench<'a> {
    pub(super) folder: &'a Folder,
    pub(super) log: &'a ChangeLog,
    pub(super) root: &'a Root,
    pub(super) plan: &'a Plan,
    pub(super) state: &'a State,
}

/// Swaps the chosen items in order and gives the new state; on any surprise everything is put back.
pub(super) fn turn(
    bench: Bench<'_>,
    direction: Direction,
    chosen: &[usize],
    parents: &mut Parents<'_>,
) -> Result<State, ChangesError> {
    bench.log.begin()?;
    match swap_all(bench, direction, (chosen, parents)) {
        // The turn is decided: what cannot be brought home now is brought home by the next one to open the changes.
        Ok(next) if next.is_unfinished() => Ok(siblings::finish(Bench { state: &next, ..bench }).unwrap_or(next)),
        Ok(next) => Ok(next),
        Err(error) => {
            // If this fails as well, the turn stays undecided and the next one to open the changes recovers.
            let _recovered_later = roll_back(bench);
            Err(error)
        }
    }
}

fn swap_all(
    bench: Bench<'_>,
    direction: Direction,
    (chosen, parents): (&[usize], &mut Parents<'_>),
) -> Result<State, ChangesError> {
    let siblings = siblings::prepare(bench, chosen, parents)?;
    let mut next = bench.state.clone();
    for &index in chosen {
        next.items[index] = swap_one(bench, direction, index, (&mut *parents, &siblings))?;
    }
    if bench.plan.sync == Sync::Disk {
        bench.folder.flush()?;
    }
    bench.log.settle(&next)?;
    Ok(next)
}

fn swap_one(
    bench: Bench<'_>,
    direction: Direction,
    index: usize,
    (parents, siblings): (&mut Parents<'_>, &Siblings),
) -> Result<Rest, ChangesError> {
    let (item, rest) = (&bench.plan.items[index], &bench.state.items[index]);
    let place = item.place()?;
    let failed = |errno| ChangesError::at(&place, errno);
    let name = place.name().ok_or(ChangesError::RootItself)?;
    let path = Spot { dir: parents.open(&place).map_err(failed)?, name };
    let state = match direction {
        Direction::Commit => ChangeState::Committed,
        Direction::Undo => ChangeState::Undone,
    };
    if let Some(mode) = item.mode_towards(direction) {
        return change_mode(item, rest, path, mode).map(|path| Rest { state, path: Some(path), ..rest.clone() });
    }
    let sibling = siblings.of(index);
    let held = sibling.map_or(rest.slot, |sibling| sibling.copy);
    let aside = Aside::open(bench, item, sibling.map(|sibling| sibling.folder.as_str()))?;
    if item.moved.is_some() {
        let rest = Rest { state, slot: held, in_sibling: sibling.is_some(), ..rest.clone() };
        return move_one(bench, direction, item, (path, aside.spot()), &rest);
    }
    let pair = Pair { aside: aside.spot(), path };
    swap::swap(pair, held.as_ref(), rest.path.as_ref()).map_err(|errno| refused(item, errno))?;
    let displaced = inspect(item, rest, pair.aside)?;
    if bench.plan.sync == Sync::Disk {
        flush(path.dir).map_err(failed)?;
    }
    let now = if held.is_some() { path.look().map_err(failed)? } else { None };
    Ok(Rest { state, slot: displaced, path: now, in_sibling: sibling.is_some(), ..rest.clone() })
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
    bench: Bench<'_>,
    direction: Direction,
    item: &Item,
    (path, aside): (Spot<'_>, Spot<'_>),
    rest: &Rest,
) -> Result<Rest, ChangesError> {
    let moved = item.moved.as_ref().ok_or_else(|| surprise(item))?;
    let failed = |errno| refused(item, errno);
    let source = Source::open(bench.root, moved)?.map_err(failed)?;
    let way = Way { from: source.spot()?, path, aside: item.before.map(|_| aside) };
    let (seen, replaced) = match direction {
        Direction::Commit => (rest.from, rest.path),
        Direction::Undo => (rest.path, rest.slot),
    };
    let seen = seen.ok_or_else(|| surprise(item))?;
    match rename::turn(way, direction, &seen, replaced.as_ref()).map_err(failed)? {
        Turned::Done => {}
        Turned::PutBack => return Err(surprise(item)),
        Turned::Overtaken(left) => {
            siblings::set_aside(bench.folder, left, item).map_err(failed)?;
            return Err(surprise(item));
        }
    }
    if bench.plan.sync == Sync::Disk {
        flush(way.from.dir).and_then(|()| flush(path.dir)).map_err(failed)?;
    }
    let look = |spot: Spot<'_>| spot.look().map_err(failed);
    let slot = way.aside.map(look).transpose()?.flatten();
    Ok(Rest { slot, path: look(path)?, from: look(way.from)?, ..rest.clone() })
}

fn change_mode(item: &Item, rest: &Rest, path: Spot<'_>, mode: u32) -> Result<Seen, ChangesError> {
    let failed = |errno| ChangesError::at(&item.path, errno);
    let before = rest.path.as_ref().ok_or_else(|| surprise(item))?;
    if !swap::change_mode(path, before, mode).map_err(failed)? {
        return Err(surprise(item));
    }
    path.look().map_err(failed)?.ok_or_else(|| surprise(item))
}

/// Looks at what a swap has displaced: it must be what was expected there, untouched.
fn inspect(item: &Item, rest: &Rest, aside: Spot<'_>) -> Result<Option<Seen>, ChangesError> {
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
    pub(super) fn mode_towards(&self, direction: Direction) -> Option<u32> {
        let after = self.mode?;
        match direction {
            Direction::Commit => Some(after),
            Direction::Undo => self.before.map(|before| before.stamp.mode & 0o7777),
        }
    }
}

/// Where a thing lies that is not at its path: in its slot, or beside the path on another filesystem.
pub(super) enum Aside<'a> {
    Slot(BorrowedFd<'a>, std::ffi::OsString),
    Sibling(OwnedFd, std::ffi::OsString),
}

impl<'a> Aside<'a> {
    /// Opens the slot, or the sibling if the folder it lies in is given.
    pub(super) fn open(bench: Bench<'a>, item: &Item, sibling_in: Option<&str>) -> Result<Aside<'a>, ChangesError> {
        match sibling_in {
            None => Ok(Aside::Slot(bench.folder.handle(), Folder::slot_name(item.slot))),
            Some(folder) => {
                let (folder, name) = siblings::open(bench.root, bench.plan, item, folder)?;
                Ok(Aside::Sibling(folder, name))
            }
        }
    }

    pub(super) fn spot(&self) -> Spot<'_> {
        match self {
            Aside::Slot(dir, name) => Spot { dir: *dir, name },
            Aside::Sibling(dir, name) => Spot { dir: dir.as_fd(), name },
        }
    }
}

/// Opens the folders of paths beneath the root, keeping the last one open for its neighbours.
pub(super) struct Parents<'a> {
    root: &'a Root,
    last: Option<(Place, OwnedFd)>,
}

impl<'a> Parents<'a> {
    pub(super) fn new(root: &'a Root) -> Parents<'a> {
        Parents { root, last: None }
    }

    /// The open folder that holds a place; a link on the way is an error.
    pub(super) fn open(&mut self, place: &Place) -> Result<BorrowedFd<'_>, Errno> {
        let parent = place.as_path().parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok(self.root.handle());
        }
        if self.last.as_ref().is_none_or(|(last, _)| last.as_path() != parent) {
            let folder = beneath::open_folder(self.root.handle(), parent, Links::Refuse)?;
            self.last = Some((Place::known(parent.to_owned()), folder));
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
