//! Goes through what a command has left, compares it with the workspace and puts into slots what differs.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::compare::same_content;
use super::lower_folder::LowerFolder;
use super::marks::{LayerEntry, Marks};
use super::permissions::{LayerPermissions, set_mode};
use super::take::{LayerNotes, OriginLookup, PathOrigin};
use super::whole_folder::WholeFolder;
use crate::changes::draft::{Draft, mode_subject};
use crate::changes::error::ChangesError;
use crate::changes::flags::flags;
use crate::changes::folder::ChangesFolder;
use crate::changes::plan::{Item, Sketch};
use crate::changes::swap::rename;
use crate::changes::trail::{Trail, WalkError};
use crate::error::PathError;
use crate::stamp::{EntryIdentity, EntryKind, look, look_at};
use crate::transfer::EntryRef;
use crate::walk::{Visit, WalkStep, walk};
use crate::workspace_path::WorkspacePath;

/// Why what a command has left in the place of something that it was not shown stays where it is.
const HIDDEN: &str = "it holds secrets that commands are not shown, so they cannot change it";

/// A walk over a layer, and what it has found so far.
pub(super) struct LayerScan<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) ready: LayerPermissions,
    pub(super) trail: Trail,
    /// The folder that is being taken as a whole.
    pub(super) whole: Option<WholeFolder>,
    pub(super) taken: LayerNotes,
    slots: OwnedFd,
    /// What the layer lies over.
    ground: LayerGround<'a>,
    /// The same folder there.
    below: LowerFolder,
    began: (i64, u32),
    sort: OriginLookup<'a>,
}

/// What the workspace has where a command has left something.
#[derive(Clone, Copy)]
pub(super) struct LowerEntry {
    pub(super) seen: Option<EntryIdentity>,
    /// Somebody else has changed it since the command began.
    pub(super) overtaken: bool,
}

/// The folder that a layer lies over: the workspace, or its git folder outside.
pub(super) struct LayerGround<'a> {
    /// Where in the workspace it is.
    pub(super) place: WorkspacePath,
    pub(super) handle: BorrowedFd<'a>,
    pub(super) seen: &'a EntryIdentity,
}

