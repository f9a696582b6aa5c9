//! The one who writes: gathers what many tasks want to write and commits it together.
//!
//! Whoever waits for an entry, alone, writes it on its own thread, with everything that is queued: waking another
//! thread costs more than the commit does. A brief entry is only laid into the tray, after the commit that is under way,
//! and filed later. What has to wait for another process or for the disk, and what comes while the pen is held, is written
//! by one thread of the store's own; so is what nobody waits for, a moment later, because one commit of many entries
//! costs little more than one of a single entry.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::{
    StoreError,
    batch::{Statement, Write},
    pen::{Pen, Sweeper},
    watch::Watch,
};

/// How many entries that nobody waits for may be queued.
const QUEUE: usize = 4096;
/// How much is committed at once where a commit waits for the disk.
const BATCH: usize = 512;
/// The same where it does not: whoever has something to lay into the tray waits for one commit at most.
const QUICK_BATCH: usize = 64;
/// How long an entry that nobody waits for may lie until others have come to be committed with it.
const GATHER: Duration = Duration::from_millis(10);
/// How long the store's thread looks by itself after it last saw an entry, so that nobody need wake it.
const LINGER: Duration = Duration::from_secs(1);
/// How many such entries are enough.
const ENOUGH: usize = 64;
/// How often to look for commits of other processes while somebody waits.
const POLL: Duration = Duration::from_millis(20);
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// How many pages the write-ahead log may gain before they are brought into the database, as soon as nobody waits.
const LONG_LOG: i32 = 1000;
/// How many it may gain before that is done although somebody waits, and how many it may have before nobody writes until it
/// is brought in to its end.
const ENDLESS_LOG: i32 = 4 * LONG_LOG;

/// The way to the pen.
pub(crate) struct Writer {
    desk: Arc<Desk>,
    thread: Thread,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// What callers and the thread share.
struct Desk {
    queue: Mutex<Queue>,
    /// Goes to whoever has waited longest.
    pen: AsyncMutex<Pen>,
    watch: Watch,
    lost: Mutex<Lost>,
    /// Whether a commit never waits for the disk.
    is_quick: bool,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Until then the thread looks by itself, at least as often as entries are gathered.
    attended: Option<Instant>,
    end: Option<End>,
}

struct Job {
    write: Write,
    /// Whoever waits for it.
    ack: Option<oneshot::Sender<Result<bool, StoreError>>>,
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

/// What is left to do after some was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// Another process writes, or the log has become long: work for the thread.
    Waiting,
}

/// What the store's thread does next.
enum Step {
    Write,
    /// Waits a moment for more.
    Gather,
    /// There is nothing to write, and perhaps never will be.
    Rest(Option<End>),
}

impl Writer {
    pub(crate) fn start(pen: Pen, is_quick: bool, watch: Watch) -> Result<Self, StoreError> {
        let sweeper = pen.sweeper();
        let desk = Desk { queue: Mutex::default(), pen: AsyncMutex::new(pen), watch, lost: Mutex::default(), is_quick };
        let desk = Arc::new(desk);
        let (tell, ended) = oneshot::channel();
        let keeper = Keeper { desk: Arc::clone(&desk), sweeper, seen: 0, looked: Instant::now() };
        let run = move || {
            keeper.run();
            // Whoever asked for the end may have gone.
            tell.send(()).ok();
        };
        let thread = thread::Builder::new().name("haft-store".to_owned()).spawn(run);
        let thread = thread.map_err(|err| StoreError::Thread(Arc::new(err)))?.thread().clone();
        desk.watch.kept_by(thread.clone());
        Ok(Self { desk, thread, ended: Mutex::new(Some(ended)) })
    }

    /// Writes, and returns once it is durable. Says whether it touched a row.
    pub(crate) async fn write(&self, mut write: Write) -> Result<bool, StoreError> {
        if self.desk.lay(&mut write).await {
            return self.put_later(write).map(|()| true);
        }
        let (ack, written) = oneshot::channel();
        // Where others wait already, the thread takes them all at once.
        let alone = self.desk.put(Job { write, ack: Some(ack) })?;
        if !alone || self.desk.write_here() == Left::Waiting {
            self.thread.unpark();
        }
        written.await.map_err(|_| StoreError::Closed)?
    }

