//! What ends a command from outside: a time-out, a cancel, or a limit that only the listener sees.

use std::sync::{Mutex, PoisonError};

use haft_sandbox::fence::Stopper;

/// Why a command was ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// Its time was over.
    TimeOut,
    /// Nobody wants it any more.
    Cancel,
    /// It said too much.
    Output,
}

/// Holds a command that may not have started yet. Whoever pulls first says why.
#[derive(Debug, Default)]
pub(crate) struct Leash(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    stopper: Option<Stopper>,
    pulled: Option<Pulled>,
}

impl Leash {
    /// The command has started; if it was stopped before, it ends at once.
    pub(crate) fn hold(&self, stopper: Stopper) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.pulled.is_some() {
            stopper.stop();
        }
        held.stopper = Some(stopper);
    }

    /// Ends the command with everything that it has started.
    pub(crate) fn pull(&self, why: Pulled) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.pulled.get_or_insert(why);
        if let Some(stopper) = &held.stopper {
            stopper.stop();
        }
    }

    /// Why it was ended, if it was.
    pub(crate) fn pulled(&self) -> Option<Pulled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pulled
    }
}
