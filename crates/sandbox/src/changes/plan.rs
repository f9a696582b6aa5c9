//! What is stored of a set of changes: the plan, written once, and the state, replaced by every turn.

use serde::{Deserialize, Serialize};

use super::change::{Change, ChangeKind, ChangeState};
use super::error::ChangesError;
use super::flags::Flag;
use crate::place::{Place, read_shown_name};
use crate::stamp::{EntryKind, Seen, Stamp};

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// The end of the process at any moment.
    #[default]
    Process,
    /// Also the loss of power: everything is flushed before and after the swap.
    Disk,
}

/// Everything that was planned; never changes once it is sealed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The workspace's path as [`Place`] shows paths.
    pub(super) root: String,
    pub(super) root_seen: Seen,
    /// Makes the names of siblings unlike anything else in the workspace.
    pub(super) tag: String,
    pub(super) sync: Sync,
    /// In path order.
    pub(super) items: Vec<Item>,
}

/// One swap between a slot and a path, or one change of permissions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) slot: usize,
    /// What lies in the slot before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) staged: Option<Seen>,
    /// What lay at the path while it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Seen>,
    /// The new permission bits, if nothing but they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<u32>,
    /// Everything beneath a folder that goes, in path order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tree: Vec<Beneath>,
    pub(super) sketch: Sketch,
}

/// An entry beneath a folder that goes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beneath {
    /// How many folders beneath the item's path it lies, at least 1.
    #[serde(rename = "d")]
    pub(super) depth: usize,
    #[serde(rename = "n")]
    pub(super) name: String,
    #[serde(rename = "s")]
    pub(super) stamp: Stamp,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(super) sketch: Option<Sketch>,
}

/// The part of a [`Change`] that does not follow from anything else.
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
    pub(super) flags: Vec<Flag>,
}

/// Where every item is at rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) items: Vec<Rest>,
}

/// Where one item is at rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rest {
    pub(super) state: ChangeState,
    /// What lies in the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slot: Option<Seen>,
    /// What lies at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<Seen>,
    /// What belongs into the slot still lies beside the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_sibling: bool,
    /// It went over to another filesystem, so its entries have other inodes than those in the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) copied: bool,
}

impl State {
    /// The state right after sealing.
    pub(super) fn staged(plan: &Plan) -> State {
        let rest = |item: &Item| Rest {
            state: ChangeState::Staged,
            slot: item.staged,
            path: item.before,
            in_sibling: false,
            copied: false,
        };
        State { items: plan.items.iter().map(rest).collect() }
    }

    /// Whether a turn is decided but not everything is in its slot yet.
    pub(super) fn is_unfinished(&self) -> bool {
        self.items.iter().any(|rest| rest.in_sibling)
    }
}

impl Item {
    /// Where in the workspace it is.
    pub(super) fn place(&self) -> Result<Place, ChangesError> {
        Place::from_shown(&self.path).map_err(|error| ChangesError::Corrupt { what: error.to_string() })
    }

    /// Whether it makes a folder that was not there.
    pub(super) fn makes_folder(&self) -> bool {
        self.before.is_none() && self.staged.is_some_and(|staged| staged.kind() == EntryKind::Directory)
    }

    /// What people see of it: the item itself, then everything beneath.
    pub(super) fn changes(&self, unit: usize, state: ChangeState) -> Vec<Change> {
        let shown = self.staged.or(self.before).map(|seen| seen.stamp);
        let mut list = vec![change(self.path.clone(), self.kind(), shown, &self.sketch)];
        if let Some(mode) = self.mode {
            list[0].executable = !list[0].directory && mode & 0o111 != 0;
        }
        let plain = Sketch::default();
        let mut above = vec![self.path.clone()];
        for entry in &self.tree {
            above.truncate(entry.depth);
            let path = format!("{}/{}", above.last().map_or("", String::as_str), entry.name);
            let sketch = entry.sketch.as_ref().unwrap_or(&plain);
            list.push(change(path.clone(), ChangeKind::Deleted, Some(entry.stamp), sketch));
            above.push(path);
        }
        for change in &mut list {
            change.unit = unit;
            change.state = state;
        }
        list
    }

    fn kind(&self) -> ChangeKind {
        match (self.mode, &self.staged, &self.before) {
            (Some(_), _, _) => ChangeKind::Mode,
            (None, None, _) => ChangeKind::Deleted,
            (None, Some(staged), _) if staged.kind() == EntryKind::Link => ChangeKind::Link,
            (None, Some(_), None) => ChangeKind::Created,
            (None, Some(_), Some(_)) => ChangeKind::Changed,
        }
    }
}

impl Beneath {
    /// Whether this is the entry that a walk finds there.
    pub(super) fn is_named(&self, name: &std::ffi::OsStr, depth: usize) -> bool {
        self.depth == depth && (read_shown_name(&self.name) == name)
    }
}

fn change(path: String, kind: ChangeKind, shown: Option<Stamp>, sketch: &Sketch) -> Change {
    let is = |kind| shown.is_some_and(|stamp| stamp.kind() == kind);
    let Sketch { diff, binary, added, removed, flags } = sketch.clone();
    Change {
        path,
        kind,
        directory: is(EntryKind::Directory),
        executable: is(EntryKind::File) && shown.is_some_and(|stamp| stamp.mode & 0o111 != 0),
        from: None,
        diff,
        binary,
        size: if is(EntryKind::Directory) { 0 } else { shown.map_or(0, |stamp| stamp.size) },
        added,
        removed,
        flags,
        state: ChangeState::Staged,
        unit: 0,
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
