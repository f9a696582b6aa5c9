//! How far a plan has come, told now and then while it is made.

use std::fmt;
use std::time::{Duration, Instant};

/// How often whoever waits hears of it.
const EVERY: Duration = Duration::from_millis(250);

/// How much was looked at or copied so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangesProgress {
    /// Files, links and folders.
    pub paths: usize,
    /// Bytes of files that were copied.
    pub bytes: u64,
}

/// Counts, and tells whoever waits.
pub(super) struct Meter {
    done: ChangesProgress,
    told: Instant,
    tell: Option<Box<dyn FnMut(ChangesProgress) + Send>>,
}

impl Meter {
    pub(super) fn new() -> Meter {
        Meter { done: ChangesProgress::default(), told: Instant::now(), tell: None }
    }

    pub(super) fn tell(&mut self, tell: Box<dyn FnMut(ChangesProgress) + Send>) {
        self.tell = Some(tell);
    }

    pub(super) fn add_path(&mut self) {
        self.done.paths += 1;
        // Looking at the clock for every path would cost more than it is worth.
        if self.done.paths.is_multiple_of(64) {
            self.tell_if_due();
        }
    }

    pub(super) fn add_bytes(&mut self, bytes: u64) {
        self.done.bytes += bytes;
        if bytes >= 1 << 20 {
            self.tell_if_due();
        }
    }

    fn tell_if_due(&mut self) {
        let Some(tell) = &mut self.tell else { return };
        if self.told.elapsed() >= EVERY {
            self.told = Instant::now();
            tell(self.done);
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.done.fmt(formatter)
    }
}
