//! Changes that were sealed a moment ago, still open for the turn that follows.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use haft_runtime::CallId;
use haft_sandbox::changes::Changes;

/// How many are kept open. Most are committed at once; those that wait for a person are opened again.
const MOST: usize = 8;

/// The changes that this process sealed last.
#[derive(Debug, Default)]
pub(crate) struct RecentChanges(Mutex<VecDeque<(CallId, Changes)>>);

impl RecentChanges {
    /// Keeps the changes of a call open.
    pub(crate) fn put(&self, call: CallId, changes: Changes) {
        let mut kept = self.lock();
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((call, changes));
    }

    /// The changes of a call, if they are still open.
    pub(crate) fn take(&self, call: &CallId) -> Option<Changes> {
        let mut kept = self.lock();
        let at = kept.iter().position(|(of, _)| of == call)?;
        kept.remove(at).map(|(_, changes)| changes)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(CallId, Changes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
