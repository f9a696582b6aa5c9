//! The database: SQLite or PostgreSQL. Only this file and the two drivers know that there are two.

use std::{path::Path, sync::Mutex, time::Duration};

use futures_util::FutureExt;
use jiff::Timestamp;

use crate::{
    Durability, StoreError,
    batch::{self, StoreWrite},
    faults::Faults,
    lock::lock,
    postgres::{LentConnection, Postgres},
    sql::{Row, Statement},
    sqlite::Sqlite,
};

/// How often a server that went away is tried again, and after what time.
const RECONNECTS: usize = 3;
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// How often a transaction is run again that lost against another one.
const RERUNS: usize = 50;

/// The database behind the store.
pub(crate) enum Db {
    Sqlite(Box<Sqlite>),
    Postgres(Box<Postgres>),
}

/// A connection within a transaction that only reads.
pub(crate) enum ReadSnapshot {
    Sqlite(Mutex<rusqlite::Connection>),
    Postgres(LentConnection),
}

/// A transaction that is under way.
pub(crate) trait Transaction {
    /// Runs the statements in their order and gives back the rows of each. PostgreSQL gets all of them in one message.
    async fn run(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError>;
}

impl Transaction for rusqlite::Connection {
    async fn run(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        statements.iter().map(|statement| crate::sqlite::run(self, statement)).collect()
    }
}

impl Transaction for tokio_postgres::Client {
    async fn run(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        crate::postgres::run_all(self, statements).await
    }
}

impl Db {
    /// Opens `haft.db`, which must be there.
    pub(crate) fn sqlite(path: &Path, sync: Durability, faults: Option<Faults>) -> Result<Self, StoreError> {
        Ok(Self::Sqlite(Box::new(Sqlite::open(path, sync, faults)?)))
    }

    /// Connects to a server. The node's id is the key by which a commit is found again whose answer was lost.
    pub(crate) async fn postgres(url: &str, node: &str, faults: Option<Faults>) -> Result<Self, StoreError> {
        Ok(Self::Postgres(Box::new(Postgres::open(url, node, faults).await?)))
    }

    /// The rows of one statement.
    pub(crate) async fn read(&self, statement: &Statement) -> Result<Vec<Row>, StoreError> {
        let rows = self.read_together(std::slice::from_ref(statement)).await?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// The rows of several statements, all of the same moment.
    pub(crate) async fn read_together(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.read(statements).await,
            Self::Postgres(postgres) => postgres.read(statements).await,
        }
    }

    /// Everything as it is now, for as long as the connection is held.
    pub(crate) async fn snapshot(&self) -> Result<ReadSnapshot, StoreError> {
        Ok(match self {
            Self::Sqlite(sqlite) => ReadSnapshot::Sqlite(Mutex::new(sqlite.snapshot()?)),
            Self::Postgres(postgres) => ReadSnapshot::Postgres(postgres.snapshot().await?),
        })
    }

    /// The rows of one statement, as of the moment of a snapshot.
    pub(crate) async fn read_within(&self, held: &ReadSnapshot, statement: &Statement) -> Result<Vec<Row>, StoreError> {
        match (self, held) {
            (_, ReadSnapshot::Sqlite(conn)) => crate::sqlite::run(&lock(conn), statement),
            (Self::Postgres(postgres), ReadSnapshot::Postgres(lent)) => postgres.read_within(lent, statement).await,
            (Self::Sqlite(_), ReadSnapshot::Postgres(_)) => Err(StoreError::Closed),
        }
    }

    /// Writes page after page: all or nothing on a server. A file is new and used by nobody yet, so that each page is
    /// written by itself.
    pub(crate) async fn load(
        &self,
        mut next_page: impl AsyncFnMut() -> Result<Option<Vec<Statement>>, StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => {
                while let Some(page) = next_page().await? {
                    let run = |conn: &rusqlite::Connection| {
                        page.iter().try_for_each(|statement| crate::sqlite::run(conn, statement).map(drop))
                    };
                    let mut reruns = Reruns::default();
                    loop {
                        let written = sqlite.transaction(sqlite.busy_limit(), run);
                        if !reruns.allow_another(&written).await {
                            written?;
                            break;
                        }
                    }
                }
                Ok(())
            }
            Self::Postgres(postgres) => postgres.load(next_page).await,
        }
    }

