//! `shell_background`

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use haft_runtime::{Effect, Prepared, Ran, Tool, ToolCtx, ToolError, ToolFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{environment, here};
use crate::{
    command::CommandLine,
    fenced::{CommandSpec, WriteLocation},
    workspace::Workspace,
    workspaces::Workspaces,
};

pub(crate) struct ShellBackground(pub(crate) Arc<dyn Workspaces>);

/// Start a command that keeps running, such as a server or a watcher. It writes directly into the workspace, so it
/// always asks first and cannot be undone; it ends when haft ends. Later commands with the same `network` setting reach
/// it on 127.0.0.1. Read it with `shell_output`, end it with `shell_kill`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "command": "npm run dev" }))]
pub(crate) struct Input {
    /// The bash command.
    #[schemars(length(min = 1, max = 32768))]
    command: String,
    /// Folder to run it in.
    #[serde(default = "here")]
    cwd: String,
    /// Extra variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
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
    /// What the other tools know it by.
    task_id: String,
    /// The process that keeps its fence.
    pid: u32,
    started_at: String,
}

impl Tool for ShellBackground {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts =
        ToolFacts { open_world: true, ..ToolFacts::new("shell_background", "shell", Effect::Execute) };

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        workspace.commands.tasks()?;
        let command = CommandLine::read(&input.command);
        workspace.refuse(&command, &input.cwd)?;
        command_spec(&workspace, input)?;
        let reaches = input.network.then_some("any host, this machine included");
        Ok(Prepared::Plain(workspace.described(&command, WriteLocation::Directly, reaches)?))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let (context, spec) = (workspace.command_context(&ctx.call_id)?, command_spec(&workspace, &input)?);
        let task = workspace.commands.tasks()?.start(&ctx.call_id, &context, &spec, input.command)?;
        let output = Output { task_id: task.id.clone(), pid: task.pid, started_at: task.started_at.to_string() };
        Ok(Ran::Done { output, isolation: Some(task.isolation), staged: None })
    }
}

fn command_spec(workspace: &Workspace, input: &Input) -> Result<CommandSpec, ToolError> {
    CommandSpec {
        command: ["bash", "-c", &input.command].map(str::to_owned).to_vec(),
        folder: workspace.folder(&input.cwd)?,
        environment: environment(input.env.clone())?,
        stdin: String::new(),
        network: input.network,
        writable: Vec::new(),
        pinned: Vec::new(),
        secrets: haft_runtime::Redactor::default(),
        limit: Duration::MAX,
    }
    .checked()
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        format!("{} is running; `shell_output` reads what it says, `shell_kill` ends it", self.task_id)
    }
}
