//! Names that hold secrets.

use std::ffi::OsStr;

use unicode_normalization::UnicodeNormalization;

use crate::place::Place;

/// Whether any component of the place is a name that holds secrets.
pub fn is_sensitive(place: &Place) -> bool {
    place.as_path().iter().any(is_sensitive_name)
}

/// Whether this one component is a name that holds secrets, in any letter case and normal form.
pub fn is_sensitive_name(name: &OsStr) -> bool {
    let name = fold(name);
    match name.as_str() {
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
pub(crate) fn fold(name: &OsStr) -> String {
    let text = name.to_string_lossy();
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().collect::<String>().to_lowercase().nfc().collect()
}
