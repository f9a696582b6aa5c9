//! Lines as models read them: a number, an arrow, the text.

/// The longest line that is shown whole, in characters.
const LONGEST_LINE: usize = 2000;

/// Lines with their numbers, from `first` on; a very long line is cut.
pub(super) fn numbered<'a>(lines: impl IntoIterator<Item = &'a str>, first: u64) -> String {
    let mut text = String::new();
    for (number, line) in (first..).zip(lines) {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (shown, rest) = line.char_indices().nth(LONGEST_LINE).map_or((line, ""), |(at, _)| line.split_at(at));
        text.push_str(&format!("{number:>6}→{shown}"));
        if !rest.is_empty() {
            text.push_str(&format!("… ({} more characters)", rest.chars().count()));
        }
        text.push('\n');
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_and_long_lines_cut() {
        assert_eq!(numbered("one\r\ntwo".split_inclusive('\n'), 9), "     9→one\n    10→two");
        let long = "ü".repeat(2003);
        assert_eq!(numbered([long.as_str()], 1), format!("     1→{}… (3 more characters)", "ü".repeat(2000)));
        assert_eq!(numbered([], 1), "");
    }
}
