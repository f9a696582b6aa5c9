//! SQLite: one connection that writes, and a few that read.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, types::ValueRef};
use tokio::sync::Semaphore;

use crate::{
    Durability, StoreError,
    db::{Words, in_words_of},
    faults::Faults,
    lock::lock,
    schema::{KNOWN, Versions},
    sql::{Row, Statement, Value},
};

/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// Connections that read at the same time.
const READERS: usize = 4;
/// How many KiB of the database each connection holds in memory: whoever writes comes back to the same few pages.
const CACHE_KIB: i64 = 512;
/// How many statements stay prepared.
const STATEMENTS: usize = 64;

/// A database in a file.
pub(crate) struct Sqlite {
    path: PathBuf,
    sync: Durability,
    faults: Option<Faults>,
    /// `None` once it is closed.
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Vec<Connection>>,
    reading: Semaphore,
}

impl Sqlite {
    /// Opens the database, brings it to the newest version, and finds out whether it can be written.
    pub(crate) fn open(path: &Path, sync: Durability, faults: Option<Faults>) -> Result<Self, StoreError> {
        let mut conn = connect(path)?;
        let synchronous = match sync {
            Durability::Normal => "normal",
            Durability::Full => "full",
        };
        conn.pragma_update(None, "synchronous", synchronous)?;
        bring_up(&mut conn, path)?;
        probe_writing(&conn)?;
        Ok(Self {
            path: path.to_owned(),
            sync,
            faults,
            writer: Mutex::new(Some(conn)),
            readers: Mutex::default(),
            reading: Semaphore::new(READERS),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn sync(&self) -> Durability {
        self.sync
    }

    /// How long a transaction waits for other processes.
    pub(crate) fn busy_limit(&self) -> Duration {
        BUSY
    }

    /// The rows of several statements, all of the same moment. It takes some microseconds, so that it is done where the
    /// caller is.
    pub(crate) async fn read(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        let _turn = self.reading.acquire().await.map_err(|_| StoreError::Closed)?;
        let idle = lock(&self.readers).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => self.reader()?,
        };
        let rows = read_snapshot(&mut conn, statements);
        lock(&self.readers).push(conn);
        rows
    }

    /// Does the work in one transaction, waiting so long for other processes.
    pub(crate) fn transaction<T>(
        &self,
        patience: Duration,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = lock(&self.writer);
        let conn = writer.as_mut().ok_or(StoreError::Closed)?;
        conn.busy_timeout(patience)?;
        let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        if let Some(faults) = self.faults {
            sleep(faults.delay());
            if faults.conflict() {
                return Err(StoreError::Conflict(Arc::from(Box::from("on purpose"))));
            }
        }
        transaction.commit()?;
        Ok(done)
    }

    /// Closes every connection.
    pub(crate) fn close(&self) {
        self.reading.close();
        lock(&self.readers).clear();
        lock(&self.writer).take();
    }

    /// Leaves the files open until the process ends, as `kill -9` would: the next one to open reads the log.
    pub(crate) fn leave(&self) {
        self.reading.close();
        std::mem::forget(std::mem::take(&mut *lock(&self.readers)));
        std::mem::forget(lock(&self.writer).take());
    }

    /// A connection of its own that sees everything as it is now.
    pub(crate) fn snapshot(&self) -> Result<Connection, StoreError> {
        let conn = self.reader()?;
        conn.execute_batch("begin")?;
        // It begins with the first look.
        run(&conn, &Versions::statement())?;
        Ok(conn)
    }

    fn reader(&self) -> Result<Connection, StoreError> {
        let conn = connect(&self.path)?;
        conn.pragma_update(None, "query_only", true)?;
        Ok(conn)
    }
}

/// A connection that nobody has beside it; `None` where the database is in use.
pub(crate) fn connect_alone(path: &Path) -> Result<Option<Connection>, StoreError> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_millis(500))?;
    conn.pragma_update(None, "locking_mode", "exclusive")?;
    match conn.execute_batch("begin exclusive; rollback").map_err(StoreError::from) {
        Ok(()) => Ok(Some(conn)),
        Err(StoreError::Busy(_)) => Ok(None),
        Err(err) => Err(err),
    }
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(conn)
}

