//! `git_log`

use std::{fmt::Write, sync::Arc};

use haft_runtime::{Effect, Isolation, Ran, Stamp, Tool, ToolCtx, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    git_status::here,
    names,
    program::{Arguments, Git},
    refused::refused,
    run::Whole,
};
use crate::workspace::Workspace;

/// The fields of a commit, each ended by a zero byte.
const FIELDS: &str = "--format=tformat:%H%x00%h%x00%an%x00%ae%x00%aI%x00%s%x00%b";

pub(crate) struct GitLog(pub(crate) Arc<Workspace>);

/// Shows the commits of a git repository, the newest first: of the branch that is checked out, or of another one, and
/// with a path only those that changed something there. What a commit changed is told by `git_diff` with a `base`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The most commits to show.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
    /// A folder or file of the repository, relative to the workspace folder; only commits that changed something there
    /// are shown.
    #[serde(default = "here")]
    path: String,
    /// The commit to begin with: a branch, a tag, a hash, `HEAD~2`.
    #[serde(rename = "ref")]
    from: Option<String>,
}

fn usual_limit() -> u32 {
    20
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    commits: Vec<Commit>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Commit {
    hash: String,
    /// The beginning of the hash, as short as it may be here.
    short_hash: String,
    author: String,
    email: String,
    /// When its author made it, with the author's time zone.
    date: String,
    /// The first line of its message.
    subject: String,
    /// The rest of its message.
    body: String,
}

impl Tool for GitLog {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "git_log";
    const CATEGORY: &'static str = "git";
    const WORST: Effect = Effect::Read;

    /// The history of a commit never changes, so what it is told by is the commit. Only names that can be resolved
    /// without git have a stamp.
    async fn stamp(&self, _ctx: &ToolCtx, input: &Input) -> Option<Stamp> {
        let (git, _) = Git::at(&self.0, &input.path).ok()?;
        match &input.from {
            None => git.repository.tip().map(Stamp),
            Some(_) => None,
        }
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let (git, place) = Git::at(&self.0, &input.path)?;
        let from = input.from.as_deref().map(|from| names::commit("ref", from)).transpose()?;
        let options =
            ["log", "-z", FIELDS, "--no-patch", "--no-color", "--no-notes", "--no-show-signature", "--no-mailmap"];
        let arguments = Arguments::of(&["-c", "log.follow=false"]);
        let mut arguments = options.iter().fold(arguments, |arguments, option| arguments.with(option));
        arguments = arguments.with("--encoding=UTF-8").with(format!("--max-count={}", input.limit));
        arguments = arguments.with("--end-of-options").with(from.as_deref().unwrap_or("HEAD"));
        let path = git.repository.path_of(&git.root, &place);
        let ended = git.look(ctx, arguments.at(&path), Whole::default()).await?;
        let commits = match ended.code {
            0 => Commit::read_all(&ended.heard.bytes),
            // Before the first commit there is nothing to name.
            _ if from.is_none() && is_unborn(&ended.complaints) => Vec::new(),
            _ => return Err(refused(&ended.complaints, &git.root)),
        };
        Ok(Ran::Done { output: Output { commits }, isolation: Some(Isolation::Limits), staged: None })
    }
}

fn is_unborn(complaints: &str) -> bool {
    complaints.contains("bad revision 'HEAD'") || complaints.contains("ambiguous argument 'HEAD'")
}

impl Commit {
    fn read_all(said: &[u8]) -> Vec<Self> {
        let text = String::from_utf8_lossy(said);
        let fields: Vec<&str> = text.split('\0').collect();
        fields.chunks_exact(7).filter_map(Self::read).collect()
    }

    fn read(fields: &[&str]) -> Option<Self> {
        let [hash, short_hash, author, email, date, subject, body] = fields else { return None };
        let own = |text: &str| text.to_owned();
        Some(Self {
            hash: own(hash),
            short_hash: own(short_hash),
            author: own(author),
            email: own(email),
            date: own(date),
            subject: own(subject),
            body: own(body.trim_end()),
        })
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        if self.commits.is_empty() {
            return "no commits".to_owned();
        }
        let mut text = String::new();
        for commit in &self.commits {
            let Commit { hash, author, email, date, subject, body, .. } = commit;
            // Writing into a text does not fail.
            let _ = write!(text, "commit {hash}\nAuthor: {author} <{email}>\nDate:   {date}\n\n    {subject}\n");
            if !body.is_empty() {
                let _ = write!(text, "\n    {}\n", body.replace('\n', "\n    "));
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text
    }
}
