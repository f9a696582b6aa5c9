//! The one queue of everything that is to be written: what is there is committed together.
//!
//! Whoever waits for a write, alone, commits it on its own thread with everything that is queued, where a commit takes less
//! time than waking another thread. Everything else is committed by one writer in the background.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, Notify, oneshot},
};

use crate::{
    LatencyCounts, LatencyHistogram, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    db::Db,
    live::Live,
    lock::lock,
};

/// How many writes that nobody waits for may be queued.
const MOST_QUEUED: usize = 4096;
/// How many are committed at once.
const BATCH: usize = 512;

/// The way to the database for everything that is written.
pub(crate) struct WriteQueue {
    shared: Arc<WriteQueueInner>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

struct WriteQueueInner {
    db: Arc<Db>,
    live: Live,
    queue: Mutex<PendingWrites>,
    /// Whoever holds it takes jobs from the queue and commits them.
    // Invariant: jobs leave the queue only with this held, so that they are written in their order.
    turn: AsyncMutex<()>,
    /// Rings when there is something for the writer to do.
    work: Notify,
    lost: Mutex<Lost>,
    commits: LatencyHistogram,
}

#[derive(Default)]
struct PendingWrites {
    jobs: VecDeque<QueuedWrite>,
    /// How many entries of each call are queued or on their way to the database.
    unwritten: HashMap<String, usize>,
    closing: bool,
}

struct QueuedWrite {
    write: StoreWrite,
    /// Whoever waits for it.
    ack: Option<oneshot::Sender<Result<bool, StoreError>>>,
}

/// Writes that nobody waited for and that could not be done.
#[derive(Default)]
struct Lost {
    count: u64,
    first: Option<StoreError>,
}

impl WriteQueue {
    /// Starts the writer: a thread for SQLite, whose commits block, a task otherwise.
    pub(crate) fn start(db: Arc<Db>, live: Live) -> Result<Self, StoreError> {
        let blocks = matches!(*db, Db::Sqlite(_));
        let (queue, turn, lost) = (Mutex::default(), AsyncMutex::default(), Mutex::default());
        let shared = Arc::new(WriteQueueInner {
            db,
            live,
            queue,
            turn,
            work: Notify::new(),
            lost,
            commits: LatencyHistogram::default(),
        });
        let (tell, ended) = oneshot::channel();
        let writer = write_all(Arc::clone(&shared), tell);
        if blocks {
            let runtime = Handle::current();
            let run = move || runtime.block_on(writer);
            let started = thread::Builder::new().name("haft-store".to_owned()).spawn(run);
            started.map_err(|err| StoreError::Thread(Arc::new(err)))?;
        } else {
            // It ends when the queue is closed, and `close` waits for that.
            drop(tokio::spawn(writer));
        }
        Ok(Self { shared, ended: Mutex::new(Some(ended)) })
    }

    /// Writes, and returns once it is durable. Says whether it touched a row.
    pub(crate) async fn write(&self, write: StoreWrite) -> Result<bool, StoreError> {
        let (ack, written) = oneshot::channel();
        let alone = self.shared.put(QueuedWrite { write, ack: Some(ack) })?;
        // Where others wait already, the writer takes them all at once.
        if !alone || !self.shared.commit_here() {
            self.shared.work.notify_one();
        }
        written.await.map_err(|_| StoreError::Closed)?
    }

    /// Queues what nobody waits for; waits only when the queue is full.
    pub(crate) async fn write_later(&self, write: StoreWrite) -> Result<(), StoreError> {
        if lock(&self.shared.queue).jobs.len() >= MOST_QUEUED {
            return self.write(write).await.map(drop);
        }
        self.shared.put(QueuedWrite { write, ack: None })?;
        self.shared.work.notify_one();
        Ok(())
    }

    /// Runs statements and says whether the first touched a row.
    pub(crate) async fn change(&self, change: ConditionalWrite) -> Result<bool, StoreError> {
        self.write(StoreWrite::Change(change)).await
    }

    /// Whether an entry of a call is not yet in the database.
    pub(crate) fn owes(&self, call: &str) -> bool {
        lock(&self.shared.queue).unwritten.contains_key(call)
    }

    /// Returns once everything that was queued before has been written.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        self.write(StoreWrite::Mark).await.map(drop)
    }

    /// Writes everything queued and ends. Says what could not be written behind the backs of the callers.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        lock(&self.shared.queue).closing = true;
        self.shared.work.notify_one();
        let ended = lock(&self.ended).take();
        if let Some(ended) = ended {
            ended.await.map_err(|_| StoreError::Closed)?;
        }
        let lost = lock(&self.shared.lost);
        match &lost.first {
            Some(first) => Err(StoreError::Lost { count: lost.count, source: Arc::new(first.clone()) }),
            None => Ok(()),
        }
    }

    /// How long commits took.
    pub(crate) fn commits(&self) -> LatencyCounts {
        self.shared.commits.counts()
    }

    /// How many writes that nobody waited for could not be done.
    pub(crate) fn lost(&self) -> u64 {
        lock(&self.shared.lost).count
    }
}

