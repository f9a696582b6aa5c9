//! Characters that look like ASCII and are none.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_security::confusable_detection::skeleton;

/// Signs that mean something in a command or a path.
const SIGNS: &str = "/;|&-<>*~=!\\:.$";

/// Marks what could be taken for ASCII, on top of what is marked already.
pub(super) fn find(letters: &[char], marks: &mut [bool]) {
    for (at, &letter) in letters.iter().enumerate().filter(|(_, letter)| !letter.is_ascii()) {
        marks[at] |= is_another_shape(letter) || is_other_blank(letter) || is_sign(letters, at);
    }
    let mut begin = 0;
    for line in letters.split(|letter| *letter == '\n') {
        mark_line(line, &mut marks[begin..begin + line.len()]);
        begin += line.len() + 1;
    }
}

/// A word is marked where ASCII letters stand beside others that look like them, and where all of its letters look like
/// ASCII while the line has no other letter of their script.
fn mark_line(line: &[char], marks: &mut [bool]) {
    if line.iter().all(char::is_ascii) {
        return;
    }
    let foreign = line.iter().any(|letter| is_cased_script(*letter) && looks_like(*letter).is_none());
    let mut begin = 0;
    for word in line.split(|letter| !letter.is_alphanumeric() && *letter != '_') {
        let alike = |letter: &char| looks_like(*letter).is_some_and(|ascii| ascii.is_ascii_alphanumeric());
        let mixed = word.iter().any(char::is_ascii_alphabetic);
        let whole = || word.len() > 1 && word.iter().all(|letter| is_cased_script(*letter) && alike(letter));
        if mixed || !foreign && whole() {
            for (mark, letter) in marks[begin..].iter_mut().zip(word) {
                *mark |= alike(letter);
            }
        }
        begin += word.len() + 1;
    }
}

/// Greek, Coptic, Cyrillic, Armenian, Cherokee: scripts with many letters that are shaped like ours.
fn is_cased_script(letter: char) -> bool {
    matches!(
        letter,
        '\u{370}'..='\u{58f}'
            | '\u{13a0}'..='\u{13ff}'
            | '\u{1c80}'..='\u{1c8f}'
            | '\u{1f00}'..='\u{1fff}'
            | '\u{2c80}'..='\u{2dff}'
            | '\u{a640}'..='\u{a69f}'
            | '\u{ab70}'..='\u{abbf}'
    )
}

/// The ASCII character that it looks like. The letters of European languages written in Latin are none.
fn looks_like(letter: char) -> Option<char> {
    if letter < '\u{250}' {
        return None;
    }
    let mut buffer = [0; 4];
    let mut looks = skeleton(letter.encode_utf8(&mut buffer));
    let first = looks.next().filter(char::is_ascii)?;
    looks.next().is_none().then_some(first)
}

/// Fullwidth and mathematical letters, ligatures: ASCII in another dress.
fn is_another_shape(letter: char) -> bool {
    matches!(
        letter,
        '\u{ff01}'..='\u{ff5e}'
            | '\u{1d400}'..='\u{1d7ff}'
            | '\u{fb00}'..='\u{fb06}'
            | '\u{1f100}'..='\u{1f16f}'
            | '\u{24b6}'..='\u{24e9}'
    )
}

/// Blanks at which no shell splits.
fn is_other_blank(letter: char) -> bool {
    get_general_category(letter) == GeneralCategory::SpaceSeparator
}

/// A sign like one of ours, unless it stands by itself as in running text.
fn is_sign(letters: &[char], at: usize) -> bool {
    if letters[at].is_alphanumeric() || !looks_like(letters[at]).is_some_and(|sign| SIGNS.contains(sign)) {
        return false;
    }
    let blank = |letter: Option<&char>| letter.is_none_or(|letter| letter.is_whitespace());
    let before = at.checked_sub(1).and_then(|before| letters.get(before));
    !(blank(before) && blank(letters.get(at + 1)))
}
