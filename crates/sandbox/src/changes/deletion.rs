//! Planning to delete a file, a link or a whole folder.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::draft::Draft;
use super::error::ChangesError;
use super::flags::{Subject, flags};
use super::plan::{Beneath, Item, Sketch};
use super::show::{LONGEST_SIDE, Side, compare};
use crate::error::PathError;
use crate::place::{Place, show_name};
use crate::sensitive::is_sensitive_name;
use crate::stamp::{EntryKind, Seen};
use crate::walk::{Step, Visit, walk};

/// How many files beneath a folder are read for their diffs.
const READ_BENEATH: usize = 64;

/// Why a walk ended early.
enum Ended {
    System(Errno),
    Refused(ChangesError),
}

impl From<Errno> for Ended {
    fn from(errno: Errno) -> Ended {
        Ended::System(errno)
    }
}

impl Draft {
    /// Plans to delete a file, a link (never what it points to) or a folder, and lists every path that goes.
    pub fn delete(&mut self, place: &Place, recursive: bool) -> Result<Vec<Place>, ChangesError> {
        self.check_stopped()?;
        if place.is_root() {
            return Err(ChangesError::RootItself);
        }
        let resolved = self.root.resolve_entry(place)?;
        self.refuse_beneath_planned(&resolved, place)?;
        let planned_beneath = self.planned_beneath(&resolved);
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

    fn planned_beneath(&self, resolved: &Place) -> Vec<Place> {
        let beneath = |place: &&Place| place.as_path().starts_with(resolved.as_path()) && *place != resolved;
        self.items
            .range(resolved.clone()..)
            .map(|(place, _)| place)
            .skip_while(|place| *place == resolved)
            .take_while(beneath)
            .cloned()
            .collect()
    }

    fn forget(&mut self, place: &Place) -> Result<(), ChangesError> {
        if let Some(item) = self.items.remove(place) {
            self.folder()?.empty_slot(item.slot)?;
        }
        Ok(())
    }

    /// Walks what goes and notes every entry, so that a commit can tell whether anything has changed beneath.
    fn plan_removal(
        &mut self,
        resolved: &Place,
        before: Seen,
        recursive: bool,
        removed: &mut Vec<Place>,
    ) -> Result<Item, ChangesError> {
        let parent = self.root.open_real_folder(&resolved.parent().unwrap_or_else(Place::root))?;
        let name = resolved.name().ok_or(ChangesError::RootItself)?;
        let mut tree = Vec::new();
        let mut sketch = Sketch::default();
        let mut path = resolved.as_path().to_owned();
        let (mut depth, mut read) = (0, 0);
        let walked = walk(std::os::fd::AsFd::as_fd(&parent), name, |visit| {
            let Visit::Entry(step) = visit else { return Ok(()) };
            self.check_stopped().map_err(Ended::Refused)?;
            while depth > 0 && depth >= step.depth {
                path.pop();
                depth -= 1;
            }
            if step.depth > 0 {
                path.push(step.name);
                depth = step.depth;
            }
            let place = Place::known(path.clone());
            self.refuse_step(&step, &place, &before, recursive).map_err(Ended::Refused)?;
            let shown = self.sketch_removal(&step, &place, &mut read);
            if step.depth == 0 {
                sketch = shown;
                return Ok(());
            }
            removed.push(place);
            let name = show_name(step.name);
            let plain = shown.diff.is_none() && shown.flags.is_empty() && !shown.binary;
            let sketch = if plain { None } else { Some(shown) };
            tree.push(Beneath { depth: step.depth, name, stamp: step.seen.stamp, sketch });
            Ok(())
        });
        match walked {
            Ok(()) => Ok(Item { tree, ..Item::swap(None, Some(before), sketch) }),
            Err(Ended::Refused(error)) => Err(error),
            Err(Ended::System(errno)) => Err(ChangesError::at(resolved, errno)),
        }
    }

    fn refuse_step(&self, step: &Step<'_>, place: &Place, top: &Seen, recursive: bool) -> Result<(), ChangesError> {
        if is_sensitive_name(step.name) || self.root.is_protected(step.seen) {
            return Err(PathError::Sensitive { path: place.to_string() }.into());
        }
        if !step.seen.shares_mount(top) {
            return Err(PathError::NotRegular { path: place.to_string(), what: "a mount point" }.into());
        }
        if step.depth > 0 && !recursive {
            let path = place.parent().unwrap_or_else(Place::root).to_string();
            return Err(ChangesError::NotEmpty { path });
        }
        Ok(())
    }

    /// The diff and flags of something that goes; only the first files beneath a folder are read.
    fn sketch_removal(&mut self, step: &Step<'_>, place: &Place, read: &mut usize) -> Sketch {
        let is_file = step.seen.kind() == EntryKind::File;
        let wanted = is_file && *read < READ_BENEATH && self.has_room_for_diffs();
        let content = if wanted { read_small(step.dir, step.name, step.seen) } else { None };
        let mut sketch = Sketch::default();
        if let Some(content) = &content {
            *read += 1;
            let shown = compare(&place.to_string(), Side::Content(content), Side::Nothing);
            sketch = self.keep_diff(shown);
        }
        let path = place.as_path();
        sketch.flags = flags(&Subject { path, kind: None, mode: 0, before: None, after: None, leads_outside: false });
        sketch
    }
}

/// The content of a file that is short enough to be compared.
fn read_small(dir: std::os::fd::BorrowedFd<'_>, name: &OsStr, seen: &Seen) -> Option<Vec<u8>> {
    if seen.stamp.size > LONGEST_SIDE {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::openat(dir, Path::new(name), flags, Mode::empty()).ok()?);
    let mut content = Vec::with_capacity(usize::try_from(seen.stamp.size).ok()?);
    file.take(LONGEST_SIDE + 1).read_to_end(&mut content).ok()?;
    Some(content)
}
