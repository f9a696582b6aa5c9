//! What is stored of a set of changes: the plan, written once, and the state, replaced by every turn.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::change::{FileChange, FileChangeKind, FileChangeState};
use super::error::ChangesError;
use super::flags::{ChangeFlag, Subject, flags};
use super::rewritten_index::IndexMeanings;
use crate::git_folder::OutsideGitFolder;
use crate::stamp::{EntryIdentity, EntryKind, FileStamp};
use crate::workspace_path::{WorkspacePath, read_shown_name, show_name};

/// How many paths are few.
const FEW: usize = 4;
/// The largest file that is small.
const SMALL: u64 = 64 << 10;

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitDurability {
    /// The end of the process at any moment.
    #[default]
    Process,
    /// Also the loss of power: everything is flushed before and after the swap.
    Disk,
}

/// Everything that was planned; never changes once it is sealed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChangePlan {
    /// The workspace's path as [`WorkspacePath`] shows paths.
    pub(super) root: String,
    pub(super) root_seen: EntryIdentity,
    /// The git folder, where it lies outside the workspace and is changed, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) git: Option<PlannedGitFolder>,
    /// Makes the names of siblings unlike anything else in the workspace.
    pub(super) tag: String,
    pub(super) sync: CommitDurability,
    /// In path order.
    pub(super) items: Vec<Item>,
}

/// A git folder outside the workspace; what lies in it has paths beneath `.git`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PlannedGitFolder {
    /// Its path as [`WorkspacePath`] shows paths.
    pub(super) path: String,
    /// Where in it lies what belongs to this workspace alone.
    pub(super) own: String,
    pub(super) seen: EntryIdentity,
}

/// One swap between a slot and a path, one rename from another path, or one change of permissions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) slot: usize,
    /// What lies in the slot before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) staged: Option<EntryIdentity>,
    /// What lay at the path while it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<EntryIdentity>,
    /// The new permission bits, if nothing but they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<u32>,
    /// What comes here by a rename; then nothing is staged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) moved: Option<MoveOrigin>,
    /// Everything beneath a folder that goes; of one that is moved only what is flagged, with the folders on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tree: Vec<NestedEntry>,
    /// Everything beneath a folder that comes, in path order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) brings: Vec<NestedEntry>,
    /// Items with the same number are only turned together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bond: Option<usize>,
    /// Somebody else has changed what lies at the path while a command ran over it: it can never be committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) overtaken: bool,
    /// It only follows from other files: rather left out than in the way of the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) derived: bool,
    /// What both sides of a git index say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<IndexMeanings>,
    pub(super) sketch: Sketch,
}

/// Something that comes from another path of the workspace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MoveOrigin {
    pub(super) from: String,
    /// What lay there while it was planned.
    pub(super) seen: EntryIdentity,
}

/// An entry beneath a folder that goes, comes or is moved.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NestedEntry {
    /// How many folders beneath the item's path it lies, at least 1.
    #[serde(rename = "d")]
    pub(super) depth: usize,
    #[serde(rename = "n")]
    pub(super) name: String,
    #[serde(rename = "s")]
    pub(super) stamp: FileStamp,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(super) sketch: Option<Sketch>,
}

/// The part of a [`FileChange`] that does not follow from anything else.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sketch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) binary: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) added: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) removed: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) flags: Vec<ChangeFlag>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    /// It goes because it has served its purpose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) spent: bool,
    /// It is a link that may lead out of the build output that it lies in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) strays: bool,
}

/// Where every item is at rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ItemStates {
    pub(super) items: Vec<ItemState>,
}

/// Where one item is at rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ItemState {
    pub(super) state: FileChangeState,
    /// What lies in the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slot: Option<EntryIdentity>,
    /// What lies at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<EntryIdentity>,
    /// What lies where a rename comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<EntryIdentity>,
    /// What belongs into the slot still lies beside the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_sibling: bool,
    /// It went over to another filesystem, so its entries have other inodes than those in the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) copied: bool,
}

impl PlannedGitFolder {
    pub(super) fn of(git: &OutsideGitFolder) -> PlannedGitFolder {
        PlannedGitFolder {
            path: show_name(git.path().as_os_str()),
            own: show_name(git.own().as_os_str()),
            seen: *git.seen(),
        }
    }
}

impl ChangePlan {
    /// The unit of each item: the first item of those that are only turned together.
    pub(super) fn units(&self) -> Vec<usize> {
        let mut first = HashMap::new();
        let unit = |(index, item): (usize, &Item)| item.bond.map_or(index, |bond| *first.entry(bond).or_insert(index));
        self.items.iter().enumerate().map(unit).collect()
    }

