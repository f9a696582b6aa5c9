//! The calls that this process has in hand. One that it let go without an end, because the journal could not be written or
//! whoever carried it went away, is recovered like one of a process that is gone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::CallId;

/// Which calls this process has in hand, each by how many. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CallsInHand(Arc<Mutex<HashMap<CallId, usize>>>);

impl CallsInHand {
    /// Whether somebody here has it.
    pub fn has(&self, call: &CallId) -> bool {
        self.calls().contains_key(call)
    }

    /// Takes a call in hand, together with whoever has it already.
    pub fn hold(&self, call: &CallId) -> CallInHand {
        *self.calls().entry(call.clone()).or_default() += 1;
        CallInHand { calls: self.clone(), call: call.clone() }
    }

    /// Takes a call in hand that nobody here has.
    pub(crate) fn take(&self, call: &CallId) -> Option<CallInHand> {
        let mut calls = self.calls();
        if calls.contains_key(call) {
            return None;
        }
        calls.insert(call.clone(), 1);
        Some(CallInHand { calls: self.clone(), call: call.clone() })
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in hand; it is let go when this is dropped.
pub struct CallInHand {
    calls: CallsInHand,
    call: CallId,
}

impl Drop for CallInHand {
    fn drop(&mut self) {
        let mut calls = self.calls.calls();
        if let Some(hands) = calls.get_mut(&self.call) {
            *hands -= 1;
            if *hands == 0 {
                calls.remove(&self.call);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn a_call_is_in_one_hand_until_it_is_let_go() {
        let (calls, call) = (CallsInHand::default(), CallId::new());
        let hand = calls.take(&call).unwrap();
        assert!(calls.take(&call).is_none() && calls.has(&call));
        let other = calls.hold(&call);
        drop(hand);
        assert!(calls.take(&call).is_none() && calls.has(&call));
        drop(other);
        assert!(!calls.has(&call) && calls.take(&call).is_some());
    }
}
