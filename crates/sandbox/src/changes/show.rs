//! Unified diffs of what changes.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, TextDiff};

use crate::charset::Charset;

/// The longest side that is compared.
pub(super) const LONGEST_SIDE: u64 = 1 << 20;
/// How long one comparison may take before it is cut short.
const PATIENCE: Duration = Duration::from_millis(200);
/// Where a NUL byte is looked for.
const HEAD: usize = 8 << 10;
/// Lines around a change.
const CONTEXT: usize = 3;
/// How many bytes are compared at once.
const PIECE: usize = 64;

/// What a comparison shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RenderedDiff {
    pub(super) diff: Option<String>,
    pub(super) binary: bool,
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// One side of a comparison.
#[derive(Clone, Copy)]
pub(super) enum DiffSide<'a> {
    /// Nothing is there on this side.
    Nothing,
    /// The whole content.
    Content(&'a [u8]),
    /// There is content, but it is too long or cannot be read.
    Unknown,
}

/// Compares what was with what will be.
pub(super) fn compare(path: &str, before: DiffSide<'_>, after: DiffSide<'_>) -> RenderedDiff {
    let (Some(old), Some(new)) = (bytes(before), bytes(after)) else { return RenderedDiff::default() };
    let is_short = old.len().max(new.len()) as u64 <= LONGEST_SIDE;
    let Some((old, new)) = is_short.then(|| texts(old, new)).flatten() else {
        return RenderedDiff { binary: is_binary(old) || is_binary(new), ..RenderedDiff::default() };
    };
    let (old, new) = (&*old, &*new);
    let deadline = Instant::now() + PATIENCE;
    let by_lines = |old, new| TextDiff::configure().algorithm(Algorithm::Myers).deadline(deadline).diff_lines(old, new);
    let part = DiffWindow::around_what_differs(old, new);
    let (diff, lines) = match by_lines(part.old, part.new) {
        diff if part.shows_all_of(&diff) => (diff, part.lines_before),
        _ => (by_lines(old, new), 0),
    };
    let (mut added, mut removed) = (0, 0);
    for op in diff.ops() {
        match op.tag() {
            DiffTag::Equal => {}
            DiffTag::Insert | DiffTag::Delete | DiffTag::Replace => {
                added += op.new_range().len();
                removed += op.old_range().len();
            }
        }
    }
    let (old_name, new_name) = (header("a/", path, before), header("b/", path, after));
    let text = diff.unified_diff().context_radius(CONTEXT).header(&old_name, &new_name).to_string();
    RenderedDiff { diff: Some(further_down(text, lines)), binary: false, added, removed }
}

/// Both sides as text. What is not UTF-8 is decoded as `read_file` does it, both sides in the same way, so that different
/// bytes are always different text.
fn texts<'a>(old: &'a [u8], new: &'a [u8]) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let other = [old, new].into_iter().find(|side| is_binary(side) || std::str::from_utf8(side).is_err());
    let Some(other) = other else {
        return Some((std::str::from_utf8(old).ok()?.into(), std::str::from_utf8(new).ok()?.into()));
    };
    let charset = Charset::of(other)?;
    let decoded = |side: &[u8]| match side {
        [] => Some(Cow::Borrowed("")),
        // A mark alone is no text that could be shown.
        _ => charset.decode(side).filter(|text| !text.is_empty()).map(Cow::Owned),
    };
    Some((decoded(old)?, decoded(new)?))
}

/// Two texts without the lines that are the same at their beginnings and at their ends, but for those that are shown around
/// a change: most changes are small, and comparing is hard work.
struct DiffWindow<'a> {
    old: &'a str,
    new: &'a str,
    lines_before: usize,
    is_cut_at_end: bool,
}

