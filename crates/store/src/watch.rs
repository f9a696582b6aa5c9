//! Waiting for rows to change, in this process and in others.
//!
//! Whoever waits registers for one kind of news of one call. A local commit wakes exactly those whom it concerns. While
//! anybody waits, the keeper of the writer also polls `PRAGMA data_version` and wakes everybody when another process has committed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::Thread,
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::StoreError;

/// What can be waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum News {
    /// The call has ended.
    Ended(String),
    /// Its question was answered.
    Answered(String),
    /// Somebody wants it stopped.
    StopWanted(String),
    /// Some call's question was put or answered.
    Questions,
    /// Anything at all was written.
    Anything,
}

/// Everybody who waits.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiters: Mutex<HashMap<News, Vec<Arc<Notify>>>>,
    /// Looks for commits of other processes while anybody waits.
    keeper: OnceLock<Thread>,
}

impl Watch {
    /// Registers for news. Register first, look at the row, then wait: so no change is missed.
    pub(crate) fn register(&self, news: News) -> Waiter {
        let bell = Arc::new(Notify::new());
        self.waiters().entry(news.clone()).or_default().push(Arc::clone(&bell));
        Waiter { watch: self.clone(), news, bell }
    }

    /// Looks, and looks again at any news, until there is something to see or the time is up.
    pub(crate) async fn until<T, Fut>(
        &self,
        news: News,
        limit: Duration,
        look: impl Fn() -> Fut,
    ) -> Result<Option<T>, StoreError>
    where
        Fut: Future<Output = Result<Option<T>, StoreError>>,
    {
        let deadline = Instant::now() + limit;
        let waiter = self.register(news);
        loop {
            let seen = look().await?;
            if seen.is_some() || timeout_at(deadline, waiter.changed()).await.is_err() {
                return Ok(seen);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiters().is_empty()
    }

    /// Says which thread looks for commits of other processes.
    pub(crate) fn kept_by(&self, keeper: Thread) {
        self.0.keeper.get_or_init(|| keeper);
    }

    /// Wakes those whom the news concerns.
    pub(crate) fn wake<'a>(&self, news: impl Iterator<Item = &'a News>) {
        let waiters = self.waiters();
        if waiters.is_empty() {
            return;
        }
        for one in news.chain([&News::Anything]) {
            waiters.get(one).into_iter().flatten().for_each(|bell| bell.notify_one());
        }
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        self.waiters().values().flatten().for_each(|bell| bell.notify_one());
    }

    fn waiters(&self) -> MutexGuard<'_, HashMap<News, Vec<Arc<Notify>>>> {
        self.0.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits; dropping it ends the waiting.
pub struct Waiter {
    watch: Watch,
    news: News,
    bell: Arc<Notify>,
}

impl Waiter {
    /// Returns when there may be news since the last time, from this process or another.
    pub async fn changed(&self) {
        if let Some(keeper) = self.watch.0.keeper.get() {
            keeper.unpark();
        }
        self.rung().await;
    }

    /// Like `changed`, but nobody is sent to look for what other processes do.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = self.watch.waiters();
        if let Some(bells) = waiters.get_mut(&self.news) {
            bells.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
            if bells.is_empty() {
                waiters.remove(&self.news);
            }
        }
    }
}