    /// The folders that nobody else may change during a turn.
    pub(super) fn folders(&self) -> Vec<EntryIdentity> {
        std::iter::once(self.root_seen).chain(self.git.as_ref().map(|git| git.seen)).collect()
    }

    /// Whether a turn takes a few system calls which wait for no disk, on another filesystem too.
    pub(super) fn is_brief(&self) -> bool {
        self.sync == CommitDurability::Process && self.items.len() <= FEW && self.items.iter().all(Item::is_small)
    }
}

impl ItemStates {
    /// The state right after sealing.
    pub(super) fn staged(plan: &ChangePlan) -> ItemStates {
        let rest = |item: &Item| ItemState {
            state: FileChangeState::Staged,
            slot: item.staged,
            path: item.before,
            from: item.moved.as_ref().map(|moved| moved.seen),
            in_sibling: false,
            copied: false,
        };
        ItemStates { items: plan.items.iter().map(rest).collect() }
    }

    /// Whether a turn is decided but not everything is in its slot yet.
    pub(super) fn is_unfinished(&self) -> bool {
        self.items.iter().any(|rest| rest.in_sibling)
    }
}

impl Item {
    /// An item that exchanges what is staged with what is there.
    pub(super) fn swap(staged: Option<EntryIdentity>, before: Option<EntryIdentity>, sketch: Sketch) -> Item {
        Item {
            path: String::new(),
            slot: 0,
            staged,
            before,
            mode: None,
            moved: None,
            tree: Vec::new(),
            brings: Vec::new(),
            bond: None,
            overtaken: false,
            derived: false,
            index: None,
            sketch,
        }
    }

    /// Whether something is at the path once this is committed.
    pub(super) fn leaves_something(&self) -> bool {
        self.staged.is_some() || self.mode.is_some() || self.moved.is_some()
    }

    /// Whether it moves something, alone or together with another item.
    pub(super) fn is_end_of_a_move(&self) -> bool {
        self.moved.is_some() || self.bond.is_some()
    }

    /// Where in the workspace it is.
    pub(super) fn place(&self) -> Result<WorkspacePath, ChangesError> {
        known(&self.path)
    }

    /// Whether it is one path with little in it.
    fn is_small(&self) -> bool {
        let mut ends = [self.staged, self.before, self.moved.as_ref().map(|moved| moved.seen)].into_iter().flatten();
        self.tree.is_empty() && self.brings.is_empty() && ends.all(|seen| seen.stamp.size <= SMALL)
    }

    /// Whether it makes a folder that was not there and puts nothing into it by itself.
    pub(super) fn makes_folder(&self) -> bool {
        self.before.is_none()
            && self.brings.is_empty()
            && self.staged.is_some_and(|staged| staged.kind() == EntryKind::Directory)
    }

    /// Whether anything goes into or comes out of its slot.
    pub(super) fn uses_its_slot(&self) -> bool {
        self.mode.is_none() && (self.moved.is_none() || self.before.is_some())
    }

    /// What people see of it: the item itself, then everything beneath.
    pub(super) fn changes(&self, unit: usize, state: FileChangeState) -> Vec<FileChange> {
        let moved = self.moved.as_ref();
        let shown = moved.map(|moved| moved.seen).or(self.staged).or(self.before).map(|seen| seen.stamp);
        let mut first = change(self.path.clone(), self.kind(), shown, &self.sketch);
        if let Some(mode) = self.mode {
            first.executable = !first.directory && mode & 0o111 != 0;
        }
        first.from = moved.map(|moved| moved.from.clone());
        first.replaces = moved.and(self.before).map(|before| before.stamp.size);
        let mut list = vec![first];
        let gone = if moved.is_some() { FileChangeKind::Renamed } else { FileChangeKind::Deleted };
        let froms = moved.map(|moved| paths(&moved.from, &self.tree));
        // What is there again in a folder that takes the place of another is not listed twice.
        let mut again = HashMap::new();
        for (at, (path, entry)) in paths(&self.path, &self.tree).into_iter().zip(&self.tree).enumerate() {
            let from = froms.as_ref().map(|froms| froms[at].clone());
            if !self.brings.is_empty() {
                again.insert(path.clone(), list.len());
            }
            list.push(FileChange { from, ..entry.change(path, gone) });
        }
        for (path, entry) in paths(&self.path, &self.brings).into_iter().zip(&self.brings) {
            let before = again.get(&path).copied();
            let kind = match (entry.stamp.kind(), before) {
                (EntryKind::Link, _) => FileChangeKind::Link,
                (_, Some(_)) => FileChangeKind::Changed,
                (_, None) => FileChangeKind::Created,
            };
            let change = entry.change(path, kind);
            match before {
                Some(at) => list[at] = change,
                None => list.push(change),
            }
        }
        for change in &mut list {
            change.unit = unit;
            change.state = state;
            change.derived &= self.derived;
        }
        list
    }

