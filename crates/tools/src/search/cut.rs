//! Lines of any length and encoding as short text.

/// The most characters of a line that are shown.
pub(super) const LONGEST: usize = 500;
/// A match that begins after so many bytes is shown from a little before it.
pub(super) const FAR: usize = 400;
const BEFORE: usize = 100;
const MARK: char = '…';

/// A line without its end, at most 500 characters of it, so that what begins at byte `at` can be seen.
/// `…` stands for what is cut off; bytes that are no text are shown as `\u{fffd}`.
pub(super) fn cut(line: &[u8], at: usize) -> String {
    let line = without_end(line);
    let begin = if at < FAR { 0 } else { start_of_character(line, at.min(line.len()) - BEFORE) };
    // No character is longer than four bytes.
    let piece = &line[begin..line.len().min(begin + 4 * (LONGEST + 1))];
    let text = String::from_utf8_lossy(piece);
    if begin == 0 && (text.len() <= LONGEST || text.chars().nth(LONGEST).is_none()) {
        return text.into_owned();
    }
    let mut shown = String::new();
    if begin > 0 {
        shown.push(MARK);
    }
    let room = LONGEST - usize::from(begin > 0);
    if text.chars().nth(room).is_none() {
        shown.push_str(&text);
        return shown;
    }
    shown.extend(text.chars().take(room - 1));
    shown.push(MARK);
    shown
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn start_of_character(line: &[u8], at: usize) -> usize {
    let is_inside = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LONGEST, cut};

    #[test]
    fn what_lines_look_like() {
        assert_eq!(cut(b"abc\r\n", 0), "abc");
        assert_eq!(cut(b"caf\xe9 au lait\n", 0), "caf\u{fffd} au lait");
        assert_eq!(cut("é".repeat(500).as_bytes(), 0), "é".repeat(500));
        assert_eq!(cut("é".repeat(501).as_bytes(), 0), format!("{}…", "é".repeat(499)));
        let far = format!("{}needle{}", "a".repeat(10_000), "b".repeat(10_000));
        let shown = cut(far.as_bytes(), 10_000);
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("needle"), "{shown}");
        let end = format!("{}needle\n", "é".repeat(1000));
        assert_eq!(cut(end.as_bytes(), 2000), format!("…{}needle", "é".repeat(50)));
    }

    proptest! {
        #[test]
        fn never_too_long_and_short_ones_whole(line in prop::collection::vec(any::<u8>(), 0..3000), at in 0usize..3000) {
            let line: Vec<u8> = line.into_iter().filter(|byte| *byte != b'\n').collect();
            let shown = cut(&line, at.min(line.len()));
            prop_assert!(shown.chars().count() <= LONGEST);
            let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
            if at < 400 && text.chars().count() <= LONGEST {
                prop_assert_eq!(shown, text);
            }
        }

        #[test]
        fn text_stays_text(line in "[a-zé漢🙂]{0,900}", at in 0usize..900) {
            let at = line.char_indices().nth(at).map_or(0, |(at, _)| at);
            prop_assert!(!cut(line.as_bytes(), at).contains(char::REPLACEMENT_CHARACTER));
        }
    }
}
