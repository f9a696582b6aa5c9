//! What a file is, by its own first bytes. What it is called, and what somebody says of it, counts for nothing.

/// How many of its first bytes are looked at.
pub(crate) const LOOKED_AT: usize = 4096;
/// What nothing is known of.
const UNKNOWN: &str = "application/octet-stream";

/// What begins with what, where that is enough to know it.
const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
];

/// Marks of a text that a browser would run or draw.
const PAGES: [&str; 7] = ["<!doctype html", "<html", "<head", "<body", "<script", "<iframe", "<?xml"];

/// The type of what begins so.
pub(crate) fn of(first: &[u8]) -> &'static str {
    let first = &first[..first.len().min(LOOKED_AT)];
    if let Some((_, mime)) = BEGINNINGS.iter().find(|(beginning, _)| first.starts_with(beginning)) {
        return mime;
    }
    match (first.get(..4), first.get(4..8), first.get(8..12)) {
        (Some(b"RIFF"), _, Some(b"WEBP")) => "image/webp",
        (Some(b"RIFF"), _, Some(b"WAVE")) => "audio/wav",
        (_, Some(b"ftyp"), _) => "video/mp4",
        (_, _, _) => of_text(first),
    }
}

fn of_text(first: &[u8]) -> &'static str {
    let text = match std::str::from_utf8(first) {
        Ok(text) => text,
        // The last letter may go on behind what is looked at.
        Err(err) if err.error_len().is_none() => std::str::from_utf8(&first[..err.valid_up_to()]).unwrap_or_default(),
        Err(_) => return UNKNOWN,
    };
    if text.contains(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t' | '\u{c}')) {
        return UNKNOWN;
    }
    let lower = text.to_ascii_lowercase();
    if lower.contains("<svg") {
        return "image/svg+xml";
    }
    if PAGES.iter().any(|mark| lower.contains(mark)) { "text/html" } else { "text/plain" }
}

/// Whether a browser may show it by itself: nothing in it can run.
pub(crate) fn is_safe_to_show(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" | "text/plain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_it_begins_with() {
        let cases: [(&[u8], &str); 12] = [
            (b"\x89PNG\r\n\x1a\nrest", "image/png"),
            (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"%PDF-1.7", "application/pdf"),
            (b"plain words\n", "text/plain"),
            (b"  <!DOCTYPE html><p>", "text/html"),
            (b"words before <script>alert(1)</script>", "text/html"),
            (b"<?xml version=\"1.0\"?><svg xmlns=\"x\"/>", "image/svg+xml"),
            (b"<SVG onload=alert(1)>", "image/svg+xml"),
            (b"\0\x01\x02", UNKNOWN),
            (b"text\0with a zero", UNKNOWN),
            (b"", "text/plain"),
        ];
        for (first, mime) in cases {
            assert_eq!(of(first), mime, "{}", String::from_utf8_lossy(first));
        }
        let cut = "ü".repeat(LOOKED_AT);
        assert_eq!(of(&cut.as_bytes()[..LOOKED_AT - 1]), "text/plain", "a letter that is cut in two is still one");
        for mime in ["text/html", "image/svg+xml", UNKNOWN, "application/zip"] {
            assert!(!is_safe_to_show(mime));
        }
    }
}
