//! What kind of content a file holds, told from its first bytes and its name.

use std::path::Path;

/// How much of a file's beginning decides.
pub(super) const HEAD: usize = 8 << 10;

/// The type of a picture that a model can look at.
pub(super) fn picture(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The type of a file, where it is a common one.
pub(super) fn mime_type(path: &Path, head: &[u8]) -> Option<&'static str> {
    picture(head).or_else(|| by_magic(head)).or_else(|| by_name(path))
}

fn by_magic(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        [0x1f, 0x8b, ..] => Some("application/gzip"),
        [b'P', b'K', 3, 4, ..] => Some("application/zip"),
        [0x7f, b'E', b'L', b'F', ..] => Some("application/x-elf"),
        [b'\0', b'a', b's', b'm', ..] => Some("application/wasm"),
        _ => head.starts_with(b"SQLite format 3\0").then_some("application/vnd.sqlite3"),
    }
}

fn by_name(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "txt" | "log" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" | "cjs" => "text/javascript",
        "ts" | "tsx" => "text/x-typescript",
        "rs" => "text/x-rust",
        "py" => "text/x-python",
        "sh" => "text/x-shellscript",
        "json" => "application/json",
        "toml" => "application/toml",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "bmp" => "image/bmp",
        "ico" => "image/vnd.microsoft.icon",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_win_over_the_name() {
        assert_eq!(mime_type(Path::new("a.txt"), b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(mime_type(Path::new("a.webp"), b"RIFF\x10\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(mime_type(Path::new("A.JSON"), b"{}"), Some("application/json"));
        assert_eq!(mime_type(Path::new("Makefile"), b"all:"), None);
    }
}
