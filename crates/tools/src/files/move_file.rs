//! `move_file`

use std::{sync::Arc, time::Duration};

use haft_runtime::{ChangeList, Effect, ParameterAlias, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{
    Root,
    changes::{Draft, Expected},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::folder::{needs_its_folder, on_the_way_to};
use crate::{refusal::Trying, shape::ChangesFiles, workspaces::Workspaces};

pub(crate) struct MoveFile(pub(crate) Arc<dyn Workspaces>);

/// Move or rename a file, link or folder with everything inside. A link is moved itself, not its target. To
/// keep the original use `copy_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "from": "src/old_name.rs", "to": "src/new_name.rs" }))]
pub(crate) struct Input {
    /// What to move.
    from: String,
    /// The new path itself; its folder must exist.
    to: String,
    /// Replace what is there.
    #[serde(default)]
    overwrite: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Where it was.
    from: String,
    /// Where it is.
    to: String,
    #[serde(skip)]
    replaced: Option<u64>,
}

impl ChangesFiles for MoveFile {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        parameter_aliases: &[ParameterAlias::new("source", "from"), ParameterAlias::new("dest", "to")],
        timeout: Duration::from_secs(600),
        ..ToolFacts::new("move_file", "filesystem", Effect::Write)
    };

    async fn plan(&self, ctx: &ToolCtx, input: Input) -> Result<(Output, ChangeList), ToolError> {
        self.0.of(ctx.scope())?.files.plan(ctx, move |root, draft| rename(root, draft, &input)).await
    }
}

fn rename(root: &Root, draft: &mut Draft, input: &Input) -> Result<Output, ToolError> {
    let from = root.place(&input.from).trying("move")?;
    let to = root.place(&input.to).trying("move to")?;
    needs_its_folder(root, &to, "move to", "make it with `create_directory`")?;
    let expected = if input.overwrite { Expected::Anything } else { Expected::Nothing };
    let replaced = on_the_way_to(&to, "move", draft.rename(&from, &to, expected))?;
    Ok(Output { from: from.to_string(), to: to.to_string(), replaced })
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let replaced = self.replaced.map_or_else(String::new, |size| format!(" (replaced {})", Amount(size, "byte")));
        format!("Moved {} to {}{replaced}", self.from, self.to)
    }
}
