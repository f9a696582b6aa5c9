//! `git_diff`

use std::sync::Arc;

use haft_runtime::{Effect, Isolation, Ran, Shown, Tool, ToolCtx, ToolError, ToolFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    git_status::here,
    names,
    patch::{FilePatch, PATCH, Patch, SecretPaths},
    program::{Arguments, Git},
};
use crate::workspaces::Workspaces;

pub(crate) struct GitDiff(pub(crate) Arc<dyn Workspaces>);

/// Show what changed inside files as a unified diff: unstaged changes, or staged ones (`staged`), or all since a commit
/// (`base`). New untracked files are only in `git_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Only this file or folder.
    #[serde(default = "here")]
    path: String,
    /// Compare what is staged.
    #[serde(default)]
    staged: bool,
    /// Branch, tag or commit to compare with.
    base: Option<String>,
    /// Unchanged lines around each change.
    #[serde(default = "usual_context")]
    #[schemars(range(max = 1000))]
    context: u32,
}

fn usual_context() -> u32 {
    3
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The unified diff, as git says it.
    diff: String,
    files: Vec<FileDiff>,
    /// Lines added, in all files.
    additions: u64,
    /// Lines removed, in all files.
    deletions: u64,
    /// Whether some of the diff or of the files was left out; the counts are of all.
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FileDiff {
    /// Relative to the workspace folder.
    path: String,
    additions: u64,
    deletions: u64,
    /// Whether it is no text, so that no lines are shown.
    binary: bool,
}

impl Tool for GitDiff {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::new("git_diff", "git", Effect::Read);

    fn shown(&self) -> Shown {
        self.0.git_shown()
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let (git, place) = Git::at(&*self.0.of(ctx.scope())?, &input.path)?;
        let git = git.with_files()?;
        let base = input.base.as_deref().map(|base| names::commit("base", base)).transpose()?;
        let mut arguments = Arguments::of(&["diff"]);
        arguments.0.extend(PATCH.iter().map(Into::into));
        arguments = arguments.with(format!("--unified={}", input.context));
        arguments = match (input.staged, &base) {
            (true, _) => arguments.with("--cached"),
            // Of a file in conflict, what was merged in is told apart from what was here.
            (false, None) => arguments.with("--ours"),
            (false, Some(_)) => arguments,
        };
        if let Some(base) = base {
            arguments = arguments.with("--end-of-options").with(base);
        }
        // The path of the workspace itself, not of the whole repository, where that is larger.
        let arguments = arguments.at(&git.paths_of(&place));
        let patch = git.look_at_files(ctx, arguments, Patch::without(SecretPaths::of(&git))).await?;
        Ok(Ran::Done { output: Output::of(&git, patch), isolation: Some(Isolation::Limits), staged: None })
    }
}

impl Output {
    fn of(git: &Git, patch: Patch) -> Self {
        Self {
            files: patch.files.iter().map(|file| FileDiff::of(git, file)).collect(),
            additions: patch.additions,
            deletions: patch.deletions,
            truncated: patch.is_cut(),
            diff: patch.text,
        }
    }
}

impl FileDiff {
    fn of(git: &Git, file: &FilePatch) -> Self {
        let FilePatch { path, additions, deletions, binary, .. } = file;
        Self { path: git.shown(path), additions: *additions, deletions: *deletions, binary: *binary }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        match (self.diff.is_empty(), self.truncated) {
            (true, _) => "no differences".to_owned(),
            (false, false) => self.diff.clone(),
            (false, true) => format!("{}[cut; name a `path` to see less at once]\n", self.diff),
        }
    }
}
