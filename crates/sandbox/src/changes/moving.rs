//! Planning to move an entry to another path.

use std::os::fd::AsFd;
use std::path::{Component, Path};

use rustix::io::Errno;

use super::draft::{Draft, Expected, mode_subject};
use super::ends::Ends;
use super::error::ChangesError;
use super::flags::{ChangeFlag, Subject, flags, needs_content};
use super::plan::{Item, MoveOrigin, NestedEntry, Sketch};
use super::trail::{Trail, WalkError, read_small};
use crate::copy::CopyAttributes;
use crate::folder::read_link;
use crate::stamp::{EntryKind, look_at};
use crate::transfer::EntryRef;
use crate::walk::{ListedEntry, glance};
use crate::workspace_path::{WorkspacePath, show_name};

impl Draft {
    /// Plans to move a file, a link or a folder, and gives the size of what it takes the place of.
    ///
    /// It is one rename, whatever is in a folder. Where no rename leads, on another filesystem, it is a copy and a
    /// deletion that go only together.
    pub fn rename(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        expected: Expected,
    ) -> Result<Option<u64>, ChangesError> {
        let ends = self.ends(from, to, expected)?;
        if ends.same_mount {
            self.plan_rename(&ends)?;
        } else {
            self.plan_copy_and_delete(&ends)?;
        }
        Ok(ends.there.map(|there| there.stamp.size))
    }

    pub(super) fn plan_rename(&mut self, ends: &Ends) -> Result<(), ChangesError> {
        let parent = self.root.open_real_folder(&ends.from.parent().unwrap_or_else(WorkspacePath::root))?;
        let name = ends.from.name().ok_or(ChangesError::RootItself)?;
        let spot = EntryRef { dir: parent.as_fd(), name };
        let mut trail = Trail::new(&ends.from, &ends.to, ends.source);
        let top = self.flags_of_move(spot, &trail, ends.source.kind(), ends.source.stamp.mode & 0o7777);
        let mut flagged = FlaggedEntries::default();
        if ends.source.kind() == EntryKind::Directory {
            glance(spot.dir, spot.name, |glimpse| self.look_over(&mut trail, &mut flagged, &glimpse))
                .map_err(|ended| trail.error(ended))?;
        }
        let diff = match ends.there {
            Some(_) => self.diff_between(ends, spot, &ends.source),
            None => Sketch::default(),
        };
        let moved = Some(MoveOrigin { from: ends.from.to_string(), seen: ends.source });
        let slot = self.slot_for(&ends.to)?;
        let sketch = Sketch { flags: top, ..diff };
        self.put(ends.to.clone(), Item { slot, moved, tree: flagged.list, ..Item::swap(None, ends.there, sketch) });
        self.sources.insert(ends.from.clone());
        Ok(())
    }

    /// The deletion is planned first: whatever is changed after it was noted, also while it is copied, is a conflict.
    fn plan_copy_and_delete(&mut self, ends: &Ends) -> Result<(), ChangesError> {
        self.delete(&ends.from, true)?;
        self.copy_between(ends, CopyAttributes::Everything)?;
        self.bind(&[ends.from.clone(), ends.to.clone()]);
        Ok(())
    }

    fn look_over(
        &mut self,
        trail: &mut Trail,
        flagged: &mut FlaggedEntries,
        glimpse: &ListedEntry<'_>,
    ) -> Result<(), WalkError> {
        trail.go_to(glimpse.depth, glimpse.name);
        self.check_stopped()?;
        self.refuse_step(glimpse.folder, trail)?;
        self.meter.add_path();
        let spot = EntryRef { dir: glimpse.dir, name: glimpse.name };
        // Its permissions come along: what may run as somebody else already could.
        let found = self.flags_of_move(spot, trail, glimpse.kind, 0);
        Ok(flagged.note(glimpse, found)?)
    }

    /// What is to be seen first about an entry that leaves one place and comes to another.
    fn flags_of_move(&self, spot: EntryRef<'_>, trail: &Trail, kind: EntryKind, mode: u32) -> Vec<ChangeFlag> {
        let path = trail.from().as_path();
        let mut found = self.flags_on_arrival(spot, trail.to(), kind, mode);
        found.extend(flags(&Subject { path, kind: None, mode: 0, before: None, after: None, leads_outside: false }));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What is to be seen first about an entry once it is at a place, whatever it was where it came from.
    pub(super) fn flags_on_arrival(
        &self,
        spot: EntryRef<'_>,
        to: &WorkspacePath,
        kind: EntryKind,
        mode: u32,
    ) -> Vec<ChangeFlag> {
        let read = || read_small(spot, &spot.look().ok()??);
        let content = if kind == EntryKind::File && needs_content(to.as_path()) { read() } else { None };
        let leads_outside = kind == EntryKind::Link
            && read_link(spot.dir, spot.name)
                .is_none_or(|target| climbs_back(&target) || self.root.link_leads_outside(to, &target));
        flags(&Subject { after: content.as_deref(), leads_outside, ..mode_subject(to, kind, mode) })
    }
}

/// Whether a target goes up again after it went down: where that leads depends on what arrives together with it.
fn climbs_back(target: &Path) -> bool {
    let mut way = target.components().skip_while(|part| !matches!(part, Component::Normal(_)));
    way.any(|part| part == Component::ParentDir)
}

/// What is flagged beneath a folder that moves. The rest is not listed.
#[derive(Default)]
struct FlaggedEntries {
    list: Vec<NestedEntry>,
    /// The folders that the walk is in and that are not listed yet.
    above: Vec<Option<NestedEntry>>,
}

impl FlaggedEntries {
    fn note(&mut self, glimpse: &ListedEntry<'_>, flags: Vec<ChangeFlag>) -> Result<(), Errno> {
        self.above.truncate(glimpse.depth - 1);
        if flags.is_empty() && glimpse.kind != EntryKind::Directory {
            return Ok(());
        }
        let seen = match glimpse.folder {
            Some(seen) => *seen,
            None => look_at(glimpse.dir, glimpse.name)?.ok_or(Errno::STALE)?,
        };
        let sketch = (!flags.is_empty()).then(|| Sketch { flags, ..Sketch::default() });
        let is_flagged = sketch.is_some();
        let entry = NestedEntry { depth: glimpse.depth, name: show_name(glimpse.name), stamp: seen.stamp, sketch };
        if is_flagged {
            self.list.extend(self.above.iter_mut().filter_map(Option::take));
            self.list.push(entry);
            self.above.push(None);
        } else {
            self.above.push(Some(entry));
        }
        Ok(())
    }
}
