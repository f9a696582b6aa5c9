//! What a command says: handed on as it comes, and kept up to a limit.

use std::sync::Arc;

use haft_runtime::{Redactor, Stream};

/// How much is kept of the beginning of each stream, and at least of its end; what is not three times as long is kept
/// whole. A result has each of it three times, as text and in its value.
const KEPT: usize = 192 << 10;

/// Everything that a command has said so far.
#[derive(Debug, Default)]
pub(super) struct OutputBuffer {
    stdout: HeadAndTail,
    stderr: HeadAndTail,
    /// Both, in the order in which they came; as long as only one has spoken, that one is both.
    mixed: Option<HeadAndTail>,
    pending: [Vec<u8>; 2],
    secrets: Redactor,
    /// The end of each stream that may begin a secret.
    held: [String; 2],
}

impl OutputBuffer {
    /// One that keeps and hands on nothing of these secrets.
    pub(super) fn without(secrets: &Redactor) -> Self {
        Self { secrets: secrets.clone(), ..Self::default() }
    }

    /// Takes a piece in and gives it as text. A letter whose bytes are not all there waits for the rest, and so does what
    /// may be the beginning of a secret.
    pub(super) fn take(&mut self, stream: Stream, bytes: Vec<u8>) -> String {
        let number = usize::from(stream == Stream::Stderr);
        let pending = &mut self.pending[number];
        let whole = match pending.is_empty() {
            true => bytes,
            false => [std::mem::take(pending), bytes].concat(),
        };
        let mut text = decoded(whole, pending);
        if self.secrets.knows_any() {
            let held = &mut self.held[number];
            held.push_str(&text);
            (text, *held) = self.secrets.known_so_far(held);
        }
        self.keep(stream, &text);
        text
    }

    /// What waited, when nothing more comes: what is still missing of a letter or a secret never does.
    pub(super) fn rest(&mut self) -> Vec<(Stream, String)> {
        let mut rest = Vec::new();
        for (number, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            let mut text = std::mem::take(&mut self.held[number]);
            text.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.pending[number])));
            if !text.is_empty() {
                let text = self.secrets.known(&text).into_owned();
                self.keep(stream, &text);
                rest.push((stream, text));
            }
        }
        rest
    }

    /// All of it.
    pub(super) fn finish(mut self) -> CommandOutput {
        self.rest();
        let Self { stdout, stderr, mixed, .. } = self;
        let is_truncated =
            [Some(&stdout), Some(&stderr), mixed.as_ref()].iter().flatten().any(|kept| kept.left_out > 0);
        let (stdout, stderr) = (stdout.into_text(), stderr.into_text());
        let only = if stdout.is_empty() { &stderr } else { &stdout };
        let both = mixed.map_or_else(|| Arc::clone(only), HeadAndTail::into_text);
        CommandOutput { stdout, stderr, both, is_truncated }
    }

    fn keep(&mut self, stream: Stream, text: &str) {
        let (own, other) = match stream {
            Stream::Stdout | Stream::Text => (&mut self.stdout, &self.stderr),
            Stream::Stderr => (&mut self.stderr, &self.stdout),
        };
        if self.mixed.is_none() && !other.is_empty() {
            self.mixed = Some(other.clone());
        }
        own.push(text);
        if let Some(mixed) = &mut self.mixed {
            mixed.push(text);
        }
    }
}

/// What a command has said in the end. Long texts are shared: nobody who tells of them needs a copy.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) stdout: Arc<str>,
    pub(crate) stderr: Arc<str>,
    /// Both streams, in the order in which they came.
    pub(crate) both: Arc<str>,
    /// Whether something was not kept.
    pub(crate) is_truncated: bool,
}

/// The text of some bytes; a letter that is cut at their end is left in `rest`.
fn decoded(mut bytes: Vec<u8>, rest: &mut Vec<u8>) -> String {
    rest.extend(bytes.drain(bytes.len() - cut_letter(&bytes)..));
    String::from_utf8(bytes).unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned())
}

