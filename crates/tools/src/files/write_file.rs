//! `write_file`

use std::sync::Arc;

use haft_runtime::{ChangeList, Effect, ErrorCode, ParameterAlias, ToolCtx, ToolError};
use haft_sandbox::{
    PathError, Root, WorkspacePath,
    changes::{Draft, Expected},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{encoding::Encoding, hash::sha256_of};
use crate::{
    refusal::{Trying, broke_off, cannot},
    shape::ChangesFiles,
    workspaces::Workspaces,
};

pub(crate) struct WriteFile(pub(crate) Arc<dyn Workspaces>);

/// Creates a file of the workspace, or replaces its whole content. Use it for new files and for content that changes
/// throughout; to change some lines of a file use `edit_file`, which is cheaper and cannot lose the rest. Nothing is
/// on disk before the call is approved; the mode of a file that is replaced is kept.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Input {
    /// Path relative to the workspace folder, or absolute inside it.
    path: String,
    /// The whole new content, exactly as it shall be in the file. End text with a newline.
    content: String,
    /// `base64` when `content` is base64 text that stands for the bytes.
    #[serde(default)]
    encoding: Encoding,
    /// Also create the folders on the way that do not exist yet.
    #[serde(default)]
    create_dirs: bool,
    /// `fail` when only a new file is wanted.
    #[serde(default)]
    if_exists: IfExists,
    /// SHA-256 in hexadecimal digits of the content you believe to be there (`read_file` gives it in
    /// `metadata.sha256`); anything else there is refused with `STALE_FILE`.
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{64}$"))]
    expected_hash: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum IfExists {
    #[default]
    Overwrite,
    Fail,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Path relative to the workspace folder.
    path: String,
    /// Size of the file in bytes.
    size: u64,
    /// Whether the file is new.
    created: bool,
    /// How many bytes were written.
    #[serde(rename = "bytes_written")]
    bytes_written: u64,
    /// Size of the file that was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_size: Option<u64>,
}

impl ChangesFiles for WriteFile {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "write_file";
    const CATEGORY: &'static str = "filesystem";
    const WORST: Effect = Effect::Write;
    const PARAMETER_ALIASES: &'static [ParameterAlias] = &[ParameterAlias::new("createDirectories", "createDirs")];

    async fn plan(&self, ctx: &ToolCtx, input: Input) -> Result<(Output, ChangeList), ToolError> {
        let (path, written) = (input.path.clone(), input.content.len() as u64);
        let workspace = self.0.of(ctx.scope())?;
        let there = workspace.files.stat_inline(ctx, move |root| Ok(size_there(root, &path))).await?;
        let bytes = there.max(written);
        workspace.files.plan_one(ctx, bytes, move |root, draft| write(root, draft, input)).await
    }
}

/// How large what is there is. What cannot be told is told by the plan itself, with its reason.
fn size_there(root: &Root, path: &str) -> u64 {
    let there = root.place(path).and_then(|place| root.meta(&place));
    there.ok().flatten().map_or(0, |there| there.size)
}

fn write(root: &Root, draft: &mut Draft, input: Input) -> Result<Output, ToolError> {
    let place = root.place(&input.path).trying("write")?;
    if !input.create_dirs {
        needs_its_folder(root, &place)?;
    }
    let expected = expected(root, &place, &input)?;
    let content = input.encoding.decode(input.content)?;
    let written = draft.write(&place, &content, expected).trying("write")?;
    let size = content.len() as u64;
    Ok(Output {
        path: place.to_string(),
        size,
        created: written.created,
        bytes_written: size,
        previous_size: written.previous_size,
    })
}

fn needs_its_folder(root: &Root, place: &WorkspacePath) -> Result<(), ToolError> {
    let folder = root.resolve(place).trying("write")?.parent().unwrap_or_else(WorkspacePath::root);
    if root.meta(&folder).trying("write")?.is_some() {
        return Ok(());
    }
    let why = format!("its folder `{folder}` does not exist; set `createDirs` to make it too, or correct the path");
    Err(cannot(ErrorCode::FileNotFound, "write", &place.to_string(), &why))
}

fn expected(root: &Root, place: &WorkspacePath, input: &Input) -> Result<Expected, ToolError> {
    match (input.if_exists, &input.expected_hash) {
        (IfExists::Overwrite, None) => Ok(Expected::Anything),
        (IfExists::Overwrite, Some(hash)) => with_hash(root, place, hash),
        (IfExists::Fail, None) => Ok(Expected::Nothing),
        (IfExists::Fail, Some(_)) => Err(ToolError::new(
            ErrorCode::InvalidArgs,
            "`expectedHash` is about a file that is there, `ifExists` `fail` wants none; leave one of them out",
        )),
    }
}

/// The file that is there, if its content is the one that the caller believes in.
fn with_hash(root: &Root, place: &WorkspacePath, hash: &str) -> Result<Expected, ToolError> {
    let stale = |why: &str| {
        let next = "read it again and decide anew";
        cannot(ErrorCode::StaleFile, "write", &place.to_string(), &format!("{why}; {next}"))
    };
    let open = match root.open_file(place) {
        Err(PathError::NotFound { .. }) => return Err(stale("`expectedHash` was given but no file is there")),
        open => open.trying("write")?,
    };
    let present = sha256_of(open.file).map_err(|err| broke_off("write", &place.to_string(), &err))?;
    if !present.eq_ignore_ascii_case(hash) {
        return Err(stale("its content is not the one that `expectedHash` stands for").with("hash", present));
    }
    Ok(Expected::Exactly(open.meta.stamp))
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let what = if self.created { "created" } else { "overwritten" };
        format!("Wrote {} bytes to {} ({what})", self.bytes_written, self.path)
    }

    fn metadata(&self) -> Map<String, Value> {
        Map::from_iter([("bytes_written".to_owned(), json!(self.bytes_written)), ("path".to_owned(), json!(self.path))])
    }
}
