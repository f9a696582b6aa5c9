//! `copy_file`

use std::{sync::Arc, time::Duration};

use haft_runtime::{ChangeList, Effect, ErrorCode, ParameterAlias, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{
    PathError, Root,
    changes::{ChangesError, Draft, Expected, Folders, PlannedCopy},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::folder::{needs_its_folder, on_the_way_to};
use crate::{
    refusal::{Trying, cannot},
    shape::ChangesFiles,
    workspaces::Workspaces,
};

pub(crate) struct CopyFile(pub(crate) Arc<dyn Workspaces>);

/// Copy a file, link or folder, with modes and times. To rename or move use `move_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "source": "config.toml", "dest": "config.old.toml" }))]
pub(crate) struct Input {
    /// What to copy.
    source: String,
    /// Path of the copy itself; its folder must exist.
    dest: String,
    /// Replace what is there.
    #[serde(default)]
    overwrite: bool,
    /// Needed for a folder.
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// What was copied.
    source: String,
    /// Where the copy is.
    dest: String,
    /// The same as `source`.
    from: String,
    /// The same as `dest`.
    to: String,
    /// Size of all files together in bytes.
    size: u64,
    /// How many files and links were copied.
    files: usize,
    #[serde(skip)]
    recursive: bool,
}

impl ChangesFiles for CopyFile {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        parameter_aliases: &[ParameterAlias::new("from", "source"), ParameterAlias::new("to", "dest")],
        timeout: Duration::from_secs(600),
        ..ToolFacts::new("copy_file", "filesystem", Effect::Write)
    };

    async fn plan(&self, ctx: &ToolCtx, input: Input) -> Result<(Output, ChangeList), ToolError> {
        self.0.of(ctx.scope())?.files.plan(ctx, move |root, draft| copy(root, draft, &input)).await
    }
}

fn copy(root: &Root, draft: &mut Draft, input: &Input) -> Result<Output, ToolError> {
    let source = root.place(&input.source).trying("copy")?;
    let dest = root.place(&input.dest).trying("copy to")?;
    needs_its_folder(root, &dest, "copy to", "make it with `create_directory`")?;
    let folders = if input.recursive { Folders::Whole } else { Folders::Refuse };
    let expected = if input.overwrite { Expected::Anything } else { Expected::Nothing };
    let PlannedCopy { files, bytes } = match draft.copy(&source, &dest, folders, expected) {
        Err(ChangesError::Path(PathError::IsDirectory { path })) if path == source.to_string() => {
            let why = "it is a directory; set `recursive` to copy it with everything inside";
            return Err(cannot(ErrorCode::IsADirectory, "copy", &path, why));
        }
        copied => on_the_way_to(&dest, "copy", copied)?,
    };
    let (source, dest) = (source.to_string(), dest.to_string());
    Ok(Output { from: source.clone(), to: dest.clone(), source, dest, size: bytes, files, recursive: input.recursive })
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let Self { source, dest, size, files, recursive, .. } = self;
        let size = Amount(*size, "byte");
        if *recursive {
            return format!("Copied {source} to {dest} ({}, {size})", Amount(*files as u64, "file"));
        }
        format!("Copied {source} to {dest} ({size})")
    }
}
