//! What can go wrong with changes.

use std::io;

use rustix::io::Errno;

use super::change::FileChangeState;
use crate::error::PathError;

/// Why changes could not be planned, committed or undone.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// A path could not be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A folder has entries and `recursive` was not asked for.
    #[error("directory `{path}` is not empty; delete it recursively if that is meant")]
    NotEmpty {
        /// The folder.
        path: String,
    },
    /// Something is there that must not be.
    #[error("`{path}` already exists")]
    AlreadyExists {
        /// The path.
        path: String,
    },
    /// A folder with entries is where something else should come.
    #[error("a directory with entries is at `{path}`")]
    FolderInTheWay {
        /// The path.
        path: String,
    },
    /// A folder would come into itself.
    #[error("`{path}` cannot come into itself")]
    IntoItself {
        /// The folder.
        path: String,
    },
    /// Both ends are one and the same entry.
    #[error("`{path}` is the same entry already")]
    SameEntry {
        /// The path it should come to.
        path: String,
    },
    /// It was changed while it was being looked at or copied.
    #[error("`{path}` was changed meanwhile")]
    Unsteady {
        /// The path.
        path: String,
    },
    /// The same set of changes already does something to the path that does not go together with this.
    #[error("`{path}` is already changed by this call in a way that does not go together with this")]
    AlreadyPlanned {
        /// The path.
        path: String,
    },
    /// The workspace folder itself cannot be changed.
    #[error("the workspace itself cannot be changed or deleted")]
    RootItself,
    /// A file is not what the tool has read any more.
    #[error("`{path}` has changed since it was read; read it again")]
    Stale {
        /// The path.
        path: String,
    },
    /// Something else has changed what would be turned; nothing was touched.
    #[error("nothing was changed, because it was changed by something else meanwhile: {}", listed(paths))]
    Conflict {
        /// Each path with what happened to it.
        paths: Vec<(String, String)>,
    },
    /// Only a part of what belongs together was chosen.
    #[error("`{path}` can only be chosen together with the {} paths of its unit", unit.len())]
    NotAUnit {
        /// The path that was chosen.
        path: String,
        /// Everything that belongs together.
        unit: Vec<String>,
    },
    /// A chosen path is not among the changes.
    #[error("`{path}` is not among the changes")]
    UnknownPath {
        /// The path that was chosen.
        path: String,
        /// Changed paths with a similar name.
        nearest: Vec<String>,
    },
    /// A change is not in the state that this needs; an empty path means that none of them is.
    #[error("{} {} and cannot be turned this way", subject(path), described(*state))]
    WrongState {
        /// The path, or nothing when all were chosen.
        path: String,
        /// The state it is in.
        state: FileChangeState,
    },
    /// The filesystem renames only the plain way, so that nothing there can be swapped in one step.
    #[error("the filesystem that `{path}` lies on cannot swap two files in one step")]
    NoSwap {
        /// The path.
        path: String,
    },
    /// The changes are not kept any more, or were never sealed.
    #[error("these changes are not kept any more")]
    Gone,
    /// The workspace folder is missing or is another folder than the one that was planned for.
    #[error("the workspace is not the one that these changes were made for")]
    OtherWorkspace,
    /// The caller has stopped the planning.
    #[error("stopped")]
    Stopped,
    /// Other changes are being committed for too long.
    #[error("other changes are being committed to this workspace; try again")]
    Busy,
    /// What was kept cannot be read.
    #[error("the kept changes cannot be read: {what}")]
    Corrupt {
        /// What is wrong.
        what: String,
    },
    /// The folder that keeps the changes cannot be used.
    #[error("could not keep the changes ({what})")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl ChangesError {
    /// The system's answer about a path of the workspace.
    pub(super) fn at(path: &impl ToString, errno: Errno) -> ChangesError {
        ChangesError::Path(PathError::from_errno(path, errno))
    }

    /// The system's answer about our own folder; a full or read-only disk keeps its own name.
    pub(super) fn kept(what: &'static str, errno: Errno) -> ChangesError {
        match errno {
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => ChangesError::at(&"the changes folder", errno),
            other => ChangesError::Io { what, source: other.into() },
        }
    }
}

/// The system's answer about our own folder, as the standard library tells it.
pub(super) fn kept_io(what: &'static str, source: io::Error) -> ChangesError {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(errno) => ChangesError::kept(what, errno),
        None => ChangesError::Io { what, source },
    }
}

fn listed(paths: &[(String, String)]) -> String {
    let mut text: Vec<String> = paths.iter().take(5).map(|(path, why)| format!("`{path}` ({why})")).collect();
    if paths.len() > text.len() {
        text.push(format!("and {} more", paths.len() - text.len()));
    }
    text.join(", ")
}

fn subject(path: &str) -> String {
    if path.is_empty() { "everything".to_owned() } else { format!("`{path}`") }
}

fn described(state: FileChangeState) -> &'static str {
    match state {
        FileChangeState::Staged => "is staged",
        FileChangeState::Committed => "is committed",
        FileChangeState::Undone => "is undone",
        FileChangeState::Discarded => "is discarded",
    }
}
