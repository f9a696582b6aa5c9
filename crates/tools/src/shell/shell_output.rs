//! `shell_output`

use std::{sync::Arc, time::Duration};

use haft_runtime::{ToolCtx, ToolError, ToolFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tasks::TaskState;
use crate::{blocking::stopped, shape::Reads, workspaces::Workspaces};

/// How long one call may wait.
const LONGEST_WAIT: u64 = 60_000;

pub(crate) struct ShellOutput(pub(crate) Arc<dyn Workspaces>);

/// Read the output of a command started with `shell_background`, and whether it still runs. To read on, pass the last
/// `nextOffset` as `offset`, and `waitMs` to wait for more. The last 1 MiB is kept.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "taskId": "bg_1" }))]
pub(crate) struct Input {
    /// From `shell_background`.
    task_id: String,
    /// First byte, from 0.
    #[serde(default)]
    offset: u64,
    /// Bytes at most.
    #[schemars(range(min = 4, max = 1048576))]
    #[serde(default = "limit")]
    limit: u32,
    /// How long to wait for more.
    #[schemars(range(max = 60000))]
    #[serde(default)]
    wait_ms: u64,
}

fn limit() -> u32 {
    64 << 10
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    task_id: String,
    #[serde(flatten)]
    standing: TaskState,
    /// What it said.
    chunk: String,
    /// Where that begins; later than it was asked for when that is not kept any more.
    offset: u64,
    /// Where to go on.
    next_offset: u64,
}

impl Reads for ShellOutput {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts =
        ToolFacts { timeout: Duration::from_secs(90), ..ToolFacts::reading("shell_output", "shell") };

    async fn read(&self, ctx: &ToolCtx, input: Input) -> Result<Output, ToolError> {
        let task = self.0.of(ctx.scope())?.commands.tasks()?.find(&input.task_id)?;
        tokio::select! {
            () = task.says_more(input.offset, Duration::from_millis(input.wait_ms.min(LONGEST_WAIT))) => {}
            () = ctx.cancel.cancelled() => return Err(stopped()),
        }
        let (piece, standing) = task.said(input.offset, input.limit as usize);
        let task_id = input.task_id;
        Ok(Output { task_id, standing, chunk: piece.text, offset: piece.offset, next_offset: piece.next })
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let newline = if self.chunk.is_empty() || self.chunk.ends_with('\n') { "" } else { "\n" };
        format!("{}{newline}[{}, next offset {}]", self.chunk, self.standing.words(), self.next_offset)
    }
}
