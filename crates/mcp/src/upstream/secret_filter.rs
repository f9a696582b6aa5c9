//! How what a server says is passed on: in its name, and without what it was trusted with.

use std::borrow::Cow;

use haft_runtime::{ErrorCode, Redactor, ToolError};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The name of a server, and the secrets that it was given. A model sees neither those nor does the journal keep them.
pub(super) struct SecretFilter {
    pub(super) name: String,
    redactor: Redactor,
}

impl SecretFilter {
    pub(super) fn new(name: &str, redactor: Redactor) -> Self {
        Self { name: name.to_owned(), redactor }
    }

    /// A text of the server's.
    pub(super) fn text<'t>(&self, said: &'t str) -> Cow<'t, str> {
        self.redactor.known(said)
    }

    /// A value of the server's.
    pub(super) fn value(&self, said: Value) -> Value {
        self.redactor.known_out_of(said)
    }

    /// A whole answer of the server's.
    // Invariant: one that cannot be looked through is not passed on.
    pub(super) fn answer<T: Serialize + DeserializeOwned>(&self, said: T) -> Result<T, ToolError> {
        if !self.redactor.knows_any() {
            return Ok(said);
        }
        let told = serde_json::to_value(said).and_then(|said| serde_json::from_value(self.value(said)));
        told.map_err(|err| ToolError::new(ErrorCode::ExecutionError, format!("its answer cannot be read: {err}")))
    }
}
