//! Why the store could not do what was asked.

use std::{io, path::PathBuf, sync::Arc};

use haft_runtime::{ErrorCode, ToolError};

/// What the database said.
type SharedError = Arc<dyn std::error::Error + Send + Sync>;

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
    /// The database needs a newer haft.
    #[error(
        "{place} needs a newer haft: it can be used by version {needs} of its tables and later, this haft knows version {known}"
    )]
    Newer {
        /// The database.
        place: String,
        /// The oldest version that may use it.
        needs: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The database is none of haft's.
    #[error("{place} is not a database of haft's, or its beginning is damaged: move it away, or restore a copy")]
    Foreign {
        /// The database.
        place: String,
    },
    /// The address of the database cannot be read.
    #[error(
        "`store.url` is not an address of a PostgreSQL database: write it as postgres://user:password@host:5432/name"
    )]
    Url,
    /// The database keeps text in an alphabet that does not have every letter.
    #[error("{place} keeps its text as {encoding}: make a database with the encoding UTF8")]
    Encoding {
        /// The database.
        place: String,
        /// How it keeps text.
        encoding: String,
    },
    /// The machine has no certificates to check the server's with.
    #[error(
        "no certificates are installed to check the database server's with: install ca-certificates, or add sslmode=disable to `store.url`"
    )]
    Certificates,
    /// The server cannot be reached, or has gone away.
    #[error("the database at {place} cannot be reached: check that it runs and that `store.url` is right")]
    Unreachable {
        /// The database.
        place: String,
        /// Why.
        #[source]
        source: SharedError,
    },
    /// The server takes requests and says nothing.
    #[error("the database at {place} does not answer: check whether it is overloaded, or its disk is")]
    Silent {
        /// The database.
        place: String,
    },
    /// The server has no connection left for us.
    #[error("the database at {place} has no free connection: raise its `max_connections`, or end other programs")]
    NoConnection {
        /// The database.
        place: String,
    },
    /// The server does not let us in.
    #[error(
        "the database at {place} does not let haft in: check the user, the password and the name of the database in `store.url`"
    )]
    NotLetIn {
        /// The database.
        place: String,
        /// What it said.
        #[source]
        source: SharedError,
    },
    /// The connection broke during a commit, and nobody could be asked what became of it.
    #[error("the database at {place} went away during a commit: whether it was written is unknown")]
    CommitUnknown {
        /// The database.
        place: String,
    },
    /// The transaction lost against another one; it has to be run again.
    #[error("the database is busy with other writers: call again")]
    Conflict(#[source] SharedError),
    /// The database cannot be copied while somebody works with it.
    #[error("{0} is under way: end the haft that carries it and copy again")]
    InUse(String),
    /// A copy would be mixed with what is there.
    #[error("the database to copy to is not empty, it has rows in `{0}`: name an empty one, or add --replace")]
    NotEmpty(&'static str),
    /// Secrets in it were sealed by another master key.
    #[error(
        "this database was used with another master key: set HAFT_SECRET_KEY to that one, or bring back the file \
         secret.key of its data folder"
    )]
    AnotherKey,
    /// Another process carries the call now.
    #[error("another process carries {0} now: this one had not answered for too long")]
    NotOwner(String),
    /// The database is not one, or is broken.
    #[error("the database is damaged: restore a copy of it, or move it away to begin with an empty one")]
    Damaged(#[source] SharedError),
    /// The database cannot be written.
    #[error("the database cannot be written: give haft the right to write its data folder")]
    ReadOnly(#[source] SharedError),
    /// The disk is full.
    #[error("the database cannot grow, the disk is full: free some space and call again")]
    Full(#[source] SharedError),
    /// Another process held the database for too long.
    #[error("another process has held the database for too long: call again, or end that process")]
    Busy(#[source] SharedError),
    /// The database does not accept what was to be written, usually because it is there already.
    #[error("the journal already holds this: record it under another id")]
    Refused(#[source] SharedError),
    /// Any other failure of the database.
    #[error("the database failed: run `haft doctor`")]
    Database(#[source] SharedError),
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
        source: SharedError,
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
            Self::Refused(_) | Self::UnknownCall(_) | Self::NotOwner(_) | Self::Row { .. } | Self::Unwritable(_) => {
                true
            }
            Self::Folder { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Url
            | Self::Encoding { .. }
            | Self::Certificates
            | Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::NoConnection { .. }
            | Self::NotLetIn { .. }
            | Self::CommitUnknown { .. }
            | Self::Conflict(_)
            | Self::InUse(_)
            | Self::NotEmpty(_)
            | Self::AnotherKey
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

    /// Whether the database may be there again in a moment, so that whoever can wait looks again.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Silent { .. } | Self::NoConnection { .. } | Self::Busy(_))
    }

    pub(crate) fn folder(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Folder { path: path.into(), source: Arc::new(source) }
    }

    /// The journal has this call already.
    pub(crate) fn known_already(call: &str) -> Self {
        Self::Refused(Arc::from(Box::from(format!("{call} has ended"))))
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(err: tokio_postgres::Error) -> Self {
        let code = err.code().map(|code| code.code().to_owned());
        let source: SharedError = Arc::new(err);
        let place = String::new;
        // Classes and conditions of PostgreSQL's appendix of error codes.
        match code.as_deref() {
            None => Self::Unreachable { place: place(), source },
            Some("40001" | "40P01") => Self::Conflict(source),
            Some("23505") => Self::Refused(source),
            Some("53100" | "53200") => Self::Full(source),
            Some("25006" | "42501") => Self::ReadOnly(source),
            Some("42P01" | "42703" | "XX001" | "XX002") => Self::Damaged(source),
            Some("3D000" | "28000" | "28P01") => Self::NotLetIn { place: place(), source },
            Some("53300") => Self::NoConnection { place: place() },
            // It is being ended, or ended us: 25P03 says that we were silent in a transaction for too long.
            Some("57P01" | "57P02" | "57P03" | "25P03") => Self::Unreachable { place: place(), source },
            Some(code) if code.starts_with("08") => Self::Unreachable { place: place(), source },
            Some(_) => Self::Database(source),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> Self {
        // A statement that the tables do not fit is quoted whole; what is missing is enough.
        if let rusqlite::Error::SqlInputError { error, msg, .. } = err {
            return Self::of_code(Some(error.extended_code), Arc::from(Box::from(msg)));
        }
        Self::of_code(err.sqlite_error().map(|err| err.extended_code), Arc::new(err))
    }
}

impl StoreError {
    fn of_code(code: Option<i32>, err: SharedError) -> Self {
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
            StoreError::Newer { .. } => "it needs a newer haft: use that one".into(),
            StoreError::Foreign { .. } => {
                "its file is not haft's or is damaged: restore a copy, or move it away".into()
            }
            StoreError::Unreachable { .. } => {
                "its server cannot be reached: check that it runs and that `store.url` is right".into()
            }
            StoreError::Silent { .. } => "its server does not answer: check whether it is overloaded".into(),
            StoreError::NoConnection { .. } => {
                "its server has no free connection: raise its `max_connections`, or end other programs".into()
            }
            StoreError::NotLetIn { .. } => "its server does not let haft in: check `store.url`".into(),
            StoreError::CommitUnknown { .. } => {
                "its server went away during a commit: whether it was written is unknown".into()
            }
            StoreError::Encoding { .. } => "its text is not UTF8: make a database with the encoding UTF8".into(),
            StoreError::Url
            | StoreError::Certificates
            | StoreError::Conflict(_)
            | StoreError::InUse(_)
            | StoreError::NotEmpty(_)
            | StoreError::AnotherKey
            | StoreError::NotOwner(_)
            | StoreError::Damaged(_)
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
