//! `create_directory`

use std::sync::Arc;

use haft_runtime::{ChangeList, Effect, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{Root, changes::Draft};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::folder::needs_its_folder;
use crate::{refusal::Trying, shape::ChangesFiles, workspaces::Workspaces};

pub(crate) struct CreateDirectory(pub(crate) Arc<dyn Workspaces>);

/// Create a folder and the folders above it. Does nothing if it exists. `write_file` creates
/// folders itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "path": "docs/images" }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
    /// Also create missing folders above it.
    #[serde(default = "yes")]
    parents: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Path relative to the workspace folder.
    path: String,
    /// Whether the folder is new.
    created: bool,
}

impl ChangesFiles for CreateDirectory {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::new("create_directory", "filesystem", Effect::Write);

    async fn plan(&self, ctx: &ToolCtx, input: Input) -> Result<(Output, ChangeList), ToolError> {
        self.0.of(ctx.scope())?.files.plan_one(ctx, 0, move |root, draft| create(root, draft, &input)).await
    }
}

fn create(root: &Root, draft: &mut Draft, input: &Input) -> Result<Output, ToolError> {
    let place = root.place(&input.path).trying("create")?;
    if !input.parents {
        needs_its_folder(root, &place, "create", "leave `parents` out to make it too")?;
    }
    let created = draft.make_dirs(&place).trying("create")?;
    Ok(Output { path: place.to_string(), created })
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        if self.created { format!("Created {}", self.path) } else { format!("{} is there already", self.path) }
    }
}
