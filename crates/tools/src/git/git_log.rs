//! `git_log`

use std::sync::Arc;

use haft_runtime::{Effect, Isolation, Ran, Stamp, Tool, ToolCtx, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    git_status::here,
    names,
    program::{Arguments, Git},
    refused::refused,
    repository::Repository,
    run::{Ear, LONGEST, More},
};
use crate::workspace::Workspace;

/// The fields of a commit, each ended by a zero byte.
const FIELDS: &str = "--format=tformat:%H%x00%h%x00%an%x00%ae%x00%aI%x00%s%x00%b";
const FIELDS_OF_A_COMMIT: usize = 7;

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
    #[schemars(with = "Vec<Commit<'_>>")]
    commits: Vec<Box<RawValue>>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Commit<'a> {
    hash: &'a str,
    /// The beginning of the hash, as short as it may be here.
    short_hash: &'a str,
    author: &'a str,
    email: &'a str,
    /// When its author made it, with the author's time zone.
    date: &'a str,
    /// The first line of its message.
    subject: &'a str,
    /// The rest of its message.
    body: &'a str,
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
        if input.from.is_some() {
            return None;
        }
        let root = self.0.root();
        let place = root.place(&input.path).and_then(|place| root.resolve(&place)).ok()?;
        Repository::around(root, &place).ok()?.tip().map(Stamp)
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
        let ended = git.look(ctx, arguments.at(&path), History::default()).await?;
        let history = match ended.code {
            0 => ended.heard,
            // Before the first commit there is nothing to name.
            _ if from.is_none() && is_unborn(&ended.complaints) => History::default(),
            _ => return Err(refused(&ended.complaints, &git.root)),
        };
        Ok(Ran::Done { output: history.told(), isolation: Some(Isolation::Limits), staged: None })
    }
}

fn is_unborn(complaints: &str) -> bool {
    complaints.contains("bad revision 'HEAD'") || complaints.contains("ambiguous argument 'HEAD'")
}

/// What git has said so far. Each commit is put into words as it comes: git is still looking for the next.
#[derive(Debug, Default)]
struct History {
    commits: Vec<Box<RawValue>>,
    text: String,
    /// The beginning of a commit whose end has not come yet, and how many of its fields have ended.
    begun: Vec<u8>,
    fields: usize,
    /// How much has come in all.
    heard: usize,
}

impl Ear for History {
    fn hear(&mut self, bytes: &[u8]) -> More {
        let mut start = 0;
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == 0) {
            self.fields += 1;
            if self.fields == FIELDS_OF_A_COMMIT {
                self.begun.extend_from_slice(&bytes[start..at]);
                start = at + 1;
                self.take();
            }
        }
        self.begun.extend_from_slice(&bytes[start..]);
        self.heard += bytes.len();
        if self.heard > LONGEST { More::Enough } else { More::Please }
    }
}

impl History {
    /// Takes the commit whose last field has ended.
    fn take(&mut self) {
        self.fields = 0;
        let said = std::mem::take(&mut self.begun);
        let said = String::from_utf8_lossy(&said);
        let mut fields = said.split('\0');
        let mut next = || fields.next().unwrap_or_default();
        let commit = Commit {
            hash: next(),
            short_hash: next(),
            author: next(),
            email: next(),
            date: next(),
            subject: next(),
            body: next().trim_end(),
        };
        commit.write(&mut self.text);
        // Texts can always be put into JSON.
        self.commits.extend(to_raw_value(&commit));
    }

    fn told(mut self) -> Output {
        self.text.truncate(self.text.trim_end().len());
        Output { commits: self.commits, text: self.text }
    }
}

impl Commit<'_> {
    /// Adds what people read of it.
    fn write(&self, text: &mut String) {
        let Commit { hash, author, email, date, subject, body, .. } = self;
        for piece in
            ["commit ", hash, "\nAuthor: ", author, " <", email, ">\nDate:   ", date, "\n\n    ", subject, "\n"]
        {
            text.push_str(piece);
        }
        if !body.is_empty() {
            text.push_str("\n    ");
            text.push_str(&body.replace('\n', "\n    "));
            text.push('\n');
        }
        text.push('\n');
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        if self.commits.is_empty() { "no commits".to_owned() } else { self.text.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_read_however_their_words_are_cut() {
        let said = "1a|1|Anna|a@x|2026|First|Its\nbody \n|2b|2|B\u{e9}a|b@x|2025|Second||3c|half".replace('|', "\0");
        for size in [1, 2, 7, 64, said.len()] {
            let mut history = History::default();
            said.as_bytes().chunks(size).for_each(|piece| assert_eq!(history.hear(piece), More::Please));
            let output = history.told();
            assert_eq!(
                serde_json::to_value(&output).unwrap(),
                serde_json::json!({"commits": [
                    {"hash": "1a", "shortHash": "1", "author": "Anna", "email": "a@x", "date": "2026", "subject": "First",
                     "body": "Its\nbody"},
                    {"hash": "2b", "shortHash": "2", "author": "B\u{e9}a", "email": "b@x", "date": "2025",
                     "subject": "Second", "body": ""},
                ]})
            );
            let text = haft_runtime::Output::text(&output);
            assert_eq!(
                text,
                "commit 1a\nAuthor: Anna <a@x>\nDate:   2026\n\n    First\n\n    Its\n    body\n\n\
                 commit 2b\nAuthor: B\u{e9}a <b@x>\nDate:   2025\n\n    Second"
            );
        }
        assert_eq!(haft_runtime::Output::text(&History::default().told()), "no commits");
    }
}
