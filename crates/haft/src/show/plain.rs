//! Text as a person can trust it: nothing in it moves the cursor, hides, or looks like something else.

mod hidden;
mod lookalike;
#[cfg(test)]
mod tests;

use unicode_width::UnicodeWidthChar;

/// How far apart terminals set tabs.
const TAB: usize = 8;

/// Text in which what cannot be trusted is written out as `\u{202e}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// The text to show.
    pub(crate) text: String,
    /// How many characters were written out.
    pub(crate) marked: usize,
}

/// Any text. Every language stays readable; what is invisible, or changes how its neighbours look, is written out.
pub(crate) fn plain(text: &str) -> Plain {
    shown(text, hidden::find)
}

/// A command, a path or another text that a machine takes to the letter: letters and signs that only look like those of
/// ASCII are written out too.
pub(crate) fn plain_command(text: &str) -> Plain {
    shown(text, |letters| {
        let mut marks = hidden::find(letters);
        lookalike::find(letters, &mut marks);
        marks
    })
}

/// Whether a text has nothing but letters and signs of ASCII, blanks and line ends.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n'))
}

fn shown(text: &str, find: impl Fn(&[char]) -> Vec<bool>) -> Plain {
    if is_plain(text) {
        return Plain { text: text.to_owned(), marked: 0 };
    }
    let letters: Vec<char> = text.chars().collect();
    let marks = find(&letters);
    let mut shown = String::with_capacity(text.len() + 16);
    for (letter, marked) in letters.into_iter().zip(&marks) {
        if *marked {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    Plain { text: shown, marked: marks.into_iter().filter(|marked| *marked).count() }
}

/// The text in lines of at most so many columns, broken after blanks where there are some. Nothing is left out or added:
/// the parts of a line, put together, are the line.
pub(crate) fn folded(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| folded_line(line, width.max(1))).collect()
}

fn folded_line(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut begin, mut column, mut blank) = (0, 0, None);
    let mut joined = false;
    for (at, letter) in line.char_indices() {
        let columns = if joined { 0 } else { columns(letter, column) };
        joined = letter == '\u{200d}';
        if column + columns > width && at > begin {
            let end = blank.filter(|blank| *blank > begin).unwrap_or(at);
            lines.push(line[begin..end].to_owned());
            (begin, blank) = (end, None);
            column = line[begin..at].chars().fold(0, |column, letter| column + self::columns(letter, column));
        }
        column += columns;
        // An indentation is no place to break a line.
        if matches!(letter, ' ' | '\t') && !line[begin..at].trim_start().is_empty() {
            blank = Some(at + letter.len_utf8());
        }
    }
    lines.push(line[begin..].to_owned());
    lines
}

/// How many columns a character takes in this one.
fn columns(letter: char, column: usize) -> usize {
    match letter {
        '\t' => TAB - column % TAB,
        // Takes on the emoji before it.
        '\u{1f3fb}'..='\u{1f3ff}' => 0,
        other => other.width().unwrap_or(0),
    }
}
