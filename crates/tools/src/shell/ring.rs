//! The last of what a background command has said, by the offset at which it said it.

use std::collections::VecDeque;

/// How much is kept.
const KEPT: usize = 1 << 20;

/// The end of an output. Offsets count from its very beginning.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    gone: u64,
}

/// A part of an output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputPiece {
    pub(super) text: String,
    /// Where it begins: where it was asked for, or later when that is not kept any more.
    pub(super) offset: u64,
    /// Where to go on.
    pub(super) next: u64,
}

/// Whether more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoreOutput {
    MayCome,
    Never,
}

impl Ring {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let too_many = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..too_many);
        self.gone += too_many as u64;
    }

    /// Where the output ends so far.
    pub(super) fn end(&self) -> u64 {
        self.gone + self.bytes.len() as u64
    }

    /// At most `limit` bytes from an offset on. A letter is not cut in two, nor given before it is whole.
    pub(super) fn piece(&self, offset: u64, limit: usize, more: MoreOutput) -> OutputPiece {
        let offset = offset.clamp(self.gone, self.end());
        let skipped = usize::try_from(offset - self.gone).unwrap_or(usize::MAX);
        let left = self.bytes.len().saturating_sub(skipped);
        let mut bytes: Vec<u8> = self.bytes.iter().skip(skipped).take(limit).copied().collect();
        if bytes.len() < left || more == MoreOutput::MayCome {
            let cut = cut_letter(&bytes);
            // A limit that is smaller than a letter must not stand still.
            if cut < bytes.len() || bytes.len() == left {
                bytes.truncate(bytes.len() - cut);
            }
        }
        OutputPiece { text: String::from_utf8_lossy(&bytes).into_owned(), offset, next: offset + bytes.len() as u64 }
    }
}

/// How many bytes at the end begin a letter that is not whole.
fn cut_letter(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_cut = std::str::from_utf8(last).is_err_and(|err| err.error_len().is_none());
    if is_cut { last.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_from_the_beginning_also_when_that_is_gone() {
        let mut ring = Ring::default();
        ring.push(b"first ");
        ring.push(&vec![b'x'; KEPT]);
        assert_eq!(ring.end(), KEPT as u64 + 6);
        let piece = ring.piece(0, 3, MoreOutput::MayCome);
        assert_eq!(piece, OutputPiece { text: "xxx".to_owned(), offset: 6, next: 9 });
        let piece = ring.piece(ring.end() - 1, 10, MoreOutput::MayCome);
        assert_eq!((piece.text.as_str(), piece.next), ("x", ring.end()));
        let piece = ring.piece(u64::MAX, 10, MoreOutput::Never);
        assert_eq!((piece.text.as_str(), piece.offset, piece.next), ("", ring.end(), ring.end()));
    }

    #[test]
    fn letters_are_whole_and_reading_on_gives_everything_once() {
        let text = "grün – 漢字 🦀";
        let mut ring = Ring::default();
        ring.push(text.as_bytes());
        for limit in 4..20 {
            let (mut read, mut at) = (String::new(), 0);
            while at < ring.end() {
                let piece = ring.piece(at, limit, MoreOutput::Never);
                assert!(piece.next > at);
                (read, at) = (read + &piece.text, piece.next);
            }
            assert_eq!(read, text, "limit {limit}");
        }
    }

    #[test]
    fn the_rest_of_a_letter_is_waited_for_as_long_as_it_may_come() {
        let mut ring = Ring::default();
        ring.push(b"a\xc3");
        assert_eq!(ring.piece(0, 10, MoreOutput::MayCome).next, 1);
        assert_eq!(ring.piece(1, 10, MoreOutput::MayCome).text, "");
        assert_eq!(ring.piece(0, 10, MoreOutput::Never).text, "a\u{fffd}");
        ring.push(b"\xa9");
        assert_eq!(ring.piece(1, 10, MoreOutput::MayCome).text, "é");
        ring.push(b"\xff.");
        assert_eq!(ring.piece(3, 10, MoreOutput::MayCome).text, "\u{fffd}.");
    }
}
