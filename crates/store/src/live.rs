//! What is new, in this process and in others.
//!
//! A commit of this process wakes exactly those whom it concerns. For the commits of others one task asks the database, as
//! long as anybody waits: one statement for the heads of all tenants that somebody waits for. Where a head has moved, it
//! wakes those who wait for that tenant and reads the new entries, once for all who listen.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_runtime::Scope;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    Store, StoreError,
    columns::{Columns, tenant},
    db::Db,
    journal_events::{EventsOf, JournalEvent, PAGE, events_of},
    lock::lock,
    sql::{Row, Statement},
};

/// After what time whoever could not look looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How many listeners are told something in a millisecond. With many of them the next look waits for as long as that takes, so
/// that each look tells much at once.
const TOLD_IN_A_MILLISECOND: usize = 50;
/// The longest that a look waits for that, in milliseconds.
const LONGEST_PACE: usize = 50;
/// How many of the newest events are kept for those who listen.
const RECENT: usize = 4096;

const HEADS: &str = "select tenant, seq, version from heads where tenant in ";
const HEAD: &str = "select seq, forgotten from heads where tenant = $1";
/// What can be waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// The call has ended.
    Ended(String),
    /// Its question was answered.
    Answered(String),
    /// Somebody wants it stopped.
    StopWanted(String),
    /// Some call's question was put or answered.
    Questions,
}

/// Everybody who waits or listens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Live(Arc<LiveInner>);

struct LiveInner {
    db: Arc<Db>,
    waiters: Mutex<HashMap<String, Waiters>>,
    feeds: Mutex<HashMap<String, Arc<TenantFeed>>>,
    /// Rings when somebody begins to wait, or when this process has written something that listeners shall hear.
    look: Notify,
    poller: Mutex<Option<JoinHandle<()>>>,
}

/// Who waits for what of one tenant.
type Waiters = HashMap<Topic, Vec<Arc<Notify>>>;

impl Live {
    pub(crate) fn new(db: Arc<Db>) -> Self {
        let (waiters, feeds) = (Mutex::default(), Mutex::default());
        Self(Arc::new(LiveInner { db, waiters, feeds, look: Notify::new(), poller: Mutex::default() }))
    }

    /// Registers for news. Register first, look at the row, then wait: so no change is missed.
    pub(crate) fn register(&self, scope: &Scope, topic: Topic) -> Waiter {
        let bell = Arc::new(Notify::new());
        let tenant = tenant(scope).to_owned();
        let mut waiters = lock(&self.0.waiters);
        waiters.entry(tenant.clone()).or_default().entry(topic.clone()).or_default().push(Arc::clone(&bell));
        drop(waiters);
        Waiter { live: self.clone(), tenant, topic, bell }
    }

    /// Looks, and looks again at any news, until there is something to see or the time is up. A database that is away
    /// meanwhile is waited for.
    pub(crate) async fn until<T, Fut>(
        &self,
        scope: &Scope,
        topic: Topic,
        limit: Duration,
        look: impl Fn() -> Fut,
    ) -> Result<Option<T>, StoreError>
    where
        Fut: Future<Output = Result<Option<T>, StoreError>>,
    {
        let deadline = Instant::now() + limit;
        let waiter = self.register(scope, topic);
        loop {
            let seen = look().await;
            let until = match &seen {
                Ok(None) => deadline,
                Err(err) if err.may_pass() => deadline.min(Instant::now() + LOOK_AGAIN),
                Ok(Some(_)) | Err(_) => return seen,
            };
            if timeout_at(until, waiter.changed()).await.is_err() && until == deadline {
                return seen;
            }
        }
    }

    /// Wakes those whom a commit of this process concerns.
    pub(crate) fn committed<'a>(&self, written: impl Iterator<Item = (&'a str, &'a [Topic])>) {
        let (waiters, feeds) = (lock(&self.0.waiters), lock(&self.0.feeds));
        if waiters.is_empty() && feeds.is_empty() {
            return;
        }
        let mut heard = false;
        for (tenant, topics) in written {
            heard |= feeds.contains_key(tenant);
            let Some(waiters) = waiters.get(tenant) else { continue };
            for topic in topics {
                waiters.get(topic).into_iter().flatten().for_each(|bell| bell.notify_one());
            }
        }
        if heard {
            self.0.look.notify_one();
        }
    }

    /// Listens to events after the one with this number. `None` begins now.
    pub(crate) async fn listen(
        &self,
        scope: &Scope,
        of: EventsOf,
        after: Option<i64>,
    ) -> Result<EventStream, StoreError> {
        let feed = self.feed(tenant(scope)).await?;
        let known = *feed.head.borrow();
        let (mut cursor, mut ready) = (after.unwrap_or(known), VecDeque::new());
        if cursor > known {
            // What another node has told may be news here. A number that nobody has told is of another database, such as
            // this one before it was restored from a copy.
            let (newest, _) = head(&self.0.db, tenant(scope)).await?;
            if cursor > newest {
                cursor = newest;
                ready.push_back(StreamItem::Resync(newest));
            }
        }
        let head = feed.head.subscribe();
        self.0.look_soon();
        Ok(EventStream { live: self.clone(), feed, of, cursor, head, ready })
    }

    /// Ends the task that looks for commits of others.
    pub(crate) fn close(&self) {
        if let Some(poller) = lock(&self.0.poller).take() {
            poller.abort();
        }
    }

    async fn feed(&self, tenant: &str) -> Result<Arc<TenantFeed>, StoreError> {
        if let Some(feed) = lock(&self.0.feeds).get(tenant) {
            return Ok(Arc::clone(feed));
        }
        let (seq, _) = head(&self.0.db, tenant).await?;
        let recent = Mutex::new(Recent { after: seq, entries: VecDeque::new() });
        let feed = Arc::new(TenantFeed { tenant: tenant.to_owned(), recent, head: watch::Sender::new(seq) });
        Ok(Arc::clone(lock(&self.0.feeds).entry(tenant.to_owned()).or_insert(feed)))
    }
}

