//! After a crash: a half turn is put back, a decided one is finished.

use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use super::change::{ChangeDirection, FileChangeState};
use super::change_log::{ChangeLog, LogState};
use super::closed::close_again;
use super::cross_filesystem_copies::{self, CrossFilesystemCopies, CrossFilesystemCopy};
use super::error::ChangesError;
use super::folder::{ChangesFolder, SIBLINGS};
use super::lock::Lock;
use super::plan::{Item, ItemState, ItemStates};
use super::rename::{self, MovePaths, MoveSource};
use super::sealed::{PATIENCE, open_root};
use super::select::{can_turn, rank};
use super::swap::{self, Pair, PutBackResult};
use super::tree::{TreeMatch, is_intact};
use super::turn::{AsideLocation, Parents, TurnContext};
use crate::stamp::EntryIdentity;
use crate::transfer::{self, EntryRef};
use crate::workspace_path::WorkspacePath;

/// What a recovery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Paths that had been swapped and are as before again.
    pub rolled_back: Vec<String>,
    /// Paths that somebody else has changed since; they were left alone, and what was there before the turn is still
    /// kept in the slot.
    pub conflicted: Vec<String>,
    /// Paths that are committed.
    pub committed: Vec<String>,
}

/// Makes a half turn whole or absent; does nothing where there is none.
pub fn recover(dir: &Path) -> Result<RecoveryReport, ChangesError> {
    let mut folder = ChangesFolder::open(dir)?;
    let (log, plan) = ChangeLog::open(folder.handle())?.ok_or(ChangesError::Gone)?;
    folder.sync = plan.sync;
    let root = open_root(&plan)?;
    let _lock = Lock::take(folder.handle(), root.folders(), PATIENCE)?;
    let standing = log.standing()?;
    let state = standing.state.unwrap_or_else(|| ItemStates::staged(&plan));
    let context = TurnContext { folder: &folder, log: &log, root: &root, plan: &plan, state: &state };
    let (state, mut recovered) = heal(context, standing.turning)?;
    recovered.committed = plan
        .items
        .iter()
        .zip(&state.items)
        .filter(|(_, rest)| rest.state == FileChangeState::Committed)
        .map(|(item, _)| item.path.clone())
        .collect();
    Ok(recovered)
}

