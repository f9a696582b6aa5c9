//! Moving an entry from one path to another by renames alone, and back.
//!
//! What it takes the place of is first exchanged with it and then goes into the slot, so that the target is never
//! missing and every step can be told from where the inodes are.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::change::Direction;
use super::error::ChangesError;
use super::plan::{Item, Moved, Rest};
use super::swap::{PutBack, rename};
use super::tree::Side;
use crate::beneath::{self, Links};
use crate::place::Place;
use crate::root::Root;
use crate::stamp::Seen;
use crate::transfer::Spot;

/// The places that a move is about.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) from: Spot<'a>,
    pub(super) path: Spot<'a>,
    /// Where something goes that makes room.
    pub(super) aside: Option<Spot<'a>>,
}

/// Where everything lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    /// As it was planned.
    Home,
    /// It is at its target, and what makes room is where it came from.
    Between,
    /// It is at its target, and what makes room is aside.
    Moved,
}

/// The open folder that a move comes from, and its place there.
pub(super) struct Source {
    folder: OwnedFd,
    place: Place,
}

impl Source {
    pub(super) fn open(root: &Root, moved: &Moved) -> Result<Result<Source, Errno>, ChangesError> {
        let place = moved.place()?;
        let parent = place.parent().unwrap_or_else(Place::root);
        let folder = beneath::open_folder(root.handle(), parent.for_kernel(), Links::Refuse);
        Ok(folder.map(|folder| Source { folder, place }))
    }

    pub(super) fn spot(&self) -> Result<Spot<'_>, ChangesError> {
        let name = self.place.name().ok_or(ChangesError::RootItself)?;
        Ok(Spot { dir: self.folder.as_fd(), name })
    }
}

impl Way<'_> {
    /// Where everything comes by on the way to the target.
    fn legs(&self, direction: Direction) -> Vec<Stand> {
        let mut legs = match self.aside {
            None => vec![Stand::Home, Stand::Moved],
            Some(_) => vec![Stand::Home, Stand::Between, Stand::Moved],
        };
        if direction == Direction::Undo {
            legs.reverse();
        }
        legs
    }
}

/// How a move ended.
pub(super) enum Turned<'a> {
    Done,
    /// Something else lay there than was expected; everything is as before.
    PutBack,
    /// The same, but something newer has taken the place that it came from; what was moved lies here.
    Overtaken(Spot<'a>),
}

/// Moves, or moves back; what turns out to be something else is put back at once.
pub(super) fn turn<'a>(
    way: Way<'a>,
    direction: Direction,
    moved: &Seen,
    replaced: Option<&Seen>,
) -> Result<Turned<'a>, Errno> {
    let legs = way.legs(direction);
    for leg in legs.windows(2) {
        step(way, leg[0], leg[1])?;
    }
    let (end, room) = match direction {
        Direction::Commit => (way.path, way.aside),
        Direction::Undo => (way.from, way.aside.map(|_| way.path)),
    };
    if holds(Some(end), Some(moved))? && holds(room, replaced)? {
        return Ok(Turned::Done);
    }
    for leg in legs.windows(2).rev() {
        match step(way, leg[1], leg[0]) {
            Err(Errno::EXIST) => return overtaken(way, end),
            stepped => stepped?,
        }
    }
    Ok(Turned::PutBack)
}

/// What had made room is still put back; what was moved has been replaced where it came from.
fn overtaken<'a>(way: Way<'a>, end: Spot<'a>) -> Result<Turned<'a>, Errno> {
    let Some(aside) = way.aside else { return Ok(Turned::Overtaken(end)) };
    rename(aside, way.path, RenameFlags::EXCHANGE)?;
    Ok(Turned::Overtaken(aside))
}

fn holds(spot: Option<Spot<'_>>, seen: Option<&Seen>) -> Result<bool, Errno> {
    let (Some(spot), Some(seen)) = (spot, seen) else { return Ok(true) };
    Ok(spot.look()?.is_some_and(|found| found.is_unchanged(seen)))
}

/// Undoes a move, or the move back, if any of it has happened.
pub(super) fn put_back(way: Way<'_>, item: &Item, rest: &Rest) -> Result<PutBack, Errno> {
    let Some(moved) = &item.moved else { return Ok(PutBack::Conflict) };
    let Some(at) = stand(way, &moved.seen)? else { return Ok(PutBack::Conflict) };
    let legs = way.legs(match rest.side_at_path() {
        Side::Old => Direction::Undo,
        Side::New => Direction::Commit,
    });
    let left: Vec<Stand> = legs.into_iter().skip_while(|leg| *leg != at).collect();
    for leg in left.windows(2) {
        match step(way, leg[0], leg[1]) {
            Ok(()) => {}
            // Somebody has put something there since.
            Err(Errno::EXIST | Errno::NOENT) => return Ok(PutBack::Conflict),
            Err(errno) => return Err(errno),
        }
    }
    Ok(if left.len() > 1 { PutBack::Done } else { PutBack::AtRest })
}

/// Whether a side without its folder is all right: nothing of ours can be there.
pub(super) fn is_at_rest(spot: Option<Spot<'_>>, expected: Option<&Seen>) -> Result<bool, Errno> {
    let now = spot.map(|spot| spot.look()).transpose()?.flatten();
    Ok(match (now, expected) {
        (None, None) => true,
        (Some(now), Some(expected)) => now.is(expected),
        (Some(_), None) | (None, Some(_)) => false,
    })
}

fn stand(way: Way<'_>, moved: &Seen) -> Result<Option<Stand>, Errno> {
    let is_moved = |spot: Spot<'_>| Ok::<bool, Errno>(spot.look()?.is_some_and(|found| found.is(moved)));
    if is_moved(way.from)? {
        return Ok(Some(Stand::Home));
    }
    if !is_moved(way.path)? {
        return Ok(None);
    }
    let Some(aside) = way.aside else { return Ok(Some(Stand::Moved)) };
    if aside.look()?.is_some() {
        return Ok(Some(Stand::Moved));
    }
    Ok(way.from.look()?.map(|_| Stand::Between))
}

/// One rename. Without anything that makes room there is nothing between home and moved.
fn step(way: Way<'_>, at: Stand, to: Stand) -> Result<(), Errno> {
    let aside = way.aside.unwrap_or(way.path);
    match (at, to) {
        (Stand::Home, Stand::Between) | (Stand::Between, Stand::Home) => {
            rename(way.from, way.path, RenameFlags::EXCHANGE)
        }
        (Stand::Home | Stand::Between, Stand::Moved) => rename(way.from, aside, RenameFlags::NOREPLACE),
        (Stand::Moved, Stand::Home | Stand::Between) => rename(aside, way.from, RenameFlags::NOREPLACE),
        (Stand::Home, Stand::Home) | (Stand::Between, Stand::Between) | (Stand::Moved, Stand::Moved) => Ok(()),
    }
}
