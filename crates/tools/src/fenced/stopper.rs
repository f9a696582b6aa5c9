//! What ends a command from outside: a time-out, a cancel, or a limit that only the listener sees.

use std::sync::{Mutex, PoisonError};

use haft_sandbox::fence::FenceStopper;

/// Why a command was ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// Its time was over.
    TimeOut,
    /// Nobody wants it any more.
    Cancel,
    /// It said too much.
    Output,
}

/// Holds a command that may not have started yet. Whoever stops it first says why.
#[derive(Debug, Default)]
pub(crate) struct CommandStopper(Mutex<StopperState>);

#[derive(Debug, Default)]
struct StopperState {
    stopper: Option<FenceStopper>,
    reason: Option<StopReason>,
}

impl CommandStopper {
    /// The command has started; if it was stopped before, it ends at once.
    pub(crate) fn hold(&self, stopper: FenceStopper) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.reason.is_some() {
            stopper.stop();
        }
        held.stopper = Some(stopper);
    }

    /// Ends the command with everything that it has started.
    pub(crate) fn stop(&self, why: StopReason) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.reason.get_or_insert(why);
        if let Some(stopper) = &held.stopper {
            stopper.stop();
        }
    }

    /// Why it was ended, if it was.
    pub(crate) fn reason(&self) -> Option<StopReason> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reason
    }
}
