//! A folder that is new, or takes the place of something else: it is moved into one slot with everything in it.

use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::marks::{LayerEntry, Marks};
use super::scan::{LayerScan, LowerEntry};
use crate::changes::flags::ChangeFlag;
use crate::changes::plan::{Item, NestedEntry, Sketch};
use crate::changes::trail::WalkError;
use crate::stamp::{EntryKind, look_at};
use crate::transfer::EntryRef;
use crate::walk::WalkStep;
use crate::workspace_path::show_name;

/// A folder that the walk is in.
pub(super) struct WholeFolder {
    depth: usize,
    lower: LowerEntry,
    flags: Vec<ChangeFlag>,
    brings: Vec<NestedEntry>,
    /// Where in `brings` the open folders are.
    open: Vec<usize>,
}

impl LayerScan<'_> {
    pub(super) fn begin_whole(
        &mut self,
        step: &WalkStep<'_>,
        marks: &Marks,
        lower: LowerEntry,
    ) -> Result<(), WalkError> {
        let flags = self.prepare(step, marks)?;
        self.whole = Some(WholeFolder { depth: step.depth, lower, flags, brings: Vec::new(), open: Vec::new() });
        Ok(())
    }

    /// Notes an entry beneath the folder; what cannot be committed is taken out.
    pub(super) fn fill_whole(&mut self, step: &WalkStep<'_>, marks: &Marks, left: LayerEntry) -> Result<(), WalkError> {
        match left {
            LayerEntry::Nothing => return Ok(unlink(step)?),
            LayerEntry::Special(what) => {
                let place = self.trail.to().clone();
                self.leave_out(&place, what);
                return Ok(unlink(step)?);
            }
            LayerEntry::File | LayerEntry::Link | LayerEntry::Folder | LayerEntry::FolderAnew => {}
        }
        let flags = self.prepare(step, marks)?;
        let sketch = (!flags.is_empty()).then(|| Sketch { flags, ..Sketch::default() });
        let now = look_at(step.dir, step.name)?.ok_or(Errno::NOENT)?;
        let Some(whole) = &mut self.whole else { return Ok(()) };
        if now.kind() == EntryKind::Directory {
            whole.open.push(whole.brings.len());
        }
        let (name, depth) = (show_name(step.name), step.depth - whole.depth);
        whole.brings.push(NestedEntry { depth, name, stamp: now.stamp, sketch });
        Ok(())
    }

    /// Ends a folder: the whole one goes into its slot, one beneath gets its permissions back.
    pub(super) fn leave_whole(&mut self, step: &WalkStep<'_>) -> Result<(), WalkError> {
        let Some(mut whole) = self.whole.take() else { return Ok(()) };
        let spot = EntryRef { dir: step.dir, name: step.name };
        if step.depth > whole.depth {
            self.ready.close(spot, step.seen)?;
            if let Some(at) = whole.open.pop() {
                whole.brings[at].stamp = spot.look()?.ok_or(Errno::NOENT)?.stamp;
            }
            self.whole = Some(whole);
            return Ok(());
        }
        let place = self.trail.to().clone();
        let Some(room) = self.make_room(&place, whole.lower)? else { return Ok(()) };
        let (slot, staged) = self.stage(spot, &place)?;
        let sketch = Sketch { flags: whole.flags, ..Sketch::default() };
        let derived = self.is_derived(&place, EntryKind::Directory);
        let item = Item { slot, staged: Some(staged), brings: whole.brings, derived, sketch, ..room };
        self.draft.put(place, item);
        Ok(())
    }

    /// Makes an entry what it will be in the workspace, and says what is to be seen first about it.
    fn prepare(&mut self, step: &WalkStep<'_>, marks: &Marks) -> Result<Vec<ChangeFlag>, Errno> {
        let spot = EntryRef { dir: step.dir, name: step.name };
        marks.strip(spot, step.seen.stamp.mode & 0o7777)?;
        self.ready.give(spot, step.seen, None)?;
        let mode = self.ready.mode(step.seen);
        Ok(self.draft.flags_on_arrival(spot, self.trail.to(), step.seen.kind(), mode))
    }
}

fn unlink(step: &WalkStep<'_>) -> Result<(), Errno> {
    rustix::fs::unlinkat(step.dir, Path::new(step.name), AtFlags::empty())
}