/// How many bytes at the end begin a letter that is not whole.
fn cut_letter(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    let cut = (1..=longest).find(|&back| bytes[bytes.len() - back] & 0b1100_0000 == 0b1100_0000);
    cut.filter(|&back| std::str::from_utf8(&bytes[bytes.len() - back..]).is_err_and(|err| err.error_len().is_none()))
        .unwrap_or(0)
}

/// The beginning and the end of a text.
#[derive(Clone, Debug, Default)]
struct HeadAndTail {
    head: String,
    /// The end, in two parts: when the newer one is full, the older one goes.
    older: String,
    newer: String,
    left_out: usize,
}

impl HeadAndTail {
    fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    fn push(&mut self, text: &str) {
        let head_is_open = self.older.is_empty() && self.newer.is_empty();
        let room = if head_is_open { KEPT.saturating_sub(self.head.len()) } else { 0 };
        let (fits, mut rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(fits);
        while !rest.is_empty() {
            let cut = rest.floor_char_boundary(KEPT.saturating_sub(self.newer.len()));
            if cut == 0 {
                self.left_out += self.older.len();
                self.older.clear();
                std::mem::swap(&mut self.older, &mut self.newer);
            }
            let (fits, after) = rest.split_at(cut);
            self.newer.push_str(fits);
            rest = after;
        }
    }

    /// The text; where some of it is missing, a line says so.
    fn into_text(self) -> Arc<str> {
        let Self { mut head, older, newer, left_out } = self;
        let missing = if left_out > 0 { format!("\n[… {left_out} bytes left out …]\n") } else { String::new() };
        head.reserve_exact(missing.len() + older.len() + newer.len());
        for part in [missing, older, newer] {
            head.push_str(&part);
        }
        head.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_come_in_two_pieces_are_whole() {
        let text = "grün – 漢字 🦀\n";
        for cut in 0..=text.len() {
            let mut said = OutputBuffer::default();
            let (first, second) = text.as_bytes().split_at(cut);
            let handed = said.take(Stream::Stdout, first.to_vec()) + &said.take(Stream::Stdout, second.to_vec());
            assert_eq!((handed.as_str(), &*said.finish().stdout), (text, text), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_text_is_shown_all_the_same() {
        let mut said = OutputBuffer::default();
        said.take(Stream::Stderr, b"a\xff\xfeb\xc3".to_vec());
        let spoken = said.finish();
        assert_eq!(&*spoken.stderr, "a\u{fffd}\u{fffd}b\u{fffd}");
        assert_eq!(spoken.both, spoken.stderr);
    }

    #[test]
    fn of_a_flood_the_beginning_and_the_end_are_kept() {
        let mut said = OutputBuffer::default();
        said.take(Stream::Stdout, b"first\n".to_vec());
        for _ in 0..100 {
            said.take(Stream::Stdout, "é".repeat(40_000).into_bytes());
        }
        said.take(Stream::Stdout, b"\nlast".to_vec());
        let spoken = said.finish();
        let text = &spoken.stdout;
        assert!(spoken.is_truncated && text.starts_with("first\n") && text.ends_with("\nlast"));
        assert!(text.len() < 3 * KEPT + 100 && text.contains("bytes left out"), "{}", text.len());
        assert!(text.len() > 2 * KEPT, "{}", text.len());
    }

    #[test]
    fn what_is_not_three_times_as_long_is_kept_whole() {
        let mut said = OutputBuffer::default();
        let text = "sixteen letters.\n".repeat(3 * KEPT / 17);
        for piece in text.as_bytes().chunks(1000) {
            said.take(Stream::Stdout, piece.to_vec());
        }
        let spoken = said.finish();
        assert!(!spoken.is_truncated && *spoken.stdout == *text);
    }
}
