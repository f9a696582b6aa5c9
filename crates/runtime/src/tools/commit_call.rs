//! `commit_call`

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Calls, call_id, named};
use crate::{CallId, Direction, Effect, ErrorCode, Output, Prepared, Tool, ToolCtx, ToolError, ToolFacts, Turn};

pub(super) struct CommitCall(pub(super) Calls);

/// Apply file changes that an earlier haft call prepared but did not apply (it timed out, or a person accepted only
/// some files). Not a git commit; for that use `git_commit`. Nothing runs again. Fails with CONFLICT if the files
/// changed since.
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
pub(super) struct CommitCallOutput {
    /// The paths that came into the workspace.
    committed: Vec<String>,
    /// The paths that are still staged.
    left: Vec<String>,
}

impl Output for CommitCallOutput {
    fn text(&self) -> String {
        let left = if self.left.is_empty() { "nothing".to_owned() } else { named(&self.left, ", ") };
        format!("Committed {}; left staged: {left}", named(&self.committed, ", "))
    }
}

impl Tool for CommitCall {
    type Input = Input;
    type Output = CommitCallOutput;
    const FACTS: ToolFacts = ToolFacts::new("commit_call", "calls", Effect::Write);

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<CommitCallOutput>, ToolError> {
        let record = self.0.find_here(&ctx.caller, &input.call_id).await?;
        if record.changed_nothing() {
            let message = format!("{} changed no files, so there is nothing to commit", input.call_id);
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        self.0.refuse_while_it_waits(&ctx.caller.scope, &input.call_id).await?;
        let staged = self.0.workbench.show(ctx.scope(), &input.call_id).await?.staged_paths();
        if staged.is_empty() {
            let message = format!("{} has nothing left to commit", input.call_id);
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        let paths = input.paths.clone().unwrap_or_else(|| staged.clone());
        let turn = Turn { of: input.call_id.clone(), direction: Direction::Commit, paths: Some(paths) };
        let changes = self.0.workbench.preview(ctx.scope(), &turn).await?;
        let committed = changes.paths();
        let taken: HashSet<&String> = committed.iter().collect();
        let left = staged.into_iter().filter(|path| !taken.contains(path)).collect();
        Ok(Prepared::Staged { output: CommitCallOutput { committed, left }, changes, turn, isolation: None })
    }
}
