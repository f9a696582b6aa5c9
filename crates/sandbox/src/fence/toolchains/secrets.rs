//! Whether a settings file of a tool holds a secret.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A settings file that is larger is not read by anybody inside.
const LARGEST: u64 = 256 << 10;

/// Words that stand beside secrets in the settings of package managers.
const WORDS: &[&str] = &[
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "_auth",
    "apikey",
    "api-key",
    "api_key",
    "credential",
    "authorization",
    "privatekey",
    "private-key",
    "private_key",
];

/// Whether a file may hold a secret; one that cannot be read as text may.
pub(super) fn may_hold_a_secret(file: &Path) -> bool {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    !read.is_ok_and(|length| length as u64 <= LARGEST) || names_a_secret(&text)
}

fn names_a_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|word| text.contains(word)) || text.split("://").skip(1).any(begins_with_a_user)
}

/// Whether what follows `://` names a user, perhaps with a password: `user:word@host/…`.
fn begins_with_a_user(rest: &str) -> bool {
    let end = rest.find(|c: char| c == '/' || c.is_whitespace() || c == '"' || c == '\'').unwrap_or(rest.len());
    rest[..end].contains('@')
}

#[cfg(test)]
mod tests {
    use super::names_a_secret;

    #[test]
    fn tells_secrets_from_settings() {
        let secret = [
            "//host.example/:_authToken=abc",
            "[registries.mine]\nTOKEN = \"x\"",
            "proxy = https://me:word@host.example/",
            "<server><password>x</password></server>",
            "signing.secretKeyRingFile=x",
        ];
        let plain = [
            "fund=false\nhome=https://host.example/@scope/",
            "[build]\nrustflags = [\"-C\", \"link-arg=-fuse-ld=mold\"]",
            "[global]\nproxy = https://host.example/\ncert = x.pem",
            "",
        ];
        for text in secret {
            assert!(names_a_secret(text), "{text}");
        }
        for text in plain {
            assert!(!names_a_secret(text), "{text}");
        }
    }
}
