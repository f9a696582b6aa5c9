//! How long a search goes on, and what is told meanwhile.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use haft_runtime::{ToolCtx, ToolError};
use haft_sandbox::{Charset, is_text};

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
    file: &'a File,
    pace: &'a Pace,
    checks: EncodingCheck,
    /// Bytes read so far.
    read: usize,
    /// The first few bytes, where they came alone: the searcher looks for a mark there, and they tell nothing yet.
    mark: Vec<u8>,
    /// Whether what was looked at is text, and not UTF-8.
    pub(super) is_foreign: bool,
}

/// How much of a file is looked at to tell whether it is UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EncodingCheck {
    /// Its beginning.
    Head,
    /// All of it.
    Whole,
}

/// How much of a file tells how it is encoded.
const HEAD: usize = 8 << 10;
/// The longest mark of an encoding.
const LONGEST_MARK: usize = 3;

impl<'a> PacedFile<'a> {
    pub(super) fn new(file: &'a File, pace: &'a Pace, checks: EncodingCheck) -> Self {
        Self { file, pace, checks, read: 0, mark: Vec::new(), is_foreign: false }
    }

    fn look_at(&mut self, piece: &[u8]) {
        let is_first = self.read == self.mark.len();
        if is_first && !piece.is_empty() && self.read + piece.len() <= LONGEST_MARK {
            self.mark.extend_from_slice(piece);
            return;
        }
        let begin = match self.checks {
            EncodingCheck::Head => &piece[..piece.len().min(HEAD)],
            EncodingCheck::Whole => piece,
        };
        let seen = match (is_first, self.checks) {
            (true, _) if self.mark.is_empty() => Cow::Borrowed(begin),
            (true, _) => Cow::Owned([&self.mark, begin].concat()),
            (false, EncodingCheck::Head) => return,
            // The last piece may have ended within a letter.
            (false, EncodingCheck::Whole) => {
                let rest = piece.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
                Cow::Borrowed(&piece[rest..])
            }
        };
        self.is_foreign |= !is_text(&seen) && (!is_first || Charset::of(&seen[..seen.len().min(HEAD)]).is_some());
    }
}

impl Read for PacedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.pace.goes_on() {
            return Err(io::Error::other("the search does not go on"));
        }
        let length = self.file.read(buffer)?;
        if !self.is_foreign {
            self.look_at(&buffer[..length]);
        }
        self.read += length;
        Ok(length)
    }
}