impl<'a> DiffWindow<'a> {
    fn around_what_differs(old: &'a str, new: &'a str) -> DiffWindow<'a> {
        let (before, after) = (old.as_bytes(), new.as_bytes());
        let begin = line_start(before, same_at_the_beginning(before, after));
        let same = same_at_the_end(&before[begin..], &after[begin..]);
        let end = &before[before.len() - same..];
        // What is the same may begin in the middle of a line.
        let is_cut = |text: &[u8]| text.len() - same > begin && text[text.len() - same - 1] != b'\n';
        let end = if is_cut(before) || is_cut(after) { after_lines(1, end) } else { end };
        let left_out = after_lines(CONTEXT, end);
        let from = (0..CONTEXT).fold(begin, |at, _| line_start(before, at.saturating_sub(1)));
        let [old, new] = [old, new].map(|text| &text[from..text.len() - left_out.len()]);
        DiffWindow { old, new, lines_before: line_ends(&before[..from]), is_cut_at_end: !left_out.is_empty() }
    }

    /// Whether a diff of it is one of the whole texts: a change among lines that repeat themselves may be shown further on.
    fn shows_all_of(&self, diff: &TextDiff<'_, '_, str>) -> bool {
        let is_same =
            |op: Option<&DiffOp>| op.is_some_and(|op| op.tag() == DiffTag::Equal && op.old_range().len() >= CONTEXT);
        let ops = diff.ops();
        (self.lines_before == 0 || is_same(ops.first())) && (!self.is_cut_at_end || is_same(ops.last()))
    }
}

fn same_at_the_beginning(one: &[u8], other: &[u8]) -> usize {
    let pieces = one.chunks_exact(PIECE).zip(other.chunks_exact(PIECE));
    let same = PIECE * pieces.take_while(|(one, other)| one == other).count();
    same + one[same..].iter().zip(&other[same..]).take_while(|(one, other)| one == other).count()
}

fn same_at_the_end(one: &[u8], other: &[u8]) -> usize {
    let pieces = one.rchunks_exact(PIECE).zip(other.rchunks_exact(PIECE));
    let same = PIECE * pieces.take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
    same + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

/// Where the line begins that something stands in.
fn line_start(text: &[u8], at: usize) -> usize {
    text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// How many lines end in a text. A carriage return ends one, too, as it did on old machines.
fn line_ends(text: &[u8]) -> usize {
    let feeds = text.iter().filter(|byte| **byte == b'\n').count();
    if !text.contains(&b'\r') {
        return feeds;
    }
    let is_alone = |(at, byte): (usize, &u8)| *byte == b'\r' && text.get(at + 1) != Some(&b'\n');
    feeds + text.iter().enumerate().filter(|byte| is_alone(*byte)).count()
}

/// What follows so many lines, the last of which may have no end.
fn after_lines(count: usize, text: &[u8]) -> &[u8] {
    (0..count).fold(text, |text, _| {
        let end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| end + 1);
        &text[end..]
    })
}

/// A diff of what stands so many lines further down.
fn further_down(diff: String, lines: usize) -> String {
    if lines == 0 {
        return diff;
    }
    let moved = |range: &str| {
        let (from, length) = range.find(',').map_or((range, ""), |at| range.split_at(at));
        from.parse::<usize>().map_or_else(|_| range.to_owned(), |from| format!("{}{length}", from + lines))
    };
    let line = |line| match ranges(line) {
        Some((old, new, rest)) => Cow::Owned(format!("@@ -{} +{} @@{rest}", moved(old), moved(new))),
        None => Cow::Borrowed(line),
    };
    diff.split_inclusive('\n').map(line).collect()
}

/// A unified diff of a file's content; `None` means that it is not there. What is not text, or too long, has no diff.
pub fn diff(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<String> {
    let before = before.map_or(DiffSide::Nothing, DiffSide::Content);
    let after = after.map_or(DiffSide::Nothing, DiffSide::Content);
    compare(path, before, after).diff
}

/// Whether content is not text: a NUL byte or broken UTF-8 near its start.
pub(super) fn is_binary(content: &[u8]) -> bool {
    let head = &content[..content.len().min(HEAD)];
    if head.contains(&0) {
        return true;
    }
    match std::str::from_utf8(head) {
        Ok(_) => false,
        // A character that the cut has split is not broken.
        Err(error) => error.error_len().is_some() || content.len() <= HEAD,
    }
}

fn bytes(side: DiffSide<'_>) -> Option<&[u8]> {
    match side {
        DiffSide::Nothing => Some(b""),
        DiffSide::Content(content) => Some(content),
        DiffSide::Unknown => None,
    }
}

fn header<'a>(prefix: &str, path: &str, side: DiffSide<'_>) -> Cow<'a, str> {
    match side {
        DiffSide::Nothing => Cow::Borrowed("/dev/null"),
        DiffSide::Content(_) | DiffSide::Unknown => Cow::Owned(format!("{prefix}{path}")),
    }
}

