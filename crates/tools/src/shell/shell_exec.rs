//! `shell_exec`

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use haft_runtime::{Effect, ParameterAlias, Prepared, Ran, Tool, ToolCtx, ToolError, ToolFacts};
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

pub(crate) struct ShellExec(pub(crate) Arc<dyn Workspaces>);

/// Run a bash command in the workspace: build, test, git, inspect. It runs in a sandbox on a copy of the workspace,
/// without network. File changes are applied once approved; a command that changes nothing is never asked about. Set
/// `network: true` if it needs the network (always asks first). Prefer `read_file`, `grep`, `glob`, `edit_file` for
/// their jobs; use `shell_background` for servers and watchers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "command": "cargo test" }))]
pub(crate) struct Input {
    /// The bash command.
    #[schemars(length(min = 1, max = 32768))]
    command: String,
    /// Folder to run it in.
    #[serde(default = "here")]
    cwd: String,
    /// Time limit in milliseconds.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// Extra variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Its standard input.
    #[serde(default)]
    stdin: String,
    /// Reach any host, this machine included.
    #[serde(default)]
    network: bool,
    /// What it is for, shown to the approver.
    #[expect(dead_code, reason = "the card shows it, from the input as it came")]
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    #[serde(flatten)]
    ended: ShellResult,
    duration_ms: u64,
    /// Both streams, in the order in which they came: the text has them.
    #[serde(skip)]
    both: Arc<str>,
}

impl Tool for ShellExec {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        open_world: true,
        aliases: &["shell"],
        timeout: Duration::from_secs(24 * 3600),
        parameter_aliases: &[ParameterAlias::new("timeout", "timeoutMs")],
        ..ToolFacts::new("shell_exec", "shell", Effect::Execute)
    };

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let command = CommandLine::read(&input.command);
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

fn command_spec(workspace: &Workspace, input: &Input) -> Result<CommandSpec, ToolError> {
    CommandSpec {
        command: ["bash", "-c", &input.command].map(str::to_owned).to_vec(),
        folder: workspace.folder(&input.cwd)?,
        environment: environment(input.env.clone())?,
        stdin: input.stdin.clone(),
        network: input.network,
        writable: Vec::new(),
        pinned: Vec::new(),
        secrets: haft_runtime::Redactor::default(),
        limit: match input.timeout_ms {
            Some(milliseconds) => Duration::from_millis(milliseconds),
            None => workspace.commands.fenced()?.config().timeout,
        },
    }
    .checked()
}

impl Output {
    fn of(done: &CommandResult) -> Self {
        let duration_ms = done.took.as_millis().try_into().unwrap_or(u64::MAX);
        Self { ended: ShellResult::of(done), duration_ms, both: Arc::clone(&done.said.both) }
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
