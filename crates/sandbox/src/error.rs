//! What can go wrong with a path.

use std::io;

use rustix::io::Errno;

/// Why a path could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The path, or a link on its way, leaves the workspace.
    #[error("path `{path}` leads outside the workspace")]
    Outside {
        /// The path as it was given.
        path: String,
    },
    /// The text cannot be a path.
    #[error("`{path}` is not a usable path: {why}")]
    Malformed {
        /// The path as it was given, cut when it was too long.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name is one of those that hold secrets, or the folder is haft's own.
    #[error("access to sensitive path `{path}` denied")]
    Sensitive {
        /// The path as it was given.
        path: String,
    },
    /// Nothing is there.
    #[error("`{path}` does not exist{}", suggestion(nearest))]
    NotFound {
        /// The path that is missing.
        path: String,
        /// Existing paths with a similar name, best first.
        nearest: Vec<String>,
    },
    /// A file was wanted.
    #[error("`{path}` is a directory")]
    IsDirectory {
        /// The directory.
        path: String,
    },
    /// A directory was wanted.
    #[error("`{path}` is not a directory")]
    NotDirectory {
        /// The path that should be a directory.
        path: String,
    },
    /// A FIFO, a socket or a device is there.
    #[error("`{path}` is {what}, not a regular file")]
    NotRegular {
        /// The path.
        path: String,
        /// What it is instead.
        what: &'static str,
    },
    /// Links lead in a circle, or a link appeared where there was none.
    #[error("`{path}` goes through too many links, or through a link that has just appeared")]
    TooManyLinks {
        /// The path.
        path: String,
    },
    /// The operating system refuses.
    #[error("no permission for `{path}`")]
    Denied {
        /// The path.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The filesystem is mounted read-only.
    #[error("`{path}` is on a read-only filesystem")]
    ReadOnly {
        /// The path.
        path: String,
    },
    /// The disk or the quota is full.
    #[error("no space left for `{path}`")]
    Full {
        /// The path.
        path: String,
    },
    /// Anything else the system reports.
    #[error("could not work on `{path}`")]
    Io {
        /// The path.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl PathError {
    /// The system's answer about a path in our words.
    pub(crate) fn from_errno(path: &impl ToString, errno: Errno) -> PathError {
        let path = path.to_string();
        match errno {
            Errno::XDEV => PathError::Outside { path },
            Errno::NOENT => PathError::NotFound { path, nearest: Vec::new() },
            Errno::ISDIR => PathError::IsDirectory { path },
            Errno::NOTDIR => PathError::NotDirectory { path },
            Errno::LOOP => PathError::TooManyLinks { path },
            Errno::NAMETOOLONG => PathError::Malformed { path, why: "the name is too long" },
            Errno::NXIO | Errno::NODEV => PathError::NotRegular { path, what: "a socket or a device" },
            Errno::ACCESS | Errno::PERM => PathError::Denied { path, source: errno.into() },
            Errno::ROFS => PathError::ReadOnly { path },
            Errno::NOSPC | Errno::DQUOT => PathError::Full { path },
            other => PathError::Io { path, source: other.into() },
        }
    }
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    format!("; similar: {}", nearest.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
}
