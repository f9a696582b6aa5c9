//! Unified diffs of what changes.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, TextDiff};

/// The longest side that is compared.
pub(super) const LONGEST_SIDE: u64 = 1 << 20;
/// How long one comparison may take before it is cut short.
const PATIENCE: Duration = Duration::from_millis(200);
/// Where a NUL byte is looked for.
const HEAD: usize = 8 << 10;
/// Lines around a change.
const CONTEXT: usize = 3;

/// What a comparison shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) diff: Option<String>,
    pub(super) binary: bool,
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// One side of a comparison.
#[derive(Clone, Copy)]
pub(super) enum Side<'a> {
    /// Nothing is there on this side.
    Nothing,
    /// The whole content.
    Content(&'a [u8]),
    /// There is content, but it is too long or cannot be read.
    Unknown,
}

/// Compares what was with what will be.
pub(super) fn compare(path: &str, before: Side<'_>, after: Side<'_>) -> Shown {
    let (Some(old), Some(new)) = (bytes(before), bytes(after)) else { return Shown::default() };
    if is_binary(old) || is_binary(new) {
        return Shown { binary: true, ..Shown::default() };
    }
    if old.len().max(new.len()) as u64 > LONGEST_SIDE {
        return Shown::default();
    }
    let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else { return Shown::default() };
    let diff =
        TextDiff::configure().algorithm(Algorithm::Myers).deadline(Instant::now() + PATIENCE).diff_lines(old, new);
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
    Shown { diff: Some(text), binary: false, added, removed }
}

/// A unified diff of a file's content; `None` means that it is not there. What is not text, or too long, has no diff.
pub fn diff(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<String> {
    let before = before.map_or(Side::Nothing, Side::Content);
    let after = after.map_or(Side::Nothing, Side::Content);
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

fn bytes(side: Side<'_>) -> Option<&[u8]> {
    match side {
        Side::Nothing => Some(b""),
        Side::Content(content) => Some(content),
        Side::Unknown => None,
    }
}

fn header<'a>(prefix: &str, path: &str, side: Side<'_>) -> Cow<'a, str> {
    match side {
        Side::Nothing => Cow::Borrowed("/dev/null"),
        Side::Content(_) | Side::Unknown => Cow::Owned(format!("{prefix}{path}")),
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
    let ranges = line.strip_prefix("@@ -").and_then(|rest| rest.split_once(" +"));
    let Some((old, (new, rest))) = ranges.and_then(|(old, rest)| Some((old, rest.split_once(" @@")?))) else {
        return Cow::Borrowed(line);
    };
    Cow::Owned(format!("@@ -{new} +{old} @@{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_reads_like_any_other() {
        let shown = compare("a.txt", Side::Content(b"one\ntwo\n"), Side::Content(b"one\n2"));
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n";
        assert_eq!(shown.diff.as_deref(), Some(expected));
        assert_eq!((shown.added, shown.removed, shown.binary), (1, 1, false));
        let created = compare("a.txt", Side::Nothing, Side::Content(b"x\n"));
        assert!(created.diff.is_some_and(|diff| diff.starts_with("--- /dev/null\n+++ b/a.txt\n")));
    }

    #[test]
    fn a_reversed_diff_is_the_diff_of_the_reverse() {
        let texts: [&[u8]; 6] =
            [b"", b"one\ntwo\nthree\n", b"one\n2\nthree", b"-- x\n++ y\n", b"a\nb\nc\nd\ne\nf\ng\nh\nI\nj\nk", b"k"];
        for before in texts {
            for after in texts {
                let there = compare("p", Side::Content(before), Side::Content(after)).diff.unwrap();
                let back = compare("p", Side::Content(after), Side::Content(before)).diff.unwrap();
                assert_eq!(reversed(&reversed(&there)), there);
                assert_eq!(reversed(&there).lines().count(), back.lines().count());
            }
        }
        let created = compare("p", Side::Nothing, Side::Content(b"x\n")).diff.unwrap();
        assert_eq!(reversed(&created), "--- a/p\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn content_that_is_not_text_is_binary() {
        assert!(compare("p", Side::Nothing, Side::Content(b"a\0b")).binary);
        assert!(compare("p", Side::Content(b"\xff\xfe"), Side::Nothing).binary);
        let mut split = vec![b'a'; HEAD - 1];
        split.extend_from_slice("é".as_bytes());
        assert!(!is_binary(&split));
        assert_eq!(compare("p", Side::Unknown, Side::Content(b"a")), Shown::default());
    }
}
