//! Why a text does not occur in a file, and which lines were probably meant.

use std::collections::HashSet;

use super::numbered::numbered;

/// How much of a file is searched for similar lines.
const SEARCHED: usize = 1 << 20;
/// How many lines are shown.
const SHOWN: usize = 8;
/// How much of a long line is compared, in bytes.
const COMPARED: usize = 400;
/// How alike two lines must be, from 0 to 1.
const ALIKE: f64 = 0.4;

/// What can be said about a text that does not occur.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// What is different, or what to do, if that can be told.
    pub(super) hint: Option<&'static str>,
    /// The lines that were probably meant, with their numbers; may be empty.
    pub(super) nearest: String,
}

/// Looks for what was probably meant by `old`, which does not occur in `text`.
pub(super) fn explain(text: &str, old: &str) -> Mismatch {
    let text = &text[..text.floor_char_boundary(SEARCHED)];
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.lines().collect();
    let shown = |first: usize| {
        let last = lines.len().min(first + wanted.len().clamp(1, SHOWN));
        numbered(lines[first..last].iter().copied(), first as u64 + 1)
    };
    if wanted.iter().all(|line| has_number(line)) {
        return Mismatch { hint: Some("leave out the line numbers that `read_file` shows"), nearest: String::new() };
    }
    if let Some(hint) = line_ends(text, old) {
        return Mismatch { hint: Some(hint), nearest: String::new() };
    }
    if let Some(first) = same_but_for(&lines, &wanted, unspaced) {
        return Mismatch { hint: Some(spacing(&lines[first..], old)), nearest: shown(first) };
    }
    if let Some(first) = same_but_for(&lines, &wanted, |line| unspaced(line).to_lowercase()) {
        return Mismatch { hint: Some("upper and lower case differ"), nearest: shown(first) };
    }
    let nearest = most_alike(&lines, &wanted).map(shown).unwrap_or_default();
    Mismatch { hint: None, nearest }
}

fn has_number(line: &str) -> bool {
    let number = line.trim_start().split_once('→').map(|(number, _)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn line_ends(text: &str, old: &str) -> Option<&'static str> {
    let unix = old.replace("\r\n", "\n");
    if text.contains(&unix) {
        return Some("its lines end in LF: write `\\n`, not `\\r\\n`");
    }
    if text.contains(&unix.replace('\n', "\r\n")) {
        return Some("its lines end in CRLF: write `\\r\\n` for every line end in `old` and `new`");
    }
    let last = unix.strip_suffix('\n').filter(|last| !last.is_empty());
    last.filter(|last| text.ends_with(last)).map(|_| "its last line has no newline at the end")
}

fn spacing(lines: &[&str], old: &str) -> &'static str {
    let tabs = lines.iter().take(old.lines().count().max(1)).any(|line| line.contains('\t'));
    match (tabs, old.contains('\t')) {
        (true, false) => "only the spacing differs: the file has tabs",
        (false, true) => "only the spacing differs: the file has no tabs",
        (true, true) | (false, false) => {
            "only the spacing differs: indentation, or blanks inside or at the end of a line"
        }
    }
}

fn unspaced(line: &str) -> String {
    line.split_whitespace().collect()
}

/// The first of the lines that are the wanted ones, apart from what `bare` takes away. The first and the last wanted
/// line may be parts of lines.
fn same_but_for(lines: &[&str], wanted: &[&str], bare: impl Fn(&str) -> String) -> Option<usize> {
    let wanted: Vec<String> = wanted.iter().map(|line| bare(line)).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = lines.iter().map(|line| bare(line)).collect();
    match wanted.as_slice() {
        [] => None,
        [only] => lines.iter().position(|line| line.contains(only)),
        [first, middle @ .., last] => lines.windows(wanted.len()).position(|found| {
            let (head, tail) = (&found[0], &found[found.len() - 1]);
            head.ends_with(first.as_str()) && tail.starts_with(last.as_str()) && found[1..found.len() - 1] == *middle
        }),
    }
}

/// Where the wanted lines would begin if their longest one were the line of the file that is most like it.
fn most_alike(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let (at, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let pairs: HashSet<[u8; 2]> = pairs(longest).collect();
    let likeness = |line: &str| {
        let (mut all, mut shared) = (0, HashSet::new());
        for pair in self::pairs(line) {
            all += 1;
            if pairs.contains(&pair) {
                shared.insert(pair);
            }
        }
        2.0 * shared.len() as f64 / (pairs.len() + all) as f64
    };
    let scored = lines.iter().enumerate().map(|(index, line)| (likeness(line), index));
    let (score, best) = scored.fold((0.0, 0), |best, next| if next.0 > best.0 { next } else { best });
    (score >= ALIKE).then(|| best.saturating_sub(at))
}

/// The neighbouring bytes of a line.
fn pairs(line: &str) -> impl Iterator<Item = [u8; 2]> {
    let line = line.trim();
    let line = &line.as_bytes()[..line.len().min(COMPARED)];
    line.windows(2).map(|pair| [pair[0], pair[1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_told() {
        assert_eq!(
            explain("a\r\nb\r\n", "a\nb").hint,
            Some("its lines end in CRLF: write `\\r\\n` for every line end in `old` and `new`")
        );
        assert_eq!(explain("a\nb\n", "a\r\nb").hint, Some("its lines end in LF: write `\\n`, not `\\r\\n`"));
    }

    #[test]
    fn a_missing_last_newline_is_told() {
        assert_eq!(explain("a\nb", "b\n").hint, Some("its last line has no newline at the end"));
    }

    #[test]
    fn spacing_case_and_copied_numbers_are_told() {
        let text = "fn a() {\n\tone();\n\ttwo();\n}\n";
        let found = explain(text, "    one();\n    two();");
        assert_eq!(found.hint, Some("only the spacing differs: the file has tabs"));
        assert_eq!(found.nearest, "     2→\tone();\n     3→\ttwo();");
        assert_eq!(explain(text, "FN A()").hint, Some("upper and lower case differ"));
        assert_eq!(explain(text, "     2→\tone();").hint, Some("leave out the line numbers that `read_file` shows"));
    }

    #[test]
    fn the_most_similar_lines_are_shown() {
        let text = "alpha\nlet total = count + 1;\nomega\n";
        assert_eq!(explain(text, "let total = count + 2;").nearest, "     2→let total = count + 1;");
        assert_eq!(
            explain(text, "alpha\nlet totals = count + 2;\n").nearest,
            "     1→alpha\n     2→let total = count + 1;"
        );
        assert_eq!(explain(text, "§§§§").nearest, "");
        assert_eq!(explain("", "x"), Mismatch::default());
        assert_eq!(explain("a\n", "\n\n\n"), Mismatch::default());
    }
}