impl LiveInner {
    /// Sees to it that somebody looks for commits of others, and does so at once.
    fn look_soon(self: &Arc<Self>) {
        let mut poller = lock(&self.poller);
        if poller.is_none() {
            *poller = Some(tokio::spawn(poll(Arc::clone(self))));
        }
        self.look.notify_one();
    }

    /// How long all who listen take to tell what was read.
    fn pace(&self) -> Duration {
        let listeners: usize = lock(&self.feeds).values().map(|feed| feed.head.receiver_count()).sum();
        Duration::from_millis((listeners / TOLD_IN_A_MILLISECOND).min(LONGEST_PACE) as u64)
    }

    fn tenants_in_use(&self) -> Vec<String> {
        let mut tenants: Vec<String> = lock(&self.waiters).keys().cloned().collect();
        // Whoever holds a feed listens; the map itself holds it once.
        lock(&self.feeds).retain(|tenant, feed| {
            let used = Arc::strong_count(feed) > 1;
            if used {
                tenants.push(tenant.clone());
            }
            used
        });
        tenants.sort_unstable();
        tenants.dedup();
        tenants
    }
}

/// Looks for commits of others for as long as anybody waits, and ends when nobody does.
async fn poll(shared: Arc<LiveInner>) {
    let mut seen: HashMap<String, i64> = HashMap::new();
    loop {
        let tenants = shared.tenants_in_use();
        if tenants.is_empty() {
            // Invariant: whoever begins to wait after this look finds no poller and starts one.
            let mut poller = lock(&shared.poller);
            if shared.tenants_in_use().is_empty() {
                *poller = None;
                return;
            }
        } else {
            if look(&shared, &tenants, &mut seen).await.is_err() {
                // What happened meanwhile is not known, so that everybody looks once more when it can be told again.
                seen.clear();
            }
        }
        let pace = shared.pace();
        if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        // A time-out is the usual case.
        timeout(shared.db.poll_interval(), shared.look.notified()).await.ok();
    }
}

async fn look(shared: &LiveInner, tenants: &[String], seen: &mut HashMap<String, i64>) -> Result<(), StoreError> {
    let heads = Statement::new(HEADS).push_list(tenants.iter().map(String::as_str));
    for row in shared.db.read(&heads).await? {
        let columns = Columns { of: "heads", row: &row };
        let (tenant, version, seq) = (columns.text("tenant")?, columns.number("version")?, columns.number("seq")?);
        if seen.get(&tenant) == Some(&version) {
            continue;
        }
        let feed = lock(&shared.feeds).get(&tenant).cloned();
        if let Some(feed) = feed {
            feed.read_up_to(&shared.db, seq).await?;
        }
        wake_all(shared, &tenant);
        seen.insert(tenant, version);
    }
    Ok(())
}

fn wake_all(shared: &LiveInner, tenant: &str) {
    let waiters = lock(&shared.waiters);
    waiters.get(tenant).into_iter().flat_map(HashMap::values).flatten().for_each(|bell| bell.notify_one());
}

/// One who waits; dropping it ends the waiting.
pub struct Waiter {
    live: Live,
    tenant: String,
    topic: Topic,
    bell: Arc<Notify>,
}

impl Waiter {
    /// Returns when there may be news since the last time, from this process or another.
    pub async fn changed(&self) {
        self.live.0.look_soon();
        self.rung().await;
    }

    /// Like `changed`, but nobody is sent to look for what other processes do.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = lock(&self.live.0.waiters);
        let Some(of_tenant) = waiters.get_mut(&self.tenant) else { return };
        if let Some(bells) = of_tenant.get_mut(&self.topic) {
            bells.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
            if bells.is_empty() {
                of_tenant.remove(&self.topic);
            }
        }
        if of_tenant.is_empty() {
            waiters.remove(&self.tenant);
        }
    }
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// The next event.
    Event(Arc<JournalEvent>),
    /// Events after the listener's place were deleted, or there is no such place: look at everything again. The stream
    /// goes on after this number.
    Resync(i64),
}

