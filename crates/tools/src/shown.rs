//! The sandbox's changes in the words that people and the policy read.

use haft_runtime as runtime;
use haft_sandbox::changes as sandbox;

/// What people see of changes.
pub(crate) fn change_list(changes: Vec<sandbox::FileChange>) -> runtime::ChangeList {
    runtime::ChangeList(changes.into_iter().map(change).collect())
}

/// The sandbox's word for a direction.
pub(crate) fn direction(direction: runtime::Direction) -> sandbox::ChangeDirection {
    match direction {
        runtime::Direction::Commit => sandbox::ChangeDirection::Commit,
        runtime::Direction::Undo => sandbox::ChangeDirection::Undo,
    }
}

/// The sandbox's word for a choice of paths.
pub(crate) fn selection(paths: Option<&[String]>) -> sandbox::Selection<'_> {
    paths.map_or(sandbox::Selection::All, sandbox::Selection::Some)
}

fn change(change: sandbox::FileChange) -> runtime::Change {
    runtime::Change {
        path: change.path,
        kind: kind(change.kind),
        from: change.from,
        replaces: change.replaces,
        diff: change.diff,
        binary: change.binary,
        directory: change.directory,
        executable: change.executable,
        size: change.size,
        added: change.added,
        removed: change.removed,
        flags: change.flags.into_iter().map(flag).collect(),
        derived: change.derived,
        summary: change.summary,
        patch: None,
        spent: change.spent,
        state: state(change.state),
        unit: change.unit,
    }
}

fn kind(kind: sandbox::FileChangeKind) -> runtime::ChangeKind {
    match kind {
        sandbox::FileChangeKind::Created => runtime::ChangeKind::Created,
        sandbox::FileChangeKind::Changed => runtime::ChangeKind::Changed,
        sandbox::FileChangeKind::Deleted => runtime::ChangeKind::Deleted,
        sandbox::FileChangeKind::Mode => runtime::ChangeKind::Mode,
        sandbox::FileChangeKind::Link => runtime::ChangeKind::Link,
        sandbox::FileChangeKind::Renamed => runtime::ChangeKind::Renamed,
    }
}

fn state(state: sandbox::FileChangeState) -> runtime::ChangeState {
    match state {
        sandbox::FileChangeState::Staged => runtime::ChangeState::Staged,
        sandbox::FileChangeState::Committed => runtime::ChangeState::Committed,
        sandbox::FileChangeState::Undone => runtime::ChangeState::Undone,
        sandbox::FileChangeState::Discarded => runtime::ChangeState::Discarded,
    }
}

fn flag(flag: sandbox::ChangeFlag) -> runtime::Flag {
    match flag {
        sandbox::ChangeFlag::HaftFiles => runtime::Flag::HaftFiles,
        sandbox::ChangeFlag::GitHook => runtime::Flag::GitHook,
        sandbox::ChangeFlag::GitConfigCommand => runtime::Flag::GitConfigCommand,
        sandbox::ChangeFlag::LinkOutside => runtime::Flag::LinkOutside,
        sandbox::ChangeFlag::SetUid => runtime::Flag::SetUid,
        sandbox::ChangeFlag::SensitiveName => runtime::Flag::SensitiveName,
        sandbox::ChangeFlag::RunsByItself => runtime::Flag::RunsByItself,
        sandbox::ChangeFlag::IgnoreRules => runtime::Flag::IgnoreRules,
        sandbox::ChangeFlag::InsideGit => runtime::Flag::InsideGit,
    }
}
