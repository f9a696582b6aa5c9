//! A git index that another git has written anew: what it says counts, not what it remembers of files.
//!
//! Every `git status` may write the index, so that a set of changes would be in conflict with any git that was run since.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::folder::ChangesFolder;
use super::plan::{Item, ItemStates};
use super::tree::ItemSide;
use super::turn::{Parents, TurnContext};
use crate::beneath::{self, Links};
use crate::git_index::meaning;
use crate::sensitive::fold;
use crate::stamp::{EntryIdentity, EntryKind, look};
use crate::workspace_path::WorkspacePath;

/// How an index is opened.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// What both sides of a changed git index say; `None` for a side that is not there or cannot be read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IndexMeanings {
    before: Option<String>,
    staged: Option<String>,
}

impl Draft {
    /// Notes what both sides of each changed git index say: later one of them may have been written anew.
    pub(super) fn note_indexes(&mut self) {
        let Some(folder) = &self.folder else { return };
        for (place, item) in self.items.iter_mut().filter(|(place, _)| is_index(place.as_path())) {
            let slot = PathBuf::from(ChangesFolder::slot_name(item.slot));
            let before = item.before.and_then(|seen| {
                let open = self.root.open_beneath(place.as_path(), FLAGS, Links::Refuse).ok()?;
                read(open, Some(&seen))
            });
            let staged = item.staged.and_then(|seen| read(open(folder.handle(), &slot)?, Some(&seen)));
            let meaning = |side: Option<(EntryIdentity, String)>| side.map(|(_, meaning)| meaning);
            item.index = Some(IndexMeanings { before: meaning(before), staged: meaning(staged) });
        }
    }
}

/// The state in which the indexes that were written anew and say the same are the ones that are expected; `None` where
/// there are none.
pub(super) fn accept_rewritten(
    context: TurnContext<'_>,
    chosen: &[usize],
    parents: &mut Parents<'_>,
) -> Option<ItemStates> {
    let mut next = None;
    for &index in chosen {
        let (item, rest) = (&context.plan.items[index], &context.state.items[index]);
        let Some(expected) = item.index.as_ref().and_then(|meanings| meanings.of(rest.side_at_path())) else {
            continue;
        };
        let Some(now) = rest.path.and_then(|then| rewritten(item, &then, expected, parents)) else { continue };
        next.get_or_insert_with(|| context.state.clone()).items[index].path = Some(now);
    }
    next
}

/// What lies at the path of an index, where it is not what was there and says the same.
fn rewritten(item: &Item, then: &EntryIdentity, expected: &str, parents: &mut Parents<'_>) -> Option<EntryIdentity> {
    let place: WorkspacePath = item.place().ok()?;
    let name = place.name()?;
    let (now, says) = read(open(parents.open(&place).ok()?, name.as_ref())?, None)?;
    let same_file = now.is(then) && then.stamp.same_apart_from_renames(&now.stamp);
    (!same_file && says == expected && now.stamp.mode == then.stamp.mode).then_some(now)
}

fn open(folder: impl AsFd, path: &Path) -> Option<OwnedFd> {
    beneath::open(folder, path, FLAGS, Links::Refuse).ok()
}

/// An open file, if it is still what was seen, and what it says as an index.
fn read(file: OwnedFd, seen: Option<&EntryIdentity>) -> Option<(EntryIdentity, String)> {
    let file = File::from(file);
    let before = look(&file).ok().filter(|now| now.kind() == EntryKind::File)?;
    let says = meaning(&file)?;
    let after = look(&file).ok()?;
    let expected = seen.unwrap_or(&before);
    (after.is(expected) && expected.stamp.same_apart_from_renames(&after.stamp)).then_some((after, says))
}

fn is_index(path: &Path) -> bool {
    // A linked worktree has its own further down.
    let mut folders = path.iter().rev().skip(1);
    path.file_name().is_some_and(|name| name == "index") && folders.any(|name| fold(name) == ".git")
}

impl IndexMeanings {
    fn of(&self, side: ItemSide) -> Option<&str> {
        match side {
            ItemSide::Old => self.before.as_deref(),
            ItemSide::New => self.staged.as_deref(),
        }
    }
}
