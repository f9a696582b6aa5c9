//! Planning to copy a file, a link or a whole folder.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::draft::{Draft, Expected};
use super::ends::Ends;
use super::error::ChangesError;
use super::flags::ChangeFlag;
use super::folder::ChangesFolder;
use super::plan::{CommitDurability, Item, NestedEntry, Sketch};
use super::show::{DiffSide, compare};
use super::trail::{Trail, WalkError, read_small};
use crate::copy::{Copy, CopyAttributes, wait_for_a_tick};
use crate::error::PathError;
use crate::stamp::{EntryIdentity, EntryKind};
use crate::transfer::EntryRef;
use crate::walk::{Visit, WalkStep, walk};
use crate::workspace_path::{WorkspacePath, show_name};

/// What happens when a folder is to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folders {
    /// It is refused.
    Refuse,
    /// It is copied with everything in it.
    Whole,
}

/// What a planned copy does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedCopy {
    /// How many files and links are copied.
    pub files: usize,
    /// How many bytes they have together.
    pub bytes: u64,
}

impl Draft {
    /// Plans to copy a file, a link (never what it points to) or a folder, which is one unit. The content is copied
    /// now, so that what is committed is what was there.
    pub fn copy(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        folders: Folders,
        expected: Expected,
    ) -> Result<PlannedCopy, ChangesError> {
        let ends = self.ends(from, to, expected)?;
        if folders == Folders::Refuse && ends.source.kind() == EntryKind::Directory {
            return Err(PathError::IsDirectory { path: from.to_string() }.into());
        }
        self.copy_between(&ends, CopyAttributes::Plain)
    }

    /// Copies into a slot what will be at the other end.
    pub(super) fn copy_between(&mut self, ends: &Ends, keep: CopyAttributes) -> Result<PlannedCopy, ChangesError> {
        let slot = self.slot_for(&ends.to)?;
        match self.fill(ends, slot, keep) {
            Ok((item, copied)) => {
                self.put(ends.to.clone(), item);
                Ok(copied)
            }
            Err(error) => {
                // Whoever holds the draft may go on without this copy.
                self.folder()?.empty_slot(slot)?;
                Err(error)
            }
        }
    }

    fn fill(&mut self, ends: &Ends, slot: usize, keep: CopyAttributes) -> Result<(Item, PlannedCopy), ChangesError> {
        let parent = self.root.open_real_folder(&ends.from.parent().unwrap_or_else(WorkspacePath::root))?;
        let name = ends.from.name().ok_or(ChangesError::RootItself)?;
        let kept = |errno| ChangesError::kept("stage a copy", errno);
        let slots = rustix::io::dup(self.folder()?.handle()).map_err(kept)?;
        let slot_name = ChangesFolder::slot_name(slot);
        let to = EntryRef { dir: slots.as_fd(), name: &slot_name };
        let mut copying = CopyRun::new(ends, to, keep);
        let walked = walk(parent.as_fd(), name, |visit| match visit {
            Visit::Entry(step) => self.copy_entry(&mut copying, &step),
            Visit::Leave(step) => copying.leave(&step).map_err(WalkError::System),
        });
        walked.map_err(|ended| copying.trail.error(ended))?;
        let CopyRun { staged, sketch, brings, copied, .. } = copying;
        let staged = staged.ok_or(ChangesError::Gone)?;
        if self.folder()?.sync == CommitDurability::Disk {
            rustix::fs::syncfs(&slots).map_err(kept)?;
        }
        let diff = self.diff_between(ends, to, &staged);
        let sketch = Sketch { flags: sketch.flags, ..diff };
        Ok((Item { slot, brings, ..Item::swap(Some(staged), ends.there, sketch) }, copied))
    }

    fn copy_entry(&mut self, copying: &mut CopyRun<'_>, step: &WalkStep<'_>) -> Result<(), WalkError> {
        copying.trail.go_to(step.depth, step.name);
        self.check_stopped()?;
        self.refuse_step(Some(step.seen), &copying.trail)?;
        if step.seen.kind() == EntryKind::File {
            self.refuse_secret(copying, step.seen)?;
            wait_for_a_tick(step.seen);
        }
        self.meter.add_path();
        let meter = &mut self.meter;
        let stop = &self.stop;
        copying.copy.enter(step, &mut |bytes| {
            meter.add_bytes(bytes);
            if super::draft::is_set(stop.as_deref()) { Err(Errno::CANCELED) } else { Ok(()) }
        })?;
        let spot = EntryRef { dir: step.dir, name: step.name };
        let mode = copying.keep.bits(step.seen);
        let flags = self.flags_on_arrival(spot, copying.trail.to(), step.seen.kind(), mode);
        Ok(copying.note(step, flags)?)
    }

