//! Diffs that were too long to keep, computed from the slot and the path when somebody asks.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::change::{FileChangeKind, FileChangeState};
use super::error::ChangesError;
use super::folder::ChangesFolder;
use super::plan::ItemState;
use super::sealed::{Changes, open_root};
use super::select::unknown;
use super::show::{DiffSide, LONGEST_SIDE, compare};
use crate::beneath::{self, Links};
use crate::stamp::{EntryIdentity, EntryKind, look};
use crate::workspace_path::read_shown_name;

/// How content is opened.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Changes {
    /// The whole diff of one change, also when it was too long to be kept; `None` where there is none to show.
    pub fn diff(&self, path: &str) -> Result<Option<String>, ChangesError> {
        let (index, found) = (0..self.plan.items.len())
            .filter(|&index| path.starts_with(self.plan.items[index].path.as_str()))
            .flat_map(|index| {
                let changes = self.plan.items[index].changes(index, self.state.items[index].state);
                changes.into_iter().map(move |change| (index, change))
            })
            .find(|(_, change)| change.path == path)
            .ok_or_else(|| unknown(&self.plan, path))?;
        if found.diff.is_some() || found.binary || found.directory || found.from.is_some() {
            return Ok(found.diff);
        }
        let (item, rest) = (&self.plan.items[index], &self.state.items[index]);
        let inside = path.strip_prefix(item.path.as_str()).unwrap_or_default().trim_start_matches('/');
        let Some((old, new)) = self.sides(index, rest, &read_shown_name(inside))? else { return Ok(None) };
        // Beneath a folder that goes or comes there is nothing in exchange.
        let (old, new) = match found.kind {
            _ if inside.is_empty() => (old, new),
            FileChangeKind::Deleted => (old, ItemContent::Nothing),
            FileChangeKind::Created | FileChangeKind::Link => (ItemContent::Nothing, new),
            FileChangeKind::Changed | FileChangeKind::Mode | FileChangeKind::Renamed => (old, new),
        };
        if matches!((&old, &new), (ItemContent::Unknown, _) | (_, ItemContent::Unknown)) || item.mode.is_some() {
            return Ok(None);
        }
        Ok(compare(path, old.side(), new.side()).diff)
    }

    /// What was and what will be, wherever each lies now.
    fn sides(
        &self,
        index: usize,
        rest: &ItemState,
        inside: &OsString,
    ) -> Result<Option<(ItemContent, ItemContent)>, ChangesError> {
        let item = &self.plan.items[index];
        let mut slot = PathBuf::from(ChangesFolder::slot_name(item.slot));
        let mut path = item.place()?.as_path().to_owned();
        if !inside.is_empty() {
            slot.push(inside);
            path.push(inside);
        }
        let root = open_root(&self.plan)?;
        // Only the item itself has a stamp here; entries beneath have their own in the plan.
        let expected = |seen: Option<EntryIdentity>| if inside.is_empty() { seen } else { None };
        let aside = beneath::open(self.folder.handle(), &slot, FLAGS, Links::Refuse);
        let aside = read(aside, rest.slot.is_some(), expected(rest.slot));
        let there = root.open_beneath(&path, FLAGS, Links::Refuse);
        let there = read(there, rest.path.is_some(), expected(rest.path));
        Ok(match rest.state {
            FileChangeState::Staged | FileChangeState::Undone => Some((there, aside)),
            FileChangeState::Committed => Some((aside, there)),
            FileChangeState::Discarded => None,
        })
    }
}

enum ItemContent {
    Nothing,
    Bytes(Vec<u8>),
    Unknown,
}

impl ItemContent {
    fn side(&self) -> DiffSide<'_> {
        match self {
            ItemContent::Nothing => DiffSide::Nothing,
            ItemContent::Bytes(bytes) => DiffSide::Content(bytes),
            ItemContent::Unknown => DiffSide::Unknown,
        }
    }
}

fn read(open: Result<OwnedFd, Errno>, is_there: bool, expected: Option<EntryIdentity>) -> ItemContent {
    if !is_there {
        return ItemContent::Nothing;
    }
    let Ok(fd) = open else { return ItemContent::Unknown };
    let Ok(seen) = look(&fd) else { return ItemContent::Unknown };
    let other = expected.is_some_and(|expected| !seen.is_unchanged(&expected));
    if other || seen.kind() != EntryKind::File || seen.stamp.size > LONGEST_SIDE {
        return ItemContent::Unknown;
    }
    let mut bytes = Vec::new();
    match std::fs::File::from(fd).take(LONGEST_SIDE + 1).read_to_end(&mut bytes) {
        Ok(_) => ItemContent::Bytes(bytes),
        Err(_) => ItemContent::Unknown,
    }
}
