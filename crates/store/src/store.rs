//! The store: one database, opened and closed.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tokio::time::timeout;

use crate::{
    StoreError,
    batch::Write,
    owner::Owner,
    pen::Pen,
    schema, tray,
    watch::Watch,
    writer::{End, Writer},
};

/// How long a process waits for another one that writes.
const BUSY: Duration = Duration::from_secs(10);
/// How long closing may take.
const CLOSING: Duration = Duration::from_secs(30);
/// Readers at once.
const READERS: u32 = 4;

/// The database with everything that haft keeps. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    sync: Sync,
    owner: Owner,
    reads: SqlitePool,
    writer: Writer,
    watch: Watch,
}

/// What an acknowledged entry survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The end of the process, `kill -9` included.
    Normal,
    /// Also the loss of power.
    Full,
}

/// How the database is.
#[derive(Clone, Debug)]
pub struct Health {
    /// Where it lies.
    pub path: PathBuf,
    /// How large it is, with its write-ahead log.
    pub bytes: u64,
    /// The version of its tables.
    pub schema_version: i64,
    /// What an acknowledged entry survives.
    pub sync: Sync,
    /// The version of SQLite.
    pub sqlite_version: String,
    /// How many calls it holds.
    pub calls: i64,
    /// How many entries that nobody waited for could not be written since it was opened, or could never be filed.
    pub lost_entries: u64,
}

impl Store {
    /// Opens `haft.db` in the data folder, and makes both when they are missing.
    /// A newer, damaged or read-only database is refused and left as it is.
    pub async fn open(data: &Path, sync: Sync) -> Result<Store, StoreError> {
        let data = std::path::absolute(data).map_err(|err| StoreError::folder(data, err))?;
        let path = data.join("haft.db");
        make_files(&data, &path).map_err(|err| StoreError::folder(&path, err))?;
        let pen = Pen::open(&path, sync, BUSY)?;
        let pool = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(BUSY)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None);
        let options = SqliteConnectOptions::new().filename(&path).busy_timeout(BUSY);
        let reads = pool.connect_lazy_with(options.pragma("query_only", "on"));
        let watch = Watch::default();
        let writer = Writer::start(pen, sync == Sync::Normal, watch.clone())?;
        Ok(Self { inner: Arc::new(Inner { path, sync, owner: Owner::new(&data), reads, writer, watch }) })
    }

    /// Writes everything queued, closes the database and lets go of the owner's lock.
    /// Reports entries of `record_later` that could not be written.
    pub async fn close(&self) -> Result<(), StoreError> {
        let written = self.end(End::Close).await;
        let closed = timeout(CLOSING, self.inner.reads.close()).await;
        written?;
        closed.map_err(|_| StoreError::Unfinished(CLOSING.as_secs()))
    }

    /// Like `close`, for a process that ends right after: the files stay open until then, and nobody waits for the
    /// disk to take over what is already durable.
    pub async fn leave(&self) -> Result<(), StoreError> {
        // The last connection to close would wait for the disk, so that none may be closed.
        std::mem::forget(self.inner.reads.clone());
        self.end(End::Leave).await
    }

    async fn end(&self, end: End) -> Result<(), StoreError> {
        let written = timeout(CLOSING, self.inner.writer.end(end)).await;
        self.inner.owner.release();
        written.unwrap_or_else(|_| Err(StoreError::Unfinished(CLOSING.as_secs())))
    }

    /// The id by which call rows name this open store.
    pub fn owner(&self) -> &str {
        self.inner.owner.id()
    }

    /// How the database is.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let mut conn = self.reads().await?.acquire().await?;
        let schema_version = sqlx::query_scalar(schema::VERSION).fetch_one(&mut *conn).await?;
        let calls = sqlx::query_scalar("select count(*) from calls").fetch_one(&mut *conn).await?;
        let refused: i64 = sqlx::query_scalar(tray::REFUSED).fetch_one(&mut *conn).await?;
        let wal = self.inner.path.with_extension("db-wal");
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        Ok(Health {
            path: self.inner.path.clone(),
            bytes: size(&self.inner.path) + size(&wal),
            schema_version,
            sync: self.inner.sync,
            sqlite_version: rusqlite::version().to_owned(),
            calls,
            lost_entries: self.inner.writer.lost_entries() + refused.unsigned_abs(),
        })
    }

    /// The way to read calls and what belongs to them, once everything that lay in the tray is filed.
    pub(crate) async fn reads(&self) -> Result<&SqlitePool, StoreError> {
        let reads = &self.inner.reads;
        if sqlx::query_scalar(tray::FILLED).fetch_one(reads).await? {
            self.inner.writer.write(Write::Tray).await?;
        }
        Ok(reads)
    }

    /// The way to read what is filed already, for what never lies in the tray.
    pub(crate) fn filed(&self) -> &SqlitePool {
        &self.inner.reads
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.inner.writer
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }

    pub(crate) fn owner_lock(&self) -> &Owner {
        &self.inner.owner
    }
}

// Invariant: an existing database is never opened here. Closing it would drop the locks that SQLite holds on it for
// another store of this process.
fn make_files(data: &Path, path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data)?;
    if path.try_exists()? {
        return Ok(());
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(err) => Err(err),
    }
}
