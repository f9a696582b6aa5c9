//! `git_status`

use std::sync::Arc;

use haft_runtime::{Effect, Isolation, Ran, Shown, Tool, ToolCtx, ToolError, ToolFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    changed::{self, RepositoryStatus, STATUS},
    program::{Arguments, Git},
    run::LimitedOutput,
};
use crate::{
    blocking::{StopWith, blocking},
    workspaces::Workspaces,
};

/// Inside them, git would have to start another git.
const NOT_LOOKED_INTO: &str = "not looked into";
/// The most entries that are told; the rest is only counted.
const MOST: usize = 10_000;

pub(crate) struct GitStatus(pub(crate) Arc<dyn Workspaces>);

/// Show what changed since the last commit: staged, changed, conflicting and new files, and how far the branch is ahead
/// of or behind its upstream. For changes inside files use `git_diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Only this file or folder.
    #[serde(default = "here")]
    path: String,
}

/// The workspace folder itself.
pub(super) fn here() -> String {
    ".".to_owned()
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// The branch; empty when none is checked out.
    branch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Commits that the upstream does not have, as far as is known here.
    ahead: u64,
    /// Commits that only the upstream has, as far as is known here.
    behind: u64,
    /// Whether a commit is checked out and no branch.
    detached: bool,
    /// Whether nothing has changed, except perhaps inside submodules.
    clean: bool,
    /// Says, where there are submodules, that what is not committed inside them is not told here; name one as `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    submodules: Option<&'static str>,
    entries: Vec<StatusEntry>,
    #[serde(skip)]
    left_out: usize,
    #[serde(skip)]
    is_new: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatusEntry {
    /// Relative to the workspace folder; a whole folder of new files ends with `/`.
    path: String,
    /// Git's letter for what is staged: `.` nothing, `M` changed, `A` new, `D` deleted, `R` renamed, `U` in conflict,
    /// `?` not known to git.
    index: char,
    /// The same for what is not staged yet.
    worktree: char,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<String>,
}

impl Tool for GitStatus {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::new("git_status", "git", Effect::Read);

    fn shown(&self) -> Shown {
        self.0.git_shown()
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let (git, place) = Git::at(&*self.0.of(ctx.scope())?, &input.path)?;
        let git = git.with_files()?;
        let paths = git.paths_of(&place);
        let arguments = Arguments::of(STATUS).with("--untracked-files=normal").at(&paths);
        // A large index takes a while to read, which git does at the same time.
        let repository = git.repository.clone();
        let submodules =
            blocking(StopWith::Call(ctx), move |_| Ok(repository.has_submodules(&paths).then_some(NOT_LOOKED_INTO)));
        let said = git.look_at_files(ctx, arguments, LimitedOutput::default());
        let (said, submodules) = tokio::try_join!(said, submodules)?;
        let output = Output { submodules, ..Output::of(&git, RepositoryStatus::read(&said.bytes)) };
        Ok(Ran::Done { output, isolation: Some(Isolation::Limits), staged: None })
    }
}

impl Output {
    fn of(git: &Git, changed: RepositoryStatus) -> Self {
        let count = changed.entries.len();
        Self {
            detached: changed.branch.is_none(),
            branch: changed.branch.unwrap_or_default(),
            upstream: changed.upstream,
            ahead: changed.ahead,
            behind: changed.behind,
            clean: count == 0,
            submodules: None,
            entries: changed.entries.iter().take(MOST).map(|entry| StatusEntry::of(git, entry)).collect(),
            left_out: count.saturating_sub(MOST),
            is_new: changed.commit.is_none(),
        }
    }

    /// The line that git begins its short status with.
    fn heading(&self) -> String {
        if self.detached {
            return "## HEAD (no branch)".to_owned();
        }
        let begun = if self.is_new { "No commits yet on " } else { "" };
        let upstream = self.upstream.as_ref().map_or_else(String::new, |upstream| format!("...{upstream}"));
        let counts = match (self.ahead, self.behind) {
            (0, 0) => String::new(),
            (ahead, 0) => format!(" [ahead {ahead}]"),
            (0, behind) => format!(" [behind {behind}]"),
            (ahead, behind) => format!(" [ahead {ahead}, behind {behind}]"),
        };
        format!("## {begun}{}{upstream}{counts}", self.branch)
    }
}

impl StatusEntry {
    fn of(git: &Git, entry: &changed::ChangedPath) -> Self {
        let folder = if entry.path.ends_with(b"/") { "/" } else { "" };
        Self {
            path: git.shown(&entry.path) + folder,
            index: entry.index,
            worktree: entry.worktree,
            renamed_from: entry.from.as_ref().map(|from| git.shown(from)),
        }
    }

    /// The line of git's short status.
    fn line(&self) -> String {
        let letter = |letter| if letter == '.' { ' ' } else { letter };
        let from = self.renamed_from.as_ref().map_or_else(String::new, |from| format!("{from} -> "));
        format!("{}{} {from}{}", letter(self.index), letter(self.worktree), self.path)
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let mut lines = vec![self.heading()];
        lines.extend(self.entries.iter().map(StatusEntry::line));
        match (self.clean, self.submodules) {
            (true, None) => lines.push("nothing to commit, working tree clean".to_owned()),
            (true, Some(how)) => lines.push(format!("nothing to commit, clean; submodules {how}")),
            (false, Some(how)) => lines.push(format!("(submodules {how})")),
            (false, None) => {}
        }
        if self.left_out > 0 {
            lines.push(format!("… and {} more; name a `path` to see them", self.left_out));
        }
        lines.join("\n")
    }

    fn metadata(&self) -> Map<String, Value> {
        let left_out = (self.left_out > 0).then(|| ("left_out".to_owned(), self.left_out.into()));
        let submodules = self.submodules.map(|how| ("submodules".to_owned(), how.into()));
        left_out.into_iter().chain(submodules).collect()
    }
}
