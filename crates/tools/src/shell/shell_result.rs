//! What every tool that runs something says of how that went.

use std::sync::Arc;

use haft_sandbox::fence::CommandExit;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::fenced::CommandResult;

/// What a command said, and how it ended.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShellResult {
    stdout: Arc<str>,
    stderr: Arc<str>,
    /// Exit code of the command; 128 + n if signal n ended it.
    exit_code: i32,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    timed_out: bool,
    /// Whether some of the output was not kept.
    truncated: bool,
    /// What could not be kept, such as sockets, and what it could not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// What may help where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl ShellResult {
    pub(super) fn of(done: &CommandResult) -> Self {
        let signal = match done.exit {
            CommandExit::Code(_) => None,
            CommandExit::Signal(signal) => Some(signal),
            CommandExit::Stopped => Some(9),
        };
        Self {
            stdout: Arc::clone(&done.said.stdout),
            stderr: Arc::clone(&done.said.stderr),
            exit_code: done.exit_code(),
            signal,
            timed_out: false,
            truncated: done.said.is_truncated,
            left_out: done.left_out_words(),
            hint: done.hint("set `network: true` (at the terminal: `--network`)"),
        }
    }

    /// What was said on both streams, how it ended, what is left out and what may help, for a model.
    pub(super) fn text(&self, said: &str) -> String {
        let newline = if said.is_empty() || said.ends_with('\n') { "" } else { "\n" };
        let left_out: String = self
            .left_out
            .iter()
            .map(|what| match what.contains("` exists, but ") {
                true => format!("\n[{what}]"),
                false => format!("\n[left out: {what}]"),
            })
            .collect();
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("\n[{hint}]"));
        format!("{said}{newline}[exit {}]{left_out}{hint}", self.exit_code)
    }

    pub(super) fn metadata(&self) -> Map<String, Value> {
        Map::from_iter([("exit_code".to_owned(), self.exit_code.into())])
    }
}
