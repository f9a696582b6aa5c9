//! Some lines of a file of any size, in constant memory.

use std::io::{self, Read};

use haft_runtime::ToolError;

use crate::blocking::StopFlag;

/// How much is read at once.
const CHUNK: usize = 256 << 10;
/// How much is read of what seems to be smaller.
const SMALLEST: usize = 4 << 10;
/// The most that is read into a window, whoever asks.
const LARGEST: usize = 8 << 20;
/// The most bytes of a character.
const WIDEST: usize = 4;
/// What a model sees before each line and behind it: its number, an arrow and the line end.
const AROUND: usize = 8;
/// The largest file that is read beyond the window only to count its lines.
const COUNTED: u64 = 64 << 20;

/// Which lines are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRange {
    /// The first one, from 1.
    pub(super) first: u64,
    /// How many at the most.
    pub(super) most: u64,
    /// The most characters, counted as they are shown: what is longer would be cut in its middle further on.
    pub(super) room: usize,
}

/// The lines that were found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Their exact bytes, line ends included.
    pub(super) bytes: Vec<u8>,
    /// How many they are.
    pub(super) lines: u64,
    /// How many lines the file has; `None` when it is too large to be counted.
    pub(super) total: Option<u64>,
    /// Whether the file goes on after them.
    pub(super) goes_on: bool,
}

impl Window {
    /// The same lines as text, of which only the whole ones are kept that there is room for; of a first line that is too
    /// long by itself, the beginning. `None` when the bytes are no text.
    pub(super) fn into_text(self, most: usize) -> Option<(String, Self)> {
        let Self { bytes, mut lines, total, mut goes_on } = self;
        let mut text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
        let (mut room, mut end, mut fit) = (most, 0, 0);
        for line in text.split_inclusive('\n') {
            let length = line.chars().count() + AROUND;
            if length > room {
                break;
            }
            (room, end, fit) = (room - length, end + line.len(), fit + 1);
        }
        if end < text.len() {
            if end == 0 {
                end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
                fit = 1;
            }
            text.truncate(end);
            (lines, goes_on) = (fit, true);
        }
        Some((text, Self { bytes: Vec::new(), lines, total, goes_on }))
    }
}

/// Why no lines came.
#[derive(Debug)]
pub(super) enum WindowError {
    /// The system's answer.
    Io(io::Error),
    /// The call was stopped.
    Stopped(ToolError),
}

/// Reads the wanted lines of a file of about this size. It may grow or shrink meanwhile: what was there when it was
/// read is given.
pub(super) fn read(mut file: impl Read, size: u64, wanted: LineRange, stop: &StopFlag) -> Result<Window, WindowError> {
    // One byte more than there seem to be, so that the end of a small file is seen at once.
    let mut chunk = vec![0; usize::try_from(size).unwrap_or(CHUNK).saturating_add(1).clamp(SMALLEST, CHUNK)];
    let mut scan = LineScan { wanted, seen: ScanTotals::default(), bytes: Vec::new(), full: false };
    loop {
        stop.check().map_err(WindowError::Stopped)?;
        let length = read_some(&mut file, &mut chunk).map_err(WindowError::Io)?;
        if length == 0 {
            return Ok(scan.finish(FileEnd::Reached));
        }
        scan.take(&chunk[..length]);
        if scan.full && scan.seen.after > 0 && size.max(scan.seen.bytes) > COUNTED {
            return Ok(scan.finish(FileEnd::NotReached));
        }
    }
}

