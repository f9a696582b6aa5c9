//! `delete_file`

use std::{sync::Arc, time::Duration};

use haft_runtime::{ChangeList, Effect, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{Root, WorkspacePath, changes::Draft};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{refusal::Trying, shape::ChangesFiles, workspaces::Workspaces};

/// The most paths that are named; the rest is only counted.
const NAMED: usize = 1000;

pub(crate) struct DeleteFile(pub(crate) Arc<dyn Workspaces>);

/// Delete a file, link or folder. Look with `list_directory` before you delete a folder; a link is deleted, not its
/// target. `undo_call` brings it back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "path": "notes/old.txt" }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
    /// Also delete what is inside a folder.
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// What was deleted, at most 1000 paths.
    deleted: Vec<String>,
    /// How many paths were deleted.
    deleted_count: usize,
    #[serde(skip)]
    path: String,
}

impl ChangesFiles for DeleteFile {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts =
        ToolFacts { timeout: Duration::from_secs(600), ..ToolFacts::new("delete_file", "filesystem", Effect::Destroy) };

    async fn plan(&self, ctx: &ToolCtx, input: Input) -> Result<(Output, ChangeList), ToolError> {
        self.0.of(ctx.scope())?.files.plan(ctx, move |root, draft| delete(root, draft, &input)).await
    }
}

fn delete(root: &Root, draft: &mut Draft, input: &Input) -> Result<Output, ToolError> {
    let place = root.place(&input.path).trying("delete")?;
    let gone = draft.delete(&place, input.recursive).trying("delete")?;
    Ok(Output {
        deleted: gone.iter().take(NAMED).map(WorkspacePath::to_string).collect(),
        deleted_count: gone.len(),
        path: place.to_string(),
    })
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        match self.deleted_count {
            1 => format!("Deleted {}", self.path),
            count => format!("Deleted {} with everything inside ({count} paths)", self.path),
        }
    }
}
