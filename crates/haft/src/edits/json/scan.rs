//! Finding one's way through JSON that people have written comments into.

use std::ops::Range;

/// Walks over JSON with comments. Whoever uses it has seen that the text is JSON without them.
pub(super) struct JsonScanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl JsonScanner<'_> {
    /// Over white space and comments, to where the next token begins.
    pub(super) fn next_token(&mut self) -> Option<usize> {
        loop {
            let rest = &self.text[self.at..];
            let skipped = rest.len()
                - rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}').len();
            self.at += skipped;
            match comment(&self.text[self.at..]) {
                0 => return (self.at < self.text.len()).then_some(self.at),
                length => self.at += length,
            }
        }
    }

    /// Where the last comment ends that begins on this line.
    pub(super) fn end_of_remarks(&self) -> usize {
        let mut end = self.at;
        loop {
            let rest = &self.text[end..];
            let next = rest.trim_start_matches([' ', '\t']);
            match comment(next) {
                0 => return end,
                length => end += rest.len() - next.len() + length,
            }
        }
    }

    /// Over this byte, if it is the next one.
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        (self.text.as_bytes().get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// Over one value, whatever is inside it.
    pub(super) fn skip_value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            self.next_token()?;
            match self.text.as_bytes()[self.at] {
                b'"' => self.at += string(&self.text[self.at..]),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    let rest = &self.text[self.at..];
                    let ends = |letter: char| letter.is_whitespace() || ",:{}[]\"/".contains(letter);
                    self.at += rest.find(ends).unwrap_or(rest.len()).max(1);
                }
            }
            if depth == 0 {
                return Some(start..self.at);
            }
        }
    }
}

/// How long the comment is that begins here; 0 when none does.
fn comment(text: &str) -> usize {
    if text.starts_with("//") {
        let line = text.split('\n').next().unwrap_or_default();
        line.trim_end_matches('\r').len()
    } else if text.starts_with("/*") {
        text.find("*/").map_or(text.len(), |end| end + 2)
    } else {
        0
    }
}

/// How long the string is that begins here.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            _ => escaped = byte == b'\\' && !escaped,
        }
    }
    text.len()
}

/// The same JSON with blanks in the place of comments and trailing commas, so that every place stays what it is.
pub(super) fn plain(text: &str) -> String {
    let mut plain: Vec<u8> = text.bytes().map(|byte| if byte == b'\n' { byte } else { b' ' }).collect();
    let mut scan = JsonScanner { text, at: 0 };
    let mut comma = None;
    while let Some(start) = scan.next_token() {
        let byte = text.as_bytes()[start];
        if let Some(comma) = comma.take().filter(|_| byte != b'}' && byte != b']') {
            plain[comma] = b',';
        }
        if byte == b',' {
            comma = Some(start);
            scan.at += 1;
            continue;
        }
        let length = match byte {
            b'"' => string(&text[start..]),
            _ => text[start..].chars().next().map_or(1, char::len_utf8),
        };
        scan.at += length;
        plain[start..scan.at].copy_from_slice(&text.as_bytes()[start..scan.at]);
    }
    if let Some(comma) = comma {
        plain[comma] = b',';
    }
    String::from_utf8_lossy(&plain).into_owned()
}
