//! Whether everything that a turn would touch is still what it was.

use std::collections::HashSet;

use rustix::io::Errno;

use super::change::{ChangeDirection, FileChangeState};
use super::error::ChangesError;
use super::folder::ChangesFolder;
use super::plan::{Item, ItemState};
use super::swap::is_empty;
use super::tree::{ItemSide, check_tree};
use super::turn::{Parents, TurnContext};
use crate::beneath::{self, Links};
use crate::stamp::{EntryIdentity, EntryKind, FileStamp};
use crate::transfer::EntryRef;
use crate::workspace_path::WorkspacePath;

/// The chosen items that can be turned. Any conflict is an error, but for what only follows from other files: on the
/// way into the workspace that stays where it is, as long as anything else is left to commit.
pub(super) fn agree(
    context: TurnContext<'_>,
    direction: ChangeDirection,
    mut chosen: Vec<usize>,
    parents: &mut Parents<'_>,
) -> Result<Vec<usize>, ChangesError> {
    let units = context.plan.units();
    loop {
        let clashes = check(context, &chosen, parents)?;
        if clashes.is_empty() {
            return Ok(chosen);
        }
        let clashing: HashSet<usize> = clashes.iter().map(|clash| units[clash.index]).collect();
        let (dropped, left): (Vec<usize>, Vec<usize>) =
            chosen.into_iter().partition(|&index| clashing.contains(&units[index]));
        let matters = dropped.iter().any(|&index| !context.plan.items[index].derived);
        if direction == ChangeDirection::Undo || matters || left.is_empty() {
            let paths = clashes.into_iter().map(|clash| (clash.path, clash.why)).collect();
            return Err(ChangesError::Conflict { paths });
        }
        chosen = left;
    }
}

/// Something that was changed by somebody else.
struct Clash {
    index: usize,
    path: String,
    why: String,
}

/// Compares every chosen item with what is really there.
fn check(context: TurnContext<'_>, chosen: &[usize], parents: &mut Parents<'_>) -> Result<Vec<Clash>, ChangesError> {
    let (plan, state) = (context.plan, context.state);
    let paths: HashSet<&str> = chosen.iter().map(|&index| plan.items[index].path.as_str()).collect();
    let mut clashes = Vec::new();
    // In path order, so that neighbours share their open folder.
    let mut ordered = chosen.to_vec();
    ordered.sort_unstable();
    for index in ordered {
        let (item, rest) = (&plan.items[index], &state.items[index]);
        let mut found = check_path(parents, item, rest, &paths)?;
        if found.is_none() && item.moved.is_some() {
            found = check_source(parents, item, rest, &paths)?;
        }
        if found.is_none() && item.mode.is_none() {
            found = check_slot(context.folder, item, rest)?;
        }
        clashes.extend(found.map(|(path, why)| Clash { index, path, why }));
    }
    Ok(clashes)
}

type MaybeConflict = Option<(String, String)>;

fn check_path(
    parents: &mut Parents<'_>,
    item: &Item,
    rest: &ItemState,
    turning: &HashSet<&str>,
) -> Result<MaybeConflict, ChangesError> {
    if item.overtaken && rest.state == FileChangeState::Staged {
        return Ok(Some((item.path.clone(), "it was changed while the command ran".to_owned())));
    }
    let place = item.place()?;
    let spot = match find(parents, &place, (rest.path.as_ref(), rest.state), turning)? {
        EntryCheck::Missing => return Ok(None),
        EntryCheck::Conflict(why) => return Ok(Some((item.path.clone(), why.to_owned()))),
        EntryCheck::Entry(spot, now) if now.kind() == EntryKind::Directory && item.mode.is_none() => spot,
        EntryCheck::Entry(..) => return Ok(None),
    };
    let failed = |errno| ChangesError::at(&place, errno);
    // A folder that was moved here carries along whatever is in it; one that makes room for it is empty.
    if item.moved.is_some() {
        let makes_room = matches!(rest.side_at_path(), ItemSide::Old);
        let filled = makes_room && !is_empty(spot).map_err(failed)?;
        return Ok(filled.then(|| (item.path.clone(), "something was put into it".to_owned())));
    }
    if item.makes_folder() {
        return check_only_ours(spot, item, turning);
    }
    let found = check_tree(spot, item, rest.side_at_path(), rest.likeness()).map_err(failed)?;
    Ok(found.map(|why| (item.path.clone(), why)))
}

