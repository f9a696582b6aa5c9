//! The one who writes: gathers what many tasks want to write and commits it together.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::{Connection, SqliteConnection};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    StoreError,
    addition::Addition,
    batch::{self, Statement, Write},
    watch::Watch,
};

/// How much may wait to be written.
const QUEUE: usize = 4096;
/// How much is committed at once.
const BATCH: usize = 512;
/// How often to look for commits of other processes while somebody waits.
const POLL: Duration = Duration::from_millis(20);

/// The way to the writing task.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    lost: Arc<Mutex<Lost>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

enum Job {
    /// To be written; somebody waits for it, or not.
    Write(Write, Option<oneshot::Sender<Result<bool, StoreError>>>),
    /// Nothing more comes.
    End(End),
}

/// What becomes of the connection at the end.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// It is closed; the last one to close brings the write-ahead log into the database and waits for the disk.
    Close,
    /// It is left to the end of the process, as `kill -9` would; the next one to open reads the log.
    Leave,
}

/// Entries that nobody waited for and that could not be written.
#[derive(Default)]
struct Lost {
    count: u64,
    first: Option<StoreError>,
}

impl Writer {
    pub(crate) fn start(conn: SqliteConnection, watch: Watch) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE);
        let lost = Arc::new(Mutex::default());
        let task = Task { conn, jobs, watch, lost: Arc::clone(&lost), seen: 0, end: End::Close };
        Self { jobs: sender, lost, task: Mutex::new(Some(tokio::spawn(task.run()))) }
    }

    /// Writes an entry and returns once it is durable.
    pub(crate) async fn add(&self, addition: Addition) -> Result<(), StoreError> {
        self.write(Write::Addition(Box::new(addition))).await.map(drop)
    }

    /// Queues an entry; waits only when the queue is full.
    pub(crate) async fn add_later(&self, addition: Addition) -> Result<(), StoreError> {
        let job = Job::Write(Write::Addition(Box::new(addition)), None);
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)
    }

    /// Runs one statement and says whether it touched a row.
    pub(crate) async fn run(&self, statement: Statement) -> Result<bool, StoreError> {
        self.write(Write::Statement(statement)).await
    }

    /// Returns once everything that was queued before has been written.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        self.run(Statement::new("select 1")).await.map(drop)
    }

    /// Writes everything queued and ends. Says what could not be written behind the backs of the callers.
    pub(crate) async fn end(&self, end: End) -> Result<(), StoreError> {
        // When the task is gone already, there is nothing to tell it.
        self.jobs.send(Job::End(end)).await.ok();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.await.map_err(|_| StoreError::Closed)?;
        }
        let lost = lock(&self.lost);
        match &lost.first {
            Some(first) => Err(StoreError::Lost { count: lost.count, source: Arc::new(first.clone()) }),
            None => Ok(()),
        }
    }

    pub(crate) fn lost_entries(&self) -> u64 {
        lock(&self.lost).count
    }

    async fn write(&self, write: Write) -> Result<bool, StoreError> {
        let (ack, written) = oneshot::channel();
        self.jobs.send(Job::Write(write, Some(ack))).await.map_err(|_| StoreError::Closed)?;
        written.await.map_err(|_| StoreError::Closed)?
    }
}

struct Task {
    conn: SqliteConnection,
    jobs: mpsc::Receiver<Job>,
    watch: Watch,
    lost: Arc<Mutex<Lost>>,
    /// The `data_version` that was seen last.
    seen: i64,
    end: End,
}

impl Task {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut next_poll = Instant::now();
        loop {
            let somebody_waits = !self.watch.is_empty();
            tokio::select! {
                taken = self.jobs.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        break;
                    }
                    self.commit(&mut batch).await;
                }
                () = self.watch.arrival(), if !somebody_waits => next_poll = Instant::now() + POLL,
                () = sleep_until(next_poll), if somebody_waits => {
                    self.poll().await;
                    next_poll = Instant::now() + POLL;
                }
            }
        }
        match self.end {
            End::Close => drop(self.conn.close().await),
            End::Leave => std::mem::forget(self.conn),
        }
    }

    async fn commit(&mut self, batch: &mut Vec<Job>) {
        let mut writes = Vec::with_capacity(batch.len());
        let mut acks = Vec::with_capacity(batch.len());
        for job in batch.drain(..) {
            match job {
                Job::Write(write, ack) => {
                    writes.push(write);
                    acks.push(ack);
                }
                // What is queued already is still received and written.
                Job::End(end) => {
                    self.end = end;
                    self.jobs.close();
                }
            }
        }
        if writes.is_empty() {
            return;
        }
        let results = self.write(&writes).await;
        self.watch.wake(writes.iter().flat_map(|write| write.news()));
        for (ack, result) in acks.into_iter().zip(results) {
            match (ack, result) {
                // Whoever stopped waiting does not want to know.
                (Some(ack), result) => drop(ack.send(result)),
                (None, Ok(_)) => {}
                (None, Err(err)) => lock(&self.lost).add(err),
            }
        }
    }

    /// All in one transaction; when one of them is at fault, each in its own, so that only that one fails.
    async fn write(&mut self, writes: &[Write]) -> Vec<Result<bool, StoreError>> {
        let all: Vec<&Write> = writes.iter().collect();
        match batch::write(&mut self.conn, &all).await {
            Ok(touched) => touched.into_iter().map(Ok).collect(),
            Err(err) if err.is_of_one_entry() && writes.len() > 1 => {
                let mut results = Vec::with_capacity(writes.len());
                for write in all {
                    results.push(batch::write(&mut self.conn, &[write]).await.map(|touched| touched.contains(&true)));
                }
                results
            }
            Err(err) => writes.iter().map(|_| Err(err.clone())).collect(),
        }
    }

    /// The number changes when another connection has committed, never through commits of this one.
    async fn poll(&mut self) {
        let version = sqlx::query_scalar("pragma data_version").fetch_one(&mut self.conn).await;
        // When it cannot be told, those who wait look for themselves and learn why.
        if version.as_ref().ok() != Some(&self.seen) {
            self.seen = version.unwrap_or(self.seen);
            self.watch.wake_all();
        }
    }
}

impl Lost {
    fn add(&mut self, err: StoreError) {
        self.count += 1;
        self.first.get_or_insert(err);
    }
}

fn lock(lost: &Mutex<Lost>) -> MutexGuard<'_, Lost> {
    lost.lock().unwrap_or_else(PoisonError::into_inner)
}
