//! `shell_exec`

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use haft_runtime::{Effect, Prepared, Ran, Tool, ToolCtx, ToolError};
use haft_sandbox::fence::Exit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::input::{environment, here, limit, told};
use crate::{
    command::Command,
    fenced::{Done, Errand},
    workspace::Workspace,
};

pub(crate) struct ShellExec(pub(crate) Arc<Workspace>);

/// Runs a command with bash in the workspace: build, test, use git, look around. It runs aside first, without the
/// network, and sees a copy of the workspace: what it changed is committed after that, by a person's yes where one is
/// needed; a command that changed nothing is never asked about. Prefer `read_file`, `grep`, `glob` and `edit_file` for
/// what they do. A command that must go on running is for `shell_background`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Input {
    /// What to run, as you would type it into bash.
    #[schemars(length(min = 1, max = 32768))]
    command: String,
    /// The folder to run it in, relative to the workspace folder.
    #[serde(default = "here")]
    cwd: String,
    /// How long it may take, in milliseconds; after that it is ended, and what it had said is given back.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The same as `timeout`.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// Variables to set beside the usual ones.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// What the command reads from its standard input.
    #[serde(default)]
    stdin: String,
    /// Whether it needs the network. It then reaches every host, this machine included, so a person is asked before it
    /// runs.
    #[serde(default)]
    network: bool,
    /// What the command is for, in a few words, for the person who is asked.
    #[expect(dead_code, reason = "the card shows it, from the input as it came")]
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    stdout: String,
    stderr: String,
    /// The command's own; 0 means that it worked. A command that was ended by a signal has 128 and the signal's number.
    exit_code: i32,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    duration_ms: u64,
    timed_out: bool,
    /// Whether some of the output was not kept.
    truncated: bool,
    /// Both streams, in the order in which they came.
    output: String,
    /// What it made and nobody can commit, such as sockets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

impl Tool for ShellExec {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "shell_exec";
    const CATEGORY: &'static str = "shell";
    const WORST: Effect = Effect::Execute;
    const ALIASES: &'static [&'static str] = &["shell"];
    const TIMEOUT: Duration = Duration::from_secs(24 * 3600);

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let command = Command::read(&input.command);
        self.0.refuse(&command, &input.cwd)?;
        let errand = self.errand(input)?;
        if input.network {
            return self.0.describe(&command, Some("any host, this machine included"));
        }
        self.0.prepare_aside(ctx, errand, &command, Output::of).await
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        self.0.run_after_a_yes(ctx, self.errand(&input)?, Output::of).await
    }
}

impl ShellExec {
    fn errand(&self, input: &Input) -> Result<Errand, ToolError> {
        Errand {
            command: ["bash", "-c", &input.command].map(str::to_owned).to_vec(),
            folder: self.0.folder(&input.cwd)?,
            environment: environment(input.env.clone())?,
            stdin: input.stdin.clone(),
            network: input.network,
            writable: Vec::new(),
            pinned: Vec::new(),
            limit: limit(input.timeout, input.timeout_ms, self.0.fenced()?.around().timeout),
        }
        .checked()
    }
}

impl Output {
    fn of(done: &Done) -> Self {
        let (exit_code, signal) = match done.exit {
            Exit::Code(code) => (code, None),
            Exit::Signal(signal) => (128 + signal, Some(signal)),
            Exit::Stopped => (128 + 9, Some(9)),
        };
        Self {
            stdout: done.said.stdout.text(),
            stderr: done.said.stderr.text(),
            exit_code,
            signal,
            duration_ms: done.took.as_millis().try_into().unwrap_or(u64::MAX),
            timed_out: false,
            truncated: done.said.is_truncated(),
            output: done.said.both().text(),
            left_out: done.left_out.iter().map(|(path, why)| format!("{path}: {why}")).collect(),
        }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        told(&self.output, self.exit_code)
    }

    fn metadata(&self) -> Map<String, Value> {
        Map::from_iter([("exit_code".to_owned(), self.exit_code.into())])
    }
}
