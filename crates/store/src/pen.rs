//! The connection that writes, used by one thread at a time.
//!
//! Reads go through sqlx's pool. Its connections live on threads of their own, and the way there and back costs several
//! times what a commit does, so that the one connection that every call waits for is driven directly.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::{StoreError, addition::Addition, batch::Write, schema, store::Sync, tray::Places};

/// How many KiB of the database lie at hand. Whoever writes comes back to the same few pages: the newest of each index.
const AT_HAND: i64 = 512;
/// How many statements stay prepared.
const STATEMENTS: usize = 64;

thread_local! {
    /// How long the log was after the last commit on this thread.
    static LOG_PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The connection that writes.
pub(crate) struct Pen {
    path: PathBuf,
    /// Gone once the store is closed.
    conn: Option<Connection>,
    places: Places,
    /// How long the write-ahead log is, and how much of it was brought into the database.
    log_pages: i32,
    swept: i32,
}

/// Brings the write-ahead log into the database, over a connection of its own: nobody who writes waits for it.
pub(crate) struct Sweeper {
    path: PathBuf,
    conn: Option<Connection>,
}

impl Pen {
    /// Opens the database, brings it to the newest version, and finds out whether it can be written.
    pub(crate) fn open(path: &Path, sync: Sync, patience: Duration) -> Result<Self, StoreError> {
        let mut conn = connect(path)?;
        conn.busy_timeout(patience)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        let synchronous = match sync {
            Sync::Normal => "normal",
            Sync::Full => "full",
        };
        conn.pragma_update(None, "synchronous", synchronous)?;
        conn.pragma_update(None, "foreign_keys", true)?;
        conn.pragma_update(None, "cache_size", -AT_HAND)?;
        schema::bring_up(&mut conn, path)?;
        probe_writing(&conn)?;
        // From here on the log is brought in by whoever has time for it.
        conn.wal_hook(Some(|_, pages| {
            LOG_PAGES.set(pages);
            Ok(())
        }));
        Ok(Self { path: path.to_owned(), conn: Some(conn), places: Places::default(), log_pages: 0, swept: 0 })
    }

    /// Writes all or nothing, and says of each whether it touched a row.
    pub(crate) fn write(&mut self, writes: &[&Write], patience: Duration) -> Result<Vec<bool>, StoreError> {
        let conn = self.conn.as_mut().ok_or(StoreError::Closed)?;
        if writes.iter().all(|write| matches!(write, Write::Mark)) {
            return Ok(vec![true; writes.len()]);
        }
        conn.busy_timeout(patience)?;
        let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let touched = writes.iter().map(|write| write.run(&transaction)).collect::<Result<_, _>>()?;
        transaction.commit()?;
        writes.iter().filter_map(|write| write.laid()).for_each(|place| self.places.leave(place));
        self.look_at_log();
        Ok(touched)
    }

    /// Lays an entry into the tray, waiting for nobody, and says whether it lies there now.
    pub(crate) fn lay(&mut self, entry: &mut Addition) -> Result<bool, StoreError> {
        let conn = self.conn.as_mut().ok_or(StoreError::Closed)?;
        conn.busy_timeout(Duration::ZERO)?;
        // A single statement is a transaction by itself.
        let laid = entry.lay(conn, &mut self.places)?;
        if laid {
            self.look_at_log();
        }
        Ok(laid)
    }

    /// A number that changes when another connection has committed.
    pub(crate) fn data_version(&self) -> Result<i64, StoreError> {
        let conn = self.conn.as_ref().ok_or(StoreError::Closed)?;
        Ok(conn.prepare_cached("pragma data_version")?.query_row([], |row| row.get(0))?)
    }

    /// Learns how long the log is after a commit on this thread.
    fn look_at_log(&mut self) {
        let pages = LOG_PAGES.get();
        // One that was brought in to its end begins anew.
        if pages < self.log_pages {
            self.swept = 0;
        }
        self.log_pages = pages;
    }

    /// How long the log is.
    pub(crate) fn log_pages(&self) -> i32 {
        self.log_pages
    }

    /// How much of it has come since it was last brought in.
    pub(crate) fn unswept(&self) -> i32 {
        self.log_pages - self.swept
    }

    /// It has just been brought in.
    pub(crate) fn note_swept(&mut self) {
        self.swept = self.log_pages;
    }

    /// The connection; nothing can be written after this.
    pub(crate) fn take(&mut self) -> Option<Connection> {
        self.conn.take()
    }

    /// What brings the log of this database in.
    pub(crate) fn sweeper(&self) -> Sweeper {
        Sweeper { path: self.path.clone(), conn: None }
    }
}

impl Sweeper {
    /// Does what can be done without making anybody wait. What fails now is done after a later commit.
    pub(crate) fn sweep(&mut self) {
        if self.conn.is_none() {
            self.conn = connect(&self.path).ok();
        }
        if let Some(conn) = &self.conn {
            conn.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(())).ok();
        }
    }
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    Ok(Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// SQLite opens a file that it may not write without a word; better to learn it now than at the first call.
fn probe_writing(conn: &Connection) -> Result<(), StoreError> {
    conn.busy_timeout(Duration::ZERO)?;
    match conn.execute_batch("begin immediate; rollback").map_err(StoreError::from) {
        // Somebody writes at this moment, so it can be written.
        Ok(()) | Err(StoreError::Busy(_)) => Ok(()),
        Err(err) => Err(err),
    }
}
