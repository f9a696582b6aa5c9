//! Replacing text by text, exactly.

use std::borrow::Cow;

/// One replacement.
#[derive(Clone, Debug)]
pub(super) struct Replacement {
    /// What is there.
    pub(super) old: String,
    /// What shall be there.
    pub(super) new: String,
    /// How often it must be there.
    pub(super) times: Times,
}

/// How often a text must occur to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// Once.
    Once,
    /// At least once; all are replaced.
    Any,
    /// So often; all are replaced.
    Exactly(usize),
}

/// Why an edit cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplaceError {
    /// The text does not occur.
    Missing,
    /// The text occurs so often, in these lines, which is not what was said.
    Count { found: usize, lines: Vec<u64> },
}

/// How many lines with a match are named.
const NAMED: usize = 10;

/// The text after one edit, and how many replacements it took.
pub(super) fn apply(text: &str, edit: &Replacement) -> Result<(String, usize), ReplaceError> {
    let mut places = text.match_indices(&edit.old).map(|(at, _)| at);
    let first = places.next();
    let found = usize::from(first.is_some()) + places.count();
    let fits = match edit.times {
        Times::Once => found == 1,
        Times::Any => found > 0,
        Times::Exactly(times) => found == times && found > 0,
    };
    match first {
        None => Err(ReplaceError::Missing),
        Some(_) if !fits => Err(ReplaceError::Count { found, lines: lines_of(text, &edit.old) }),
        // It need not be looked for again.
        Some(at) if found == 1 => Ok(([&text[..at], &edit.new, &text[at + edit.old.len()..]].concat(), 1)),
        Some(_) => Ok((text.replace(&edit.old, &edit.new), found)),
    }
}

/// The edit with line ends as the text has them: who copies lines from a listing does not see which they are.
pub(super) fn with_line_ends_of<'e>(text: &str, edit: &'e Replacement) -> Cow<'e, Replacement> {
    let is_unix = |part: &str| part.contains('\n') && !part.contains("\r\n");
    if !is_unix(&edit.old) && !is_unix(&edit.new) || !text.contains("\r\n") {
        return Cow::Borrowed(edit);
    }
    let windows = |part: &str| part.replace("\r\n", "\n").replace('\n', "\r\n");
    let is_all_windows = text.matches("\r\n").count() == text.matches('\n').count();
    let (old, new) = (windows(&edit.old), windows(&edit.new));
    // Where both kinds of line ends occur, what is meant is what is there.
    if is_all_windows || (!text.contains(&edit.old) && text.contains(&old)) {
        return Cow::Owned(Replacement { old, new, times: edit.times });
    }
    Cow::Borrowed(edit)
}

/// The first line, from 1, in which two texts differ.
pub(super) fn first_difference(before: &str, after: &str) -> Option<u64> {
    if before == after {
        return None;
    }
    let same = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other);
    Some(1 + same.filter(|(byte, _)| *byte == b'\n').count() as u64)
}

fn lines_of(text: &str, old: &str) -> Vec<u64> {
    let mut lines = Vec::new();
    let (mut line, mut from) = (1, 0);
    for (at, _) in text.match_indices(old).take(NAMED) {
        line += text[from..at].matches('\n').count() as u64;
        from = at;
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The obvious way: look at every place, one after the other.
    fn naive(text: &str, old: &str, new: &str) -> (String, usize) {
        let (mut out, mut rest, mut count) = (String::new(), text, 0);
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(old) {
                out.push_str(new);
                rest = after;
                count += 1;
            } else {
                let first = rest.chars().next().unwrap();
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        (out, count)
    }

    proptest! {
        #[test]
        fn an_edit_is_what_the_obvious_way_gives(text in "[abü\\r\\n]{0,40}", old in "[abü\\n]{1,3}", new in "[abc\\r\\n]{0,4}") {
            let (expected, count) = naive(&text, &old, &new);
            let edit = |times| Replacement { old: old.clone(), new: new.clone(), times };
            let outcome = apply(&text, &edit(Times::Any));
            prop_assert_eq!(apply(&text, &edit(Times::Exactly(count))).is_ok(), count > 0);
            prop_assert_eq!(apply(&text, &edit(Times::Once)).is_ok(), count == 1);
            prop_assert!(apply(&text, &edit(Times::Exactly(count + 1))).is_err());
            if count == 0 {
                prop_assert_eq!(outcome, Err(ReplaceError::Missing));
            } else {
                prop_assert_eq!(first_difference(&text, &expected).is_none(), text == expected);
                prop_assert_eq!(outcome, Ok((expected, count)));
            }
        }

        #[test]
        fn the_first_difference_is_in_the_first_line_that_differs(before in "([ab]{0,2}\\n){0,5}", after in "([ab]{0,2}\\n){0,5}") {
            let same = before.split_inclusive('\n').zip(after.split_inclusive('\n')).take_while(|(one, other)| one == other);
            let expected = (before != after).then(|| same.count() as u64 + 1);
            prop_assert_eq!(first_difference(&before, &after), expected);
        }
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        let edit = |old: &str, new: &str| Replacement { old: old.to_owned(), new: new.to_owned(), times: Times::Once };
        let applied = |text: &str, edit: &Replacement| apply(text, &with_line_ends_of(text, edit)).unwrap().0;
        assert_eq!(applied("a\r\nb\r\nc\r\n", &edit("a\nb\n", "x\n")), "x\r\nc\r\n");
        assert_eq!(applied("a\r\nb\r\n", &edit("a", "x\ny")), "x\r\ny\r\nb\r\n");
        assert_eq!(applied("a\r\nb\r\n", &edit("a\r\nb", "x\r\ny")), "x\r\ny\r\n");
        assert_eq!(applied("a\nb\r\nc\r\n", &edit("b\nc", "x\ny")), "a\nx\r\ny\r\n");
        assert_eq!(applied("a\nb\r\n", &edit("a\nb", "x\ny")), "x\ny\r\n");
        assert_eq!(applied("a\nb\n", &edit("a\nb", "x\ny")), "x\ny\n");
    }

    #[test]
    fn too_many_matches_are_located() {
        let edit = Replacement { old: "x".to_owned(), new: "y".to_owned(), times: Times::Once };
        assert_eq!(apply("x\n\nx x\n", &edit), Err(ReplaceError::Count { found: 3, lines: vec![1, 3, 3] }));
    }
}