    /// Queues what nobody waits for; waits only when the queue is full.
    pub(crate) async fn write_later(&self, write: Write) -> Result<(), StoreError> {
        if lock(&self.desk.queue).jobs.len() >= QUEUE {
            return self.write(write).await.map(drop);
        }
        self.put_later(write)
    }

    fn put_later(&self, write: Write) -> Result<(), StoreError> {
        self.desk.put(Job { write, ack: None })?;
        let queue = lock(&self.desk.queue);
        // Waking a thread costs about as much as half a commit; while calls come, it looks by itself.
        if queue.attended.is_none() || queue.jobs.len() >= ENOUGH {
            drop(queue);
            self.thread.unpark();
        }
        Ok(())
    }

    /// Runs one statement and says whether it touched a row.
    pub(crate) async fn run(&self, statement: Statement) -> Result<bool, StoreError> {
        self.write(Write::Statement(statement)).await
    }

    /// Returns once everything that was queued before has been written.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        self.write(Write::Mark).await.map(drop)
    }

    /// Writes everything queued and ends. Says what could not be written behind the backs of the callers.
    pub(crate) async fn end(&self, end: End) -> Result<(), StoreError> {
        lock(&self.desk.queue).end.get_or_insert(end);
        self.thread.unpark();
        let ended = lock(&self.ended).take();
        if let Some(ended) = ended {
            ended.await.map_err(|_| StoreError::Closed)?;
        }
        let lost = lock(&self.desk.lost);
        match &lost.first {
            Some(first) => Err(StoreError::Lost { count: lost.count, source: Arc::new(first.clone()) }),
            None => Ok(()),
        }
    }

    pub(crate) fn lost_entries(&self) -> u64 {
        lock(&self.desk.lost).count
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.desk.queue).end.get_or_insert(End::Close);
        self.thread.unpark();
    }
}

impl Queue {
    /// What the thread does next. What nobody waits for lies a moment, so that more of it is committed together.
    // Invariant: only the thread asks, and it looks again within `GATHER` for as long as it calls the queue attended.
    fn step(&mut self) -> Step {
        let attended = self.attended.filter(|until| self.end.is_none() && Instant::now() < *until);
        if self.jobs.is_empty() {
            self.attended = attended;
            return if attended.is_some() { Step::Gather } else { Step::Rest(self.end) };
        }
        self.attended = Some(Instant::now() + LINGER);
        // Where it has looked by itself, what is there has lain long enough.
        let hurried = attended.is_some() || self.end.is_some() || self.jobs.len() >= ENOUGH;
        if hurried || self.jobs.iter().any(|job| job.ack.is_some()) { Step::Write } else { Step::Gather }
    }
}

impl Desk {
    /// Queues a job, and says whether nobody waits for another one.
    fn put(&self, job: Job) -> Result<bool, StoreError> {
        let mut queue = lock(&self.queue);
        if queue.end.is_some() {
            return Err(StoreError::Closed);
        }
        let alone = queue.jobs.iter().rev().take(2).all(|job| job.ack.is_none());
        queue.jobs.push_back(job);
        Ok(alone)
    }

    /// Lays a brief entry into the tray on the thread of a caller, after the commit that is under way. What cannot be laid
    /// there for whatever reason is written as everything else is, and learns that reason.
    async fn lay(&self, write: &mut Write) -> bool {
        let Write::Addition(entry) = write else { return false };
        if !self.is_quick || !entry.is_brief() || lock(&self.queue).jobs.len() >= QUEUE {
            return false;
        }
        self.pen.lock().await.lay(entry).unwrap_or(false)
    }

    /// Writes on the thread of a caller what can be written without waiting for anything.
    fn write_here(&self) -> Left {
        match self.pen.try_lock() {
            Ok(mut pen) if self.is_quick => self.write_some(&mut pen, Duration::ZERO),
            Ok(_) | Err(_) => Left::Waiting,
        }
    }

