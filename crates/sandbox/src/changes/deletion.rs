//! Planning to delete a file, a link or a whole folder.

use std::os::fd::AsFd;

use super::draft::Draft;
use super::error::ChangesError;
use super::flags::{Subject, flags};
use super::plan::{Item, NestedEntry, Sketch};
use super::show::{DiffSide, compare};
use super::trail::{Trail, WalkError, read_small};
use crate::error::PathError;
use crate::stamp::{EntryIdentity, EntryKind};
use crate::transfer::EntryRef;
use crate::walk::{Visit, WalkStep, walk};
use crate::workspace_path::{WorkspacePath, show_name};

/// How many files beneath a folder are read for their diffs.
const READ_BENEATH: usize = 64;

impl Draft {
    /// Plans to delete a file, a link (never what it points to) or a folder, and lists every path that goes.
    pub fn delete(&mut self, place: &WorkspacePath, recursive: bool) -> Result<Vec<WorkspacePath>, ChangesError> {
        self.check_stopped()?;
        if place.is_root() {
            return Err(ChangesError::RootItself);
        }
        let resolved = self.root.resolve_entry(place)?;
        self.refuse_beneath_planned(&resolved, place)?;
        let planned_beneath = self.planned_beneath(&resolved);
        if self.takes_a_move_along(&resolved, &planned_beneath) {
            return Err(ChangesError::AlreadyPlanned { path: place.to_string() });
        }
        let planned = self.items.get(&resolved);
        let gone = planned.is_some_and(|item| !item.leaves_something());
        let before = self.root.look_real(&resolved)?;
        if gone || (planned.is_none() && before.is_none()) {
            let nearest = self.root.nearest(place);
            return Err(PathError::NotFound { path: place.to_string(), nearest }.into());
        }
        if !recursive && !planned_beneath.is_empty() {
            return Err(ChangesError::NotEmpty { path: place.to_string() });
        }
        let mut removed = vec![resolved.clone()];
        let item = match before {
            Some(before) => Some(self.plan_removal(&resolved, before, recursive, &mut removed)?),
            None => None,
        };
        // A walk gives the paths in order; comparing those of a very deep tree again would take long.
        if !planned_beneath.is_empty() {
            removed.extend(planned_beneath.iter().cloned());
            removed.sort();
            removed.dedup();
        }
        for beneath in &planned_beneath {
            self.forget(beneath)?;
        }
        match item {
            Some(item) => {
                let slot = self.slot_for(&resolved)?;
                self.put(resolved, Item { slot, ..item });
            }
            None => self.forget(&resolved)?,
        }
        Ok(removed)
    }

    fn planned_beneath(&self, resolved: &WorkspacePath) -> Vec<WorkspacePath> {
        let beneath = |place: &&WorkspacePath| place.as_path().starts_with(resolved.as_path()) && *place != resolved;
        self.items
            .range(resolved.clone()..)
            .map(|(place, _)| place)
            .skip_while(|place| *place == resolved)
            .take_while(beneath)
            .cloned()
            .collect()
    }

    /// Whether an end of a planned move lies beneath.
    fn takes_a_move_along(&self, resolved: &WorkspacePath, beneath: &[WorkspacePath]) -> bool {
        let is_end = |place: &WorkspacePath| self.items.get(place).is_some_and(Item::is_end_of_a_move);
        let source = self.sources.range(resolved.clone()..).next();
        beneath.iter().any(is_end) || source.is_some_and(|source| source.as_path().starts_with(resolved.as_path()))
    }

    pub(super) fn forget(&mut self, place: &WorkspacePath) -> Result<(), ChangesError> {
        if let Some(item) = self.items.remove(place) {
            self.folder()?.empty_slot(item.slot)?;
        }
        Ok(())
    }

    fn plan_removal(
        &mut self,
        resolved: &WorkspacePath,
        before: EntryIdentity,
        recursive: bool,
        removed: &mut Vec<WorkspacePath>,
    ) -> Result<Item, ChangesError> {
        self.note_removal(resolved, before, |draft, step, trail| {
            draft.refuse_step(Some(step.seen), trail)?;
            if step.depth == 0 {
                return Ok(());
            }
            if !recursive {
                return Err(WalkError::Refused(ChangesError::NotEmpty { path: resolved.to_string() }));
            }
            removed.push(trail.from().clone());
            Ok(())
        })
    }

    /// Walks what goes and notes every entry, so that a commit can tell whether anything has changed beneath. `judge`
    /// sees each entry first and may end it.
    pub(super) fn note_removal(
        &mut self,
        resolved: &WorkspacePath,
        before: EntryIdentity,
        mut judge: impl FnMut(&Draft, &WalkStep<'_>, &Trail) -> Result<(), WalkError>,
    ) -> Result<Item, ChangesError> {
        let parent = self.root.open_real_folder(&resolved.parent().unwrap_or_else(WorkspacePath::root))?;
        let name = resolved.name().ok_or(ChangesError::RootItself)?;
        let mut tree = Vec::new();
        let mut sketch = Sketch::default();
        let mut trail = Trail::new(resolved, resolved, before);
        let mut read = 0;
        let walked = walk(parent.as_fd(), name, |visit| {
            let Visit::Entry(step) = visit else { return Ok(()) };
            trail.go_to(step.depth, step.name);
            self.check_stopped()?;
            judge(self, &step, &trail)?;
            self.meter.add_path();
            let shown = self.sketch_removal(&step, trail.from(), &mut read);
            if step.depth == 0 {
                sketch = shown;
                return Ok(());
            }
            let plain = shown.diff.is_none() && shown.flags.is_empty() && !shown.binary;
            let sketch = if plain { None } else { Some(shown) };
            tree.push(NestedEntry { depth: step.depth, name: show_name(step.name), stamp: step.seen.stamp, sketch });
            Ok(())
        });
        walked.map_err(|ended| trail.error(ended))?;
        Ok(Item { tree, ..Item::swap(None, Some(before), sketch) })
    }

    /// The diff and flags of something that goes; only the first files beneath a folder are read.
    fn sketch_removal(&mut self, step: &WalkStep<'_>, place: &WorkspacePath, read: &mut usize) -> Sketch {
        let is_file = step.seen.kind() == EntryKind::File;
        let wanted = is_file && *read < READ_BENEATH && self.has_room_for_diffs();
        let content = if wanted { read_small(EntryRef { dir: step.dir, name: step.name }, step.seen) } else { None };
        let mut sketch = Sketch::default();
        if let Some(content) = &content {
            *read += 1;
            let shown = compare(&place.to_string(), DiffSide::Content(content), DiffSide::Nothing);
            sketch = self.keep_diff(shown);
        }
        let path = place.as_path();
        sketch.flags = flags(&Subject { path, kind: None, mode: 0, before: None, after: None, leads_outside: false });
        sketch
    }
}