    /// A harmless name beneath a folder may be another name of a secret in the workspace folder.
    fn refuse_secret(&self, copying: &mut CopyRun<'_>, seen: &EntryIdentity) -> Result<(), ChangesError> {
        if seen.links < 2 {
            return Ok(());
        }
        let secrets = match &mut copying.secrets {
            Some(secrets) => secrets,
            none => {
                let top = WorkspacePath::root();
                none.insert(self.root.secrets_in(&top).map_err(|errno| PathError::from_errno(&top, errno))?)
            }
        };
        if secrets.iter().any(|secret| secret.is(seen)) {
            return Err(PathError::Sensitive { path: copying.trail.from().to_string() }.into());
        }
        Ok(())
    }

    /// The diff between a file that makes room, or nothing, and the single file that comes.
    pub(super) fn diff_between(&mut self, ends: &Ends, new: EntryRef<'_>, seen: &EntryIdentity) -> Sketch {
        let is_file = |seen: &EntryIdentity| seen.kind() == EntryKind::File;
        if !is_file(seen) || !ends.there.as_ref().is_none_or(is_file) {
            return Sketch::default();
        }
        let Some(new) = read_small(new, seen) else { return Sketch::default() };
        let old = ends.there.as_ref().map(|there| self.read_place(&ends.to, there));
        let old = match &old {
            None => DiffSide::Nothing,
            Some(Some(content)) => DiffSide::Content(content),
            Some(None) => DiffSide::Unknown,
        };
        let shown = compare(&ends.to.to_string(), old, DiffSide::Content(&new));
        self.keep_diff(shown)
    }

    pub(super) fn read_place(&self, place: &WorkspacePath, seen: &EntryIdentity) -> Option<Vec<u8>> {
        let folder = self.root.open_real_folder(&place.parent()?).ok()?;
        read_small(EntryRef { dir: folder.as_fd(), name: place.name()? }, seen)
    }
}

/// A copy under way, and what it has made so far.
struct CopyRun<'a> {
    copy: Copy<'a>,
    keep: CopyAttributes,
    trail: Trail,
    secrets: Option<Vec<EntryIdentity>>,
    staged: Option<EntryIdentity>,
    sketch: Sketch,
    brings: Vec<NestedEntry>,
    /// Where in `brings` the open folders are.
    open: Vec<usize>,
    copied: PlannedCopy,
}

impl<'a> CopyRun<'a> {
    fn new(ends: &Ends, to: EntryRef<'a>, keep: CopyAttributes) -> CopyRun<'a> {
        CopyRun {
            copy: Copy::new(to, keep),
            keep,
            trail: Trail::new(&ends.from, &ends.to, ends.source),
            secrets: None,
            staged: None,
            sketch: Sketch::default(),
            brings: Vec::new(),
            open: Vec::new(),
            copied: PlannedCopy::default(),
        }
    }

    fn note(&mut self, step: &WalkStep<'_>, flags: Vec<ChangeFlag>) -> Result<(), Errno> {
        let made = self.copy.look(step)?;
        let is_folder = step.seen.kind() == EntryKind::Directory;
        if !is_folder {
            self.copied.files += 1;
            self.copied.bytes += made.stamp.size;
        }
        let sketch = Sketch { flags, ..Sketch::default() };
        if step.depth == 0 {
            self.staged = Some(made);
            self.sketch = sketch;
            return Ok(());
        }
        if is_folder {
            self.open.push(self.brings.len());
        }
        let sketch = (!sketch.flags.is_empty()).then_some(sketch);
        self.brings.push(NestedEntry { depth: step.depth, name: show_name(step.name), stamp: made.stamp, sketch });
        Ok(())
    }

    /// A folder is what it will be only once everything is in it.
    fn leave(&mut self, step: &WalkStep<'_>) -> Result<(), Errno> {
        self.trail.go_to(step.depth, step.name);
        let made = self.copy.leave(step)?;
        if step.depth == 0 {
            self.staged = Some(made);
        } else if let Some(at) = self.open.pop() {
            self.brings[at].stamp = made.stamp;
        }
        Ok(())
    }
}