/// The diff that leads back: what was added is removed and the other way round.
pub(super) fn reversed(diff: &str) -> String {
    let mut lines = diff.split_inclusive('\n').peekable();
    let mut out = String::with_capacity(diff.len());
    let old = lines.next_if(|line| line.starts_with("--- "));
    let new = lines.next_if(|line| line.starts_with("+++ "));
    if let (Some(old), Some(new)) = (old, new) {
        out.push_str(&renamed_header("--- ", &new[4..]));
        out.push_str(&renamed_header("+++ ", &old[4..]));
    }
    // Within a run of changed lines the removed ones stand first, so each run is held until it ends.
    let (mut minus, mut plus) = (String::new(), String::new());
    let mut last = ' ';
    for line in lines {
        let sign = line.chars().next().unwrap_or(' ');
        match sign {
            '-' => push_line(&mut plus, '+', &line[1..]),
            '+' => push_line(&mut minus, '-', &line[1..]),
            '\\' if last == '-' => plus.push_str(line),
            '\\' if last == '+' => minus.push_str(line),
            _ => {
                out.push_str(&std::mem::take(&mut minus));
                out.push_str(&std::mem::take(&mut plus));
                out.push_str(&reversed_range(line));
            }
        }
        if sign != '\\' {
            last = sign;
        }
    }
    out + &minus + &plus
}

fn push_line(to: &mut String, sign: char, rest: &str) {
    to.push(sign);
    to.push_str(rest);
}

fn renamed_header(sign: &str, name: &str) -> String {
    let side = if sign == "--- " { "a/" } else { "b/" };
    let bare = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
    bare.map_or_else(|| format!("{sign}{name}"), |bare| format!("{sign}{side}{bare}"))
}

/// `@@ -1,2 +3,4 @@` with its two ranges exchanged; any other line as it is.
fn reversed_range(line: &str) -> Cow<'_, str> {
    ranges(line).map_or(Cow::Borrowed(line), |(old, new, rest)| Cow::Owned(format!("@@ -{new} +{old} @@{rest}")))
}

