//! The sandbox's changes in the words that people and the policy read.

use haft_runtime as runtime;
use haft_sandbox::changes as sandbox;

/// What people see of changes.
pub(crate) fn change_list(changes: Vec<sandbox::Change>) -> runtime::ChangeList {
    runtime::ChangeList(changes.into_iter().map(change).collect())
}

/// The sandbox's word for a direction.
pub(crate) fn direction(direction: runtime::Direction) -> sandbox::Direction {
    match direction {
        runtime::Direction::Commit => sandbox::Direction::Commit,
        runtime::Direction::Undo => sandbox::Direction::Undo,
    }
}

/// The sandbox's word for a choice of paths.
pub(crate) fn selection(paths: Option<&[String]>) -> sandbox::Selection<'_> {
    paths.map_or(sandbox::Selection::All, sandbox::Selection::Some)
}

fn change(change: sandbox::Change) -> runtime::Change {
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
        spent: change.spent,
        state: state(change.state),
        unit: change.unit,
    }
}

fn kind(kind: sandbox::ChangeKind) -> runtime::ChangeKind {
    match kind {
        sandbox::ChangeKind::Created => runtime::ChangeKind::Created,
        sandbox::ChangeKind::Changed => runtime::ChangeKind::Changed,
        sandbox::ChangeKind::Deleted => runtime::ChangeKind::Deleted,
        sandbox::ChangeKind::Mode => runtime::ChangeKind::Mode,
        sandbox::ChangeKind::Link => runtime::ChangeKind::Link,
        sandbox::ChangeKind::Renamed => runtime::ChangeKind::Renamed,
    }
}

fn state(state: sandbox::ChangeState) -> runtime::ChangeState {
    match state {
        sandbox::ChangeState::Staged => runtime::ChangeState::Staged,
        sandbox::ChangeState::Committed => runtime::ChangeState::Committed,
        sandbox::ChangeState::Undone => runtime::ChangeState::Undone,
        sandbox::ChangeState::Discarded => runtime::ChangeState::Discarded,
    }
}

fn flag(flag: sandbox::Flag) -> runtime::Flag {
    match flag {
        sandbox::Flag::HaftFiles => runtime::Flag::HaftFiles,
        sandbox::Flag::GitHook => runtime::Flag::GitHook,
        sandbox::Flag::GitConfigCommand => runtime::Flag::GitConfigCommand,
        sandbox::Flag::LinkOutside => runtime::Flag::LinkOutside,
        sandbox::Flag::SetUid => runtime::Flag::SetUid,
        sandbox::Flag::SensitiveName => runtime::Flag::SensitiveName,
        sandbox::Flag::RunsByItself => runtime::Flag::RunsByItself,
        sandbox::Flag::IgnoreRules => runtime::Flag::IgnoreRules,
        sandbox::Flag::InsideGit => runtime::Flag::InsideGit,
    }
}
