//! The letters that the bytes of a file stand for, and the bytes that letters become again.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// So many letters at least tell UTF-16 without a mark from a few odd bytes.
const FEWEST_PAIRS: usize = 4;
/// So many letters beyond ASCII at least tell one alphabet from another, where each stands alone.
const FEWEST_LETTERS: usize = 8;

/// How a text file is encoded. Whatever is read with it can be written with it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset {
    encoding: &'static Encoding,
    /// Whether the file begins with a mark that says so.
    marked: bool,
}

impl Charset {
    /// The encoding of a file that begins so; `None` when it is no text.
    pub fn of(head: &[u8]) -> Option<Self> {
        if is_text(head) {
            return Some(Self { encoding: UTF_8, marked: false });
        }
        match Encoding::for_bom(head) {
            Some((encoding, _)) if encoding != UTF_8 => return Some(Self { encoding, marked: true }),
            Some(_) => return None,
            None => {}
        }
        if let Some(encoding) = wide(head) {
            return Some(Self { encoding, marked: false });
        }
        let is_printable = |byte: &u8| *byte >= 0x20 && *byte != 0x7f || b"\t\n\r\x0c\x1b".contains(byte);
        if !head.iter().all(is_printable) {
            return None;
        }
        if tells_no_alphabet(head) {
            return Some(Self { encoding: WINDOWS_1252, marked: false });
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(head, true);
        let guessed = detector.guess(None, Utf8Detection::Deny);
        let (_, _, broken) = guessed.decode(head);
        // Every byte is a letter of this one.
        Some(Self { encoding: if broken { WINDOWS_1252 } else { guessed }, marked: false })
    }

    /// Whether it is what files are usually in.
    pub fn is_utf8(self) -> bool {
        self.encoding == UTF_8
    }

    /// The same for what comes behind the beginning of a file.
    pub fn without_mark(self) -> Self {
        Self { marked: false, ..self }
    }

    /// What it is called.
    pub fn name(self) -> String {
        self.encoding.name().to_ascii_lowercase()
    }

    /// The text of a whole file, without its mark; `None` when these bytes are no such text, or would not be the same
    /// again once the text is written.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        if self.is_utf8() {
            return String::from_utf8(bytes.to_vec()).ok().filter(|text| !text.contains('\0'));
        }
        let (text, _, broken) = self.encoding.decode(bytes);
        let text = Some(text.into_owned()).filter(|text| !broken && !text.contains('\0'))?;
        (self.encode(&text)? == bytes).then_some(text)
    }

    /// The bytes of a text; `None` when it has letters that this encoding cannot write.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        if self.is_utf8() {
            return Some(text.as_bytes().to_vec());
        }
        let wide = |to_bytes: fn(u16) -> [u8; 2]| {
            let mark = self.marked.then_some(0xfeff);
            mark.into_iter().chain(text.encode_utf16()).flat_map(to_bytes).collect()
        };
        if self.encoding == UTF_16LE {
            return Some(wide(u16::to_le_bytes));
        }
        if self.encoding == UTF_16BE {
            return Some(wide(u16::to_be_bytes));
        }
        let (bytes, _, unwritable) = self.encoding.encode(text);
        (!unwritable).then(|| bytes.into_owned())
    }
}

/// Whether bytes are text: UTF-8 without NUL. A character that the end of the bytes splits does not count.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).map_or_else(|err| err.error_len().is_none(), |_| true)
}

/// UTF-16 without a mark: mostly letters of ASCII, each with a zero byte on the same side.
fn wide(head: &[u8]) -> Option<&'static Encoding> {
    let pairs = head.len() / 2;
    if pairs < FEWEST_PAIRS || !head.len().is_multiple_of(2) {
        return None;
    }
    let zeros = |side: usize| head.chunks_exact(2).filter(|pair| pair[side] == 0).count();
    match (zeros(0), zeros(1)) {
        (0, high) if high * 10 >= pairs * 7 => Some(UTF_16LE),
        (high, 0) if high * 10 >= pairs * 7 => Some(UTF_16BE),
        _ => None,
    }
}

/// Whether too little is written beyond ASCII to guess by, as in most source files: a few letters, each by itself. Other
/// alphabets write whole words.
fn tells_no_alphabet(head: &[u8]) -> bool {
    let alone = head.windows(2).all(|pair| pair[0].is_ascii() || pair[1].is_ascii());
    alone && head.iter().filter(|byte| !byte.is_ascii()).count() < FEWEST_LETTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf8_without_nul() {
        assert!(is_text(b""));
        assert!(is_text("\u{feff}größe".as_bytes()));
        assert!(is_text(&"ö".as_bytes()[..1]), "the end splits a character");
        assert!(!is_text(b"a\0b"));
        assert!(!is_text(b"caf\xe9 au lait"));
    }

    #[test]
    fn what_is_read_is_written_again_as_it_was() {
        for (bytes, name, text) in [
            (&b"caf\xe9 au lait\n"[..], "windows-1252", "café au lait\n"),
            (b"\xff\xfeh\0i\0\n\0", "utf-16le", "hi\n"),
            (b"\xfe\xff\0h\0i\0\n", "utf-16be", "hi\n"),
            (b"h\0i\0 \0t\0h\0e\0r\0e\0\n\0", "utf-16le", "hi there\n"),
            ("größe".as_bytes(), "utf-8", "größe"),
            (b"", "utf-8", ""),
        ] {
            let charset = Charset::of(bytes).unwrap();
            assert_eq!((charset.name().as_str(), charset.decode(bytes).as_deref()), (name, Some(text)));
            assert_eq!(charset.encode(text).as_deref(), Some(bytes), "{name}");
        }
    }

    #[test]
    fn what_is_no_text_is_none() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&all[..], b"\x7fELF\x02\x01\x01\0", b"a\0b", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x01\x02\xff"] {
            assert_eq!(Charset::of(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn letters_that_it_does_not_have_are_not_written() {
        let latin = Charset::of(b"caf\xe9 au lait\n").unwrap();
        assert_eq!((latin.encode("漢"), latin.encode("ü").as_deref()), (None, Some(&b"\xfc"[..])));
    }
}
