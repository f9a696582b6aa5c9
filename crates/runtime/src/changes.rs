//! What people see of the files a call would create, change or delete. The bytes are the sandbox's.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallEvent, CallId, Effect};

/// One file, folder or link that a call would change or has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Where, relative to the workspace.
    pub path: String,
    /// What happens to it.
    pub kind: ChangeKind,
    /// Where it came from, for a rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Bytes of what it takes the place of, for a rename onto something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u64>,
    /// A unified diff, where there is one to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The content is not text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// It is a folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directory: bool,
    /// It is, or becomes, an executable file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    /// Bytes after the change; before it, for a delete.
    pub size: u64,
    /// Lines added.
    #[serde(default)]
    pub added: usize,
    /// Lines removed.
    #[serde(default)]
    pub removed: usize,
    /// Why a person should look twice.
    pub flags: Vec<Flag>,
    /// Whether it is in the workspace.
    pub state: ChangeState,
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is made.
    Created,
    /// Its content changes.
    Changed,
    /// It goes.
    Deleted,
    /// Its permissions change.
    Mode,
    /// A symbolic link is made or points elsewhere.
    Link,
    /// It moves.
    Renamed,
}

/// Where a change stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeState {
    /// Held aside.
    Staged,
    /// In the workspace.
    Committed,
    /// Was dropped before it came into the workspace.
    Discarded,
    /// Was in the workspace and has been taken back.
    Undone,
}

/// Why a person should look twice at a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// haft's own files in the workspace.
    HaftFiles,
    /// A git hook that would run.
    GitHook,
    /// A git setting that names a command.
    GitConfigCommand,
    /// A link that leads out of the workspace.
    LinkOutside,
    /// A set-uid or set-gid file.
    SetUid,
    /// A name that usually holds secrets.
    SensitiveName,
    /// A file that editors, shells or build servers run or obey by themselves.
    RunsByItself,
    /// A file that decides what search and version control see.
    IgnoreRules,
    /// Inside a git folder.
    InsideGit,
}

impl Flag {
    /// Why, in words that follow the path.
    pub fn words(self) -> &'static str {
        match self {
            Self::HaftFiles => "steers haft itself",
            Self::GitHook => "is a git hook that would run",
            Self::GitConfigCommand => "names a command that git would run",
            Self::LinkOutside => "leads out of the workspace",
            Self::SetUid => "would run with another user's rights",
            Self::SensitiveName => "usually holds secrets",
            Self::RunsByItself => "is run or obeyed by other programs",
            Self::IgnoreRules => "decides what search and version control see",
            Self::InsideGit => "lies inside a git folder",
        }
    }

    /// Whether the change would leave the fence by itself, so that it is asked for in every mode.
    pub fn leaves_the_fence(self) -> bool {
        match self {
            Self::HaftFiles | Self::GitHook | Self::GitConfigCommand | Self::LinkOutside | Self::SetUid => true,
            Self::SensitiveName | Self::RunsByItself | Self::IgnoreRules | Self::InsideGit => false,
        }
    }
}

/// Everything one call would change, in path order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeList(pub Vec<Change>);

impl ChangeList {
    /// How far these changes reach: the effect of a call once it has been prepared.
    pub fn effect(&self) -> Effect {
        let destroys = |change: &Change| change.kind == ChangeKind::Deleted || !change.flags.is_empty();
        if self.0.is_empty() {
            Effect::Read
        } else if self.0.iter().any(destroys) {
            Effect::Destroy
        } else {
            Effect::Write
        }
    }

    /// The paths, in order.
    pub fn paths(&self) -> Vec<String> {
        self.0.iter().map(|change| change.path.clone()).collect()
    }

    /// Bytes of everything that is created or changed.
    pub fn bytes(&self) -> u64 {
        self.0.iter().filter(|change| change.kind != ChangeKind::Deleted).map(|change| change.size).sum()
    }

    /// The list with what a turn did: what was left out keeps its state.
    #[must_use]
    pub(crate) fn updated(self, turned: Self) -> Self {
        let mut turned: HashMap<String, Change> =
            turned.0.into_iter().map(|change| (change.path.clone(), change)).collect();
        let mut moved_back = HashSet::new();
        let end = |change: Change| {
            if let Some(done) = turned.remove(&change.path) {
                return Some(done);
            }
            // What is moved back stands under its other end, and so does what had made room for it.
            if let Some(done) = change.from.as_ref().and_then(|from| turned.remove(from)) {
                moved_back.insert(done.path.clone());
                return Some(done);
            }
            (!moved_back.contains(&change.path)).then_some(change)
        };
        Self(self.0.into_iter().filter_map(end).collect())
    }

    /// The same list without diffs, for rows and events.
    #[must_use]
    pub fn without_diffs(&self) -> Self {
        Self(self.0.iter().map(|change| Change { diff: None, ..change.clone() }).collect())
    }
}

/// Which way staged changes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the workspace.
    Commit,
    /// Out of it again.
    Undo,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Commit => Self::Undo,
            Self::Undo => Self::Commit,
        }
    }
}

/// A step that a call takes with staged changes: its own, or those of an earlier call.
/// An undo, the undo of an undo and a late commit are all turns of the same set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The call that staged the changes.
    pub of: CallId,
    /// Which way.
    pub direction: Direction,
    /// Which of them; `None` means all that can go that way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
}

impl Turn {
    /// Commits everything that `call` has staged.
    pub fn commit(call: CallId) -> Self {
        Self { of: call, direction: Direction::Commit, paths: None }
    }

    /// What tells of this turn, once it has been taken.
    pub(crate) fn event(&self, done: &ChangeList) -> CallEvent {
        let (of, changes) = (self.of.clone(), done.without_diffs());
        match self.direction {
            Direction::Commit => CallEvent::Committed { of, changes },
            Direction::Undo => CallEvent::Undone { of, changes },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn change(path: String, state: ChangeState) -> Change {
        Change {
            path,
            kind: ChangeKind::Created,
            from: None,
            replaces: None,
            diff: None,
            binary: false,
            directory: false,
            executable: false,
            size: 1,
            added: 0,
            removed: 0,
            flags: Vec::new(),
            state,
        }
    }

    #[test]
    fn a_very_long_list_is_updated_at_once() {
        let list =
            |state| ChangeList((0..60_000).map(|number| change(format!("folder/file{number}"), state)).collect());
        let begun = Instant::now();
        let updated = list(ChangeState::Committed).updated(list(ChangeState::Undone));
        // One look through the other list for each path would take minutes.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(updated.0.len() == 60_000 && updated.0.iter().all(|change| change.state == ChangeState::Undone));
    }

    #[test]
    fn what_is_moved_back_is_listed_once_and_by_its_own_path() {
        let moved = |path: &str, from: &str, state| Change {
            kind: ChangeKind::Renamed,
            from: Some(from.to_owned()),
            ..change(path.to_owned(), state)
        };
        let shown = ChangeList(vec![
            moved("a", "b", ChangeState::Committed),
            change("b".to_owned(), ChangeState::Committed),
            change("c".to_owned(), ChangeState::Staged),
        ]);
        let done = moved("b", "a", ChangeState::Undone);
        let left = change("c".to_owned(), ChangeState::Staged);
        assert_eq!(shown.updated(ChangeList(vec![done.clone()])), ChangeList(vec![done, left]));
    }
}
