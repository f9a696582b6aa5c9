//! `undo_call`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Calls, call_id, named};
use crate::{CallId, Effect, ErrorCode, Output, Prepared, Tool, ToolCtx, ToolError};

pub(super) struct UndoCall(pub(super) Calls);

/// Takes back what an earlier call changed in the workspace: content, mode and times come back exactly. Use it instead
/// of editing by hand when a change turns out wrong. Refused with CONFLICT when something else has changed the same
/// files since. Undoing an `undo_call` brings the change back.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The call to take back: the `tool_call_id` of its outcome.
    #[serde(deserialize_with = "call_id")]
    call_id: CallId,
    /// Only these of its paths; all of them when left out.
    paths: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UndoCallOutput {
    /// The paths that are as they were before.
    restored: Vec<String>,
    /// The call that was taken back.
    call_id: CallId,
}

impl Output for UndoCallOutput {
    fn text(&self) -> String {
        format!("Restored what {} had changed:\n{}", self.call_id, named(&self.restored, "\n"))
    }
}

impl Tool for UndoCall {
    type Input = Input;
    type Output = UndoCallOutput;
    const NAME: &'static str = "undo_call";
    const CATEGORY: &'static str = "calls";
    const WORST: Effect = Effect::Write;

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<UndoCallOutput>, ToolError> {
        let record = self.0.find(&ctx.caller.scope, &input.call_id).await?;
        let Some(mut turn) = record.reversal() else {
            let message = format!("{} changed nothing that could be taken back", input.call_id);
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        };
        if let Some(paths) = &input.paths {
            turn.paths = Some(paths.clone());
        }
        let changes = self.0.workbench.preview(ctx.scope(), &turn).await?;
        let output = UndoCallOutput { restored: changes.paths(), call_id: input.call_id.clone() };
        Ok(Prepared::Staged { output, changes, turn, isolation: None })
    }
}
