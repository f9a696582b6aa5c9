//! Why the store could not do what was asked.

use std::{io, path::PathBuf, sync::Arc};

use haft_runtime::{ErrorCode, ToolError};

/// What the database said.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Everything that can go wrong with the store. Cheap to clone: one failed commit answers many writers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The data folder cannot be made or used.
    #[error("cannot use the data folder {path}: check that it can be written and has space", path = path.display())]
    Folder {
        /// Which folder or file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// A later haft has written the database.
    #[error("{path} is of version {found}, but this haft knows versions up to {known}: use a newer haft", path = path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The database is none of haft's.
    #[error("{path} is not a database of haft's, or its beginning is damaged: move it away, or restore a copy", path = path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// The database is not one, or is broken.
    #[error("the database is damaged: restore a copy of it, or move it away to begin with an empty one")]
    Damaged(#[source] Cause),
    /// The database cannot be written.
    #[error("the database cannot be written: give haft the right to write its data folder")]
    ReadOnly(#[source] Cause),
    /// The disk is full.
    #[error("the database cannot grow, the disk is full: free some space and call again")]
    Full(#[source] Cause),
    /// Another process held the database for too long.
    #[error("another process has held the database for too long: call again, or end that process")]
    Busy(#[source] Cause),
    /// The database does not accept what was to be written, usually because it is there already.
    #[error("the journal already holds this: record it under another id")]
    Refused(#[source] Cause),
    /// Any other failure of the database.
    #[error("the database failed: run `haft doctor`")]
    Database(#[source] Cause),
    /// An entry of a call that was never opened.
    #[error("the journal knows no call {0}: its first entry must say who asked for what")]
    UnknownCall(String),
    /// A row holds what cannot be read.
    #[error("the row of {of} is damaged: its column `{column}` cannot be read")]
    Row {
        /// Which call or grant.
        of: String,
        /// Which column.
        column: &'static str,
        /// Why.
        #[source]
        source: Cause,
    },
    /// A value that cannot be written as text.
    #[error("a value cannot be written to the journal")]
    Unwritable(#[source] Arc<serde_json::Error>),
    /// The thread that writes could not be started.
    #[error("the store cannot start its thread: raise the limit on processes, or end some")]
    Thread(#[source] Arc<io::Error>),
    /// The store is closed.
    #[error("the store is closed: open it again")]
    Closed,
    /// Closing took too long.
    #[error("the store was not closed within {0} seconds: entries may be missing")]
    Unfinished(u64),
    /// Entries that nobody waited for could not be written.
    #[error("{count} journal entries could not be written")]
    Lost {
        /// How many.
        count: u64,
        /// Why the first of them was not.
        #[source]
        source: Arc<StoreError>,
    },
}

impl StoreError {
    /// Whether one entry is at fault, so that its neighbours in a batch can still be written.
    pub(crate) fn is_of_one_entry(&self) -> bool {
        match self {
            Self::Refused(_) | Self::UnknownCall(_) | Self::Row { .. } | Self::Unwritable(_) => true,
            Self::Folder { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Damaged(_)
            | Self::ReadOnly(_)
            | Self::Full(_)
            | Self::Busy(_)
            | Self::Database(_)
            | Self::Thread(_)
            | Self::Closed
            | Self::Unfinished(_)
            | Self::Lost { .. } => false,
        }
    }

    /// Whether so many entries can be written by somebody who has the time: to wait, or to find the one at fault.
    pub(crate) fn is_settled_by_waiting(&self, entries: usize) -> bool {
        matches!(self, Self::Busy(_)) || (self.is_of_one_entry() && entries > 1)
    }

    pub(crate) fn folder(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Folder { path: path.into(), source: Arc::new(source) }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(err: sqlx::Error) -> Self {
        let code = err.as_database_error().and_then(|err| err.code()).and_then(|code| code.parse().ok());
        // What SQLite says would be told twice, by sqlx and by itself.
        let cause: Cause =
            if let sqlx::Error::Database(inner) = err { Arc::from(inner.into_error()) } else { Arc::new(err) };
        Self::of_code(code, cause)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> Self {
        Self::of_code(err.sqlite_error().map(|err| err.extended_code), Arc::new(err))
    }
}

impl StoreError {
    fn of_code(code: Option<i32>, err: Cause) -> Self {
        // SQLite's primary result codes, which are the low byte of the extended ones.
        match code.map(|code| code & 0xff) {
            Some(5 | 6) => Self::Busy(err),
            Some(8 | 14) => Self::ReadOnly(err),
            // 1: it has not the tables and columns that its version says.
            Some(1 | 11 | 26) => Self::Damaged(err),
            Some(13) => Self::Full(err),
            Some(19) => Self::Refused(err),
            Some(_) | None => Self::Database(err),
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(err: serde_json::Error) -> Self {
        Self::Unwritable(Arc::new(err))
    }
}

impl From<StoreError> for ToolError {
    fn from(err: StoreError) -> Self {
        let why = match &err {
            // Callers learn no paths of the machine that haft runs on.
            StoreError::Folder { .. } => "its folder cannot be used: check that it can be written and has space".into(),
            StoreError::Newer { .. } => "a newer haft has written it: use that one".into(),
            StoreError::Foreign { .. } => {
                "its file is not haft's or is damaged: restore a copy, or move it away".into()
            }
            StoreError::Damaged(_)
            | StoreError::ReadOnly(_)
            | StoreError::Full(_)
            | StoreError::Busy(_)
            | StoreError::Refused(_)
            | StoreError::Database(_)
            | StoreError::UnknownCall(_)
            | StoreError::Row { .. }
            | StoreError::Unwritable(_)
            | StoreError::Thread(_)
            | StoreError::Closed
            | StoreError::Unfinished(_) => err.to_string(),
            StoreError::Lost { source, .. } => format!("{err}: {source}"),
        };
        ToolError::new(ErrorCode::StoreUnavailable, format!("the store is not available: {why}"))
    }
}
