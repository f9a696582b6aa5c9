//! Whether a folder holds exactly what the plan says.

use rustix::io::Errno;

use super::change::FileChangeState;
use super::plan::{Item, ItemState, NestedEntry};
use crate::stamp::EntryIdentity;
use crate::transfer::EntryRef;
use crate::walk::{Visit, walk};
use crate::workspace_path::show_name;

/// Whether a folder holds exactly what the plan says.
pub(super) fn is_intact(spot: EntryRef<'_>, item: &Item, side: ItemSide, likeness: TreeMatch) -> Result<bool, Errno> {
    Ok(check_tree(spot, item, side, likeness)?.is_none())
}

/// Compares a folder with the entries in the plan; says how the first that differs does.
pub(super) fn check_tree(
    spot: EntryRef<'_>,
    item: &Item,
    side: ItemSide,
    likeness: TreeMatch,
) -> Result<Option<String>, Errno> {
    let mut expected = item.beneath(side).iter();
    let mut difference = None;
    let walked = walk(spot.dir, spot.name, |visit| {
        let Visit::Entry(step) = visit else { return Ok(()) };
        if step.depth == 0 {
            return Ok(());
        }
        let same = expected
            .next()
            .is_some_and(|entry| entry.is_named(step.name, step.depth) && is_like(entry, step.seen, likeness));
        if same {
            return Ok(());
        }
        difference = Some(format!("`{}` beneath it was changed, added or removed", show_name(step.name)));
        Err(Errno::CANCELED)
    });
    match walked {
        Err(Errno::CANCELED) => Ok(difference),
        Err(Errno::STALE | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Some("it is being changed".to_owned())),
        Err(errno) => Err(errno),
        Ok(()) => Ok(expected.next().map(|entry| format!("`{}` beneath it was removed", entry.name))),
    }
}

fn is_like(entry: &NestedEntry, seen: &EntryIdentity, likeness: TreeMatch) -> bool {
    match likeness {
        TreeMatch::Untouched => entry.stamp.untouched(&seen.stamp),
        TreeMatch::Renamed => entry.stamp.same_apart_from_renames(&seen.stamp),
        TreeMatch::Copied => entry.stamp.same_content(&seen.stamp),
    }
}

/// Which of the two things that an item exchanges.
#[derive(Clone, Copy)]
pub(super) enum ItemSide {
    /// What was there before the first commit.
    Old,
    /// What a commit puts there.
    New,
}

/// How exactly entries beneath a folder must be what the plan says.
#[derive(Clone, Copy)]
pub(super) enum TreeMatch {
    /// Nothing at all may have happened to them.
    Untouched,
    /// They may have been out and in again: a later call that was undone leaves them so.
    Renamed,
    /// They went over to another filesystem and have other inodes.
    Copied,
}

impl ItemState {
    /// What lies at the path.
    pub(super) fn side_at_path(&self) -> ItemSide {
        match self.state {
            FileChangeState::Committed => ItemSide::New,
            FileChangeState::Staged | FileChangeState::Undone | FileChangeState::Discarded => ItemSide::Old,
        }
    }

    /// What lies in the slot.
    pub(super) fn side_in_slot(&self) -> ItemSide {
        match self.side_at_path() {
            ItemSide::Old => ItemSide::New,
            ItemSide::New => ItemSide::Old,
        }
    }

    /// How exactly what lies here must be as planned.
    pub(super) fn likeness(&self) -> TreeMatch {
        if self.copied {
            return TreeMatch::Copied;
        }
        match self.state {
            FileChangeState::Staged | FileChangeState::Discarded => TreeMatch::Untouched,
            FileChangeState::Committed | FileChangeState::Undone => TreeMatch::Renamed,
        }
    }

    /// How exactly what lies in the slot must be as planned: a file there may have a second name that was renamed.
    pub(super) fn likeness_aside(&self) -> TreeMatch {
        if self.copied { TreeMatch::Copied } else { TreeMatch::Renamed }
    }
}

impl Item {
    /// Everything that lies beneath one of its two things, if that is a folder.
    fn beneath(&self, side: ItemSide) -> &[NestedEntry] {
        match side {
            ItemSide::Old => &self.tree,
            ItemSide::New => &self.brings,
        }
    }
}
