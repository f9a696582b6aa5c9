//! Positions: people's lines and columns, counted from 1 in Unicode scalar values, and those of servers.

use haft_runtime::{ErrorCode, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place in a text, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct TextPosition {
    /// Counted from 1.
    pub(super) line: u32,
    /// Counted from 1, in Unicode characters.
    pub(super) col: u32,
}

/// A range of text; `end` is just after its last character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(super) struct Range {
    pub(super) start: TextPosition,
    pub(super) end: TextPosition,
}

/// A place in a text, for a server: both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) character: u32,
}

/// A part of a text, for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Span {
    pub(super) start: Position,
    pub(super) end: Position,
}

/// What a server counts in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Units {
    Utf8,
    Utf16,
    Utf32,
}

impl Units {
    /// The units of a name; a server that names none counts as all did before they could.
    pub(super) fn named(name: Option<&str>) -> Self {
        match name {
            Some("utf-8") => Self::Utf8,
            Some("utf-32") => Self::Utf32,
            Some(_) | None => Self::Utf16,
        }
    }

    fn of(self, letter: char) -> u32 {
        let units = match self {
            Self::Utf8 => letter.len_utf8(),
            Self::Utf16 => letter.len_utf16(),
            Self::Utf32 => 1,
        };
        u32::try_from(units).unwrap_or(1)
    }
}

/// A text and where its lines begin.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    starts: Vec<usize>,
}

impl Text {
    pub(super) fn new(text: String) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// A line by its number from 0, without what ends it. What follows the last line break is a line too.
    pub(super) fn line(&self, number: u32) -> Option<&str> {
        let number = usize::try_from(number).ok()?;
        let start = *self.starts.get(number)?;
        let line = match self.starts.get(number + 1) {
            Some(next) => &self.text[start..next - 1],
            None => &self.text[start..],
        };
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// What a server calls a spot; refused with the real bounds when there is none.
    pub(super) fn position(&self, spot: TextPosition, units: Units, path: &str) -> Result<Position, ToolError> {
        let refused = |why: String| ToolError::new(ErrorCode::InvalidArgs, why);
        let lines = self.starts.len();
        let line = spot.line.checked_sub(1).and_then(|number| self.line(number)).ok_or_else(|| {
            refused(format!("`{path}` has no line {}: its lines are 1 to {lines}", spot.line)).with("lines", lines)
        })?;
        let columns = line.chars().count() + 1;
        let before = usize::try_from(spot.col).unwrap_or(usize::MAX).checked_sub(1).filter(|before| *before < columns);
        let before = before.ok_or_else(|| {
            let why =
                format!("line {} of `{path}` has no column {}: its columns are 1 to {columns}", spot.line, spot.col);
            refused(why).with("columns", columns)
        })?;
        let character = line.chars().take(before).map(|letter| units.of(letter)).sum();
        Ok(Position { line: spot.line - 1, character })
    }

    /// What people call a position; one behind the end of its line, or of the text, is that end.
    pub(super) fn spot(&self, position: Position, units: Units) -> TextPosition {
        let last = u32::try_from(self.starts.len() - 1).unwrap_or(u32::MAX);
        if position.line > last {
            return self.spot(Position { line: last, character: u32::MAX }, units);
        }
        let line = self.line(position.line).unwrap_or_default();
        let (mut left, mut col) = (position.character, 1);
        for letter in line.chars() {
            // A position in the middle of a character means the character.
            if units.of(letter) > left {
                break;
            }
            left -= units.of(letter);
            col += 1;
        }
        TextPosition { line: position.line + 1, col }
    }

    pub(super) fn range(&self, span: Span, units: Units) -> Range {
        Range { start: self.spot(span.start, units), end: self.spot(span.end, units) }
    }
}

impl Span {
    /// The same for people, where the text is not known: exact as long as the line is plain ASCII.
    pub(super) fn as_it_is(self) -> Range {
        let spot = |at: Position| TextPosition { line: at.line.saturating_add(1), col: at.character.saturating_add(1) };
        Range { start: spot(self.start), end: spot(self.end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tab, an emoji, a flag of two characters, a letter with a combining accent; CRLF; a last line without an end.
    const TEXT: &str = "\tx🦀é = 1\r\nlet 🇩🇪 = e\u{301};\n\nlast ü";

    fn spot(line: u32, col: u32) -> TextPosition {
        TextPosition { line, col }
    }

    #[test]
    fn columns_are_characters_in_all_units() {
        let text = Text::new(TEXT.to_owned());
        for (at, utf8, utf16, utf32) in [
            (spot(1, 1), 0, 0, 0),
            (spot(1, 2), 1, 1, 1),
            (spot(1, 4), 6, 4, 3),
            (spot(1, 5), 8, 5, 4),
            (spot(1, 9), 12, 9, 8),
            (spot(2, 7), 12, 8, 6),
            (spot(2, 11), 16, 12, 10),
            (spot(2, 12), 18, 13, 11),
            (spot(3, 1), 0, 0, 0),
            (spot(4, 7), 7, 6, 6),
        ] {
            for (units, character) in [(Units::Utf8, utf8), (Units::Utf16, utf16), (Units::Utf32, utf32)] {
                let position = text.position(at, units, "x").unwrap();
                assert_eq!(position, Position { line: at.line - 1, character }, "{at:?} {units:?}");
                assert_eq!(text.spot(position, units), at, "{units:?}");
            }
        }
    }

    #[test]
    fn what_is_past_the_end_is_refused_with_the_bounds() {
        let text = Text::new(TEXT.to_owned());
        for (at, expected) in [
            (spot(5, 1), "its lines are 1 to 4"),
            (spot(0, 1), "its lines are 1 to 4"),
            (spot(1, 10), "its columns are 1 to 9"),
            (spot(3, 2), "its columns are 1 to 1"),
            (spot(1, 0), "its columns are 1 to 9"),
        ] {
            let refused = text.position(at, Units::Utf16, "x").unwrap_err();
            assert!(refused.message.contains(expected), "{}", refused.message);
        }
    }

    #[test]
    fn what_a_server_makes_up_is_brought_into_the_text() {
        let text = Text::new(TEXT.to_owned());
        let at = |line, character| text.spot(Position { line, character }, Units::Utf16);
        assert_eq!(at(0, 99), spot(1, 9));
        assert_eq!(at(99, 0), spot(4, 7));
        assert_eq!(at(0, 3), spot(1, 3), "the second half of a crab is a crab");
        let empty = Text::new(String::new());
        assert_eq!(empty.spot(Position { line: 7, character: 7 }, Units::Utf8), spot(1, 1));
    }
}
