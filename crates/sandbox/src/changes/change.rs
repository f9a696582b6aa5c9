//! What people are shown of one changed path.

use serde::{Deserialize, Serialize};

use super::flags::ChangeFlag;

/// One path that a call would change, or has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path as it is shown and selected; see [`crate::WorkspacePath`] for how odd names are written.
    pub path: String,
    /// What happens to it.
    pub kind: FileChangeKind,
    /// Whether it is a folder.
    pub directory: bool,
    /// Whether it is an executable file.
    pub executable: bool,
    /// Where it was before, if it was renamed.
    pub from: Option<String>,
    /// The size of what it takes the place of, if it was renamed onto something.
    pub replaces: Option<u64>,
    /// The unified diff, unless it is too long to be kept; see [`super::Changes::diff`].
    pub diff: Option<String>,
    /// Whether the content is not text.
    pub binary: bool,
    /// The size in bytes: the new one, or the old one of what is deleted.
    pub size: u64,
    /// How many lines are new; 0 when there is no diff.
    pub added: usize,
    /// How many lines go; 0 when there is no diff.
    pub removed: usize,
    /// What to look at twice.
    pub flags: Vec<ChangeFlag>,
    /// What this and the rest of its unit are in one line, if that says it all.
    pub summary: Option<String>,
    /// Whether it goes because it has served its purpose, as what git keeps of a merge until that is committed.
    pub spent: bool,
    /// Whether it only follows from other files, as build output does.
    pub derived: bool,
    /// Where it is in its life.
    pub state: FileChangeState,
    /// Changes with the same number are committed and undone only together.
    pub unit: usize,
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is new.
    Created,
    /// Its content changes.
    Changed,
    /// It goes.
    Deleted,
    /// Only its permissions change.
    Mode,
    /// A link is made or points elsewhere.
    Link,
    /// It moves from another path.
    Renamed,
}

/// Where a change is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeState {
    /// Planned; the workspace is untouched.
    Staged,
    /// In the workspace.
    Committed,
    /// Was in the workspace and has been taken back; can be committed again.
    Undone,
    /// Thrown away before it was ever committed.
    Discarded,
}

/// Which way changes are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeDirection {
    /// Into the workspace.
    Commit,
    /// Out of it again.
    Undo,
}

/// Which changes are turned.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a> {
    /// All that can be.
    All,
    /// Those with these paths, as [`FileChange::path`] gives them.
    Some(&'a [String]),
}
