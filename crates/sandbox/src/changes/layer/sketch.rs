//! What people are shown of something that a command has left.

use crate::changes::draft::{Draft, mode_subject};
use crate::changes::flags::{Subject, flags, needs_content};
use crate::changes::plan::Sketch;
use crate::changes::show::{DiffSide, RenderedDiff, compare};
use crate::changes::trail::read_small;
use crate::stamp::{EntryIdentity, EntryKind};
use crate::transfer::EntryRef;
use crate::workspace_path::WorkspacePath;

impl Draft {
    /// The diff and the flags of what lies at a spot and may take the place of something of its kind. Content is read
    /// as long as there is room for diffs, or where flags depend on it.
    pub(super) fn sketch_staged(
        &mut self,
        place: &WorkspacePath,
        spot: EntryRef<'_>,
        (staged, before): (&EntryIdentity, Option<EntryIdentity>),
    ) -> Sketch {
        let (kind, mode) = (staged.kind(), staged.stamp.mode & 0o7777);
        if kind != EntryKind::File {
            return Sketch { flags: self.flags_on_arrival(spot, place, kind, mode), ..Sketch::default() };
        }
        if !self.has_room_for_diffs() && !needs_content(place.as_path()) {
            return Sketch { flags: flags(&mode_subject(place, kind, mode)), ..Sketch::default() };
        }
        let new = read_small(spot, staged);
        let old = before.map(|before| self.read_place(place, &before));
        let (before, after) = (old.as_ref().and_then(Option::as_deref), new.as_deref());
        let flags = flags(&Subject { before, after, ..mode_subject(place, kind, mode) });
        let side = old.as_ref().map_or(DiffSide::Nothing, |old| known(old.as_deref()));
        let shown = compare(&place.to_string(), side, known(after));
        // The same content with other times has no lines to show.
        let shown = if before.is_some() && before == after { RenderedDiff::default() } else { shown };
        Sketch { flags, ..self.keep_diff(shown) }
    }
}

fn known(content: Option<&[u8]>) -> DiffSide<'_> {
    content.map_or(DiffSide::Unknown, DiffSide::Content)
}
