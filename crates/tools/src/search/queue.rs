//! What is left to do, shared by the threads of a search.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Work for several threads. The newest is done first, so that a tree is walked to its depth and little waits.
pub(super) struct WorkerQueue<W> {
    state: Mutex<WorkerQueueState<W>>,
    changed: Condvar,
    ended: Condvar,
}

struct WorkerQueueState<W> {
    waiting: Vec<W>,
    /// How many threads are at work and may bring more.
    busy: usize,
    over: bool,
}

/// A piece of work in a thread's hands; dropped, it is done.
pub(super) struct WorkerTask<'q, W> {
    pub(super) work: Option<W>,
    queue: &'q WorkerQueue<W>,
}

impl<W> WorkerQueue<W> {
    pub(super) fn new(first: W) -> Self {
        let state = WorkerQueueState { waiting: vec![first], busy: 0, over: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), ended: Condvar::new() }
    }

    /// The next piece of work; waits for one as long as another thread may still bring some.
    pub(super) fn take(&self) -> Option<WorkerTask<'_, W>> {
        let mut state = self.lock();
        loop {
            if state.over {
                return None;
            }
            if let Some(work) = state.waiting.pop() {
                state.busy += 1;
                return Some(WorkerTask { work: Some(work), queue: self });
            }
            if state.busy == 0 {
                self.end(&mut state);
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds work and leaves the list empty.
    pub(super) fn add(&self, work: &mut Vec<W>) {
        let many = work.len() > 1;
        if work.is_empty() {
            return;
        }
        self.lock().waiting.append(work);
        if many { self.changed.notify_all() } else { self.changed.notify_one() }
    }

    /// How much waits.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Drops what is left to do.
    pub(super) fn give_up(&self) {
        self.end(&mut self.lock());
    }

    /// Waits for the end, but no longer than this; whether it has come.
    pub(super) fn is_over_within(&self, limit: Duration) -> bool {
        let state = self.lock();
        let waited = self.ended.wait_timeout_while(state, limit, |state| !state.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    fn end(&self, state: &mut WorkerQueueState<W>) {
        state.over = true;
        state.waiting.clear();
        self.changed.notify_all();
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, WorkerQueueState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> Drop for WorkerTask<'_, W> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.busy -= 1;
        if state.busy == 0 && state.waiting.is_empty() {
            self.queue.end(&mut state);
        }
    }
}
