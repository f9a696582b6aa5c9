//! What counts for nothing where it lies.

use super::take::{OriginLookup, PathOrigin};
use crate::changes::draft::Draft;
use crate::changes::flags::ChangeFlag;
use crate::changes::plan::Sketch;
use crate::stamp::EntryKind;

impl Draft {
    /// An ignore file in a folder of build output decides about nothing but build output: test runners write such
    /// files into their caches.
    pub(super) fn unflag_within_build_output(&mut self, sort: OriginLookup<'_>) {
        for (place, item) in self.items.iter_mut().filter(|(_, item)| item.derived) {
            if place.parent().is_some_and(|folder| sort(&folder, EntryKind::Directory) == PathOrigin::Derived) {
                unflag(&mut item.sketch);
            }
            for sketch in item.brings.iter_mut().filter_map(|beneath| beneath.sketch.as_mut()) {
                unflag(sketch);
            }
        }
    }
}

fn unflag(sketch: &mut Sketch) {
    sketch.flags.retain(|flag| *flag != ChangeFlag::IgnoreRules);
}
