//! One way to take a lock: what a thread left when it broke is taken over.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the lock guards.
pub(crate) fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