/// Where a rename comes from, or goes back to.
fn check_source(
    parents: &mut Parents<'_>,
    item: &Item,
    rest: &ItemState,
    turning: &HashSet<&str>,
) -> Result<MaybeConflict, ChangesError> {
    let Some(moved) = &item.moved else { return Ok(None) };
    Ok(match find(parents, &moved.place()?, (rest.from.as_ref(), rest.state), turning)? {
        EntryCheck::Conflict(why) => Some((moved.from.clone(), why.to_owned())),
        EntryCheck::Missing | EntryCheck::Entry(..) => None,
    })
}

/// What is at a place, compared with what should be there.
enum EntryCheck<'a> {
    Missing,
    Entry(EntryRef<'a>, EntryIdentity),
    Conflict(&'static str),
}

fn find<'a>(
    parents: &'a mut Parents<'_>,
    place: &'a WorkspacePath,
    (then, state): (Option<&EntryIdentity>, FileChangeState),
    turning: &HashSet<&str>,
) -> Result<EntryCheck<'a>, ChangesError> {
    let Some(name) = place.name() else { return Err(ChangesError::RootItself) };
    let parent = match parents.open(place) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => {
            // The folder may be one that this very turn makes.
            let made = place.parent().is_some_and(|parent| turning.contains(parent.to_string().as_str()));
            let fine = made && then.is_none();
            return Ok(if fine { EntryCheck::Missing } else { EntryCheck::Conflict("its directory is gone") });
        }
        Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
            return Ok(EntryCheck::Conflict("its directory was replaced"));
        }
        Err(errno) => return Err(ChangesError::at(place, errno)),
    };
    let spot = EntryRef { dir: parent, name };
    let now = spot.look().map_err(|errno| ChangesError::at(place, errno))?;
    Ok(match (then, now) {
        (None, None) => EntryCheck::Missing,
        (None, Some(_)) => EntryCheck::Conflict("it has appeared"),
        (Some(_), None) => EntryCheck::Conflict("it was removed"),
        (Some(then), Some(now)) if !now.is(then) => EntryCheck::Conflict("it was replaced"),
        (Some(then), Some(now)) if then.stamp.mode != now.stamp.mode => {
            EntryCheck::Conflict("its permissions were changed")
        }
        (Some(then), Some(now)) if !is_as_left(state, &then.stamp, &now.stamp) => {
            EntryCheck::Conflict("it was changed")
        }
        (Some(_), Some(now)) => EntryCheck::Entry(spot, now),
    })
}

/// What was only looked at must not have been touched at all. What a turn has put there may have been renamed since:
/// a later call that was undone moves it out and in again, which changes its ctime and nothing else.
fn is_as_left(state: FileChangeState, then: &FileStamp, now: &FileStamp) -> bool {
    match state {
        FileChangeState::Staged | FileChangeState::Discarded => then.untouched(now),
        FileChangeState::Committed | FileChangeState::Undone => then.same_apart_from_renames(now),
    }
}

fn check_slot(folder: &ChangesFolder, item: &Item, rest: &ItemState) -> Result<MaybeConflict, ChangesError> {
    let name = ChangesFolder::slot_name(item.slot);
    let now = EntryRef { dir: folder.handle(), name: &name }
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
fn check_only_ours(spot: EntryRef<'_>, item: &Item, turning: &HashSet<&str>) -> Result<MaybeConflict, ChangesError> {
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
