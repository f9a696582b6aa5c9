//! `git_log`

use std::{borrow::Cow, fmt::Write, sync::Arc};

use haft_runtime::{Effect, Isolation, Ran, Shown, Stamp, Tool, ToolCtx, ToolError, ToolFacts};
use jiff::{Timestamp, tz::Offset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    git_status::here,
    names,
    program::{Arguments, Git},
    refused::refused,
    repository::Repository,
    run::{GitListener, LONGEST, WantsMore},
};
use crate::workspaces::Workspaces;

pub(crate) struct GitLog(pub(crate) Arc<dyn Workspaces>);

/// Show commits, newest first, of the current branch or another `ref`; with `path` only those that changed it. To see
/// one commit use `shell_exec` and `git show`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Commits at most.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
    /// Only this file or folder.
    #[serde(default = "here")]
    path: String,
    /// Branch, tag or commit to begin with.
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
    /// The beginning of the hash, as long as git would usually show it here.
    short_hash: &'a str,
    author: &'a str,
    email: &'a str,
    /// When its author made it, with the author's time zone.
    date: String,
    /// The first line of its message.
    subject: Cow<'a, str>,
    /// The rest of its message.
    body: &'a str,
}

impl Tool for GitLog {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::new("git_log", "git", Effect::Read);

    /// The history of a commit never changes, so what it is told by is the commit. Only names that can be resolved
    /// without git have a stamp.
    async fn stamp(&self, ctx: &ToolCtx, input: &Input) -> Option<Stamp> {
        if input.from.is_some() {
            return None;
        }
        let workspace = self.0.of(ctx.scope()).ok()?;
        let root = workspace.files.root();
        let place = root.place(&input.path).and_then(|place| root.resolve(&place)).ok()?;
        Repository::around(root, &place).ok()?.tip().map(Stamp)
    }

    fn shown(&self) -> Shown {
        self.0.git_shown()
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let (git, place) = Git::at(&*self.0.of(ctx.scope())?, &input.path)?;
        let from = input.from.as_deref().map(|from| names::commit("ref", from)).transpose()?;
        // Commits come as they are recorded: git would take longer to put them into words than we do.
        let arguments = Arguments::of(&["rev-list", "--header", "--encoding=UTF-8"]);
        let arguments = arguments.with(format!("--max-count={}", input.limit));
        let arguments = arguments.with("--end-of-options").with(from.as_deref().unwrap_or("HEAD"));
        let history = History { digits: git.repository.digits(), ..History::default() };
        let ended = git.look(ctx, arguments.at(&git.paths_of(&place)), history).await?;
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
    /// How many digits name a commit here.
    digits: usize,
    commits: Vec<Box<RawValue>>,
    text: String,
    /// The beginning of a commit whose end has not come yet.
    begun: Vec<u8>,
    /// How much has come in all.
    heard: usize,
}

impl GitListener for History {
    fn hear(&mut self, bytes: &[u8]) -> WantsMore {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            if self.begun.is_empty() {
                self.take(&rest[..end]);
            } else {
                let mut begun = std::mem::take(&mut self.begun);
                begun.extend_from_slice(&rest[..end]);
                self.take(&begun);
            }
            rest = &rest[end + 1..];
        }
        self.begun.extend_from_slice(rest);
        self.heard += bytes.len();
        if self.heard > LONGEST { WantsMore::Enough } else { WantsMore::Please }
    }
}

impl History {
    /// Takes one commit: its hash, what is recorded of it, an empty line, and its message, four columns to the right.
    fn take(&mut self, said: &[u8]) {
        let said = String::from_utf8_lossy(said);
        let (hash, recorded) = said.split_once('\n').unwrap_or((&said, ""));
        let (recorded, message) = recorded.split_once("\n\n").unwrap_or((recorded, ""));
        let author = recorded.lines().find_map(|line| line.strip_prefix("author ")).unwrap_or_default();
        let (author, email, date) = person(author);
        let message = message.strip_prefix("    ").unwrap_or(message).replace("\n    ", "\n");
        let (subject, body) = parts(&message);
        let short_hash = hash.get(..self.digits).unwrap_or(hash);
        let commit = Commit { hash, short_hash, author, email, date: moment(date), subject, body };
        commit.write(&mut self.text);
        // Texts can always be put into JSON.
        self.commits.extend(to_raw_value(&commit));
    }

    fn told(mut self) -> Output {
        self.text.truncate(self.text.trim_end().len());
        Output { commits: self.commits, text: self.text }
    }
}

/// The name, the address and the moment of somebody, as in `Anna <anna@example.org> 1700000000 +0100`.
fn person(recorded: &str) -> (&str, &str, &str) {
    let (name, rest) = recorded.split_once('<').unwrap_or((recorded, ""));
    let email = rest.split('>').next().unwrap_or_default();
    let moment = rest.rsplit_once('>').map_or("", |(_, moment)| moment);
    (name.trim(), email, moment.trim())
}

