//! Messages on the wire: a few header lines, an empty one, then as many bytes of JSON as the headers say.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// A longer message is not read: no answer that anybody could use is.
const LONGEST: u64 = 64 << 20;
/// A longer line is no header.
const LONGEST_HEADER: u64 = 4 << 10;
/// There are two of them.
const MOST_HEADERS: usize = 16;

/// The bytes of a message.
pub(super) fn framed(message: &serde_json::Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The next message; `None` when there are no more. Whatever is not one is an error that says what it was.
pub(super) async fn next(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut length = None;
    for number in 0..MOST_HEADERS {
        let mut line = Vec::new();
        (&mut *from).take(LONGEST_HEADER).read_until(b'\n', &mut line).await?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        let header = String::from_utf8_lossy(&line);
        let header =
            header.strip_suffix('\n').ok_or_else(|| garbled("a header that does not end", &header))?.trim_end();
        if header.is_empty() {
            let length = length.ok_or_else(|| garbled("a message without its length", ""))?;
            return body(from, length).await.map(Some);
        }
        let (name, value) = header.split_once(':').ok_or_else(|| garbled("a line that is no header", header))?;
        if name.eq_ignore_ascii_case("content-length") {
            let bytes = value.trim().parse().map_err(|_| garbled("a length that is no number", value))?;
            if bytes > LONGEST {
                return Err(garbled("a message of more than 64 MiB", value));
            }
            length = Some(bytes);
        }
    }
    Err(garbled("headers without end", ""))
}

async fn body(from: &mut (impl AsyncBufRead + Unpin), length: u64) -> io::Result<Vec<u8>> {
    // It grows with what really comes, not with what was announced.
    let mut body = Vec::new();
    from.take(length).read_to_end(&mut body).await?;
    if body.len() as u64 == length { Ok(body) } else { Err(garbled("a message that was cut off", "")) }
}

fn garbled(what: &str, said: &str) -> io::Error {
    let cut: String = said.chars().filter(|letter| !letter.is_control()).take(80).collect();
    let said = if cut.is_empty() { String::new() } else { format!(": `{cut}`") };
    io::Error::new(io::ErrorKind::InvalidData, format!("it sent {what}{said}"))
}

#[cfg(test)]
mod tests {
    use super::{framed, next};

    async fn read(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let mut from = bytes;
        next(&mut from).await.map_err(|err| err.to_string())
    }

    #[tokio::test]
    async fn messages_come_one_by_one_until_the_end() {
        let bytes = [framed(&serde_json::json!({"a": "ü"})), framed(&serde_json::json!([]))].concat();
        let mut from = &bytes[..];
        assert_eq!(next(&mut from).await.unwrap().unwrap(), "{\"a\":\"ü\"}".as_bytes());
        assert_eq!(next(&mut from).await.unwrap().unwrap(), b"[]");
        assert_eq!(next(&mut from).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_no_message_is_told() {
        let long = vec![b'x'; 10_000];
        for (bytes, expected) in [
            (&b"Content-Length: 5\r\n\r\nab"[..], "cut off"),
            (b"Content-Length: many\r\n\r\n", "no number"),
            (b"Content-Length: 99999999999\r\n\r\n", "64 MiB"),
            (b"Content-Type: x\r\n\r\n", "without its length"),
            (b"hello there\n", "`hello there`"),
            (b"Content-Length", "does not end"),
            (&long, "does not end"),
            (&b"A: b\n".repeat(40), "without end"),
        ] {
            let said = read(bytes).await.unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
        let odd = b"content-length:2\nContent-Type: application/vscode-jsonrpc\r\n\n{}";
        assert_eq!(read(odd).await.unwrap().unwrap(), b"{}");
    }
}
