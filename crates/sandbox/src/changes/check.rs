//! Whether everything that a turn would touch is still what it was.

use std::collections::HashSet;
use std::ffi::OsStr;

use rustix::io::Errno;

use super::change::ChangeState;
use super::error::ChangesError;
use super::folder::Folder;
use super::plan::{Beneath, Item, Rest};
use super::swap::is_empty;
use super::turn::{Bench, Parents};
use crate::beneath::{self, Links};
use crate::stamp::{EntryKind, Seen, Stamp};
use crate::transfer::Spot;
use crate::walk::{Visit, walk};

/// Compares every chosen item with what is really there; any difference is a conflict.
pub(super) fn check(bench: Bench<'_>, chosen: &[usize], parents: &mut Parents<'_>) -> Result<(), ChangesError> {
    let (plan, state) = (bench.plan, bench.state);
    let paths: HashSet<&str> = chosen.iter().map(|&index| plan.items[index].path.as_str()).collect();
    let mut conflicts = Vec::new();
    // In path order, so that neighbours share their open folder.
    let mut ordered = chosen.to_vec();
    ordered.sort_unstable();
    for index in ordered {
        let (item, rest) = (&plan.items[index], &state.items[index]);
        let found = check_path(parents, item, rest, &paths)?;
        let found = match found {
            None if item.mode.is_none() => check_slot(bench.folder, item, rest)?,
            found => found,
        };
        conflicts.extend(found);
    }
    if conflicts.is_empty() { Ok(()) } else { Err(ChangesError::Conflict { paths: conflicts }) }
}

type Found = Option<(String, String)>;

fn check_path(
    parents: &mut Parents<'_>,
    item: &Item,
    rest: &Rest,
    turning: &HashSet<&str>,
) -> Result<Found, ChangesError> {
    let place = item.place()?;
    let conflict = |why: &str| Ok(Some((item.path.clone(), why.to_owned())));
    let Some(name) = place.name() else { return Err(ChangesError::RootItself) };
    let parent = match parents.open(&place) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => {
            // The folder may be one that this very turn makes.
            let made = item.path.rsplit_once('/').is_some_and(|(parent, _)| turning.contains(parent));
            return if made && rest.path.is_none() { Ok(None) } else { conflict("its directory is gone") };
        }
        Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => return conflict("its directory was replaced"),
        Err(errno) => return Err(ChangesError::at(&place, errno)),
    };
    let spot = Spot { dir: parent, name };
    let now = spot.look().map_err(|errno| ChangesError::at(&place, errno))?;
    match (&rest.path, &now) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return conflict("it has appeared"),
        (Some(_), None) => return conflict("it was removed"),
        (Some(then), Some(now)) if !now.is(then) => return conflict("it was replaced"),
        (Some(then), Some(now)) if then.stamp.mode != now.stamp.mode => {
            return conflict("its permissions were changed");
        }
        (Some(then), Some(now)) if !is_as_left(rest.state, &then.stamp, &now.stamp) => {
            return conflict("it was changed");
        }
        (Some(_), Some(_)) => {}
    }
    let is_folder = now.is_some_and(|now| now.kind() == EntryKind::Directory);
    if !is_folder || item.mode.is_some() {
        return Ok(None);
    }
    if item.makes_folder() {
        return check_only_ours(spot, item, turning);
    }
    check_tree(spot, item, rest.copied).map_err(|errno| ChangesError::at(&place, errno))
}

/// What was only looked at must not have been touched at all. What a turn has put there may have been renamed since:
/// a later call that was undone moves it out and in again, which changes its ctime and nothing else.
fn is_as_left(state: ChangeState, then: &Stamp, now: &Stamp) -> bool {
    match state {
        ChangeState::Staged | ChangeState::Discarded => then.untouched(now),
        ChangeState::Committed | ChangeState::Undone => then.same_apart_from_renames(now),
    }
}

fn check_slot(folder: &Folder, item: &Item, rest: &Rest) -> Result<Found, ChangesError> {
    let name = Folder::slot_name(item.slot);
    let now = Spot { dir: folder.handle(), name: &name }
        .look()
        .map_err(|errno| ChangesError::kept("look into a slot", errno))?;
    let same = match (&rest.slot, &now) {
        (None, None) => true,
        (Some(then), Some(now)) => now.is_unchanged(then),
        (None, Some(_)) | (Some(_), None) => false,
    };
    Ok((!same).then(|| (item.path.clone(), "what was kept for it is not there any more".to_owned())))
}

/// A folder that we made goes only when nothing but what goes with it is in it.
fn check_only_ours(spot: Spot<'_>, item: &Item, turning: &HashSet<&str>) -> Result<Found, ChangesError> {
    let open = beneath::open(spot.dir, spot.name.as_ref(), rustix::fs::OFlags::RDONLY, Links::Refuse);
    let names = open.and_then(beneath::names).map_err(|errno| ChangesError::at(&item.path, errno))?;
    let place = item.place()?;
    for name in names {
        let path = place.join(&name).to_string();
        if !turning.contains(path.as_str()) {
            return Ok(Some((path, "it is in a directory that would go".to_owned())));
        }
    }
    Ok(None)
}

/// Whether a folder that was displaced, or lies at rest, holds exactly what the plan says.
pub(super) fn is_intact(spot: Spot<'_>, item: &Item, copied: bool) -> Result<bool, Errno> {
    if item.makes_folder() {
        return is_empty(spot);
    }
    Ok(check_tree(spot, item, copied)?.is_none())
}

/// Compares a folder with the entries in the plan; says which entry differs first.
fn check_tree(spot: Spot<'_>, item: &Item, copied: bool) -> Result<Found, Errno> {
    let mut expected = item.tree.iter();
    let mut difference: Found = None;
    let walked = walk(spot.dir, spot.name, |visit| {
        let Visit::Entry(step) = visit else { return Ok(()) };
        if step.depth == 0 {
            return Ok(());
        }
        let same = expected.next().is_some_and(|entry| is_same(entry, step.name, step.depth, step.seen, copied));
        if same {
            return Ok(());
        }
        let name = step.name.to_string_lossy();
        difference = Some((item.path.clone(), format!("`{name}` beneath it was changed, added or removed")));
        Err(Errno::CANCELED)
    });
    match walked {
        Err(Errno::CANCELED) => Ok(difference),
        Err(Errno::STALE | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
            Ok(Some((item.path.clone(), "it is being changed".to_owned())))
        }
        Err(errno) => Err(errno),
        Ok(()) => {
            Ok(expected.next().map(|entry| (item.path.clone(), format!("`{}` beneath it was removed", entry.name))))
        }
    }
}

fn is_same(entry: &Beneath, name: &OsStr, depth: usize, seen: &Seen, copied: bool) -> bool {
    if !entry.is_named(name, depth) {
        return false;
    }
    if copied { entry.stamp.same_content(&seen.stamp) } else { entry.stamp.untouched(&seen.stamp) }
}