/// The two ranges of `@@ -1,2 +3,4 @@`, and what follows.
fn ranges(line: &str) -> Option<(&str, &str, &str)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, rest) = rest.split_once(" @@")?;
    Some((old, new, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::ChangeTag;

    use super::*;

    #[test]
    fn a_diff_reads_like_any_other() {
        let shown = compare("a.txt", DiffSide::Content(b"one\ntwo\n"), DiffSide::Content(b"one\n2"));
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n";
        assert_eq!(shown.diff.as_deref(), Some(expected));
        assert_eq!((shown.added, shown.removed, shown.binary), (1, 1, false));
        let created = compare("a.txt", DiffSide::Nothing, DiffSide::Content(b"x\n"));
        assert!(created.diff.is_some_and(|diff| diff.starts_with("--- /dev/null\n+++ b/a.txt\n")));
    }

    proptest! {
        #[test]
        fn what_is_the_same_around_a_change_makes_no_difference(
            before in "([ab\r]{0,2}\n){0,6}[ab]?", after in "([ab\r]{0,2}\n){0,6}[ab]?",
            same in "[ab]?([ab\r]{0,2}\n){0,60}", end in "([ab\r]{0,2}\n){0,60}[ab]?",
        ) {
            let (old, new) = (format!("{same}{before}{end}"), format!("{same}{after}{end}"));
            let shown = compare("p", DiffSide::Content(old.as_bytes()), DiffSide::Content(new.as_bytes()));
            let whole = TextDiff::configure().diff_lines(&old, &new);
            let text = whole.unified_diff().context_radius(CONTEXT).header("a/p", "b/p").to_string();
            let count = |tag| whole.iter_all_changes().filter(|change| change.tag() == tag).count();
            prop_assert_eq!((shown.added, shown.removed), (count(ChangeTag::Insert), count(ChangeTag::Delete)));
            prop_assert_eq!(shown.diff.unwrap(), text);
        }
    }

    #[test]
    fn a_reversed_diff_is_the_diff_of_the_reverse() {
        let texts: [&[u8]; 6] =
            [b"", b"one\ntwo\nthree\n", b"one\n2\nthree", b"-- x\n++ y\n", b"a\nb\nc\nd\ne\nf\ng\nh\nI\nj\nk", b"k"];
        for before in texts {
            for after in texts {
                let there = compare("p", DiffSide::Content(before), DiffSide::Content(after)).diff.unwrap();
                let back = compare("p", DiffSide::Content(after), DiffSide::Content(before)).diff.unwrap();
                assert_eq!(reversed(&reversed(&there)), there);
                assert_eq!(reversed(&there).lines().count(), back.lines().count());
            }
        }
        let created = compare("p", DiffSide::Nothing, DiffSide::Content(b"x\n")).diff.unwrap();
        assert_eq!(reversed(&created), "--- a/p\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn other_encodings_are_shown_as_text() {
        let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        let marked = |text: &str| wide(&format!("\u{feff}{text}"));
        for (before, after, expected) in [
            (b"caf\xe9 au lait\n".to_vec(), b"caf\xe9 au th\xe9\n".to_vec(), "-café au lait\n+café au thé\n"),
            (b"cafe au lait\n".to_vec(), b"caf\xe9 au lait\n".to_vec(), "-cafe au lait\n+café au lait\n"),
            (b"caf\xe9 au lait\n".to_vec(), "café au lait\n".into(), "-café au lait\n+cafÃ© au lait\n"),
            (marked("hi\nyou\n"), marked("hi\nme\n"), " hi\n-you\n+me\n"),
            (wide("hi there\n"), wide("hi again\n"), "-hi there\n+hi again\n"),
        ] {
            let shown = compare("p", DiffSide::Content(&before), DiffSide::Content(&after));
            assert!(shown.diff.as_ref().is_some_and(|diff| diff.ends_with(expected)), "{expected}: {shown:?}");
            assert!(!shown.binary);
        }
        let created = compare("p", DiffSide::Nothing, DiffSide::Content(&marked("hi\n")));
        assert!(created.diff.unwrap().ends_with("+hi\n"));
        // Whatever cannot be told apart as text is not shown as text.
        let (one, other) = (marked("hi there\n"), wide("hi there\n"));
        assert!(compare("p", DiffSide::Content(&one), DiffSide::Content(&other)).binary);
    }

    #[test]
    fn content_that_is_not_text_is_binary() {
        assert!(compare("p", DiffSide::Nothing, DiffSide::Content(b"a\0b")).binary);
        assert!(compare("p", DiffSide::Content(b"\xff\xfe"), DiffSide::Nothing).binary);
        let mut split = vec![b'a'; HEAD - 1];
        split.extend_from_slice("é".as_bytes());
        assert!(!is_binary(&split));
        assert_eq!(compare("p", DiffSide::Unknown, DiffSide::Content(b"a")), RenderedDiff::default());
    }
}