    /// What an undo brings back that must be asked about as if it were new: what it was counts, not that it went.
    pub(super) fn flags_of_return(&self) -> HashMap<String, Vec<ChangeFlag>> {
        let own = self.before.map(|before| (self.path.clone(), before.stamp));
        let beneath = self.tree.iter().map(|entry| entry.stamp);
        let back = own.into_iter().chain(paths(&self.path, &self.tree).into_iter().zip(beneath));
        let judged = back.map(|(path, stamp)| {
            let name = read_shown_name(&path);
            let (kind, mode) = (Some(stamp.kind()), stamp.mode & 0o7777);
            let path_only =
                Subject { path: Path::new(&name), kind, mode, before: None, after: None, leads_outside: false };
            let mut found = flags(&path_only);
            found.retain(|flag| matches!(flag, ChangeFlag::SetUid | ChangeFlag::GitHook));
            (path, found)
        });
        judged.filter(|(_, flags)| !flags.is_empty()).collect()
    }

    /// How many bytes the paths of its changes have together.
    pub(super) fn listed_bytes(&self) -> usize {
        self.path.len() + lengths(&self.path, &self.tree) + lengths(&self.path, &self.brings)
    }

    fn kind(&self) -> FileChangeKind {
        match (self.mode, &self.moved, &self.staged, &self.before) {
            (Some(_), _, _, _) => FileChangeKind::Mode,
            (None, Some(_), _, _) => FileChangeKind::Renamed,
            (None, None, None, _) => FileChangeKind::Deleted,
            (None, None, Some(staged), _) if staged.kind() == EntryKind::Link => FileChangeKind::Link,
            (None, None, Some(_), None) => FileChangeKind::Created,
            (None, None, Some(_), Some(_)) => FileChangeKind::Changed,
        }
    }
}

impl MoveOrigin {
    /// Where in the workspace it comes from.
    pub(super) fn place(&self) -> Result<WorkspacePath, ChangesError> {
        known(&self.from)
    }
}

fn known(shown: &str) -> Result<WorkspacePath, ChangesError> {
    WorkspacePath::from_shown(shown).map_err(|error| ChangesError::Corrupt { what: error.to_string() })
}

/// The whole paths of entries that are noted by depth and name.
fn paths(top: &str, entries: &[NestedEntry]) -> Vec<String> {
    let mut above = top.to_owned();
    let mut ends = vec![above.len()];
    let mut paths = Vec::with_capacity(entries.len());
    for entry in entries {
        ends.truncate(entry.depth);
        above.truncate(ends.last().copied().unwrap_or_default());
        above.push('/');
        above.push_str(&entry.name);
        ends.push(above.len());
        paths.push(above.clone());
    }
    paths
}

/// How long the whole paths of entries are together, without making them.
fn lengths(top: &str, entries: &[NestedEntry]) -> usize {
    let mut ends = vec![top.len()];
    let mut all = 0_usize;
    for entry in entries {
        ends.truncate(entry.depth);
        let length = ends.last().copied().unwrap_or_default() + 1 + entry.name.len();
        ends.push(length);
        all = all.saturating_add(length);
    }
    all
}

impl NestedEntry {
    /// Whether this is the entry that a walk finds there.
    pub(super) fn is_named(&self, name: &std::ffi::OsStr, depth: usize) -> bool {
        self.depth == depth && (read_shown_name(&self.name) == name)
    }

    fn change(&self, path: String, kind: FileChangeKind) -> FileChange {
        match &self.sketch {
            Some(sketch) => change(path, kind, Some(self.stamp), sketch),
            None => change(path, kind, Some(self.stamp), &Sketch::default()),
        }
    }
}

fn change(path: String, kind: FileChangeKind, shown: Option<FileStamp>, sketch: &Sketch) -> FileChange {
    let is = |kind| shown.is_some_and(|stamp| stamp.kind() == kind);
    let Sketch { diff, binary, added, removed, flags, summary, spent, strays } = sketch.clone();
    FileChange {
        path,
        kind,
        directory: is(EntryKind::Directory),
        executable: is(EntryKind::File) && shown.is_some_and(|stamp| stamp.mode & 0o111 != 0),
        from: None,
        replaces: None,
        diff,
        binary,
        size: if is(EntryKind::Directory) { 0 } else { shown.map_or(0, |stamp| stamp.size) },
        added,
        removed,
        flags,
        summary,
        spent,
        // Whether the rest of what it belongs to is derived, that one knows.
        derived: !strays,
        state: FileChangeState::Staged,
        unit: 0,
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
