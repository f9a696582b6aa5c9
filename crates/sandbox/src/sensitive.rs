//! Names that hold secrets.

use std::borrow::Cow;
use std::ffi::OsStr;

use unicode_normalization::UnicodeNormalization;

use crate::workspace_path::WorkspacePath;

/// Whether any component of the place is a name that holds secrets.
pub fn is_sensitive(place: &WorkspacePath) -> bool {
    place.as_path().iter().any(is_sensitive_name)
}

/// Whether this one component is a name that holds secrets, in any letter case and normal form.
pub fn is_sensitive_name(name: &OsStr) -> bool {
    is_sensitive_folded(&fold(name))
}

/// The same for a name that is already folded.
pub(crate) fn is_sensitive_folded(name: &str) -> bool {
    match name {
        ".env" | "credentials.json" | ".aws" | ".ssh" | ".gnupg" | ".netrc" => true,
        ".env.example" | ".env.sample" | ".env.template" => false,
        other => {
            other.starts_with(".env.")
                || other.starts_with("id_rsa")
                || other.ends_with(".pem")
                || other.ends_with(".key")
        }
    }
}

/// One spelling for all spellings that a filesystem may take for the same name.
pub(crate) fn fold(name: &OsStr) -> Cow<'_, str> {
    let text = name.to_string_lossy();
    if !text.is_ascii() {
        return Cow::Owned(text.nfc().collect::<String>().to_lowercase().nfc().collect());
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) { Cow::Owned(text.to_ascii_lowercase()) } else { text }
}
