//! The one error shape that reaches callers, and every code it can carry.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why a call did not succeed. Each code has a page in `docs/errors/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The input does not fit the tool's schema, or makes no sense.
    InvalidArgs,
    /// The path is malformed or lies outside the workspace.
    InvalidPath,
    /// Nothing lies at the path.
    FileNotFound,
    /// The system or a rule about sensitive names refused.
    PermissionDenied,
    /// A time limit ran out and everything the call had started is dead.
    Timeout,
    /// The tool tried and failed.
    ExecutionError,
    /// No tool has this name.
    ToolNotFound,
    /// The caller may not use this tool, or a rule refused what it did.
    Forbidden,
    /// Nobody knows who asks.
    Unauthorized,
    /// There is no such thing, or it is not the caller's to see.
    NotFound,
    /// The caller asks more often than it may.
    RateLimited,
    /// The tenant has or uses as much as it may.
    QuotaReached,
    /// A service that the tool called answered with an error.
    UpstreamError,
    /// The command is refused outright, in every mode.
    CommandBlocked,
    /// The workspace brings it, and nobody has trusted it as it is now.
    NotTrusted,
    /// The tool of an upstream server is no longer what was accepted.
    ToolHeld,
    /// The rules about addresses refuse the URL, in every mode.
    UrlNotAllowed,
    /// Something lies where something new was to be made.
    AlreadyExists,
    /// A file was needed, a folder was found.
    IsADirectory,
    /// A folder was needed, something else was found.
    NotADirectory,
    /// The folder has entries and the call did not say `recursive`.
    NotEmpty,
    /// The text to replace does not occur.
    NoMatch,
    /// The text to replace occurs more than once.
    AmbiguousMatch,
    /// The file is no longer what the caller said it was.
    StaleFile,
    /// Text was needed, the file is binary.
    BinaryFile,
    /// Input or result is larger than the limit.
    TooLarge,
    /// The disk or a quota is full, or a command used more of the machine than it may.
    ResourceLimit,
    /// Commands cannot be fenced well enough here.
    SandboxUnavailable,
    /// Something needed is not there now.
    Unavailable,
    /// A host on the network could not be reached, or broke off.
    NetworkError,
    /// Somebody else holds what is needed.
    Busy,
    /// A person said no.
    Rejected,
    /// Nobody answered in time.
    ApprovalExpired,
    /// The caller or a person stopped the call.
    Cancelled,
    /// Nobody gave the result that the call waited for in time.
    Expired,
    /// What the call touches has changed since it was looked at.
    Conflict,
    /// haft ended while the call was under way; it was not run again.
    Interrupted,
    /// The call may or may not have happened; it was not tried again.
    OutcomeUnknown,
    /// The journal cannot be written, so nothing may be done.
    StoreUnavailable,
    /// The tool's result does not fit its own schema.
    OutputInvalid,
    /// A fault in haft itself.
    Internal,
}

/// What kind of failure a code is; callers decide by it what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Correct the input and call again.
    InvalidParams,
    /// Not allowed; the same call will be refused again.
    Permission,
    /// A time limit.
    Timeout,
    /// The work itself failed.
    Execution,
    /// May succeed unchanged later.
    Transient,
    /// Stopped on purpose.
    Cancelled,
    /// A fault in haft or in the tool.
    Internal,
}

impl ErrorCode {
    /// Every code, for the list tests.
    pub const ALL: &[ErrorCode] = &[
        Self::InvalidArgs,
        Self::InvalidPath,
        Self::FileNotFound,
        Self::PermissionDenied,
        Self::Timeout,
        Self::ExecutionError,
        Self::ToolNotFound,
        Self::Forbidden,
        Self::Unauthorized,
        Self::NotFound,
        Self::RateLimited,
        Self::QuotaReached,
        Self::UpstreamError,
        Self::CommandBlocked,
        Self::NotTrusted,
        Self::ToolHeld,
        Self::UrlNotAllowed,
        Self::AlreadyExists,
        Self::IsADirectory,
        Self::NotADirectory,
        Self::NotEmpty,
        Self::NoMatch,
        Self::AmbiguousMatch,
        Self::StaleFile,
        Self::BinaryFile,
        Self::TooLarge,
        Self::ResourceLimit,
        Self::SandboxUnavailable,
        Self::Unavailable,
        Self::NetworkError,
        Self::Busy,
        Self::Rejected,
        Self::ApprovalExpired,
        Self::Cancelled,
        Self::Expired,
        Self::Conflict,
        Self::Interrupted,
        Self::OutcomeUnknown,
        Self::StoreUnavailable,
        Self::OutputInvalid,
        Self::Internal,
    ];

