//! `write_file`

use std::{io::Read, sync::Arc};

use haft_runtime::{ChangeList, Effect, ErrorCode, ParameterAlias, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{
    Charset, FileStamp, PathError, Root, WorkspacePath,
    changes::{Draft, Expected},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::amount::Amount;
use super::{encoding::Encoding, hash::sha256_of};
use crate::{
    refusal::{Trying, broke_off, cannot},
    shape::ChangesFiles,
    workspaces::Workspaces,
};

/// The largest file that something is appended to.
const LARGEST: u64 = 64 << 20;

pub(crate) struct WriteFile(pub(crate) Arc<dyn Workspaces>);

/// Create a file with the folders above it, replace its whole content, or append to it. To change some lines use
/// `edit_file`, which cannot lose the rest.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "path": "notes/todo.md", "content": "- buy milk\n" }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
    /// The exact content; end text with a newline.
    content: String,
    /// `base64` if `content` is base64.
    #[serde(default)]
    encoding: Encoding,
    /// `false` to fail where a folder is missing.
    #[serde(default = "yes")]
    create_dirs: bool,
    /// `append` adds `content` at the end of the file.
    #[serde(default)]
    mode: WriteFileMode,
    /// `fail`: create, never replace.
    #[serde(default)]
    if_exists: IfExists,
    /// SHA-256 you expect there; otherwise it fails with STALE_FILE.
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{64}$"))]
    expected_hash: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WriteFileMode {
    #[default]
    Overwrite,
    Append,
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
    #[serde(skip)]
    mode: WriteFileMode,
}

impl ChangesFiles for WriteFile {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        parameter_aliases: &[ParameterAlias::new("createDirectories", "createDirs")],
        ..ToolFacts::new("write_file", "filesystem", Effect::Write)
    };

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
    let mut expected = expected(root, &place, &input)?;
    let mode = input.mode;
    let mut content = input.encoding.decode(input.content)?;
    let mut bytes_written = content.len() as u64;
    if mode == WriteFileMode::Append
        && let Some((there, stamp)) = what_is_there(root, &place)?
    {
        let added = in_the_encoding_of(&there, content, &place)?;
        bytes_written = added.len() as u64;
        content = there;
        content.extend(added);
        expected = Expected::Exactly(stamp);
    }
    let written = draft.write(&place, &content, expected).trying("write")?;
    Ok(Output {
        path: place.to_string(),
        size: content.len() as u64,
        created: written.created,
        bytes_written,
        previous_size: written.previous_size,
        mode,
    })
}

/// The file that something is added to, as it is now; `None` when there is none yet.
fn what_is_there(root: &Root, place: &WorkspacePath) -> Result<Option<(Vec<u8>, FileStamp)>, ToolError> {
    let open = match root.open_file(place) {
        Err(PathError::NotFound { .. }) => return Ok(None),
        open => open.trying("write")?,
    };
    if open.meta.size > LARGEST {
        let why = "it is larger than 64 MiB; append to it with `shell_exec`";
        return Err(cannot(ErrorCode::TooLarge, "append to", &place.to_string(), why));
    }
    let mut bytes = Vec::new();
    (&open.file).read_to_end(&mut bytes).map_err(|err| broke_off("write", &place.to_string(), &err))?;
    Ok(Some((bytes, open.meta.stamp)))
}

/// What is added to a text becomes the same kind of text.
fn in_the_encoding_of(there: &[u8], added: Vec<u8>, place: &WorkspacePath) -> Result<Vec<u8>, ToolError> {
    let charset = Charset::of(there).filter(|charset| !charset.is_utf8());
    let (Some(charset), Ok(text)) = (charset, std::str::from_utf8(&added)) else { return Ok(added) };
    charset.without_mark().encode(text).ok_or_else(|| {
        let why = format!("`content` has letters that the file's encoding, {}, does not have", charset.name());
        cannot(ErrorCode::InvalidArgs, "append to", &place.to_string(), &why)
    })
}

fn needs_its_folder(root: &Root, place: &WorkspacePath) -> Result<(), ToolError> {
    let folder = root.resolve(place).trying("write")?.parent().unwrap_or_else(WorkspacePath::root);
    if root.meta(&folder).trying("write")?.is_some() {
        return Ok(());
    }
    let why =
        format!("its folder `{folder}` does not exist; leave `createDirs` out to make it too, or correct the path");
    Err(cannot(ErrorCode::FileNotFound, "write", &place.to_string(), &why))
}

fn expected(root: &Root, place: &WorkspacePath, input: &Input) -> Result<Expected, ToolError> {
    match (input.if_exists, &input.expected_hash) {
        (IfExists::Fail, _) if input.mode == WriteFileMode::Append => Err(ToolError::new(
            ErrorCode::InvalidArgs,
            "`mode` `append` adds to a file that is there, `ifExists` `fail` wants none; leave one of them out",
        )),
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
        let what = match (self.created, self.mode) {
            (true, _) => "created",
            (false, WriteFileMode::Overwrite) => "overwritten",
            (false, WriteFileMode::Append) => "appended",
        };
        format!("Wrote {} to {} ({what})", Amount(self.bytes_written, "byte"), self.path)
    }

    fn metadata(&self) -> Map<String, Value> {
        Map::from_iter([("bytes_written".to_owned(), json!(self.bytes_written)), ("path".to_owned(), json!(self.path))])
    }
}