/// Plans everything that a command has left in the folder `upper` of its layer.
pub(super) fn scan_layer(
    draft: &mut Draft,
    (began, sort): ((i64, u32), OriginLookup<'_>),
    (layer, upper, ready): (BorrowedFd<'_>, &OsStr, LayerPermissions),
    ground: LayerGround<'_>,
) -> Result<LayerNotes, ChangesError> {
    let kept = |errno| ChangesError::kept("take over a layer", errno);
    let slots = rustix::io::dup(draft.folder()?.handle()).map_err(kept)?;
    let top = look_at(layer, upper).and_then(|seen| seen.ok_or(Errno::NOENT)).map_err(kept)?;
    let trail = Trail::new(&ground.place, &ground.place, top);
    let (whole, taken, below) = (None, LayerNotes::default(), LowerFolder::new());
    let mut scan = LayerScan { draft, ready, trail, whole, taken, slots, ground, below, began, sort };
    let walked = walk(layer, upper, |visit| scan.visit(&visit));
    walked.map_err(|ended| scan.trail.error(ended))?;
    Ok(scan.taken)
}

impl LayerScan<'_> {
    fn visit(&mut self, visit: &Visit<'_>) -> Result<(), WalkError> {
        match visit {
            Visit::Entry(step) => {
                self.trail.go_to(step.depth, step.name);
                self.draft.check_stopped()?;
                self.draft.meter.add_path();
                if step.depth == 0 { self.compare_roots(step) } else { self.enter(step) }
            }
            Visit::Leave(step) => {
                self.trail.go_to(step.depth, step.name);
                if self.whole.is_some() { self.leave_whole(step) } else { Ok(self.below.leave(step.depth)?) }
            }
        }
    }

    /// The workspace folder itself cannot be changed, nor can a git folder outside.
    fn compare_roots(&mut self, step: &WalkStep<'_>) -> Result<(), WalkError> {
        if self.ready.mode(step.seen) != look(self.ground.handle)?.stamp.mode & 0o7777 {
            let place = self.ground.place.clone();
            let is_workspace = place.is_root();
            let whose = "the permissions of the workspace folder itself";
            self.leave_out(&place, if is_workspace { whose } else { "the permissions of the git folder itself" });
        }
        Ok(self.below.enter(Some(self.ground.handle), step)?)
    }

    fn enter(&mut self, step: &WalkStep<'_>) -> Result<(), WalkError> {
        let spot = EntryRef { dir: step.dir, name: step.name };
        let marks = Marks::read(spot, step.seen)?;
        let left = marks.meaning(spot, step.seen)?;
        if self.whole.is_some() {
            return self.fill_whole(step, &marks, left);
        }
        let place = self.trail.to().clone();
        let lower = self.lower(step, &marks, left)?;
        let is = |kind| lower.seen.filter(|seen| seen.kind() == kind);
        match left {
            LayerEntry::Nothing => self.take_removal(&place, lower),
            LayerEntry::Special(what) => {
                self.leave_out(&place, what);
                Ok(())
            }
            LayerEntry::Link => match is(EntryKind::Link) {
                Some(before) if self.is_same(step, &before)? => Ok(()),
                Some(_) | None => self.take_entry(step, &marks, lower),
            },
            LayerEntry::File => match is(EntryKind::File) {
                Some(before) => self.take_if_changed(step, &marks, lower, &before),
                None => self.take_entry(step, &marks, lower),
            },
            LayerEntry::Folder | LayerEntry::FolderAnew => match is(EntryKind::Directory) {
                Some(before) if left == LayerEntry::Folder && !self.draft.hidden.contains(&place) => {
                    let mode = self.ready.mode(step.seen);
                    self.below.enter(None, step)?;
                    self.take_mode(&place, lower, &before, mode)
                }
                Some(_) | None => self.begin_whole(step, &marks, lower),
            },
        }
    }

    /// What the workspace has at a place, and whether somebody else has changed it meanwhile.
    fn lower(&self, step: &WalkStep<'_>, marks: &Marks, left: LayerEntry) -> Result<LowerEntry, Errno> {
        let Some(parent) = self.below.folder() else { return Ok(LowerEntry { seen: None, overtaken: true }) };
        let seen = look_at(parent, step.name)?;
        let overtaken = match seen {
            Some(seen) => seen.stamp.ctime >= self.began,
            // A copy without its original. A file may also have come here from another place; then nobody else has
            // changed this folder. No folder comes from another place.
            None if marks.is_copy() => left == LayerEntry::Folder || look(parent)?.stamp.ctime >= self.began,
            None => false,
        };
        Ok(LowerEntry { seen, overtaken })
    }

    fn take_removal(&mut self, place: &WorkspacePath, lower: LowerEntry) -> Result<(), WalkError> {
        let Some(before) = lower.seen else { return Ok(()) };
        let Some(item) = self.note_removal(place, before, lower.overtaken)? else { return Ok(()) };
        let slot = self.draft.slot_for(place)?;
        let derived = self.is_derived(place, before.kind());
        self.draft.put(place.clone(), Item { slot, derived, ..item });
        Ok(())
    }

    /// Lists what goes; `None` when it cannot go.
    pub(super) fn note_removal(
        &mut self,
        place: &WorkspacePath,
        before: EntryIdentity,
        mut overtaken: bool,
    ) -> Result<Option<Item>, WalkError> {
        let began = self.began;
        let noted = self.draft.note_removal(place, before, |draft, step, trail| {
            overtaken |= step.seen.stamp.ctime >= began;
            let path = trail.from().to_string();
            if draft.hidden.contains(trail.from()) {
                return Err(WalkError::Refused(PathError::Sensitive { path }.into()));
            }
            if step.seen.shares_mount(&before) {
                return Ok(());
            }
            Err(WalkError::Refused(PathError::NotRegular { path, what: "a mount point" }.into()))
        });
        match noted {
            Ok(item) => Ok(Some(Item { overtaken, ..item })),
            Err(ChangesError::Unsteady { .. }) => {
                Ok(Some(Item { overtaken: true, ..Item::swap(None, Some(before), Sketch::default()) }))
            }
            Err(ChangesError::Path(PathError::NotRegular { .. })) => {
                self.leave_out(place, "its removal, because a mount point lies beneath it");
                Ok(None)
            }
            Err(ChangesError::Path(PathError::Sensitive { .. })) => {
                let beneath = "its removal, because something beneath it holds secrets that commands are not shown";
                self.leave_out(place, if self.draft.hidden.contains(place) { HIDDEN } else { beneath });
                Ok(None)
            }
            Err(ChangesError::Path(PathError::Denied { .. })) => {
                self.leave_out(place, "its removal, because it cannot be looked into");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn take_if_changed(
        &mut self,
        step: &WalkStep<'_>,
        marks: &Marks,
        lower: LowerEntry,
        before: &EntryIdentity,
    ) -> Result<(), WalkError> {
        let place = self.trail.to().clone();
        if !self.is_same(step, before)? {
            if before.links > 1 {
                let note = "it shared its content with other names, which keep the old one";
                self.taken.notes.push((place.to_string(), note));
            }
            return self.take_entry(step, marks, lower);
        }
        // Build tools go by times; people do not.
        if step.seen.stamp.mtime > before.stamp.mtime && self.is_derived(&place, EntryKind::File) {
            return self.take_entry(step, marks, lower);
        }
        self.take_mode(&place, lower, before, step.seen.stamp.mode & 0o7777)
    }

    /// Plans to change the permissions, if they differ.
    fn take_mode(
        &mut self,
        place: &WorkspacePath,
        lower: LowerEntry,
        before: &EntryIdentity,
        mode: u32,
    ) -> Result<(), WalkError> {
        if before.stamp.mode & 0o7777 == mode {
            return Ok(());
        }
        let sketch = Sketch { flags: flags(&mode_subject(place, before.kind(), mode)), ..Sketch::default() };
        let slot = self.draft.slot_for(place)?;
        let derived = self.is_derived(place, before.kind());
        let item = Item::swap(None, Some(*before), sketch);
        let overtaken = lower.overtaken;
        self.draft.put(place.clone(), Item { mode: Some(mode), slot, derived, overtaken, ..item });
        Ok(())
    }

    /// Puts a file or link into a slot.
    fn take_entry(&mut self, step: &WalkStep<'_>, marks: &Marks, lower: LowerEntry) -> Result<(), WalkError> {
        let place = self.trail.to().clone();
        let spot = EntryRef { dir: step.dir, name: step.name };
        let like = lower.seen.filter(|before| before.kind() == step.seen.kind());
        let Some(room) = self.make_room(&place, lower)? else { return Ok(()) };
        marks.strip(spot, step.seen.stamp.mode & 0o7777)?;
        self.ready.give(spot, step.seen, like.as_ref())?;
        let (slot, staged) = self.stage(spot, &place)?;
        let name = ChangesFolder::slot_name(slot);
        let sketch =
            self.draft.sketch_staged(&place, EntryRef { dir: self.slots.as_fd(), name: &name }, (&staged, like));
        let derived = self.is_derived(&place, staged.kind());
        self.draft.put(place, Item { slot, staged: Some(staged), derived, sketch, ..room });
        Ok(())
    }

    /// What makes room for something new; `None` when it cannot.
    pub(super) fn make_room(&mut self, place: &WorkspacePath, lower: LowerEntry) -> Result<Option<Item>, WalkError> {
        if self.draft.hidden.contains(place) {
            self.leave_out(place, HIDDEN);
            return Ok(None);
        }
        match lower.seen {
            Some(before) if before.kind() == EntryKind::Directory => self.note_removal(place, before, lower.overtaken),
            before => {
                let item = Item::swap(None, before, Sketch::default());
                Ok(Some(Item { overtaken: lower.overtaken, ..item }))
            }
        }
    }

    /// Moves an entry of the layer into the slot of its place.
    pub(super) fn stage(
        &mut self,
        spot: EntryRef<'_>,
        place: &WorkspacePath,
    ) -> Result<(usize, EntryIdentity), WalkError> {
        let slot = self.draft.slot_for(place)?;
        let name = ChangesFolder::slot_name(slot);
        let to = EntryRef { dir: self.slots.as_fd(), name: &name };
        rename(spot, to, RenameFlags::NOREPLACE)?;
        let moved = to.look()?.ok_or(Errno::NOENT)?;
        if moved.kind() != EntryKind::Directory {
            return Ok((slot, moved));
        }
        self.ready.close(to, &moved)?;
        Ok((slot, to.look()?.ok_or(Errno::NOENT)?))
    }

    /// Whether the workspace has the same content there.
    fn is_same(&self, step: &WalkStep<'_>, before: &EntryIdentity) -> Result<bool, Errno> {
        let Some(dir) = self.below.folder() else { return Ok(false) };
        let spot = EntryRef { dir: step.dir, name: step.name };
        let mode = step.seen.stamp.mode & 0o7777;
        let hidden = mode & 0o400 == 0;
        if hidden {
            set_mode(spot, mode | 0o400)?;
        }
        let same = same_content((spot, &step.seen.stamp), (EntryRef { dir, name: step.name }, &before.stamp));
        if hidden {
            set_mode(spot, mode)?;
        }
        Ok(same)
    }

    pub(super) fn is_derived(&self, place: &WorkspacePath, kind: EntryKind) -> bool {
        (self.sort)(place, kind) == PathOrigin::Derived
    }

    pub(super) fn leave_out(&mut self, place: &WorkspacePath, why: &'static str) {
        self.taken.left_out.push((place.to_string(), why));
    }
}
