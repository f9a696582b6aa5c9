//! The store: one database, opened and closed.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_runtime::HouseWide;
use jiff::Timestamp;
use tokio::{sync::Notify, time::timeout};

use crate::{
    Faults, LatencyCounts, LatencyHistogram, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    columns::Columns,
    db::Db,
    live::Live,
    nodes::{self, StoreNode},
    schema::Versions,
    sql::{Row, Statement},
    write_queue::WriteQueue,
};

/// How long a process may be silent before it counts as gone.
const LEASE: Duration = Duration::from_secs(20);
/// How long closing may take.
const CLOSING: Duration = Duration::from_secs(30);

/// The database with everything that haft keeps. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

struct StoreInner {
    sync: Durability,
    db: Arc<Db>,
    node: StoreNode,
    /// What the node is called, where there may be several.
    name: Option<String>,
    live: Live,
    queue: WriteQueue,
    reads: LatencyHistogram,
    /// Rings when a job or a question was added here, which may be due before everything else.
    work: Notify,
}

/// What an acknowledged entry survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, `kill -9` included.
    Normal,
    /// Also the loss of power.
    Full,
}

/// Which database, and how it is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address of a PostgreSQL database; `None` is `haft.db` in the data folder.
    pub url: Option<String>,
    /// What an acknowledged entry survives. PostgreSQL decides that by itself.
    pub sync: Durability,
    /// How long others wait before they take over what a silent process carries, where no file can be locked.
    pub lease: Duration,
    /// What the node is called that this process serves as, where several may serve one database.
    pub node: Option<String>,
    /// What goes wrong on purpose, in tests.
    pub faults: Option<Faults>,
}

impl From<Durability> for Options {
    fn from(sync: Durability) -> Self {
        Self { url: None, sync, lease: LEASE, node: None, faults: None }
    }
}

/// How the database is.
#[derive(Clone, Debug)]
pub struct Health {
    /// Where it lies: a path, or an address without user and password.
    pub place: String,
    /// How large it is.
    pub bytes: u64,
    /// The version of its tables.
    pub schema_version: i64,
    /// What an acknowledged entry survives.
    pub sync: Durability,
    /// Which database of which version.
    pub database: String,
    /// How many calls it holds.
    pub calls: i64,
    /// How many entries that nobody waited for could not be written since it was opened.
    pub lost_entries: u64,
}

const CALLS: &str = "select (select count(*) from calls) + (select count(*) from open_calls) as calls";

impl Store {
    /// Opens `haft.db` in the data folder, or the database that the options name, and makes the tables that are missing.
    /// A newer, damaged or read-only database is refused and left as it is.
    pub async fn open(data: &Path, options: impl Into<Options>) -> Result<Store, StoreError> {
        let Options { url, sync, lease, node: name, faults } = options.into();
        let data = std::path::absolute(data).map_err(|err| StoreError::folder(data, err))?;
        let id = nodes::new_id();
        let db = match url {
            Some(url) => Db::postgres(&url, &id, faults).await?,
            None => {
                let path = data.join("haft.db");
                make_files(&data, &path).map_err(|err| StoreError::folder(&path, err))?;
                Db::sqlite(&path, sync, faults)?
            }
        };
        // A file has one node, whatever it is called today.
        let name = name.filter(|_| matches!(db, Db::Postgres(_)));
        let db = Arc::new(db);
        let node = StoreNode::new(id, &data, &db, lease);
        let live = Live::new(Arc::clone(&db));
        let queue = WriteQueue::start(Arc::clone(&db), live.clone())?;
        Ok(Self {
            inner: Arc::new(StoreInner {
                sync,
                db,
                node,
                name,
                live,
                queue,
                reads: LatencyHistogram::default(),
                work: Notify::new(),
            }),
        })
    }

    /// Writes everything queued, closes the database and lets go of what shows that this store lives.
    /// Reports entries of `record_later` that could not be written.
    pub async fn close(&self) -> Result<(), StoreError> {
        let written = self.end().await;
        self.inner.db.close().await;
        written
    }

    /// Like `close`, for a process that ends right after: the files stay open until then, and nobody waits for the
    /// disk to take over what is already durable.
    pub async fn leave(&self) -> Result<(), StoreError> {
        let written = self.end().await;
        self.inner.db.leave().await;
        written
    }

    async fn end(&self) -> Result<(), StoreError> {
        let written = timeout(CLOSING, self.inner.queue.close()).await;
        self.inner.live.close();
        self.inner.node.release().await;
        written.unwrap_or_else(|_| Err(StoreError::Unfinished(CLOSING.as_secs())))
    }

    /// The id by which call rows name this open store.
    pub fn owner(&self) -> &str {
        self.inner.node.id()
    }

    /// The time by which everybody who shares this database goes, as of the last look at it. On a server it is that of the
    /// server, so that a node whose own clock is wrong ends nothing too early.
    pub fn now(&self) -> Timestamp {
        self.inner.db.now()
    }

    /// The same, looked at anew.
    pub(crate) async fn look_at_clock(&self) -> Result<Timestamp, StoreError> {
        self.inner.db.look_at_clock().await
    }

    /// How the database is.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let rows = self.inner.db.read_together(&[Versions::statement(), Statement::new(CALLS)]).await?;
        let [versions, calls] = rows.as_slice() else { return Err(StoreError::Closed) };
        let (place, bytes, database) = self.inner.db.describe().await?;
        Ok(Health {
            place,
            bytes,
            schema_version: Versions::of(versions).schema,
            sync: self.inner.sync,
            database,
            calls: calls.first().map_or(Ok(0), |row| Columns { of: "calls", row }.number("calls"))?,
            lost_entries: self.inner.queue.lost(),
        })
    }

    /// How long reads and commits of this process took, since it was opened.
    pub fn latency(&self, _house: &HouseWide) -> (LatencyCounts, LatencyCounts) {
        (self.inner.reads.counts(), self.inner.queue.commits())
    }

    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let rows = self.read_together(std::slice::from_ref(&statement)).await?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// The first row, where there is one.
    pub(crate) async fn read_one(&self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.read(statement).await?.into_iter().next())
    }

    /// The rows of several statements, all of the same moment.
    pub(crate) async fn read_together(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        let begun = Instant::now();
        let rows = self.inner.db.read_together(statements).await;
        self.inner.reads.add(begun.elapsed());
        rows
    }

    /// Runs statements in one transaction and says whether the first touched a row.
    pub(crate) async fn change(&self, change: ConditionalWrite) -> Result<bool, StoreError> {
        debug_assert_eq!(change.unaccounted_table(), None, "say which act this is, or why it is none");
        self.inner.queue.change(change).await
    }

    /// Writes, and returns once it is durable.
    pub(crate) async fn write(&self, write: StoreWrite) -> Result<(), StoreError> {
        self.inner.queue.write(write).await.map(drop)
    }

    pub(crate) fn db(&self) -> Arc<Db> {
        Arc::clone(&self.inner.db)
    }

    pub(crate) fn queue(&self) -> &WriteQueue {
        &self.inner.queue
    }

    pub(crate) fn work(&self) -> &Notify {
        &self.inner.work
    }

    pub(crate) fn live(&self) -> &Live {
        &self.inner.live
    }

    /// What this node is called; `None` where there is but one.
    pub(crate) fn node_name(&self) -> Option<&str> {
        self.inner.name.as_deref()
    }

    /// Whether this is the name of another node.
    pub(crate) fn is_another_node(&self, name: &str) -> bool {
        self.node_name().is_some_and(|this| this != name)
    }

    pub(crate) fn node(&self) -> &StoreNode {
        &self.inner.node
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
