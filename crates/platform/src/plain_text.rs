//! Text that shows what it holds: nothing hidden, nothing that changes how the rest is read.

use unicode_general_category::{GeneralCategory, get_general_category};

/// What stands where something was cut off.
const CUT: char = '…';

/// One line of at most so many characters. Runs of space become one, and what cannot be seen is written out.
pub fn plain_line(text: &str, most: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shown(&words, most)
}

/// The same with its lines and tabs.
pub fn plain_lines(text: &str, most: usize) -> String {
    shown(&text.replace("\r\n", "\n"), most)
}

fn shown(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (at, letter) in text.chars().enumerate() {
        if at == most {
            shown.push(CUT);
            break;
        }
        if is_seen(letter) { shown.push(letter) } else { shown.extend(letter.escape_unicode()) }
    }
    shown
}

fn is_seen(letter: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned};
    let is_blank = matches!(letter, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    let hides = matches!(
        get_general_category(letter),
        Control | Format | LineSeparator | ParagraphSeparator | PrivateUse | Surrogate | Unassigned
    );
    matches!(letter, '\n' | '\t') || !hides && !is_blank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hidden_and_no_line_is_broken() {
        assert_eq!(plain_line("a\r\nBcc: b@example.org\tc", 99), "a Bcc: b@example.org c");
        assert_eq!(plain_line("x\u{202e}y\u{200b}z\u{1b}[2J", 99), r"x\u{202e}y\u{200b}z\u{1b}[2J");
        assert_eq!(plain_line("Straße 日本 é", 99), "Straße 日本 é");
        assert_eq!(plain_line("abcdef", 3), "abc…");
        assert_eq!(plain_lines("a\r\n\tb\u{0}", 99), "a\n\tb\\u{0}");
    }
}
