//! `edit_file`

use std::{io::Read, num::NonZeroUsize, sync::Arc};

use haft_runtime::{ChangeList, Effect, ErrorCode, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{
    Charset, OpenFile, Root, WorkspacePath,
    changes::{ChangesError, Draft},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    mismatch::{Mismatch, explain},
    replace::{self, ReplaceError, Replacement, Times},
};
use crate::{
    refusal::{Trying, broke_off, cannot},
    shape::ChangesFiles,
    workspaces::Workspaces,
};

/// The largest file that can be edited.
const LARGEST: u64 = 64 << 20;
/// How often a file is read again that something else has just changed.
const TRIES: usize = 100;

pub(crate) struct EditFile(pub(crate) Arc<dyn Workspaces>);

/// Replace exact text in a file. Read the file first and copy `old` as it stands there, without line numbers and with
/// enough context to occur once. Use `edits` for several places: all are made or none. For new files, or when most
/// lines change, use `write_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"path": "README.md", "old": "teh", "new": "the"}))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
    /// Text to replace; with `new`, instead of `edits`.
    old: Option<String>,
    /// Text to put there; empty to remove `old`.
    new: Option<String>,
    /// Replace every occurrence of `old`.
    replace_all: Option<bool>,
    /// Replace all; fail unless there are exactly this many.
    expected_replacements: Option<NonZeroUsize>,
    /// Several replacements, made in order.
    edits: Option<Vec<OneEdit>>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OneEdit {
    old: String,
    new: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Path relative to the workspace folder.
    path: String,
    /// How many pieces of text were replaced.
    replacements: usize,
    /// Size of the file in bytes, after the edit.
    size: u64,
    /// The change as a unified diff; empty when it is too long to show.
    diff: String,
    /// The first line that differs; absent when the edits cancel each other out.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_changed_line: Option<u64>,
}

impl ChangesFiles for EditFile {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts =
        ToolFacts { aliases: &["edit"], ..ToolFacts::new("edit_file", "filesystem", Effect::Write) };

    async fn plan(&self, ctx: &ToolCtx, input: Input) -> Result<(Output, ChangeList), ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let files = &workspace.files;
        let place = files.root().place(&input.path).trying("edit")?;
        let edits = input.into_edits()?;
        let typed = place.clone();
        let open = files.stat_inline(ctx, move |root| root.open_file(&typed).trying("edit")).await?;
        let bytes = open.meta.size;
        let planned = files.plan_one(ctx, bytes, move |root, draft| edit((root, draft), &place, open, &edits)).await;
        let (mut output, changes) = planned?;
        output.diff = changes.0.iter().find_map(|change| change.diff.clone()).unwrap_or_default();
        Ok((output, changes))
    }
}

fn edit(
    (root, draft): (&Root, &mut Draft),
    place: &WorkspacePath,
    mut open: OpenFile,
    edits: &[Replacement],
) -> Result<Output, ToolError> {
    let mut tries = TRIES;
    loop {
        let (bytes, charset) = whole_file(&open, place)?;
        let before = charset.decode(&bytes).ok_or_else(|| no_text(place))?;
        let (after, replacements) = apply_all(place, &before, edits)?;
        let written = charset.encode(&after).ok_or_else(|| {
            let why = format!("`new` has letters that the file's encoding, {}, does not have", charset.name());
            cannot(ErrorCode::InvalidArgs, "edit", &place.to_string(), &why)
        })?;
        // Invariant: what is replaced is what was read; anything that happens in between is read again, or a conflict.
        match draft.replace(&open, &bytes, &written) {
            Err(ChangesError::Stale { .. }) if tries > 0 => {
                tries -= 1;
                open = root.open_file(place).trying("edit")?;
            }
            planned => {
                planned.trying("edit")?;
                return Ok(Output {
                    path: place.to_string(),
                    replacements,
                    size: written.len() as u64,
                    diff: String::new(),
                    first_changed_line: replace::first_difference(&before, &after),
                });
            }
        }
    }
}

