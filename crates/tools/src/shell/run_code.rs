//! `run_code`

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use haft_runtime::{Effect, ErrorCode, ParameterAlias, Prepared, Ran, Tool, ToolCtx, ToolError, ToolFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    input::{environment, here},
    shell_result::ShellResult,
};
use crate::{
    command::CommandLine,
    fenced::{CommandResult, CommandSpec},
    workspace::Workspace,
    workspaces::Workspaces,
};

pub(crate) struct RunCode(pub(crate) Arc<dyn Workspaces>);

/// Run a short Python or bash script that you write, to compute something or to inspect, create or convert files. Same
/// sandbox as `shell_exec`. For existing commands and builds use `shell_exec`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "language": "python", "code": "print(6 * 7)" }))]
pub(crate) struct Input {
    /// What it is written in.
    language: Language,
    /// The script itself.
    #[schemars(length(max = 1048576))]
    code: String,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Extra variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Time limit in milliseconds.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// As for `shell_exec`.
    #[serde(default)]
    network: bool,
    /// Folder to run it in.
    #[serde(default = "here")]
    cwd: String,
    /// Its standard input.
    #[serde(default)]
    stdin: String,
}

/// The kernel takes no longer argument than 128 KiB.
const LONGEST_ARGUMENT: usize = 100 << 10;
/// How long code runs when its caller says nothing.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    Python,
    Bash,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    #[serde(flatten)]
    ended: ShellResult,
    /// Milliseconds.
    duration: u64,
    /// The files that it changed.
    files_changed: Vec<String>,
    #[serde(skip)]
    both: Arc<str>,
}

impl Tool for RunCode {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        open_world: true,
        timeout: Duration::from_secs(24 * 3600),
        parameter_aliases: &[ParameterAlias::in_seconds("timeout", "timeoutMs")],
        ..ToolFacts::new("run_code", "shell", Effect::Execute)
    };

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let command = match input.language {
            Language::Bash => CommandLine::read(&input.code),
            Language::Python => CommandLine::read("python3"),
        };
        let workspace = self.0.of(ctx.scope())?;
        workspace.refuse(&command, &input.cwd)?;
        let spec = command_spec(&workspace, input)?;
        if input.network {
            return workspace.describe(&command, Some("any host, this machine included"));
        }
        workspace.prepare_aside(ctx, spec, &command, Output::of).await
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        workspace.run_after_a_yes(ctx, command_spec(&workspace, &input)?, Output::of).await
    }
}

/// The program comes as an argument, so that its standard input stays free; a long one comes there.
fn command_spec(workspace: &Workspace, input: &Input) -> Result<CommandSpec, ToolError> {
    let long = input.code.len() > LONGEST_ARGUMENT;
    if long && !input.stdin.is_empty() {
        let message = "`code` is too long to have `stdin` beside it; put what it reads into a file of the workspace";
        return Err(ToolError::new(ErrorCode::InvalidArgs, message));
    }
    let start: &[&str] = match (input.language, long) {
        (Language::Python, false) => &["python3", "-c", &input.code],
        (Language::Python, true) => &["python3", "-"],
        (Language::Bash, false) => &["bash", "-c", &input.code, "bash"],
        (Language::Bash, true) => &["bash", "-s", "--"],
    };
    let limit = input.timeout_ms.map(Duration::from_millis);
    CommandSpec {
        command: start.iter().map(|&word| word.to_owned()).chain(input.args.iter().cloned()).collect(),
        folder: workspace.folder(&input.cwd)?,
        environment: environment(input.env.clone())?,
        stdin: if long { input.code.clone() } else { input.stdin.clone() },
        network: input.network,
        writable: Vec::new(),
        pinned: Vec::new(),
        secrets: haft_runtime::Redactor::default(),
        limit: limit.unwrap_or(LIMIT),
    }
    .checked()
}

impl Output {
    fn of(done: &CommandResult) -> Self {
        let changed = done.changes.iter().flat_map(|changes| &changes.0);
        Self {
            ended: ShellResult::of(done),
            duration: done.took.as_millis().try_into().unwrap_or(u64::MAX),
            files_changed: changed.map(|change| change.path.clone()).collect(),
            both: Arc::clone(&done.said.both),
        }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        self.ended.text(&self.both)
    }

    fn metadata(&self) -> Map<String, Value> {
        self.ended.metadata()
    }
}
