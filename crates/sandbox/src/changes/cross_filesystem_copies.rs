//! Swapping where the workspace lies on another filesystem than the slots.
//!
//! No rename crosses filesystems, so what lies in a slot is first copied beside its path as `.haft-<tag>-<slot>`.
//! `siblings.json` names every sibling before it is made and, once all are made, what they are; only then is anything
//! swapped. After the turn is decided, what was displaced is copied into the slots and the siblings are removed.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::RenameFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::ChangesError;
use super::folder::{ChangesFolder, SIBLINGS};
use super::plan::{ChangePlan, Item, ItemState, ItemStates};
use super::swap::{is_no_swap, rename};
use super::turn::{Parents, TurnContext};
use crate::copy::copy;
use crate::error::PathError;
use crate::root::Root;
use crate::stamp::{EntryIdentity, look};
use crate::transfer::{self, EntryRef};
use crate::workspace_path::WorkspacePath;

/// All siblings of one turn, by the index of their item.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CrossFilesystemCopies {
    /// Whether all copies are made; before that nothing has been swapped.
    pub(super) ready: bool,
    pub(super) list: BTreeMap<usize, CrossFilesystemCopy>,
}

/// One sibling.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CrossFilesystemCopy {
    /// The folder it lies in, as it is shown.
    pub(super) folder: String,
    /// The copy of what lay in the slot; nothing when the slot was empty.
    pub(super) copy: Option<EntryIdentity>,
}

impl CrossFilesystemCopies {
    pub(super) fn of(&self, index: usize) -> Option<&CrossFilesystemCopy> {
        self.list.get(&index)
    }
}

/// Makes the siblings of all chosen items whose path is on another filesystem than their slot.
pub(super) fn prepare(
    context: TurnContext<'_>,
    chosen: &[usize],
    parents: &mut Parents<'_>,
) -> Result<CrossFilesystemCopies, ChangesError> {
    let mut siblings = CrossFilesystemCopies { ready: false, list: find_homes(context, chosen, parents)? };
    if siblings.list.is_empty() {
        return Ok(siblings);
    }
    context.folder.write(SIBLINGS, &siblings)?;
    for (&index, sibling) in &mut siblings.list {
        let item = &context.plan.items[index];
        if context.state.items[index].slot.is_none() {
            continue;
        }
        let failed = |errno| ChangesError::at(&item.path, errno);
        let (folder, name) = open(context.root, context.plan, item, &sibling.folder)?;
        let to = EntryRef { dir: folder.as_fd(), name: &name };
        let slot = ChangesFolder::slot_name(item.slot);
        copy(EntryRef { dir: context.folder.handle(), name: &slot }, to).map_err(failed)?;
        sibling.copy = to.look().map_err(failed)?;
    }
    siblings.ready = true;
    context.folder.write(SIBLINGS, &siblings)?;
    Ok(siblings)
}

/// Finds out which items need a sibling, and in which folder it can lie.
fn find_homes(
    context: TurnContext<'_>,
    chosen: &[usize],
    parents: &mut Parents<'_>,
) -> Result<BTreeMap<usize, CrossFilesystemCopy>, ChangesError> {
    let slots = look(context.folder.handle()).map_err(|errno| ChangesError::kept("look at the slots", errno))?;
    let mut list = BTreeMap::new();
    let mut planned = None;
    let mut last: Option<(WorkspacePath, Option<String>)> = None;
    for &index in chosen.iter().filter(|&&index| context.plan.items[index].uses_its_slot()) {
        let place = context.plan.items[index].place()?;
        let parent = place.parent().unwrap_or_else(WorkspacePath::root);
        if last.as_ref().is_none_or(|(place, _)| *place != parent) {
            let here = if parent.is_root() { Ok(*context.root.seen()) } else { parents.open(&place).and_then(look) };
            let home = if here.is_ok_and(|here| here.shares_mount(&slots)) {
                None
            } else {
                let all = || context.plan.items.iter().map(|item| item.path.clone()).collect();
                find_home(context.root, &parent, &slots, planned.get_or_insert_with(all))?
            };
            last = Some((parent, home));
        }
        if let Some((_, Some(folder))) = &last {
            list.insert(index, CrossFilesystemCopy { folder: folder.clone(), copy: None });
        }
    }
    Ok(list)
}

