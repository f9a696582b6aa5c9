//! Characters that cannot be seen, or that change how others are seen.

use unicode_general_category::{GeneralCategory, get_general_category};

/// How many combining marks one letter may carry; no orthography needs more.
const MOST_MARKS: usize = 4;

/// Which of the letters to write out.
pub(super) fn find(letters: &[char]) -> Vec<bool> {
    let mut marks = Vec::with_capacity(letters.len());
    // The letter before, if it is seen, and how many combining marks stand here in a row.
    let (mut before, mut heap) = (None, 0);
    for (at, &letter) in letters.iter().enumerate() {
        let combines = combines(letter);
        heap = if combines { heap + 1 } else { 0 };
        let hides = if combines { heap > MOST_MARKS || !carries(before) || blank(letter) } else { hides(letter) };
        let after = letters.get(at + 1).copied();
        let marked = (hides || joins(letter)) && !belongs(before, letter, after);
        before = if marked { None } else { Some(letter) };
        marks.push(marked);
    }
    marks
}

fn combines(letter: char) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark};
    matches!(get_general_category(letter), NonspacingMark | EnclosingMark)
}

/// Whether a combining mark has something to stand on.
fn carries(before: Option<char>) -> bool {
    before.is_some_and(|letter| !letter.is_whitespace())
}

fn hides(letter: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned};
    if matches!(letter, '\n' | '\t') {
        return false;
    }
    let category = get_general_category(letter);
    let unseen = matches!(category, Control | LineSeparator | ParagraphSeparator | PrivateUse | Surrogate | Unassigned);
    unseen || category == Format && !is_seen(letter) || blank(letter)
}

/// Letters and marks that show nothing.
fn blank(letter: char) -> bool {
    matches!(
        letter,
        '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{16fe4}'
            | '\u{1d159}'
    )
}

/// Format characters that are drawn: the signs around Arabic, Syriac and Kaithi numbers.
fn is_seen(letter: char) -> bool {
    matches!(
        letter,
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{110bd}' | '\u{110cd}'
    )
}

/// Joiners and variation selectors: right in their place, and hidden everywhere else.
fn joins(letter: char) -> bool {
    matches!(
        letter,
        '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Whether the joiner or selector is in its place.
fn belongs(before: Option<char>, letter: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match letter {
        '\u{200c}' => needs_joiners(before) && after.is_some_and(needs_joiners),
        '\u{200d}' => needs_joiners(before) || is_in_emoji(before) && after.is_some_and(is_emoji),
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(before) || is_keycap(before) && after == Some('\u{20e3}'),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1800}'..='\u{18af}'),
        '\u{e0100}'..='\u{e01ef}' => {
            matches!(before, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        }
        _ => false,
    }
}

/// Letters of scripts in which a joiner changes the spelling: Arabic, Syriac, those of India and its neighbours.
fn needs_joiners(letter: char) -> bool {
    matches!(
        letter,
        '\u{620}'..='\u{7ff}'
            | '\u{840}'..='\u{88e}'
            | '\u{8a0}'..='\u{dff}'
            | '\u{f00}'..='\u{109f}'
            | '\u{1780}'..='\u{18af}'
            | '\u{1900}'..='\u{1cff}'
            | '\u{a800}'..='\u{abff}'
            | '\u{11000}'..='\u{11fff}'
    )
}

fn is_emoji(letter: char) -> bool {
    matches!(
        letter,
        '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | 'Ⓜ' | '〰' | '〽' | '㊗' | '㊙'
            | '\u{2194}'..='\u{21aa}'
            | '\u{231a}'..='\u{23ff}'
            | '\u{25aa}'..='\u{27bf}'
            | '\u{2934}'..='\u{2935}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

/// An emoji, or what is set on one.
fn is_in_emoji(letter: char) -> bool {
    is_emoji(letter) || letter == '\u{fe0f}'
}

fn is_keycap(letter: char) -> bool {
    matches!(letter, '0'..='9' | '#' | '*')
}