    /// Commits what is queued, up to a batch, waiting so long for other processes.
    // Invariant: jobs leave the queue only with the pen in hand, so that they are written in their order.
    fn write_some(&self, pen: &mut Pen, patience: Duration) -> Left {
        let mut jobs: Vec<Job> = {
            let mut queue = lock(&self.queue);
            let some = queue.jobs.len().min(if self.is_quick { QUICK_BATCH } else { BATCH });
            queue.jobs.drain(..some).collect()
        };
        if jobs.is_empty() {
            return Left::Nothing;
        }
        jobs.iter_mut().for_each(|job| job.write.make_columns());
        let all: Vec<&Write> = jobs.iter().map(|job| &job.write).collect();
        let results = match pen.write(&all, patience) {
            Ok(touched) => touched.into_iter().map(Ok).collect(),
            // Whoever may not wait leaves it to the thread; nothing of it was written.
            Err(err) if patience.is_zero() && err.is_settled_by_waiting(all.len()) => {
                drop(all);
                let mut queue = lock(&self.queue);
                jobs.drain(..).rev().for_each(|job| queue.jobs.push_front(job));
                return Left::Waiting;
            }
            Err(err) => one_by_one(pen, &all, &err, patience),
        };
        self.watch.wake(jobs.iter().flat_map(|job| job.write.news()));
        for (job, result) in jobs.into_iter().zip(results) {
            match (job.ack, result) {
                // Whoever stopped waiting does not want to know.
                (Some(ack), result) => drop(ack.send(result)),
                (None, Ok(_)) => {}
                (None, Err(err)) => lock(&self.lost).add(err),
            }
        }
        if pen.unswept() > LONG_LOG { Left::Waiting } else { Left::Nothing }
    }
}

/// What could not be written together: when one of them is at fault, each by itself, so that only that one fails.
fn one_by_one(pen: &mut Pen, all: &[&Write], err: &StoreError, patience: Duration) -> Vec<Result<bool, StoreError>> {
    if !err.is_of_one_entry() || all.len() == 1 {
        return all.iter().map(|_| Err(err.clone())).collect();
    }
    all.iter().map(|one| pen.write(&[one], patience).map(|touched| touched.contains(&true))).collect()
}

/// The thread of the store's own.
struct Keeper {
    desk: Arc<Desk>,
    sweeper: Sweeper,
    /// The `data_version` that was seen last, and when.
    seen: i64,
    looked: Instant,
}

impl Keeper {
    fn run(mut self) {
        let end = loop {
            let step = lock(&self.desk.queue).step();
            let most = if matches!(step, Step::Write) { ENDLESS_LOG } else { LONG_LOG };
            match step {
                _ if self.desk.pen.blocking_lock().unswept() > most => self.sweep(),
                Step::Write => drop(self.desk.write_some(&mut self.desk.pen.blocking_lock(), BUSY)),
                Step::Gather => self.rest(Some(GATHER)),
                Step::Rest(Some(end)) => break end,
                Step::Rest(None) => self.rest(None),
            }
            self.look_if_due();
        };
        self.finish(end);
    }

    /// Sleeps until there is something to write, or for so long, or until it is time to look.
    fn rest(&self, limit: Option<Duration>) {
        let look = (!self.desk.watch.is_empty()).then(|| POLL.saturating_sub(self.looked.elapsed()));
        match limit.into_iter().chain(look).min() {
            Some(limit) => thread::park_timeout(limit),
            None => thread::park(),
        }
    }

    /// Looks for commits of other processes while somebody waits for them. Whoever begins to wait looks by itself.
    fn look_if_due(&mut self) {
        let watched = !self.desk.watch.is_empty();
        if watched && self.looked.elapsed() < POLL {
            return;
        }
        if watched {
            self.look();
        }
        self.looked = Instant::now();
    }

    /// Brings the log into the database. Others write meanwhile, behind what is brought in.
    // Invariant: the log does not grow for ever, however steady the stream is. Only one that is brought in to its end begins
    // anew, so that nobody writes for the little that is left of one that has become too long.
    fn sweep(&mut self) {
        self.sweeper.sweep();
        let mut pen = self.desk.pen.blocking_lock();
        if pen.log_pages() > ENDLESS_LOG {
            self.sweeper.sweep();
        }
        pen.note_swept();
    }

    /// The number changes when another connection has committed, never through commits of this one.
    fn look(&mut self) {
        let version = self.desk.pen.blocking_lock().data_version();
        // When it cannot be told, those who wait look for themselves and learn why.
        if version.as_ref().ok() != Some(&self.seen) {
            self.seen = version.unwrap_or(self.seen);
            self.desk.watch.wake_all();
        }
    }

    fn finish(self, end: End) {
        let pen = self.desk.pen.blocking_lock().take();
        match end {
            End::Close => drop((pen, self.sweeper)),
            End::Leave => std::mem::forget((pen, self.sweeper)),
        }
    }
}

impl Lost {
    fn add(&mut self, err: StoreError) {
        self.count += 1;
        self.first.get_or_insert(err);
    }
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
