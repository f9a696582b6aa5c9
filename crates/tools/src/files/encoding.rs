//! How the content of a file travels.

use base64::{Engine, prelude::BASE64_STANDARD};
use haft_runtime::{ErrorCode, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    /// The bytes that a caller's content stands for.
    pub(super) fn decode(self, content: String) -> Result<Vec<u8>, ToolError> {
        match self {
            Self::Utf8 => Ok(content.into_bytes()),
            Self::Base64 => {
                let packed: Vec<u8> = content.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
                BASE64_STANDARD.decode(packed).map_err(|err| {
                    ToolError::new(ErrorCode::InvalidArgs, format!("`content` is not valid base64: {err}"))
                })
            }
        }
    }
}

/// Bytes as base64 text.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_may_be_wrapped_but_not_broken() {
        assert_eq!(Encoding::Base64.decode("aGk=\n".to_owned()).unwrap(), b"hi");
        assert_eq!(Encoding::Base64.decode("a".to_owned()).unwrap_err().code, ErrorCode::InvalidArgs);
        assert_eq!(Encoding::Base64.decode(base64(b"\0\xff")).unwrap(), b"\0\xff");
    }
}
