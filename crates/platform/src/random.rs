//! Random texts that nobody guesses, and the hashes they are kept as.

use haft_runtime::{ErrorCode, ToolError};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};
use subtle::ConstantTimeEq;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// As many letters as hold 256 bits.
pub(crate) const SECRET: usize = 43;

/// A text of so many letters and digits, each as likely as the others.
pub(crate) fn text(length: usize) -> Result<String, ToolError> {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let bytes: [u8; 64] = bytes()?;
        // Of 256 values the last few are left out, or the first letters would come more often.
        let fair = bytes.iter().filter(|byte| usize::from(**byte) < 62 * 4);
        text.extend(fair.take(length - text.len()).map(|byte| char::from(LETTERS[usize::from(*byte) % 62])));
    }
    Ok(text)
}

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], ToolError> {
    let mut bytes = [0; N];
    let failed = |_| ToolError::new(ErrorCode::Internal, "the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// What a secret with 256 bits is kept as: it cannot be guessed, so that a quick hash is enough.
pub(crate) fn hash(secret: &str) -> String {
    hex(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a secret is the one that was kept. Takes as long wherever they differ.
pub(crate) fn is_secret(kept: &str, given: &str) -> bool {
    kept.as_bytes().ct_eq(hash(given).as_bytes()).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn texts_are_as_long_as_wanted_and_never_the_same() {
        let (one, other) = (text(SECRET).unwrap(), text(SECRET).unwrap());
        assert_eq!(one.len(), SECRET);
        assert_ne!(one, other);
        assert!(one.bytes().all(|letter| letter.is_ascii_alphanumeric()));
    }

    #[test]
    fn only_the_secret_itself_is_the_secret() {
        let kept = hash("abc");
        assert!(is_secret(&kept, "abc") && !is_secret(&kept, "abd") && !is_secret(&kept, "") && !is_secret("", ""));
    }
}
