//! The letters that the bytes of an answer stand for.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How much of a page is looked through for what it says about itself.
const HEAD: usize = 1024;

/// The text, or `None` when the bytes are none. What an answer says about itself counts before what it looks like.
pub(super) fn text(bytes: &[u8], content_type: Option<&str>) -> Option<String> {
    let said = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| content_type.and_then(parameter))
        .or_else(|| of_page(bytes));
    let encoding = match said {
        Some(encoding) => encoding,
        None if is_utf8(bytes) => UTF_8,
        None if content_type.is_some_and(says_text) => guessed(bytes),
        None => return None,
    };
    let wide = [UTF_16LE, UTF_16BE].contains(&encoding);
    if !wide && bytes.contains(&0) {
        return None;
    }
    let (text, _, _) = encoding.decode(whole_letters(bytes, encoding));
    Some(text.into_owned())
}

/// Whether a type is one of text.
fn says_text(content_type: &str) -> bool {
    let kind = essence(content_type);
    let endings =
        ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "csv", "x-www-form-urlencoded", "graphql"];
    kind.starts_with("text/") || endings.iter().any(|ending| kind.ends_with(ending))
}

/// Whether it is a page.
pub(super) fn is_page(text: &str, content_type: Option<&str>) -> bool {
    match content_type.map(essence).as_deref() {
        Some("text/html" | "application/xhtml+xml") => true,
        Some(_) => false,
        None => {
            let head: String = text.trim_start().chars().take(15).collect();
            let head = head.to_ascii_lowercase();
            head.starts_with("<!doctype html") || head.starts_with("<html")
        }
    }
}

/// `Text/HTML; charset=x` → `text/html`.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The `charset` of a content type.
fn parameter(content_type: &str) -> Option<&'static Encoding> {
    let parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut charsets = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charsets.next().and_then(|(_, label)| Encoding::for_label(label.trim().trim_matches('"').as_bytes()))
}

/// What a page says in a `meta` element, or a document in its first line.
fn of_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).to_ascii_lowercase();
    let after = |text: &str, word: &str| text.split_once(word).map(|(_, rest)| rest.to_owned());
    let said = if head.trim_start().starts_with("<?xml") {
        after(head.split_once("?>").map_or(head.as_str(), |(first, _)| first), "encoding")
    } else {
        head.split("<meta")
            .skip(1)
            .find_map(|meta| after(meta.split_once('>').map_or(meta, |(inside, _)| inside), "charset"))
    }?;
    let label = said.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = label.split(['"', '\'', ';', ' ', '/']).next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // Whoever could read this far in one byte a letter was not reading UTF-16.
    Some(if [UTF_16LE, UTF_16BE].contains(&encoding) { UTF_8 } else { encoding })
}

fn guessed(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|err| err.error_len().is_none(), |_| true)
}

/// The bytes without a letter that their end splits.
fn whole_letters<'b>(bytes: &'b [u8], encoding: &'static Encoding) -> &'b [u8] {
    match std::str::from_utf8(bytes) {
        Err(err) if encoding == UTF_8 && err.error_len().is_none() => &bytes[..err.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn letters_are_found_by_what_is_said_and_else_by_their_looks() {
        let latin = b"caf\xe9 au lait";
        for (bytes, content_type, expected) in [
            (&b"\xef\xbb\xbfk\xc3\xa4se"[..], Some("text/plain; charset=latin1"), Some("käse")),
            (latin, Some("text/plain; charset=ISO-8859-1"), Some("café au lait")),
            (latin, Some("text/html; Charset=\"windows-1252\""), Some("café au lait")),
            (latin, Some("text/plain"), Some("café au lait")),
            (b"<meta charset=latin1>caf\xe9", Some("text/html"), Some("<meta charset=latin1>café")),
            (
                b"<META http-equiv=content-type content='text/html; charset=koi8-r'>\xc1",
                Some("text/html"),
                Some("<META http-equiv=content-type content='text/html; charset=koi8-r'>а"),
            ),
            (b"<?xml version='1.0' encoding='latin1'?>\xe9", None, Some("<?xml version='1.0' encoding='latin1'?>é")),
            (b"\xff\xfea\0b\0", None, Some("ab")),
            (b"a\0b\0", Some("text/plain; charset=utf-16le"), Some("ab")),
            ("größe".as_bytes(), None, Some("größe")),
            (&"größe".as_bytes()[..3], None, Some("gr")),
            (b"", None, Some("")),
            (b"\x89PNG\r\n\x1a\n\0\0", Some("image/png"), None),
            (b"\x89PNG\r\n\x1a\n\0\0", Some("text/plain"), None),
            (b"<svg/>", Some("image/svg+xml"), Some("<svg/>")),
            (b"plain enough", Some("application/octet-stream"), Some("plain enough")),
            (latin, Some("application/octet-stream"), None),
            (b"{\"a\": \"\xe9\"}", Some("application/vnd.api+json"), Some("{\"a\": \"é\"}")),
        ] {
            assert_eq!(text(bytes, content_type).as_deref(), expected, "{content_type:?} {bytes:?}");
        }
    }
}