/// A moment with its time zone, as in `2026-11-17T05:00:00+01:00`, from seconds and the zone's hours and minutes. What
/// no calendar has stays as it is.
fn moment(recorded: &str) -> String {
    let read = || {
        let (seconds, zone) = recorded.split_once(' ')?;
        let zone: i32 = zone.parse().ok()?;
        let offset = Offset::from_seconds((zone / 100 * 60 + zone % 100) * 60).ok()?;
        let moment = Timestamp::from_second(seconds.parse().ok()?).ok()?;
        let mut text = offset.to_datetime(moment).to_string();
        match zone {
            0 => text.push('Z'),
            _ => {
                let sign = if zone < 0 { '-' } else { '+' };
                write!(text, "{sign}{:02}:{:02}", zone.abs() / 100, zone.abs() % 100).ok()?;
            }
        }
        Some(text)
    };
    read().unwrap_or_else(|| recorded.to_owned())
}

/// The subject of a message, which is its first paragraph in one line, and the rest.
fn parts(message: &str) -> (Cow<'_, str>, &str) {
    let mut rest = message;
    let mut subject = Cow::Borrowed("");
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.trim_ascii_end();
        match (line.is_empty(), subject.is_empty()) {
            (true, false) => break,
            (true, true) => {}
            (false, true) => subject = line.into(),
            (false, false) => subject.to_mut().extend([" ", line]),
        }
        rest = after;
    }
    (subject, without_blank_lines(rest).trim_end())
}

fn without_blank_lines(text: &str) -> &str {
    let begin = text.find(|letter: char| !letter.is_ascii_whitespace()).unwrap_or(text.len());
    text[..begin].rfind('\n').map_or(text, |end| &text[end + 1..])
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
        let said = "1a2b3c\ntree 4\nauthor Anna <a@x> 0 +0130\ncommitter C <c@x> 1 +0000\ngpgsig -\n author no\n\n    \
                    First\n    \n    Its\n      body\n|2b\ntree 4\nparent 1a\nauthor B\u{e9}a <b@x> 99 -0800\n\n    \
                    Second\n|3c\nauthor half"
            .replace('|', "\0");
        for size in [1, 2, 7, 64, said.len()] {
            let mut history = History { digits: 4, ..History::default() };
            said.as_bytes().chunks(size).for_each(|piece| assert_eq!(history.hear(piece), WantsMore::Please));
            let output = history.told();
            assert_eq!(
                serde_json::to_value(&output).unwrap(),
                serde_json::json!({"commits": [
                    {"hash": "1a2b3c", "shortHash": "1a2b", "author": "Anna", "email": "a@x", "date": "1970-01-01T01:30:00+01:30", "subject": "First",
                     "body": "Its\n  body"},
                    {"hash": "2b", "shortHash": "2b", "author": "B\u{e9}a", "email": "b@x", "date": "1969-12-31T16:01:39-08:00",
                     "subject": "Second", "body": ""},
                ]})
            );
            let text = haft_runtime::Output::text(&output);
            assert_eq!(
                text,
                "commit 1a2b3c\nAuthor: Anna <a@x>\nDate:   1970-01-01T01:30:00+01:30\n\n    First\n\n    Its\n      body\n\n\
                 commit 2b\nAuthor: B\u{e9}a <b@x>\nDate:   1969-12-31T16:01:39-08:00\n\n    Second"
            );
        }
        assert_eq!(haft_runtime::Output::text(&History::default().told()), "no commits");
    }

    #[test]
    fn people_are_read_however_odd_their_names_are() {
        for (recorded, read) in [
            ("Anna B <a@x> 1 +0000", ("Anna B", "a@x", "1 +0000")),
            (" <> 1 +0000", ("", "", "1 +0000")),
            ("A <b> <c@x> 1 +0000", ("A", "b", "1 +0000")),
            ("A 1 +0000", ("A 1 +0000", "", "")),
            ("", ("", "", "")),
        ] {
            assert_eq!(person(recorded), read, "{recorded}");
        }
    }

    #[test]
    fn messages_are_parted_as_git_parts_them() {
        for (message, subject, body) in [
            ("One\n", "One", ""),
            ("\n \nOne \n two\n \t\n\n  Body\n\nmore\n", "One  two", "  Body\n\nmore"),
            ("One\n\n\n", "One", ""),
            ("", "", ""),
            ("\n\n", "", ""),
        ] {
            assert_eq!(parts(message), (subject.into(), body), "{message:?}");
        }
    }

    #[test]
    fn what_is_no_moment_stays_as_it_is() {
        for (recorded, moment_of) in [
            ("1700000000 +0000", "2023-11-14T22:13:20Z"),
            ("1700000000 +0545", "2023-11-15T03:58:20+05:45"),
            ("99999999999999 +0000", "99999999999999 +0000"),
            ("1700000000 +9900", "1700000000 +9900"),
            ("", ""),
        ] {
            assert_eq!(moment(recorded), moment_of);
        }
    }
}
