//! A secret that nobody sees by accident.

use std::fmt;

/// A key. It is shown nowhere, not even where everything is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Holds a key.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key itself, for the request that needs it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without the key, for what somebody else may have repeated.
    pub(super) fn out_of(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[redacted]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
