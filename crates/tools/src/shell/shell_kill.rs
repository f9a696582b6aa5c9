//! `shell_kill`

use std::{sync::Arc, time::Duration};

use haft_runtime::{Described, Effect, Prepared, Ran, Tool, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::fence::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tasks::{TaskState, TaskStatus};
use crate::workspaces::Workspaces;

/// How long a command has to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long everything of it has to be gone after that.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct ShellKill(pub(crate) Arc<dyn Workspaces>);

/// End a command started with `shell_background`, and everything it started. What still lives 2 seconds after the
/// signal is killed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "taskId": "bg_1" }))]
pub(crate) struct Input {
    /// From `shell_background`.
    task_id: String,
    /// Which signal to send first.
    #[serde(default)]
    signal: KillSignal,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum KillSignal {
    #[default]
    Term,
    Int,
    Hup,
    Quit,
    Kill,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    task_id: String,
    #[serde(flatten)]
    standing: TaskState,
}

impl Tool for ShellKill {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::new("shell_kill", "shell", Effect::Execute);

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let task = self.0.of(ctx.scope())?.commands.tasks()?.find(&input.task_id)?;
        Ok(Prepared::Plain(Described::showing(format!("ends {}: {}", task.id, task.command))))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let task = self.0.of(ctx.scope())?.commands.tasks()?.find(&input.task_id)?;
        if task.standing().status == TaskStatus::Running {
            let asked = input.signal.asks();
            if let Some(signal) = asked {
                task.signal(signal);
            }
            if asked.is_none() || !task.ends_within(GRACE).await {
                task.kill();
                task.ends_within(PATIENCE).await;
            }
        }
        Ok(Ran::plain(Output { task_id: input.task_id, standing: task.standing() }))
    }
}

impl KillSignal {
    fn asks(self) -> Option<Signal> {
        match self {
            Self::Term => Some(Signal::Terminate),
            Self::Int => Some(Signal::Interrupt),
            Self::Hup => Some(Signal::HangUp),
            Self::Quit => Some(Signal::Quit),
            Self::Kill => None,
        }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        format!("{}: {}", self.task_id, self.standing.words())
    }
}
