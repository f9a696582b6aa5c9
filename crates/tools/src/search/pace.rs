//! How long a search goes on, and what is told meanwhile.

use std::{
    fs::File,
    io::{self, Read},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use haft_runtime::{ToolCtx, ToolError};

use crate::blocking::StopFlag;

/// The longest that a search looks before it gives what it has.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a search tool may take altogether: so much more than the search that what was found is handed on in time.
pub(super) const ALTOGETHER: Duration = Duration::from_secs(34);
/// How often it tells how far it is.
const BEAT: Duration = Duration::from_millis(250);

/// Says to all threads of a search whether it goes on.
pub(crate) struct Pace {
    ctx: ToolCtx,
    stop: StopFlag,
    until: Instant,
    late: AtomicBool,
    looked_at: AtomicU64,
}

impl Pace {
    /// Whoever waits less long than usual gets what was found in nine tenths of that time.
    pub(crate) fn new(ctx: ToolCtx, stop: StopFlag) -> Self {
        let now = Instant::now();
        let left = ctx.deadline.saturating_duration_since(now);
        let until = now + (left * 9 / 10).min(LONGEST);
        Self { ctx, stop, until, late: AtomicBool::new(false), looked_at: AtomicU64::new(0) }
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.stop.is_wanted() && !self.late.load(Ordering::Relaxed)
    }

    /// Counts files for those who look on.
    pub(super) fn count(&self, files: usize) {
        self.looked_at.fetch_add(files as u64, Ordering::Relaxed);
    }

    /// How long until the next beat.
    pub(super) fn next_beat(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now()).min(BEAT)
    }

    /// Tells how far it is, and ends the search when its time is over.
    pub(super) fn beat(&self) {
        if Instant::now() >= self.until {
            self.late.store(true, Ordering::Relaxed);
        }
        self.ctx.progress(None, format!("{} files looked at", self.looked_at.load(Ordering::Relaxed)));
    }

    /// Whether time ran out; an error when nobody wants the result any more.
    pub(crate) fn ran_out(&self) -> Result<bool, ToolError> {
        self.stop.check()?;
        Ok(self.late.load(Ordering::Relaxed))
    }
}

/// A file that ends with an error as soon as the search does not go on.
pub(super) struct PacedFile<'a> {
    pub(super) file: File,
    pub(super) pace: &'a Pace,
}

impl Read for PacedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.pace.goes_on() {
            return Err(io::Error::other("the search does not go on"));
        }
        self.file.read(buffer)
    }
}
