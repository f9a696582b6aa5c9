//! Why a question to a server has no answer.

use std::time::Duration;

use haft_runtime::{Category, ErrorCode, ToolError};

use super::{client::LanguageClient, server_state::cut, servers::LanguageServer};
use crate::workspace::Workspace;

/// Why a question to a server has no answer.
#[derive(Debug)]
pub(crate) enum LanguageServerError {
    /// The server is gone, or what it says cannot be read; another one may answer.
    Broken,
    /// It did not answer in this time.
    Late(Duration),
    /// It has not loaded what the answer rests on.
    Loading,
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

/// Why a server does not answer a call.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// Another server may.
    Unusable(UnusableServer),
    /// Whoever asked is told this.
    Told(ToolError),
}

/// A server that cannot be used now.
#[derive(Debug)]
pub(crate) struct UnusableServer {
    pub(super) server: Box<LanguageServer>,
    /// What happened to it, such as "could not be started".
    pub(super) what: String,
    /// Its last words.
    pub(super) words: String,
}

impl From<ToolError> for LanguageServerError {
    fn from(error: ToolError) -> Self {
        Self::Told(error)
    }
}

impl From<ToolError> for Unanswered {
    fn from(error: ToolError) -> Self {
        Self::Told(error)
    }
}

impl From<UnusableServer> for Unanswered {
    fn from(server: UnusableServer) -> Self {
        Self::Unusable(server)
    }
}

/// How long a server lives.
#[derive(Clone, Copy)]
pub(super) enum ServerLife {
    /// As long as its haft.
    Kept,
    /// As long as this call.
    OneCall,
}

impl ServerLife {
    pub(super) fn of(workspace: &Workspace) -> Self {
        if workspace.commands.outlive_calls() { Self::Kept } else { Self::OneCall }
    }
}

/// That a server has not loaded the project yet. It goes on loading.
pub(super) fn still_loading(client: &LanguageClient, life: ServerLife) -> ToolError {
    let (name, progress) = {
        let heard = client.heard.borrow();
        let name = heard.offered.as_ref().map(|offered| offered.name.clone());
        (name.unwrap_or_else(|| client.server.command.join(" ")), heard.progress())
    };
    let next = match life {
        ServerLife::Kept => "ask again",
        ServerLife::OneCall => "ask again with a longer `--timeout`, or keep the server alive in one `haft mcp`",
    };
    // Whoever asks has waited already: in this category the call is not tried again for them.
    let error = ToolError::new(ErrorCode::Unavailable, format!("`{name}` is {progress}, {next}"));
    let error = error.in_category(Category::Timeout).with("progress", progress.percentage);
    ToolError { recoverable: true, ..error.with("work", progress.work) }
}

/// That an answer takes longer than it may. The server is at work and stays.
pub(super) fn slow(server: &LanguageServer, limit: Duration) -> ToolError {
    let message = format!(
        "`{}` is at work but did not answer within {} s, ask again; `lsp.timeout` in the settings says how long an answer \
         may take",
        server.command.join(" "),
        limit.as_secs_f32()
    );
    ToolError::new(ErrorCode::Timeout, message)
}

/// That a server gave no sign of life and was ended.
pub(super) fn late(server: &LanguageServer, limit: Duration) -> ToolError {
    let message = format!(
        "`{}` did not answer within {} s and was ended; the next call starts it again, and `lsp.timeout` in the settings \
         says how long it may take",
        server.command.join(" "),
        limit.as_secs_f32()
    );
    ToolError::new(ErrorCode::Timeout, message)
}

/// That a server refused to answer.
pub(super) fn refused(server: &LanguageServer, code: i64, message: &str) -> ToolError {
    let message = format!("`{}` refused to answer: {} ({code})", server.command.join(" "), cut(message, 2000));
    ToolError::new(ErrorCode::ExecutionError, message).with("serverCode", code)
}
