//! `undo_call`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Calls, call_id, named};
use crate::{CallId, Change, Effect, ErrorCode, Output, Prepared, Tool, ToolCtx, ToolError, ToolFacts};

pub(super) struct UndoCall(pub(super) Calls);

/// Undo the file changes of an earlier call, shell commands included; contents, modes and times are restored. Fails
/// with CONFLICT if the files changed since. Undo an `undo_call` to redo.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The call's id.
    #[serde(deserialize_with = "call_id")]
    call_id: CallId,
    /// Only these files.
    paths: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UndoCallOutput {
    /// The paths that are as they were before, and what was undone in git.
    restored: Vec<String>,
    /// This call: undo it to redo.
    call_id: CallId,
    /// The call that was undone.
    undone: CallId,
    /// What is done in git, a sentence each; it is listed first.
    #[serde(skip)]
    acts: Vec<String>,
}

impl Output for UndoCallOutput {
    fn text(&self) -> String {
        let acts = self.acts.iter().map(|act| format!("{act}\n"));
        let paths = &self.restored[self.acts.len()..];
        let restored = match paths {
            [] => String::new(),
            _ => format!("Restored what {} had changed:\n{}", self.undone, named(paths, "\n")),
        };
        let text = acts.collect::<String>() + &restored;
        text.trim_end().to_owned()
    }
}

impl Tool for UndoCall {
    type Input = Input;
    type Output = UndoCallOutput;
    const FACTS: ToolFacts = ToolFacts::new("undo_call", "calls", Effect::Write);

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<UndoCallOutput>, ToolError> {
        let record = self.0.find_here(&ctx.caller, &input.call_id).await?;
        let Some(mut turn) = record.reversal() else {
            let message = format!("{} changed nothing that could be taken back", input.call_id);
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        };
        if let Some(paths) = &input.paths {
            turn.paths = Some(paths.clone());
        }
        let changes = self.0.workbench.preview(ctx.scope(), &turn).await?;
        let (call_id, undone) = (ctx.call_id.clone(), input.call_id.clone());
        let (summed_up, paths): (Vec<&Change>, Vec<&Change>) =
            changes.told().into_iter().partition(|change| change.summary.is_some());
        let summaries: Vec<String> = summed_up.iter().filter_map(|change| change.summary.clone()).collect();
        let acts = summaries.iter().map(|summary| act(summary)).collect();
        let restored = summaries.into_iter().chain(paths.iter().map(|change| change.path.clone())).collect();
        let output = UndoCallOutput { restored, call_id, undone, acts };
        Ok(Prepared::Staged { output, changes, turn, isolation: None })
    }
}

/// What was done in git, from the words that tell of it beforehand.
fn act(summary: &str) -> String {
    match summary.strip_prefix("undo ") {
        Some(undone) => format!("Undid {undone}"),
        None => format!("Brought back {summary}"),
    }
}
