//! What people see of the files a call would create, change or delete. The bytes are the sandbox's.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallEvent, CallId, Effect};

/// One file, folder or link that a call would change or has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// It is build output or a cache, by all of its paths: what is ignored and untracked, as it was before the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// One line that stands for this and for what belongs to it, such as `commit 1a2b3c on main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the commit that `summary` names changes, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// It goes because it has served its purpose, as what git keeps of a merge until that is committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
    /// Whether it is in the workspace.
    pub state: ChangeState,
    /// Changes of one list with the same number come into the workspace only together.
    #[serde(skip)]
    pub unit: usize,
}

impl Change {
    /// A staged change with nothing more to say of it.
    pub fn staged(path: impl Into<String>, kind: ChangeKind) -> Self {
        Self {
            path: path.into(),
            kind,
            from: None,
            replaces: None,
            diff: None,
            binary: false,
            directory: false,
            executable: false,
            size: 0,
            added: 0,
            removed: 0,
            flags: Vec::new(),
            derived: false,
            summary: None,
            patch: None,
            spent: false,
            state: ChangeState::Staged,
            unit: 0,
        }
    }
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ChangeList(pub Vec<Change>);

impl ChangeList {
    /// How far these changes reach: the effect of a call once it has been prepared.
    pub fn effect(&self) -> Effect {
        let destroys =
            |change: &Change| (change.kind == ChangeKind::Deleted && !change.spent) || !change.flags.is_empty();
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

    /// The changes one by one, where a summary stands for all that belongs to it.
    pub fn told(&self) -> Vec<&Change> {
        let summaries: Vec<(ChangeState, &str)> = self
            .0
            .iter()
            .filter(|change| change.summary.is_some())
            .filter_map(|change| Some((change.state, git_folder(&change.path)?)))
            .collect();
        let stands_alone = |change: &&Change| {
            let folder = git_folder(&change.path);
            let is_told = folder.is_some_and(|folder| summaries.contains(&(change.state, folder)));
            change.summary.is_some() || !change.flags.is_empty() || !is_told
        };
        self.0.iter().filter(stands_alone).collect()
    }

    /// The paths of what is held aside.
    pub(crate) fn staged_paths(&self) -> Vec<String> {
        let staged = self.0.iter().filter(|change| change.state == ChangeState::Staged);
        staged.map(|change| change.path.clone()).collect()
    }

    /// Whether a turn was taken that can be taken back.
    pub(crate) fn is_undoable(&self) -> bool {
        self.0.iter().any(|change| matches!(change.state, ChangeState::Committed | ChangeState::Undone))
    }

    /// The paths of what meets a condition and of what does not. A unit goes with its worst member, and so does what
    /// lies in a new folder.
    pub(crate) fn parted_by(&self, meets: impl Fn(&Change) -> bool) -> (Vec<String>, Vec<String>) {
        let units: HashSet<usize> = self.0.iter().filter(|change| !meets(change)).map(|change| change.unit).collect();
        let fails = |change: &Change| units.contains(&change.unit);
        let folders: HashSet<&str> = self
            .0
            .iter()
            .filter(|change| fails(change) && change.directory && change.kind == ChangeKind::Created)
            .map(|change| change.path.as_str())
            .collect();
        let within = |path: &str| path.match_indices('/').any(|(end, _)| folders.contains(&path[..end]));
        let (met, failed): (Vec<&Change>, Vec<&Change>) =
            self.0.iter().partition(|change| !fails(change) && !within(&change.path));
        let paths = |changes: Vec<&Change>| changes.into_iter().map(|change| change.path.clone()).collect();
        (paths(met), paths(failed))
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
        Self(self.0.iter().map(|change| Change { diff: None, patch: None, ..change.clone() }).collect())
    }
}

/// The git folder that a path is or lies in.
pub fn git_folder(path: &str) -> Option<&str> {
    let mut end = 0;
    for part in path.split('/') {
        end += part.len();
        if part == ".git" {
            return Some(&path[..end]);
        }
        end += 1;
    }
    None
}

/// How many paths a sentence names.
const NAMED: usize = 5;

/// What can be done with changes that a call has left staged.
pub(crate) fn left_staged(call: &CallId, paths: &[String]) -> String {
    let named = paths.iter().take(NAMED).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let more = paths.len().saturating_sub(NAMED);
    let named = if more > 0 { format!("{named} and {more} more") } else { named };
    format!(
        "Not applied yet: {named}. Look: haft changes {call}. Apply: haft commit {call} (agents: `commit_call`). \
         Drop: haft discard {call}."
    )
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

    fn change(path: impl Into<String>, state: ChangeState) -> Change {
        Change { state, ..Change::staged(path, ChangeKind::Created) }
    }

    #[test]
    fn what_has_served_its_purpose_destroys_nothing_by_going() {
        let goes = Change::staged(".git/MERGE_HEAD", ChangeKind::Deleted);
        let spent = Change { spent: true, ..goes.clone() };
        assert_eq!(ChangeList(vec![goes]).effect(), Effect::Destroy);
        assert_eq!(ChangeList(vec![spent.clone()]).effect(), Effect::Write);
        let flagged = Change { flags: vec![Flag::InsideGit], ..spent };
        assert_eq!(ChangeList(vec![flagged]).effect(), Effect::Destroy);
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
            ..change(path, state)
        };
        let shown = ChangeList(vec![
            moved("a", "b", ChangeState::Committed),
            change("b", ChangeState::Committed),
            change("c", ChangeState::Staged),
        ]);
        let done = moved("b", "a", ChangeState::Undone);
        let left = change("c", ChangeState::Staged);
        assert_eq!(shown.updated(ChangeList(vec![done.clone()])), ChangeList(vec![done, left]));
    }

    #[test]
    fn a_unit_goes_with_its_worst_member_and_a_folder_with_what_is_in_it() {
        let of = |path: &str, unit, flags| Change { unit, flags, ..Change::staged(path, ChangeKind::Created) };
        let folder = |path: &str, unit, flags| Change { directory: true, ..of(path, unit, flags) };
        let list = ChangeList(vec![
            of("a", 0, vec![]),
            of("b", 0, vec![Flag::GitHook]),
            folder("c", 1, vec![]),
            of("c/d", 2, vec![Flag::SetUid]),
            folder("e", 3, vec![Flag::InsideGit]),
            of("e/f/g", 4, vec![]),
            of("ef", 5, vec![]),
        ]);
        let (covered, left) = list.parted_by(|change| change.flags.is_empty());
        assert_eq!(
            (covered, left),
            (vec!["c".into(), "ef".into()], ["a", "b", "c/d", "e", "e/f/g"].map(String::from).to_vec())
        );
    }
}
