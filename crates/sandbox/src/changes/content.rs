//! Diffs that were too long to keep, computed from the slot and the path when somebody asks.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::change::{ChangeKind, ChangeState};
use super::error::ChangesError;
use super::folder::Folder;
use super::plan::Rest;
use super::sealed::{Changes, open_root};
use super::select::unknown;
use super::show::{LONGEST_SIDE, Side, compare};
use crate::beneath::{self, Links};
use crate::place::read_shown_name;
use crate::stamp::{EntryKind, Seen, look};

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
            ChangeKind::Deleted => (old, Content::Nothing),
            ChangeKind::Created | ChangeKind::Link => (Content::Nothing, new),
            ChangeKind::Changed | ChangeKind::Mode | ChangeKind::Renamed => (old, new),
        };
        if matches!((&old, &new), (Content::Unknown, _) | (_, Content::Unknown)) || item.mode.is_some() {
            return Ok(None);
        }
        Ok(compare(path, old.side(), new.side()).diff)
    }

    /// What was and what will be, wherever each lies now.
    fn sides(&self, index: usize, rest: &Rest, inside: &OsString) -> Result<Option<(Content, Content)>, ChangesError> {
        let item = &self.plan.items[index];
        let mut slot = PathBuf::from(Folder::slot_name(item.slot));
        let mut path = item.place()?.as_path().to_owned();
        if !inside.is_empty() {
            slot.push(inside);
            path.push(inside);
        }
        let root = open_root(&self.plan)?;
        // Only the item itself has a stamp here; entries beneath have their own in the plan.
        let expected = |seen: Option<Seen>| if inside.is_empty() { seen } else { None };
        let aside = read(self.folder.handle(), &slot, rest.slot.is_some(), expected(rest.slot));
        let there = read(root.handle(), &path, rest.path.is_some(), expected(rest.path));
        Ok(match rest.state {
            ChangeState::Staged | ChangeState::Undone => Some((there, aside)),
            ChangeState::Committed => Some((aside, there)),
            ChangeState::Discarded => None,
        })
    }
}

enum Content {
    Nothing,
    Bytes(Vec<u8>),
    Unknown,
}

impl Content {
    fn side(&self) -> Side<'_> {
        match self {
            Content::Nothing => Side::Nothing,
            Content::Bytes(bytes) => Side::Content(bytes),
            Content::Unknown => Side::Unknown,
        }
    }
}

fn read(dir: BorrowedFd<'_>, path: &Path, is_there: bool, expected: Option<Seen>) -> Content {
    if !is_there {
        return Content::Nothing;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Ok(fd) = beneath::open(dir, path, flags, Links::Refuse) else { return Content::Unknown };
    let Ok(seen) = look(&fd) else { return Content::Unknown };
    let other = expected.is_some_and(|expected| !seen.is_unchanged(&expected));
    if other || seen.kind() != EntryKind::File || seen.stamp.size > LONGEST_SIDE {
        return Content::Unknown;
    }
    let mut bytes = Vec::new();
    match std::fs::File::from(fd).take(LONGEST_SIDE + 1).read_to_end(&mut bytes) {
        Ok(_) => Content::Bytes(bytes),
        Err(_) => Content::Unknown,
    }
}
