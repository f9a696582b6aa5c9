//! The key that everything secret is derived from: sealed secrets, submit tokens, signed addresses.

use haft_runtime::{ErrorCode, ToolError};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};

use crate::random;

/// The master key. It is never shown, and nothing that is derived from it leads back to it.
#[derive(Clone)]
pub struct MasterKey {
    key: hmac::Key,
}

impl MasterKey {
    /// From its bytes.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, bytes) }
    }

    /// A number that tells two keys apart and nothing else of them.
    pub fn number(&self) -> i64 {
        let [a, b, c, d, e, f, ..] = self.derived("fingerprint", b"");
        i64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Bytes for one purpose, of one thing.
    pub fn derived(&self, purpose: &str, of: &[u8]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        // The length keeps purpose and thing apart.
        context.update(&(purpose.len() as u64).to_be_bytes());
        context.update(purpose.as_bytes());
        context.update(of);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.sign().as_ref());
        bytes
    }

    /// Whether these are the bytes that were derived. Takes as long wherever they differ.
    pub(crate) fn is_derived(&self, purpose: &str, of: &[u8], given: &str) -> bool {
        use subtle::ConstantTimeEq;
        random::hex(&self.derived(purpose, of)).as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// Seals a text, so that only this key opens it, and only as belonging to the same thing.
    pub(crate) fn seal(&self, of: &str, text: &str) -> Result<Vec<u8>, ToolError> {
        let nonce: [u8; NONCE_LEN] = random::bytes()?;
        let mut sealed = text.as_bytes().to_vec();
        self.cipher()?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(of), &mut sealed)
            .map_err(|_| broken("it cannot be sealed"))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what was sealed.
    pub(crate) fn open(&self, of: &str, sealed: &[u8]) -> Result<String, ToolError> {
        let unreadable = || broken("it was sealed by another key; set HAFT_SECRET_KEY to that one, or set it again");
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or_else(unreadable)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| unreadable())?;
        let mut bytes = sealed.to_vec();
        let text = self.cipher()?.open_in_place(nonce, Aad::from(of), &mut bytes).map_err(|_| unreadable())?;
        String::from_utf8(text.to_vec()).map_err(|_| unreadable())
    }

    fn cipher(&self) -> Result<LessSafeKey, ToolError> {
        let bytes = self.derived("seal", b"");
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| broken("its key is none"))?;
        Ok(LessSafeKey::new(key))
    }
}

fn broken(why: &str) -> ToolError {
    ToolError::new(ErrorCode::Unavailable, format!("a secret cannot be used: {why}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_by_the_same_key_for_the_same_thing() {
        let (key, other) = (MasterKey::new(&[1; 32]), MasterKey::new(&[2; 32]));
        let sealed = key.seal("acme/TOKEN", "s3cr3t").unwrap();
        assert_eq!(key.open("acme/TOKEN", &sealed).unwrap(), "s3cr3t");
        assert!(!String::from_utf8_lossy(&sealed).contains("s3cr3t"));
        key.open("bolt/TOKEN", &sealed).unwrap_err();
        other.open("acme/TOKEN", &sealed).unwrap_err();
        key.open("acme/TOKEN", &sealed[..20]).unwrap_err();
    }

    #[test]
    fn purposes_are_kept_apart() {
        let key = MasterKey::new(&[1; 32]);
        assert_ne!(key.derived("ab", b"c"), key.derived("a", b"bc"));
        assert_ne!(key.number(), MasterKey::new(&[2; 32]).number());
    }
}