    /// Whether a call that ends with it was stopped, and has not failed.
    pub(crate) fn is_a_cancel(self) -> bool {
        matches!(self, Self::Cancelled | Self::Expired)
    }

    fn category(self) -> Category {
        match self {
            Self::InvalidArgs
            | Self::InvalidPath
            | Self::FileNotFound
            | Self::ToolNotFound
            | Self::NotFound
            | Self::AlreadyExists
            | Self::IsADirectory
            | Self::NotADirectory
            | Self::NotEmpty
            | Self::NoMatch
            | Self::AmbiguousMatch
            | Self::StaleFile
            | Self::Conflict => Category::InvalidParams,
            Self::PermissionDenied
            | Self::Forbidden
            | Self::Unauthorized
            | Self::CommandBlocked
            | Self::NotTrusted
            | Self::ToolHeld
            | Self::UrlNotAllowed
            | Self::QuotaReached
            | Self::Rejected
            | Self::ApprovalExpired => Category::Permission,
            Self::Timeout => Category::Timeout,
            Self::ExecutionError
            | Self::BinaryFile
            | Self::TooLarge
            | Self::ResourceLimit
            | Self::SandboxUnavailable
            | Self::Interrupted
            | Self::OutcomeUnknown
            | Self::UpstreamError => Category::Execution,
            Self::Unavailable | Self::NetworkError | Self::Busy | Self::RateLimited | Self::StoreUnavailable => {
                Category::Transient
            }
            Self::Cancelled | Self::Expired => Category::Cancelled,
            Self::OutputInvalid | Self::Internal => Category::Internal,
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// The detail that says that nothing was done or sent.
const NOTHING_DONE: &str = "nothingDone";
/// The detail that says when to come back.
const RETRY_AFTER: &str = "retryAfterMs";

/// What a caller learns about a call that did not succeed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// Which failure.
    pub code: ErrorCode,
    /// What was tried, on what, why it failed, what to do next.
    pub message: String,
    /// Whether the same call may succeed later, unchanged.
    pub recoverable: bool,
    /// What kind of failure.
    pub category: Category,
    /// Facts for programs: issues, nearest names, conflicting paths.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// What of an error's details is what the work had said until it failed.
const SAID: &[&str] = &["stdout", "stderr", "output", "said", "partialOutput"];

impl ToolError {
    /// An error with the category that its code usually has.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let category = code.category();
        let recoverable = matches!(category, Category::Transient | Category::Timeout);
        Self { code, message: message.into(), recoverable, category, details: Map::new() }
    }

    /// The same error in another category.
    #[must_use]
    pub fn in_category(mut self, category: Category) -> Self {
        self.category = category;
        self
    }

    /// The same error with one more fact.
    #[must_use]
    pub fn with(mut self, key: &str, fact: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), fact.into());
        self
    }

    /// The same error of a call that provably did nothing and sent nothing, so that it may be tried again.
    #[must_use]
    pub fn having_done_nothing(self) -> Self {
        self.with(NOTHING_DONE, true)
    }

    /// The same error from somebody who said when to come back.
    #[must_use]
    pub fn to_be_tried_after(self, delay: Duration) -> Self {
        self.with(RETRY_AFTER, u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn nothing_done(&self) -> bool {
        self.details.get(NOTHING_DONE) == Some(&Value::Bool(true))
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.details.get(RETRY_AFTER).and_then(Value::as_u64).map(Duration::from_millis)
    }

    /// What the work had said until it failed, each part with its name.
    pub fn said(&self) -> impl Iterator<Item = (&str, &str)> {
        let parts = SAID.iter().filter_map(|name| Some((*name, self.details.get(*name)?.as_str()?)));
        parts.filter(|(_, said)| !said.is_empty())
    }

    /// Its details without that: facts for programs.
    pub fn facts(&self) -> Map<String, Value> {
        let facts = self.details.iter().filter(|(name, _)| !SAID.contains(&name.as_str()));
        facts.map(|(name, fact)| (name.clone(), fact.clone())).collect()
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ToolError {}
