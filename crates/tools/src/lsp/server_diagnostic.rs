//! What a server finds wrong, as it says it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{server_state::cut, text::Span};

/// How many findings of one file are kept.
const MOST: usize = 1000;
/// How many letters of a message are kept.
const LONGEST: usize = 8000;

/// Something that a server finds wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerDiagnostic {
    pub(super) span: Span,
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) code: Option<String>,
    pub(super) source: Option<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

impl Severity {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Information => "information",
            Self::Hint => "hint",
        }
    }
}

impl ServerDiagnostic {
    /// All that can be read as such.
    pub(super) fn all(list: &Value) -> Vec<Self> {
        list.as_array().into_iter().flatten().take(MOST).filter_map(Self::of).collect()
    }

    fn of(said: &Value) -> Option<Self> {
        let severity = match said["severity"].as_u64() {
            Some(2) => Severity::Warning,
            Some(3) => Severity::Information,
            Some(4) => Severity::Hint,
            Some(_) | None => Severity::Error,
        };
        let code = match &said["code"] {
            Value::String(code) => Some(cut(code, 200)),
            Value::Number(code) => Some(code.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        Some(Self {
            span: Span::deserialize(&said["range"]).ok()?,
            severity,
            message: cut(said["message"].as_str()?, LONGEST),
            code,
            source: said["source"].as_str().map(|source| cut(source, 200)),
        })
    }
}