/// The folder for siblings of entries of `parent`; `None` when the slots are on the same mount.
///
/// It must exist before and after the turn and stay writable, so folders that the plan touches are passed over.
fn find_home(
    root: &Root,
    parent: &WorkspacePath,
    slots: &EntryIdentity,
    planned: &HashSet<String>,
) -> Result<Option<String>, ChangesError> {
    let mut mount: Option<EntryIdentity> = None;
    let mut deepest = None;
    let mut next = Some(parent.clone());
    while let Some(place) = next {
        match root.open_folder_beneath(place.for_kernel()).and_then(look) {
            Ok(seen) if mount.is_none() && seen.shares_mount(slots) => return Ok(None),
            Ok(seen) => {
                let shown = place.to_string();
                let same = mount.get_or_insert(seen).shares_mount(&seen);
                if same && (place.is_root() || !planned.contains(&shown)) {
                    return Ok(Some(shown));
                }
                deepest.get_or_insert(shown);
            }
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(ChangesError::at(&place, errno)),
        }
        next = place.parent();
    }
    Ok(deepest)
}

/// Opens the folder of a sibling and gives the sibling's name.
pub(super) fn open(
    root: &Root,
    plan: &ChangePlan,
    item: &Item,
    folder: &str,
) -> Result<(OwnedFd, OsString), ChangesError> {
    let place = WorkspacePath::from_shown(folder).map_err(|error| ChangesError::Corrupt { what: error.to_string() })?;
    Ok((root.open_real_folder(&place)?, OsString::from(format!(".haft-{}-{}", plan.tag, item.slot))))
}

/// Brings what a decided turn has displaced into the slots and removes the siblings.
pub(super) fn finish(context: TurnContext<'_>) -> Result<ItemStates, ChangesError> {
    let TurnContext { folder, root, plan, .. } = context;
    let siblings: CrossFilesystemCopies = folder.read(SIBLINGS)?.unwrap_or_default();
    let mut next = context.state.clone();
    for (index, rest) in next.items.iter_mut().enumerate().filter(|(_, rest)| rest.in_sibling) {
        bring_home(folder, root, (plan, &plan.items[index]), (siblings.of(index), rest))?;
    }
    folder.flush()?;
    context.log.settle(&next)?;
    clean(context, &siblings)?;
    Ok(next)
}

fn bring_home(
    folder: &ChangesFolder,
    root: &Root,
    (plan, item): (&ChangePlan, &Item),
    (sibling, rest): (Option<&CrossFilesystemCopy>, &mut ItemState),
) -> Result<(), ChangesError> {
    rest.in_sibling = false;
    rest.copied = true;
    let Some(displaced) = rest.slot else { return folder.empty_slot(item.slot) };
    let failed = |errno| ChangesError::kept("keep what was displaced", errno);
    let Some((dir, name)) = open_if_there(root, plan, item, sibling)? else { return Ok(()) };
    let from = EntryRef { dir: dir.as_fd(), name: &name };
    // Somebody has taken it away: a later undo will find nothing and say so.
    if !from.look().map_err(failed)?.is_some_and(|found| found.is(&displaced)) {
        return Ok(());
    }
    rest.slot = keep(folder, from, item.slot, &ChangesFolder::slot_name(item.slot)).map_err(failed)?;
    Ok(())
}

