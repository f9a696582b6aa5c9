//! Planning to move an entry to another path.

use std::os::fd::AsFd;

use super::draft::{Draft, Expected, mode_subject};
use super::ends::Ends;
use super::error::ChangesError;
use super::flags::{Flag, Subject, flags, needs_content};
use super::plan::{Beneath, Item, Moved, Sketch};
use super::trail::{Ended, Trail, read_small};
use crate::copy::Keep;
use crate::folder::read_link;
use crate::place::{Place, show_name};
use crate::stamp::EntryKind;
use crate::transfer::Spot;
use crate::walk::{Step, Visit, walk};

impl Draft {
    /// Plans to move a file, a link or a folder, and gives the size of what it takes the place of.
    ///
    /// It is one rename, whatever is in a folder. Where no rename leads, on another filesystem, it is a copy and a
    /// deletion that go only together.
    pub fn rename(&mut self, from: &Place, to: &Place, expected: Expected) -> Result<Option<u64>, ChangesError> {
        let ends = self.ends(from, to, expected)?;
        if ends.same_mount {
            self.plan_rename(&ends)?;
        } else {
            self.plan_copy_and_delete(&ends)?;
        }
        Ok(ends.there.map(|there| there.stamp.size))
    }

    fn plan_rename(&mut self, ends: &Ends) -> Result<(), ChangesError> {
        let parent = self.root.open_real_folder(&ends.from.parent().unwrap_or_else(Place::root))?;
        let name = ends.from.name().ok_or(ChangesError::RootItself)?;
        let mut moving = (Trail::new(&ends.from, &ends.to, ends.source), Flagged::default());
        walk(parent.as_fd(), name, |visit| match visit {
            Visit::Entry(step) => self.look_over(&mut moving, &step),
            Visit::Leave(_) => Ok(()),
        })
        .map_err(|ended| moving.0.error(ended))?;
        let Flagged { top, list, .. } = moving.1;
        let diff = match ends.there {
            Some(_) => self.diff_between(ends, Spot { dir: parent.as_fd(), name }, &ends.source),
            None => Sketch::default(),
        };
        let moved = Some(Moved { from: ends.from.to_string(), seen: ends.source });
        let slot = self.slot_for(&ends.to)?;
        let sketch = Sketch { flags: top, ..diff };
        self.put(ends.to.clone(), Item { slot, moved, tree: list, ..Item::swap(None, ends.there, sketch) });
        self.sources.insert(ends.from.clone());
        Ok(())
    }

    /// The deletion is planned first: whatever is changed after it was noted, also while it is copied, is a conflict.
    fn plan_copy_and_delete(&mut self, ends: &Ends) -> Result<(), ChangesError> {
        self.delete(&ends.from, true)?;
        self.copy_between(ends, Keep::Everything)?;
        for (one, other) in [(&ends.from, &ends.to), (&ends.to, &ends.from)] {
            if let Some(item) = self.items.get_mut(one) {
                item.with = Some(other.to_string());
            }
        }
        Ok(())
    }

    fn look_over(&mut self, (trail, listed): &mut (Trail, Flagged), step: &Step<'_>) -> Result<(), Ended> {
        trail.go_to(step);
        self.check_stopped()?;
        self.refuse_step(step, trail)?;
        self.meter.add_path();
        let mut found = self.flags_on_arrival(step, &trail.to(), step.seen.stamp.mode & 0o7777);
        let from = trail.from();
        let path = from.as_path();
        found.extend(flags(&Subject { path, kind: None, mode: 0, before: None, after: None, leads_outside: false }));
        found.sort_unstable();
        found.dedup();
        listed.note(step, found);
        Ok(())
    }

    /// What is to be seen first about an entry once it is at a place, whatever it was where it came from.
    pub(super) fn flags_on_arrival(&self, step: &Step<'_>, to: &Place, mode: u32) -> Vec<Flag> {
        let kind = step.seen.kind();
        let spot = Spot { dir: step.dir, name: step.name };
        let content = if needs_content(to.as_path()) { read_small(spot, step.seen) } else { None };
        let leads_outside = kind == EntryKind::Link
            && read_link(step.dir, step.name).is_none_or(|target| self.root.link_leads_outside(to, &target));
        flags(&Subject { after: content.as_deref(), leads_outside, ..mode_subject(to, kind, mode) })
    }
}

/// What is flagged of something that moves. The rest of a folder is not listed.
#[derive(Default)]
struct Flagged {
    top: Vec<Flag>,
    list: Vec<Beneath>,
    /// The folders that the walk is in and that are not listed yet.
    above: Vec<Option<Beneath>>,
}

impl Flagged {
    fn note(&mut self, step: &Step<'_>, flags: Vec<Flag>) {
        if step.depth == 0 {
            self.top = flags;
            return;
        }
        self.above.truncate(step.depth - 1);
        let flagged = !flags.is_empty();
        let sketch = flagged.then(|| Sketch { flags, ..Sketch::default() });
        let entry = Beneath { depth: step.depth, name: show_name(step.name), stamp: step.seen.stamp, sketch };
        if flagged {
            self.list.extend(self.above.iter_mut().filter_map(Option::take));
            self.list.push(entry);
            self.above.push(None);
        } else {
            self.above.push(Some(entry));
        }
    }
}