/// Removes a set of changes with everything it keeps, sealed or not; nothing there is fine.
pub fn remove(dir: &Path) -> Result<(), ChangesError> {
    match ChangesFolder::open(dir) {
        Ok(folder) => folder.remove(),
        Err(ChangesError::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a turn has begun that did not come to its end.
pub(super) fn is_half_turned(folder: &ChangesFolder, standing: &LogState) -> Result<bool, ChangesError> {
    Ok(standing.turning || folder.has(SIBLINGS)?)
}

/// Brings everything to rest; the workspace's lock is held. `turning` says that a turn has begun and was not decided.
pub(super) fn heal(context: TurnContext<'_>, turning: bool) -> Result<(ItemStates, RecoveryReport), ChangesError> {
    if context.state.items.len() != context.plan.items.len() {
        return Err(ChangesError::Corrupt { what: "the state does not fit the plan".to_owned() });
    }
    if context.state.is_unfinished() {
        return Ok((cross_filesystem_copies::finish(context)?, RecoveryReport::default()));
    }
    if turning {
        return roll_back(context);
    }
    if let Some(left) = context.folder.read::<CrossFilesystemCopies>(SIBLINGS)? {
        cross_filesystem_copies::clean(context, &left)?;
    }
    Ok((context.state.clone(), RecoveryReport::default()))
}

/// Puts back whatever an undecided turn has swapped.
pub(super) fn roll_back(context: TurnContext<'_>) -> Result<(ItemStates, RecoveryReport), ChangesError> {
    let siblings: CrossFilesystemCopies = context.folder.read(SIBLINGS)?.unwrap_or_default();
    let mut next = context.state.clone();
    let mut recovered = RecoveryReport::default();
    let mut parents = Parents::new(context.root);
    for index in order(context) {
        let item = &context.plan.items[index];
        match put_back(context, &siblings, index, &mut parents)? {
            PutBackResult::AtRest => {}
            PutBackResult::Done => recovered.rolled_back.push(item.path.clone()),
            PutBackResult::Conflict => recovered.conflicted.push(item.path.clone()),
        }
        refresh(item, &mut next.items[index], &mut parents)?;
    }
    context.folder.unlink(SIBLINGS)?;
    context.log.settle(&next)?;
    context.folder.flush()?;
    Ok((next, recovered))
}

/// The reverse of the order in which the items may have been swapped.
///
/// Only a commit touches what is not committed and only an undo touches what is, so each kind is put back in its own
/// direction and the direction of the broken turn need not be known.
fn order(context: TurnContext<'_>) -> Vec<usize> {
    let of = |direction| {
        let mut list: Vec<usize> = (0..context.plan.items.len())
            .filter(|&index| can_turn(context.state.items[index].state, direction))
            .collect();
        list.sort_by_key(|&index| (rank(&context.plan.items[index]), index));
        list
    };
    of(ChangeDirection::Commit).into_iter().rev().chain(of(ChangeDirection::Undo)).collect()
}

fn put_back(
    context: TurnContext<'_>,
    siblings: &CrossFilesystemCopies,
    index: usize,
    parents: &mut Parents<'_>,
) -> Result<PutBackResult, ChangesError> {
    let (item, rest) = (&context.plan.items[index], &context.state.items[index]);
    let place = item.place()?;
    let failed = |errno| ChangesError::at(&place, errno);
    let name = place.name().ok_or(ChangesError::RootItself)?;
    let parent = match parents.open(&place) {
        Ok(parent) => Some(parent),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
        Err(errno) => return Err(failed(errno)),
    };
    if item.mode.is_some() {
        let path = parent.map(|dir| EntryRef { dir, name });
        return path.map_or(Ok(PutBackResult::Conflict), |path| put_back_mode(item, rest, path)).map_err(failed);
    }
    let sibling = siblings.of(index);
    let aside = AsideLocation::open(context, item, sibling.map(|sibling| sibling.folder.as_str()))?;
    let aside = aside.spot();
    let path = parent.map(|dir| EntryRef { dir, name });
    let copy = sibling.and_then(|sibling| sibling.copy);
    close_again(&[Some(aside), path], &[rest.slot, rest.path, rest.from, copy]).map_err(failed)?;
    if item.moved.is_some() {
        return move_back(context, index, (path, aside), sibling.map(|sibling| (sibling, siblings.ready)));
    }
    if let Some(sibling) = sibling {
        return put_back_sibling(context, index, (sibling, siblings.ready), (aside, path)).map_err(failed);
    }
    let Some(path) = path else { return still_aside(aside, rest.slot.as_ref()).map_err(failed) };
    let intact = |spot: EntryRef<'_>| is_intact(spot, item, rest.side_in_slot(), rest.likeness_aside());
    swap::put_back(Pair { aside, path }, rest.slot.as_ref(), rest.path.as_ref(), &intact).map_err(failed)
}

fn put_back_sibling(
    context: TurnContext<'_>,
    index: usize,
    (sibling, ready): (&CrossFilesystemCopy, bool),
    (aside, path): (EntryRef<'_>, Option<EntryRef<'_>>),
) -> Result<PutBackResult, Errno> {
    let (item, rest) = (&context.plan.items[index], &context.state.items[index]);
    // Before everything was copied nothing was swapped.
    if !ready {
        transfer::remove(aside)?;
        return Ok(PutBackResult::AtRest);
    }
    cross_filesystem_copies::sweep(aside)?;
    let copy = sibling.copy.as_ref();
    let outcome = match path {
        // The slot has never been emptied: without a sibling and with the old thing in place all is done.
        Some(path) if aside.look()?.is_none() && is_at_rest(path, rest)? => PutBackResult::AtRest,
        Some(path) => {
            // A copy has other inodes than those in the plan.
            let intact = |spot: EntryRef<'_>| is_intact(spot, item, rest.side_in_slot(), TreeMatch::Copied);
            swap::put_back(Pair { aside, path }, copy, rest.path.as_ref(), &intact)?
        }
        None if aside.look()?.is_none() && rest.path.is_none() => PutBackResult::AtRest,
        None => still_aside(aside, copy)?,
    };
    cross_filesystem_copies::put_away(context.folder, aside, item, copy)?;
    Ok(outcome)
}

/// Puts back what was moved, or what was being moved back.
fn move_back(
    context: TurnContext<'_>,
    index: usize,
    (path, aside): (Option<EntryRef<'_>>, EntryRef<'_>),
    sibling: Option<(&CrossFilesystemCopy, bool)>,
) -> Result<PutBackResult, ChangesError> {
    let (item, rest) = (&context.plan.items[index], &context.state.items[index]);
    let failed = |errno| ChangesError::at(&item.path, errno);
    let Some(moved) = &item.moved else { return Ok(PutBackResult::AtRest) };
    // Before everything was copied nothing was moved.
    if sibling.is_some_and(|(_, ready)| !ready) {
        transfer::remove(aside).map_err(failed)?;
        return Ok(PutBackResult::AtRest);
    }
    if sibling.is_some() {
        cross_filesystem_copies::sweep(aside).map_err(failed)?;
    }
    let source = match MoveSource::open(context.root, moved)? {
        Ok(source) => Some(source),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
        Err(errno) => return Err(failed(errno)),
    };
    let from = source.as_ref().map(MoveSource::spot).transpose()?;
    close_again(&[from], &[rest.slot, rest.path, rest.from]).map_err(failed)?;
    let both_rest = rename::is_at_rest(from, rest.from.as_ref()).map_err(failed)?
        && rename::is_at_rest(path, rest.path.as_ref()).map_err(failed)?;
    let outcome = match (from, path) {
        _ if both_rest => PutBackResult::AtRest,
        (Some(from), Some(path)) => {
            rename::put_back(MovePaths { from, path, aside: item.before.map(|_| aside) }, item, rest).map_err(failed)?
        }
        (Some(_), None) | (None, Some(_) | None) => PutBackResult::Conflict,
    };
    if let Some((sibling, _)) = sibling {
        cross_filesystem_copies::put_away(context.folder, aside, item, sibling.copy.as_ref()).map_err(failed)?;
    }
    Ok(outcome)
}

fn is_at_rest(path: EntryRef<'_>, rest: &ItemState) -> Result<bool, Errno> {
    Ok(match (path.look()?, &rest.path) {
        (None, None) => true,
        (Some(now), Some(before)) => now.is_unchanged(before),
        (Some(_), None) | (None, Some(_)) => false,
    })
}

/// Without its folder a path cannot hold anything of ours.
fn still_aside(aside: EntryRef<'_>, held: Option<&EntryIdentity>) -> Result<PutBackResult, Errno> {
    let same = match (aside.look()?, held) {
        (Some(found), Some(held)) => found.is(held),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    Ok(if same { PutBackResult::AtRest } else { PutBackResult::Conflict })
}

fn put_back_mode(item: &Item, rest: &ItemState, path: EntryRef<'_>) -> Result<PutBackResult, Errno> {
    let Some(before) = &rest.path else { return Ok(PutBackResult::AtRest) };
    let Some(now) = path.look()? else { return Ok(PutBackResult::Conflict) };
    if now.is_unchanged(before) {
        return Ok(PutBackResult::AtRest);
    }
    let direction =
        if rest.state == FileChangeState::Committed { ChangeDirection::Undo } else { ChangeDirection::Commit };
    let mut turned = *before;
    turned.stamp.mode = (before.stamp.mode & !0o7777) | item.mode_towards(direction).unwrap_or_default();
    if swap::change_mode(path, &turned, before.stamp.mode)? {
        Ok(PutBackResult::Done)
    } else {
        Ok(PutBackResult::Conflict)
    }
}

/// Renames and changes of mode move an entry's ctime: what is otherwise untouched gets its new stamp.
fn refresh(item: &Item, rest: &mut ItemState, parents: &mut Parents<'_>) -> Result<(), ChangesError> {
    restamp(&item.place()?, &mut rest.path, parents)?;
    match &item.moved {
        Some(moved) => restamp(&moved.place()?, &mut rest.from, parents),
        None => Ok(()),
    }
}

fn restamp(
    place: &WorkspacePath,
    seen: &mut Option<EntryIdentity>,
    parents: &mut Parents<'_>,
) -> Result<(), ChangesError> {
    let Some(before) = *seen else { return Ok(()) };
    let (Ok(dir), Some(name)) = (parents.open(place), place.name()) else { return Ok(()) };
    let now = EntryRef { dir, name }.look().map_err(|errno| ChangesError::at(place, errno))?;
    if let Some(now) = now.filter(|now| now.is_unchanged(&before)) {
        *seen = Some(now);
    }
    Ok(())
}

/// Does not wait for a lock that somebody holds: whoever holds it heals.
pub(super) const NO_WAIT: Duration = Duration::ZERO;