fn read_some(file: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(chunk) {
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[derive(Clone, Copy)]
enum FileEnd {
    Reached,
    NotReached,
}

/// What went by so far.
#[derive(Default)]
struct ScanTotals {
    bytes: u64,
    newlines: u64,
    ends_in_newline: bool,
    /// Bytes after the window.
    after: u64,
}

struct LineScan {
    wanted: LineRange,
    seen: ScanTotals,
    bytes: Vec<u8>,
    /// The window takes no more.
    full: bool,
}

impl LineScan {
    fn take(&mut self, chunk: &[u8]) {
        let rest = self.skip_before(chunk);
        let rest = self.fill(rest);
        self.seen.after += rest.len() as u64;
        self.seen.newlines += newlines(rest);
        self.seen.bytes += chunk.len() as u64;
        self.seen.ends_in_newline = chunk.last() == Some(&b'\n');
    }

    /// What of a chunk lies at or after the first wanted line.
    fn skip_before<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let before = (self.wanted.first - 1).saturating_sub(self.seen.newlines);
        if before == 0 {
            return chunk;
        }
        let (skipped, rest) = after_lines(chunk, before);
        self.seen.newlines += skipped;
        rest
    }

    /// Takes wanted lines into the window and leaves what follows them.
    fn fill<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        if self.full || chunk.is_empty() {
            return chunk;
        }
        let wanted = (self.wanted.first - 1).saturating_add(self.wanted.most) - self.seen.newlines;
        let (lines, rest) = after_lines(chunk, wanted);
        let largest = LARGEST.min(self.wanted.room.saturating_mul(WIDEST));
        let room = largest - self.bytes.len();
        let taken = &chunk[..chunk.len() - rest.len()];
        self.full = lines == wanted || taken.len() > room;
        if taken.len() <= room {
            self.bytes.extend_from_slice(taken);
            self.seen.newlines += lines;
            return rest;
        }
        self.bytes.extend_from_slice(&taken[..room]);
        let whole = whole_lines(&self.bytes);
        // Newlines that were taken into the window and are cut off again have been counted before.
        self.bytes.truncate(whole);
        self.seen.newlines += newlines(&taken[..room]);
        &chunk[room..]
    }

    fn finish(self, end: FileEnd) -> Window {
        let lines = newlines(&self.bytes) + u64::from(self.bytes.last().is_some_and(|&last| last != b'\n'));
        let total = match end {
            FileEnd::Reached => Some(self.seen.newlines + u64::from(self.seen.bytes > 0 && !self.seen.ends_in_newline)),
            FileEnd::NotReached => None,
        };
        Window { bytes: self.bytes, lines, total, goes_on: self.seen.after > 0 }
    }
}

/// The part after so many newlines, and how many there were up to it.
fn after_lines(bytes: &[u8], wanted: u64) -> (u64, &[u8]) {
    let found = newlines(bytes);
    if found < wanted {
        return (found, &[]);
    }
    let mut rest = bytes;
    for _ in 0..wanted {
        let Some(at) = rest.iter().position(|&byte| byte == b'\n') else { break };
        rest = &rest[at + 1..];
    }
    (wanted, rest)
}