/// Runs one statement and gives back its rows.
pub(crate) fn run(conn: &Connection, statement: &Statement) -> Result<Vec<Row>, StoreError> {
    let mut prepared = conn.prepare_cached(&with_hints(&statement.sql))?;
    // SQLite takes `$2` for a name, so that the number is read from it here.
    for place in 1..=prepared.parameter_count() {
        let number = prepared.parameter_name(place).and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
        let value = number.and_then(|number| statement.args.get(number.checked_sub(1)?));
        match value.ok_or_else(|| rusqlite::Error::InvalidParameterName(statement.sql.to_string()))? {
            Value::Text(text) => prepared.raw_bind_parameter(place, text)?,
            Value::Int(number) => prepared.raw_bind_parameter(place, number)?,
            Value::Bytes(bytes) => prepared.raw_bind_parameter(place, bytes)?,
        }
    }
    if prepared.column_count() == 0 {
        prepared.raw_execute()?;
        return Ok(Vec::new());
    }
    let columns: Arc<[String]> = prepared.column_names().into_iter().map(str::to_owned).collect();
    let mut found = prepared.raw_query();
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let values =
            (0..columns.len()).map(|place| Ok(value(row.get_ref(place)?))).collect::<Result<_, StoreError>>()?;
        rows.push(Row { columns: Arc::clone(&columns), values });
    }
    Ok(rows)
}

/// What is a comment elsewhere tells SQLite which index to use.
pub(crate) fn with_hints(sql: &str) -> Cow<'_, str> {
    let Some((before, rest)) = sql.split_once("/*index ") else { return Cow::Borrowed(sql) };
    let Some((index, after)) = rest.split_once("*/") else { return Cow::Borrowed(sql) };
    Cow::Owned(format!("{before}indexed by {index}{after}"))
}

fn value(found: ValueRef<'_>) -> Value {
    match found {
        ValueRef::Null => Value::Text(None),
        ValueRef::Integer(number) => Value::Int(Some(number)),
        // No column of ours holds one; whoever reads it says that the row is damaged.
        ValueRef::Real(number) => Value::Text(Some(number.to_string())),
        ValueRef::Text(text) => Value::Text(Some(String::from_utf8_lossy(text).into_owned())),
        ValueRef::Blob(bytes) => Value::Bytes(Some(bytes.to_owned())),
    }
}

fn read_snapshot(conn: &mut Connection, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
    if let [statement] = statements {
        return Ok(vec![run(conn, statement)?]);
    }
    let snapshot = conn.transaction()?;
    let rows = statements.iter().map(|statement| run(&snapshot, statement)).collect();
    snapshot.commit()?;
    rows
}

/// Whether there are tables, and whether they are ours.
const TABLES: &str = "select count(*), coalesce(sum(name = 'meta'), 0) from sqlite_schema where type = 'table'";

fn versions(conn: &Connection, path: &Path) -> Result<Versions, StoreError> {
    let (tables, ours): (i64, i64) = conn.query_row(TABLES, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if tables == 0 {
        return Ok(Versions { schema: 0, oldest_reader: 0 });
    }
    let place = path.display().to_string();
    if ours == 0 {
        return Err(StoreError::Foreign { place });
    }
    Versions::of(&run(conn, &Versions::statement())?).check(&place)
}

/// Brings the database to the newest version; touches nothing when it is there or beyond.
fn bring_up(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if versions(conn, path)?.schema >= KNOWN {
        return Ok(());
    }
    switch_to_wal(conn)?;
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited for the lock.
    let found = versions(&transaction, path)?;
    for step in found.steps() {
        transaction.execute_batch(&in_words_of(Words::Sqlite, step))?;
    }
    if found.schema < KNOWN {
        for note in Versions::note() {
            run(&transaction, &note)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// SQLite does not wait for others in this one step, so we do.
fn switch_to_wal(conn: &Connection) -> Result<(), StoreError> {
    let deadline = Instant::now() + BUSY;
    loop {
        match conn.pragma_update(None, "journal_mode", "wal").map_err(StoreError::from) {
            Ok(()) => return Ok(()),
            Err(StoreError::Busy(_)) if Instant::now() < deadline => sleep(Duration::from_millis(5)),
            Err(err) => return Err(err),
        }
    }
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
