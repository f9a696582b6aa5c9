//! What tells the content of a file from any other.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// The SHA-256 of bytes, in lower-case hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// The SHA-256 of a file of any size, in lower-case hexadecimal digits.
pub(super) fn sha256_of(mut file: impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hexadecimal(&hasher.finalize())),
            Ok(length) => hasher.update(&chunk[..length]),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_say_the_same() {
        let bytes = vec![7; CHUNK + 1];
        assert_eq!(sha256_of(bytes.as_slice()).unwrap(), sha256(&bytes));
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