/// How many newlines there are. Asking for any first makes long stretches without one very cheap.
fn newlines(bytes: &[u8]) -> u64 {
    if !bytes.contains(&b'\n') {
        return 0;
    }
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// Where the last whole line ends; where the last whole character ends if there is no whole line.
fn whole_lines(bytes: &[u8]) -> usize {
    let line = bytes.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
    line.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Err(err) if err.error_len().is_none() => err.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(text: &[u8], first: u64, most: u64) -> Window {
        read(text, text.len() as u64, LineRange { first, most, room: usize::MAX }, &StopFlag::default()).unwrap()
    }

    /// The obvious way.
    fn naive(text: &str, first: u64, most: u64) -> Window {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let from = lines.len().min(usize::try_from(first - 1).unwrap_or(usize::MAX));
        let to = lines.len().min(from.saturating_add(usize::try_from(most).unwrap_or(usize::MAX)));
        Window {
            bytes: lines[from..to].concat().into_bytes(),
            lines: (to - from) as u64,
            total: Some(lines.len() as u64),
            goes_on: to < lines.len(),
        }
    }

    proptest! {
        #[test]
        fn a_window_is_some_lines_of_the_text(
            text in "([a-zü]{0,5}(\r\n|\n|\r|\n\n)?){0,30}",
            first in prop_oneof![1..40u64, Just(u64::MAX)],
            most in prop_oneof![1..40u64, Just(u64::MAX)],
        ) {
            prop_assert_eq!(window(text.as_bytes(), first, most), naive(&text, first, most));
        }

        #[test]
        fn chunks_do_not_matter(text in "([a-z]{0,3}\n?){0,30}", first in 1..20u64, most in 1..20u64, step in 1..7usize) {
            struct Bits<'a>(&'a [u8], usize);
            impl Read for Bits<'_> {
                fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                    let bit = &self.0[..self.0.len().min(self.1)];
                    into[..bit.len()].copy_from_slice(bit);
                    self.0 = &self.0[bit.len()..];
                    Ok(bit.len())
                }
            }
            let bits = Bits(text.as_bytes(), step);
            let found = read(bits, text.len() as u64, LineRange { first, most, room: usize::MAX }, &StopFlag::default()).unwrap();
            prop_assert_eq!(found, naive(&text, first, most));
        }
    }

    #[test]
    fn a_window_is_never_larger_than_its_limit() {
        let lines = "0123456789\n".repeat(LARGEST / 10);
        let found = window(lines.as_bytes(), 1, u64::MAX);
        assert!(found.goes_on && found.bytes.len() <= LARGEST && found.bytes.ends_with(b"\n"));
        assert_eq!(found.lines, found.bytes.len() as u64 / 11);
        assert_eq!(found.total, Some(LARGEST as u64 / 10));

        let one_line = "ü".repeat(LARGEST);
        let found = window(format!("a{one_line}").as_bytes(), 1, 5);
        assert_eq!((found.lines, found.total, found.goes_on), (1, Some(1), true));
        assert!(std::str::from_utf8(&found.bytes).is_ok());
    }

    #[test]
    fn text_ends_at_a_whole_line_that_can_be_shown() {
        const MOST_CHARS: usize = 28_000;
        let lines: String = (1..=2000).map(|line| format!("line {line} ü\n")).collect();
        let (text, found) = window(lines.as_bytes(), 1, 2000).into_text(MOST_CHARS).unwrap();
        assert!(found.goes_on && text.ends_with(&format!("line {} ü\n", found.lines)), "{}", found.lines);
        let shown = text.chars().count() + AROUND * usize::try_from(found.lines).unwrap();
        assert!(shown <= MOST_CHARS && shown > MOST_CHARS - 30, "{shown}");
        let (text, found) = window("é".repeat(40_000).as_bytes(), 1, 5).into_text(MOST_CHARS).unwrap();
        assert_eq!((text.chars().count(), found.lines, found.goes_on), (MOST_CHARS, 1, true));
        let (whole, found) = window(lines.as_bytes(), 1, 2000).into_text(usize::MAX).unwrap();
        assert_eq!((whole, found.lines, found.goes_on), (lines, 2000, false));
        let (text, found) = window(b"a\nb", 1, 5).into_text(MOST_CHARS).unwrap();
        assert_eq!((text.as_str(), found.lines, found.goes_on), ("a\nb", 2, false));
        assert!(window(b"a\0b", 1, 5).into_text(MOST_CHARS).is_none());
    }

    #[test]
    fn a_large_file_is_not_read_to_its_end_for_counting() {
        let endless = io::repeat(b'\n');
        let found = read(endless, COUNTED + 1, LineRange { first: 3, most: 2, room: usize::MAX }, &StopFlag::default())
            .unwrap();
        assert_eq!(found, Window { bytes: b"\n\n".to_vec(), lines: 2, total: None, goes_on: true });
        let grows =
            read(io::repeat(b'\n'), 10, LineRange { first: 1, most: 1, room: usize::MAX }, &StopFlag::default())
                .unwrap();
        assert_eq!(grows.total, None);
    }
}