/// Copies an entry into the slots under a name, replacing what is there only once the copy is whole.
fn keep(
    folder: &ChangesFolder,
    from: EntryRef<'_>,
    slot: usize,
    name: &OsString,
) -> Result<Option<EntryIdentity>, Errno> {
    let fresh = OsString::from(format!("slot-{slot}.new"));
    let to = EntryRef { dir: folder.handle(), name: &fresh };
    transfer::remove(to)?;
    copy(from, to)?;
    let kept = EntryRef { dir: folder.handle(), name };
    transfer::remove(kept)?;
    rustix::fs::renameat_with(to.dir, Path::new(to.name), kept.dir, Path::new(kept.name), RenameFlags::NOREPLACE)?;
    kept.look()
}

/// Removes a sibling after its swap was put back; what is not our own copy is kept beside the slot.
///
/// It is renamed first: a folder that is half removed must not be taken for one that somebody has changed.
pub(super) fn put_away(
    folder: &ChangesFolder,
    from: EntryRef<'_>,
    item: &Item,
    copy: Option<&EntryIdentity>,
) -> Result<(), Errno> {
    let Some(found) = from.look()? else { return Ok(()) };
    if !copy.is_some_and(|copy| found.is(copy)) {
        keep(folder, from, item.slot, &OsString::from(format!("slot-{}.kept", item.slot)))?;
    }
    let going = going(from);
    match rustix::fs::renameat_with(from.dir, Path::new(from.name), from.dir, &going, RenameFlags::NOREPLACE) {
        Ok(()) => transfer::remove(EntryRef { dir: from.dir, name: going.as_os_str() }),
        // Where nothing can be swapped, nothing was, and nobody looks whether it is whole.
        Err(errno) if is_no_swap(errno) => transfer::remove(from),
        Err(errno) => Err(errno),
    }
}

/// Takes away what somebody else has already replaced, and keeps it beside the slot.
pub(super) fn set_aside(folder: &ChangesFolder, from: EntryRef<'_>, item: &Item) -> Result<(), Errno> {
    let name = OsString::from(format!("slot-{}.kept", item.slot));
    let kept = EntryRef { dir: folder.handle(), name: &name };
    match rename(from, kept, RenameFlags::NOREPLACE) {
        Err(Errno::XDEV) => {
            keep(folder, from, item.slot, &name)?;
            transfer::remove(from)
        }
        done => done,
    }
}

/// Removes what an earlier [`put_away`] was stopped at.
pub(super) fn sweep(sibling: EntryRef<'_>) -> Result<(), Errno> {
    transfer::remove(EntryRef { dir: sibling.dir, name: going(sibling).as_os_str() })
}

fn going(sibling: EntryRef<'_>) -> PathBuf {
    let mut name = sibling.name.to_owned();
    name.push("-going");
    PathBuf::from(name)
}

/// Removes every sibling and the list of them.
pub(super) fn clean(context: TurnContext<'_>, siblings: &CrossFilesystemCopies) -> Result<(), ChangesError> {
    let TurnContext { folder, root, plan, .. } = context;
    for (&index, sibling) in &siblings.list {
        let item = plan.items.get(index).ok_or_else(|| ChangesError::Corrupt { what: SIBLINGS.to_owned() })?;
        if let Some((dir, name)) = open_if_there(root, plan, item, Some(sibling))? {
            transfer::remove(EntryRef { dir: dir.as_fd(), name: &name })
                .map_err(|errno| ChangesError::at(&item.path, errno))?;
        }
    }
    folder.unlink(SIBLINGS)
}

fn open_if_there(
    root: &Root,
    plan: &ChangePlan,
    item: &Item,
    sibling: Option<&CrossFilesystemCopy>,
) -> Result<Option<(OwnedFd, OsString)>, ChangesError> {
    let Some(sibling) = sibling else { return Ok(None) };
    match open(root, plan, item, &sibling.folder) {
        Ok(found) => Ok(Some(found)),
        Err(ChangesError::Path(PathError::NotFound { .. } | PathError::NotDirectory { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}
