//! Ends a program from any thread, also one that has not started yet.

use std::{os::fd::OwnedFd, sync::Arc};

use rustix::event::{EventfdFlags, eventfd};

use super::LimitsError;

/// Ends one run with everything that it has started. Clones end the same run.
#[derive(Clone, Debug)]
pub struct ProgramStopper(Arc<OwnedFd>);

impl ProgramStopper {
    /// A stopper for a run that is yet to be started.
    pub fn new() -> Result<ProgramStopper, LimitsError> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(ProgramStopper(Arc::new(bell.map_err(|errno| LimitsError::Lost(errno.into()))?)))
    }

    /// Ends it at once. It may be called any number of times.
    pub fn stop(&self) {
        // It fails only when it has been rung very often already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn bell(&self) -> &OwnedFd {
        &self.0
    }
}