/// The newest entries of one tenant, read once for all who listen.
struct TenantFeed {
    tenant: String,
    recent: Mutex<Recent>,
    /// The number of the last event that was read.
    head: watch::Sender<i64>,
}

/// The newest events; all that came after this number.
struct Recent {
    after: i64,
    entries: VecDeque<Arc<JournalEvent>>,
}

impl TenantFeed {
    async fn read_up_to(&self, db: &Db, seq: i64) -> Result<(), StoreError> {
        loop {
            let from = *self.head.borrow();
            if from >= seq {
                return Ok(());
            }
            let rows = db.read(&EventsOf::Tenant.page(&self.tenant, from, seq)).await?;
            let events = events_of(&rows)?;
            let last = if rows.len() < PAGE as usize { seq } else { events.last().map_or(seq, |event| event.seq) };
            let mut recent = lock(&self.recent);
            recent.entries.extend(events);
            while recent.entries.len() > RECENT {
                recent.after = recent.entries.pop_front().map_or(recent.after, |gone| gone.seq);
            }
            drop(recent);
            self.head.send_replace(last);
        }
    }

    /// The events after a number, if all of them are still here.
    fn since(&self, cursor: i64) -> Option<Vec<Arc<JournalEvent>>> {
        let recent = lock(&self.recent);
        if cursor < recent.after {
            return None;
        }
        let first = recent.entries.partition_point(|event| event.seq <= cursor);
        Some(recent.entries.range(first..).cloned().collect())
    }
}

impl Store {
    /// Hears every event of the tenant, or of one thing in it, after the event with this number; `None` begins now.
    pub async fn listen(&self, scope: &Scope, of: EventsOf, after: Option<i64>) -> Result<EventStream, StoreError> {
        self.live().listen(scope, of, after).await
    }
}

/// Hears every event after its place, each once.
pub struct EventStream {
    live: Live,
    feed: Arc<TenantFeed>,
    of: EventsOf,
    /// The number of the last event that was looked at.
    cursor: i64,
    head: watch::Receiver<i64>,
    ready: VecDeque<StreamItem>,
}

impl EventStream {
    /// The next event; waits for one.
    pub async fn next(&mut self) -> Result<StreamItem, StoreError> {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return Ok(news);
            }
            let head = *self.head.borrow_and_update();
            if self.cursor >= head {
                self.live.0.look_soon();
                // The feed is held by this listener, so that its sender lives.
                self.head.changed().await.map_err(|_| StoreError::Closed)?;
                continue;
            }
            match self.feed.since(self.cursor) {
                Some(events) => self.hear(events, head),
                None => self.catch_up(head).await?,
            }
        }
    }

    /// One more that can be told at once.
    pub fn next_at_hand(&mut self) -> Option<StreamItem> {
        self.ready.pop_front()
    }

    fn hear(&mut self, events: Vec<Arc<JournalEvent>>, head: i64) {
        self.cursor = events.last().map_or(head, |last| last.seq.max(self.cursor));
        self.ready.extend(events.into_iter().filter(|event| self.of.include(event)).map(StreamItem::Event));
    }

    /// Reads one page of what happened before anybody here listened.
    async fn catch_up(&mut self, head: i64) -> Result<(), StoreError> {
        let (db, tenant) = (&self.live.0.db, self.feed.tenant.as_str());
        let (_, forgotten) = crate::live::head(db, tenant).await?;
        if self.cursor > 0 && self.cursor < forgotten {
            self.cursor = forgotten;
            self.ready.push_back(StreamItem::Resync(forgotten));
            return Ok(());
        }
        let rows = db.read(&self.of.page(tenant, self.cursor, head)).await?;
        let cursor = self.cursor;
        // The place may lie inside of an entry.
        let events: Vec<_> = events_of(&rows)?.into_iter().filter(|event| event.seq > cursor).collect();
        let whole = rows.len() < PAGE as usize;
        let last = events.last().map_or(head, |last| last.seq);
        self.ready.extend(events.into_iter().map(StreamItem::Event));
        self.cursor = if whole { head } else { last };
        Ok(())
    }
}

async fn head(db: &Db, tenant: &str) -> Result<(i64, i64), StoreError> {
    head_of(&db.read(&head_statement(tenant)).await?)
}

/// What reads the number of the last event of a tenant, and of the newest that was deleted.
pub(crate) fn head_statement(tenant: &str) -> Statement {
    Statement::new(HEAD).bind(tenant)
}

/// Both numbers from its rows.
pub(crate) fn head_of(rows: &[Row]) -> Result<(i64, i64), StoreError> {
    let Some(row) = rows.first() else { return Ok((0, 0)) };
    let columns = Columns { of: "heads", row };
    Ok((columns.number("seq")?, columns.number("forgotten")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_for_news_reads_only_the_heads() {
        crate::schema::tests::assert_quick(&[HEAD, &format!("{HEADS}($1, $2)")]);
    }
}