    /// Writes all or nothing in one transaction, and says of each write whether it touched a row. A transaction that lost
    /// against another one is run again.
    pub(crate) async fn write(&self, writes: &[&StoreWrite]) -> Result<Vec<bool>, StoreError> {
        let mut reruns = Reruns::default();
        match self {
            Self::Sqlite(sqlite) => loop {
                let written = sqlite.transaction(sqlite.busy_limit(), |conn| apply_now(conn, writes));
                if !reruns.allow_another(&written).await {
                    return written;
                }
            },
            Self::Postgres(postgres) => {
                let mut batch = postgres.batch(writes);
                loop {
                    let written = postgres.transaction(&mut batch).await;
                    if !reruns.allow_another(&written).await {
                        return written;
                    }
                }
            }
        }
    }

    /// The time that everybody who uses this database goes by, as of the last look at it.
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Sqlite(_) => Timestamp::now(),
            Self::Postgres(postgres) => postgres.now(),
        }
    }

    /// The same, looked at anew.
    pub(crate) async fn look_at_clock(&self) -> Result<Timestamp, StoreError> {
        match self {
            Self::Sqlite(_) => Ok(Timestamp::now()),
            Self::Postgres(postgres) => postgres.look_at_clock().await,
        }
    }

    /// Writes on this very thread without waiting for anybody. `None` where that cannot be: the database is in use, commits
    /// wait for the disk, or it is another machine's.
    pub(crate) fn write_at_once(&self, writes: &[&StoreWrite]) -> Option<Result<Vec<bool>, StoreError>> {
        let Self::Sqlite(sqlite) = self else { return None };
        match sqlite.transaction(Duration::ZERO, |conn| apply_now(conn, writes)) {
            Err(StoreError::Busy(_) | StoreError::Conflict(_)) => None,
            written => Some(written),
        }
    }

    /// Whether a commit takes less time than waking another thread.
    pub(crate) fn commits_quickly(&self) -> bool {
        match self {
            Self::Sqlite(sqlite) => sqlite.sync() == Durability::Normal,
            Self::Postgres(_) => false,
        }
    }

    /// How often to look whether another process has written something.
    pub(crate) fn poll_interval(&self) -> Duration {
        match self {
            Self::Sqlite(_) => Duration::from_millis(20),
            Self::Postgres(_) => Duration::from_millis(250),
        }
    }

    /// Where it lies, how large it is, and which database of which version it is.
    pub(crate) async fn describe(&self) -> Result<(String, u64, String), StoreError> {
        match self {
            Self::Sqlite(sqlite) => {
                let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
                let bytes = size(sqlite.path()) + size(&sqlite.path().with_extension("db-wal"));
                Ok((sqlite.path().display().to_string(), bytes, format!("SQLite {}", rusqlite::version())))
            }
            Self::Postgres(postgres) => postgres.describe().await,
        }
    }

    /// Closes every connection. The last process to close SQLite brings its log into the database.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.close(),
            Self::Postgres(postgres) => postgres.close().await,
        }
    }

    /// Leaves the connections to the end of the process, so that nobody waits for the disk.
    pub(crate) async fn leave(&self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.leave(),
            Self::Postgres(postgres) => postgres.close().await,
        }
    }
}

/// How often one transaction was run again, and why.
#[derive(Default)]
struct Reruns {
    conflicts: usize,
    reconnects: usize,
}

impl Reruns {
    /// Whether a transaction that came to this is run again, after a while where that helps.
    async fn allow_another<T>(&mut self, written: &Result<T, StoreError>) -> bool {
        match written {
            Err(StoreError::Conflict(_)) if self.conflicts < RERUNS => self.conflicts += 1,
            // Nothing was committed: that would be told otherwise.
            Err(StoreError::Unreachable { .. }) if self.reconnects < RECONNECTS => {
                self.reconnects += 1;
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
            Ok(_) | Err(_) => return false,
        }
        true
    }
}

/// SQLite answers at once, so that the writes are done when they are first looked at.
fn apply_now(conn: &rusqlite::Connection, writes: &[&StoreWrite]) -> Result<Vec<bool>, StoreError> {
    batch::apply(conn, writes).now_or_never().unwrap_or(Err(StoreError::Closed))
}

/// A text of the schema in the words of a database.
pub(crate) fn in_words_of(database: Words, text: &str) -> String {
    let [int, plain, bytes, table, small_table] = match database {
        Words::Sqlite => ["integer", "text", "blob", "strict", "strict, without rowid"],
        // Ids and cursors are compared byte by byte, whatever language the database was made for.
        Words::Postgres => ["bigint", "text collate \"C\"", "bytea", "", ""],
    };
    let text = text.replace("{int}", int).replace("{text}", plain).replace("{bytes}", bytes);
    text.replace("{table}", table).replace("{small_table}", small_table)
}

/// Whose words.
#[derive(Clone, Copy)]
pub(crate) enum Words {
    Sqlite,
    Postgres,
}