impl Input {
    /// What was typed as what it means.
    fn into_edits(self) -> Result<Vec<Replacement>, ToolError> {
        let wrong = |why: &str| Err(ToolError::new(ErrorCode::InvalidArgs, why));
        let one_of_them = self.replace_all.is_some() || self.expected_replacements.is_some();
        let edits: Vec<Replacement> = match (self.old, self.new, self.edits) {
            (Some(old), Some(new), None) => {
                let all = if self.replace_all == Some(true) { Times::Any } else { Times::Once };
                let times = self.expected_replacements.map_or(all, |times| Times::Exactly(times.get()));
                vec![Replacement { old, new, times }]
            }
            (None, None, Some(_)) if one_of_them => {
                return wrong(
                    "with `edits`, `replaceAll` belongs into each edit and `expectedReplacements` is not used",
                );
            }
            (None, None, Some(edits)) => edits.into_iter().map(OneEdit::into_edit).collect(),
            (Some(_), None, None) | (None, Some(_), None) => {
                return wrong("`old` and `new` belong together; give both");
            }
            (_, _, Some(_)) => return wrong("give either `old` and `new` or `edits`, not both"),
            (None, None, None) => return wrong("nothing to replace; give `old` and `new`, or `edits`"),
        };
        if edits.is_empty() {
            return wrong("`edits` is empty; give at least one");
        }
        if edits.iter().any(|edit| edit.old.is_empty()) {
            return wrong("`old` is empty; give the text to replace, or use `write_file` to write the whole file");
        }
        if edits.iter().any(|edit| edit.old == edit.new) {
            return wrong("`old` and `new` are the same, so there is nothing to change");
        }
        Ok(edits)
    }
}

impl OneEdit {
    fn into_edit(self) -> Replacement {
        let times = if self.replace_all { Times::Any } else { Times::Once };
        Replacement { old: self.old, new: self.new, times }
    }
}

fn no_text(place: &WorkspacePath) -> ToolError {
    let why = "it is not text; replace it as a whole with `write_file` and base64";
    cannot(ErrorCode::BinaryFile, "edit", &place.to_string(), why)
}

/// The bytes of a text file, and how they are encoded.
pub(super) fn whole_file(open: &OpenFile, place: &WorkspacePath) -> Result<(Vec<u8>, Charset), ToolError> {
    let too_large =
        || cannot(ErrorCode::TooLarge, "edit", &place.to_string(), "it is larger than 64 MiB").with("limit", LARGEST);
    if open.meta.size > LARGEST {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(open.meta.size).unwrap_or_default() + 1);
    (&open.file)
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|err| broke_off("edit", &place.to_string(), &err))?;
    // It may have grown since it was opened.
    if bytes.len() as u64 > LARGEST {
        return Err(too_large());
    }
    let charset = Charset::of(&bytes).ok_or_else(|| no_text(place))?;
    Ok((bytes, charset))
}

fn apply_all(place: &WorkspacePath, before: &str, edits: &[Replacement]) -> Result<(String, usize), ToolError> {
    let mut after = before.to_owned();
    let mut replacements = 0;
    for (index, edit) in edits.iter().enumerate() {
        let edit = &replace::with_line_ends_of(&after, edit);
        let (next, made) = replace::apply(&after, edit).map_err(|unmade| {
            let which = if edits.len() == 1 { String::new() } else { format!("edit {}: ", index + 1) };
            refuse(place, &which, &unmade, edit, &after)
        })?;
        after = next;
        replacements += made;
    }
    Ok((after, replacements))
}

fn refuse(place: &WorkspacePath, which: &str, unmade: &ReplaceError, edit: &Replacement, text: &str) -> ToolError {
    let path = place.to_string();
    match unmade {
        ReplaceError::Missing => missing(&path, which, &explain(text, &edit.old)),
        ReplaceError::Count { found, lines } => {
            let named: Vec<String> = lines.iter().map(u64::to_string).collect();
            let more = if *found > lines.len() { ", …" } else { "" };
            let next = match edit.times {
                Times::Exactly(times) => format!("`expectedReplacements` says {times}"),
                Times::Once | Times::Any => "add more of the lines around it, or set `replaceAll`".to_owned(),
            };
            let why = format!("{which}`old` occurs {found} times (lines {}{more}); {next}", named.join(", "));
            cannot(ErrorCode::AmbiguousMatch, "edit", &path, &why).with("count", *found).with("lines", lines.as_slice())
        }
    }
}

fn missing(path: &str, which: &str, mismatch: &Mismatch) -> ToolError {
    let hint = mismatch.hint.unwrap_or("read the file and copy the text exactly");
    let why = format!("{which}`old` does not occur in it; {hint}");
    match mismatch.nearest.as_str() {
        "" => cannot(ErrorCode::NoMatch, "edit", path, &why),
        nearest => {
            let why = format!("{why}; the nearest lines:\n{nearest}");
            cannot(ErrorCode::NoMatch, "edit", path, &why).with("nearest", nearest)
        }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let Self { path, replacements, .. } = self;
        let what = if *replacements == 1 { "replacement" } else { "replacements" };
        let line = self.first_changed_line.map_or_else(String::new, |line| format!(", first changed line {line}"));
        format!("Edited {path}: {replacements} {what}{line}")
    }
}