impl Drop for WriteQueue {
    fn drop(&mut self) {
        lock(&self.shared.queue).closing = true;
        self.shared.work.notify_one();
    }
}

/// Commits what is queued until the queue is closed and empty.
async fn write_all(shared: Arc<WriteQueueInner>, ended: oneshot::Sender<()>) {
    loop {
        let turn = shared.turn.lock().await;
        let jobs = shared.take();
        if jobs.is_empty() {
            drop(turn);
            if lock(&shared.queue).closing {
                break;
            }
            shared.work.notified().await;
            continue;
        }
        let results = shared.commit(&jobs).await;
        shared.tell(jobs, results);
    }
    // Whoever asked for the end may have gone.
    ended.send(()).ok();
}

impl WriteQueueInner {
    /// Queues a job, and says whether nobody waits for another one.
    fn put(&self, job: QueuedWrite) -> Result<bool, StoreError> {
        let mut queue = lock(&self.queue);
        if queue.closing {
            return Err(StoreError::Closed);
        }
        let alone = queue.jobs.iter().rev().take(2).all(|job| job.ack.is_none());
        if let Some(call) = job.write.call() {
            *queue.unwritten.entry(call.to_owned()).or_default() += 1;
        }
        queue.jobs.push_back(job);
        Ok(alone)
    }

    fn take(&self) -> Vec<QueuedWrite> {
        let mut queue = lock(&self.queue);
        let some = queue.jobs.len().min(BATCH);
        queue.jobs.drain(..some).collect()
    }

    /// Commits on the thread of a caller what can be committed without waiting for anything. `false` leaves it to the
    /// writer.
    fn commit_here(&self) -> bool {
        if !self.db.commits_quickly() {
            return false;
        }
        let Ok(_turn) = self.turn.try_lock() else { return false };
        let jobs = self.take();
        let all = writes(&jobs);
        let begun = Instant::now();
        let written =
            if nothing_to_write(&all) { Some(Ok(vec![true; all.len()])) } else { self.db.write_at_once(&all) };
        if written.is_some() {
            self.commits.add(begun.elapsed());
        }
        match written {
            Some(Ok(touched)) => {
                self.tell(jobs, touched.into_iter().map(Ok).collect());
                lock(&self.queue).jobs.is_empty()
            }
            // The writer can wait, and can find the one at fault.
            Some(Err(_)) | None => {
                let mut queue = lock(&self.queue);
                jobs.into_iter().rev().for_each(|job| queue.jobs.push_front(job));
                false
            }
        }
    }

    /// Commits all of them together. When one of them is at fault, each by itself, so that only that one fails.
    async fn commit(&self, jobs: &[QueuedWrite]) -> Vec<Result<bool, StoreError>> {
        let all = writes(jobs);
        if nothing_to_write(&all) {
            return vec![Ok(true); all.len()];
        }
        let begun = Instant::now();
        let written = self.db.write(&all).await;
        self.commits.add(begun.elapsed());
        match written {
            Ok(touched) => touched.into_iter().map(Ok).collect(),
            Err(err) if err.is_of_one_entry() && all.len() > 1 => {
                let mut results = Vec::with_capacity(all.len());
                for write in all {
                    results.push(self.db.write(&[write]).await.map(|touched| touched.contains(&true)));
                }
                results
            }
            Err(err) => vec![Err(err); all.len()],
        }
    }

    fn tell(&self, jobs: Vec<QueuedWrite>, results: Vec<Result<bool, StoreError>>) {
        self.live.committed(jobs.iter().filter_map(|job| Some((job.write.tenant()?, job.write.topics()))));
        let mut queue = lock(&self.queue);
        jobs.iter().filter_map(|job| job.write.call()).for_each(|call| queue.has_written(call));
        drop(queue);
        for (job, result) in jobs.into_iter().zip(results) {
            match (job.ack, result) {
                // Whoever stopped waiting does not want to know.
                (Some(ack), result) => drop(ack.send(result)),
                (None, Ok(_)) => {}
                (None, Err(err)) => {
                    let mut lost = lock(&self.lost);
                    lost.count += 1;
                    lost.first.get_or_insert(err);
                }
            }
        }
    }
}

impl PendingWrites {
    /// One entry of a call is written, or will never be.
    fn has_written(&mut self, call: &str) {
        let Some(count) = self.unwritten.get_mut(call) else { return };
        *count -= 1;
        if *count == 0 {
            self.unwritten.remove(call);
        }
    }
}

fn writes(jobs: &[QueuedWrite]) -> Vec<&StoreWrite> {
    jobs.iter().map(|job| &job.write).collect()
}

fn nothing_to_write(writes: &[&StoreWrite]) -> bool {
    writes.iter().all(|write| matches!(write, StoreWrite::Mark))
}
