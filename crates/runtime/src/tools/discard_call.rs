//! `discard_call`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Calls, call_id};
use crate::{CallId, Described, Effect, ErrorCode, Output, Prepared, Ran, Tool, ToolCtx, ToolError, ToolFacts};

pub(super) struct DiscardCall(pub(super) Calls);

/// Drop file changes that an earlier haft call prepared but did not apply, once nobody wants them. The workspace is not
/// touched. To take back applied changes use `undo_call`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The call's id.
    #[serde(deserialize_with = "call_id")]
    call_id: CallId,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DiscardCallOutput {
    /// The paths whose staged changes are gone.
    discarded: Vec<String>,
}

impl Output for DiscardCallOutput {
    fn text(&self) -> String {
        format!("Dropped the staged changes of {}", self.discarded.join(", "))
    }
}

impl DiscardCall {
    async fn staged(&self, ctx: &ToolCtx, input: &Input) -> Result<Vec<String>, ToolError> {
        let record = self.0.find_here(&ctx.caller, &input.call_id).await?;
        if record.changed_nothing() {
            let message = format!("{} changed no files, so there is nothing to discard", input.call_id);
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        self.0.refuse_while_it_waits(&ctx.caller.scope, &input.call_id).await?;
        let staged = self.0.workbench.show(ctx.scope(), &input.call_id).await?.staged_paths();
        if staged.is_empty() {
            let message = format!("{} has nothing staged to drop", input.call_id);
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        Ok(staged)
    }
}

impl Tool for DiscardCall {
    type Input = Input;
    type Output = DiscardCallOutput;
    const FACTS: ToolFacts = ToolFacts::new("discard_call", "calls", Effect::Destroy);

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<DiscardCallOutput>, ToolError> {
        let preview = format!("drops the staged changes of:\n{}", self.staged(ctx, input).await?.join("\n"));
        Ok(Prepared::Plain(Described::showing(preview)))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<DiscardCallOutput>, ToolError> {
        let discarded = self.staged(ctx, &input).await.map_err(ToolError::having_done_nothing)?;
        self.0.workbench.discard(ctx.scope(), &input.call_id).await?;
        Ok(Ran::plain(DiscardCallOutput { discarded }))
    }
}
