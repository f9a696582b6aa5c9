//! Moving an entry from one path to another by renames alone, and back.
//!
//! What it takes the place of is first exchanged with it and then goes into the slot, so that the target is never
//! missing and every step can be told from where the inodes are.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::change::ChangeDirection;
use super::error::ChangesError;
use super::plan::{Item, ItemState, MoveOrigin};
use super::swap::{PutBackResult, rename};
use super::tree::ItemSide;
use crate::root::Root;
use crate::stamp::EntryIdentity;
use crate::transfer::EntryRef;
use crate::workspace_path::WorkspacePath;

/// The places that a move is about.
#[derive(Clone, Copy)]
pub(super) struct MovePaths<'a> {
    pub(super) from: EntryRef<'a>,
    pub(super) path: EntryRef<'a>,
    /// Where something goes that makes room.
    pub(super) aside: Option<EntryRef<'a>>,
}

/// Where everything lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MoveState {
    /// As it was planned.
    Home,
    /// It is at its target, and what makes room is where it came from.
    Between,
    /// It is at its target, and what makes room is aside.
    Moved,
}

/// The open folder that a move comes from, and its place there.
pub(super) struct MoveSource {
    folder: OwnedFd,
    place: WorkspacePath,
}

impl MoveSource {
    pub(super) fn open(root: &Root, moved: &MoveOrigin) -> Result<Result<MoveSource, Errno>, ChangesError> {
        let place = moved.place()?;
        let parent = place.parent().unwrap_or_else(WorkspacePath::root);
        let folder = root.open_folder_beneath(parent.for_kernel());
        Ok(folder.map(|folder| MoveSource { folder, place }))
    }

    pub(super) fn spot(&self) -> Result<EntryRef<'_>, ChangesError> {
        let name = self.place.name().ok_or(ChangesError::RootItself)?;
        Ok(EntryRef { dir: self.folder.as_fd(), name })
    }
}

impl MovePaths<'_> {
    /// Where everything comes by on the way to the target.
    fn legs(&self, direction: ChangeDirection) -> Vec<MoveState> {
        let mut legs = match self.aside {
            None => vec![MoveState::Home, MoveState::Moved],
            Some(_) => vec![MoveState::Home, MoveState::Between, MoveState::Moved],
        };
        if direction == ChangeDirection::Undo {
            legs.reverse();
        }
        legs
    }
}

/// How a move ended.
pub(super) enum MoveOutcome<'a> {
    Done,
    /// Something else lay there than was expected; everything is as before.
    PutBack,
    /// The same, but something newer has taken the place that it came from; what was moved lies here.
    Overtaken(EntryRef<'a>),
}

/// Moves, or moves back; what turns out to be something else is put back at once.
pub(super) fn turn<'a>(
    way: MovePaths<'a>,
    direction: ChangeDirection,
    moved: &EntryIdentity,
    replaced: Option<&EntryIdentity>,
) -> Result<MoveOutcome<'a>, Errno> {
    let legs = way.legs(direction);
    for leg in legs.windows(2) {
        step(way, leg[0], leg[1])?;
    }
    let (end, room) = match direction {
        ChangeDirection::Commit => (way.path, way.aside),
        ChangeDirection::Undo => (way.from, way.aside.map(|_| way.path)),
    };
    if holds(Some(end), Some(moved))? && holds(room, replaced)? {
        return Ok(MoveOutcome::Done);
    }
    for leg in legs.windows(2).rev() {
        match step(way, leg[1], leg[0]) {
            Err(Errno::EXIST) => return overtaken(way, end),
            stepped => stepped?,
        }
    }
    Ok(MoveOutcome::PutBack)
}

/// What had made room is still put back; what was moved has been replaced where it came from.
fn overtaken<'a>(way: MovePaths<'a>, end: EntryRef<'a>) -> Result<MoveOutcome<'a>, Errno> {
    let Some(aside) = way.aside else { return Ok(MoveOutcome::Overtaken(end)) };
    rename(aside, way.path, RenameFlags::EXCHANGE)?;
    Ok(MoveOutcome::Overtaken(aside))
}

fn holds(spot: Option<EntryRef<'_>>, seen: Option<&EntryIdentity>) -> Result<bool, Errno> {
    let (Some(spot), Some(seen)) = (spot, seen) else { return Ok(true) };
    Ok(spot.look()?.is_some_and(|found| found.is_unchanged(seen)))
}

/// Undoes a move, or the move back, if any of it has happened.
pub(super) fn put_back(way: MovePaths<'_>, item: &Item, rest: &ItemState) -> Result<PutBackResult, Errno> {
    let Some(moved) = &item.moved else { return Ok(PutBackResult::Conflict) };
    let Some(at) = stand(way, &moved.seen)? else { return Ok(PutBackResult::Conflict) };
    let legs = way.legs(match rest.side_at_path() {
        ItemSide::Old => ChangeDirection::Undo,
        ItemSide::New => ChangeDirection::Commit,
    });
    let left: Vec<MoveState> = legs.into_iter().skip_while(|leg| *leg != at).collect();
    for leg in left.windows(2) {
        match step(way, leg[0], leg[1]) {
            Ok(()) => {}
            // Somebody has put something there since.
            Err(Errno::EXIST | Errno::NOENT) => return Ok(PutBackResult::Conflict),
            Err(errno) => return Err(errno),
        }
    }
    Ok(if left.len() > 1 { PutBackResult::Done } else { PutBackResult::AtRest })
}

/// Whether a side without its folder is all right: nothing of ours can be there.
pub(super) fn is_at_rest(spot: Option<EntryRef<'_>>, expected: Option<&EntryIdentity>) -> Result<bool, Errno> {
    let now = spot.map(|spot| spot.look()).transpose()?.flatten();
    Ok(match (now, expected) {
        (None, None) => true,
        (Some(now), Some(expected)) => now.is(expected),
        (Some(_), None) | (None, Some(_)) => false,
    })
}

fn stand(way: MovePaths<'_>, moved: &EntryIdentity) -> Result<Option<MoveState>, Errno> {
    let is_moved = |spot: EntryRef<'_>| Ok::<bool, Errno>(spot.look()?.is_some_and(|found| found.is(moved)));
    if is_moved(way.from)? {
        return Ok(Some(MoveState::Home));
    }
    if !is_moved(way.path)? {
        return Ok(None);
    }
    let Some(aside) = way.aside else { return Ok(Some(MoveState::Moved)) };
    if aside.look()?.is_some() {
        return Ok(Some(MoveState::Moved));
    }
    Ok(way.from.look()?.map(|_| MoveState::Between))
}

/// One rename. Without anything that makes room there is nothing between home and moved.
fn step(way: MovePaths<'_>, at: MoveState, to: MoveState) -> Result<(), Errno> {
    let aside = way.aside.unwrap_or(way.path);
    match (at, to) {
        (MoveState::Home, MoveState::Between) | (MoveState::Between, MoveState::Home) => {
            rename(way.from, way.path, RenameFlags::EXCHANGE)
        }
        (MoveState::Home | MoveState::Between, MoveState::Moved) => rename(way.from, aside, RenameFlags::NOREPLACE),
        (MoveState::Moved, MoveState::Home | MoveState::Between) => rename(aside, way.from, RenameFlags::NOREPLACE),
        (MoveState::Home, MoveState::Home)
        | (MoveState::Between, MoveState::Between)
        | (MoveState::Moved, MoveState::Moved) => Ok(()),
    }
}
