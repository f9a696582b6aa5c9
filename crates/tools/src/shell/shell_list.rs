//! `shell_list`

use std::sync::Arc;

use haft_runtime::{ToolCtx, ToolError, ToolFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tasks::{BackgroundTask, TaskState};
use crate::{shape::Reads, workspaces::Workspaces};

pub(crate) struct ShellList(pub(crate) Arc<dyn Workspaces>);

/// List commands started with `shell_background`, ended ones too. Use it to find a task id again; `shell_output` reads
/// what one said.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    tasks: Vec<TaskSummary>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TaskSummary {
    task_id: String,
    command: String,
    pid: u32,
    started_at: String,
    #[serde(flatten)]
    standing: TaskState,
}

impl Reads for ShellList {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::reading("shell_list", "shell");

    async fn read(&self, ctx: &ToolCtx, _input: Input) -> Result<Output, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        Ok(Output { tasks: workspace.commands.tasks()?.all().iter().map(|task| TaskSummary::of(task)).collect() })
    }
}

impl TaskSummary {
    fn of(task: &BackgroundTask) -> Self {
        Self {
            task_id: task.id.clone(),
            command: task.command.clone(),
            pid: task.pid,
            started_at: task.started_at.to_string(),
            standing: task.standing(),
        }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let line = |task: &TaskSummary| format!("{}  {}  {}", task.task_id, task.standing.words(), task.command);
        let lines: Vec<String> = self.tasks.iter().map(line).collect();
        if lines.is_empty() { "no background command was started".to_owned() } else { lines.join("\n") }
    }
}
