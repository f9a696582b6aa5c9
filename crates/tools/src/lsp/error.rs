//! Why a question to a server has no answer.

use std::time::Duration;

use haft_runtime::ToolError;

/// Why a question to a server has no answer.
#[derive(Debug)]
pub(crate) enum LanguageServerError {
    /// The server is gone, or what it says cannot be read; another one may answer.
    Broken,
    /// It did not answer in this time, so it is ended.
    Late(Duration),
    /// It refused.
    Refused {
        /// Its number for the reason.
        code: i64,
        /// Its words for it.
        message: String,
    },
    /// Whoever asked is told this.
    Told(ToolError),
}

impl From<ToolError> for LanguageServerError {
    fn from(error: ToolError) -> Self {
        Self::Told(error)
    }
}
