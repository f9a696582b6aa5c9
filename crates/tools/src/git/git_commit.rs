//! `git_commit`

use std::{collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf, sync::Arc, time::Duration};

use haft_runtime::{Effect, ErrorCode, Prepared, Ran, Shown, Tool, ToolCtx, ToolError, ToolFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    aside::Steps,
    changed::{ChangedPath, RepositoryStatus, STATUS},
    commit_diff::CommitDiff,
    patch::{PATCH, Patch, SecretPaths},
    program::{Arguments, Git},
    run::LimitedOutput,
};
use crate::{refusal::cannot, workspace::Workspace, workspaces::Workspaces};

/// Stages the files that the standard input lists, if there are any, and commits; then tells of the commit. Hooks speak
/// to the standard error, so that nothing but git's own words is read as what was committed.
const STEPS: &str = r#"
message=$1 empty=$2 hooks=$3
set -- ${empty:+"$empty"}
[ -z "$hooks" ] || git() { command git -c core.hooksPath=/dev/null "$@"; }
paths=$(mktemp) && printf '%b' "$(cat)" >"$paths"
if [ -s "$paths" ]; then
	git add --all --pathspec-from-file="$paths" --pathspec-file-nul >&2
	set -- "$@" --only --pathspec-from-file="$paths" --pathspec-file-nul
fi
printf '%s' "$message" | git commit --no-gpg-sign --cleanup=whitespace --file=- "$@" >&2
git symbolic-ref --quiet --short HEAD || echo
git -c log.showRoot=true show --no-show-signature --no-notes --diff-merges=first-parent --no-color \
	--format='%H%n%h%n%s' --shortstat HEAD --
"#;

pub(crate) struct GitCommit(pub(crate) Arc<dyn Workspaces>);

/// Make a git commit of what is staged, or of exactly the `files` you name. Hooks run, without network; commits are not
/// signed. Look with `git_status` and `git_diff` first. Applied once approved; can be undone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "message": "Fix the typo", "files": ["README.md"] }))]
pub(crate) struct Input {
    /// Commit message; one line, then more if needed.
    message: String,
    /// Files and folders to commit, new and deleted ones too.
    files: Option<Vec<String>>,
    /// Commit even if nothing changed.
    #[serde(default)]
    allow_empty: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    hash: String,
    /// The branch that it was made on; empty when none is checked out.
    branch: String,
    files_changed: u64,
    insertions: u64,
    deletions: u64,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    wants_signature: bool,
}

impl Tool for GitCommit {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts =
        ToolFacts { timeout: Duration::from_secs(600), ..ToolFacts::new("git_commit", "git", Effect::Write) };

    fn shown(&self) -> Shown {
        self.0.git_shown()
    }

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let (git, paths) = chosen(&workspace, ctx, input).await?;
        let signs = wants_signature(&git, ctx).await?;
        let hooks = hooks(&workspace, &git)?;
        let steps = steps(hooks, input, &paths);
        let staged = match hooks {
            Hooks::Run => String::new(),
            Hooks::Off => staged_diff(&git, ctx, &paths).await?,
        };
        let preview = || {
            let beyond = "in a repository outside the workspace: it cannot be undone, and hooks do not run";
            format!("{}\n\n{beyond}\n\n{staged}", input.message.trim_end())
        };
        workspace.prepare_git(ctx, (&git, &steps), preview, |said| Output::read(said, &input.message, signs)).await
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let (git, paths) = chosen(&workspace, ctx, &input).await?;
        let signs = wants_signature(&git, ctx).await?;
        let steps = steps(hooks(&workspace, &git)?, &input, &paths);
        workspace.run_git(ctx, (&git, &steps), |said| Output::read(said, &input.message, signs)).await
    }
}

/// The repository, and the paths to stage; none when what is staged is to be committed.
async fn chosen(workspace: &Workspace, ctx: &ToolCtx, input: &Input) -> Result<(Git, Vec<Vec<u8>>), ToolError> {
    if input.message.trim().is_empty() || input.message.contains('\0') {
        return Err(ToolError::new(ErrorCode::InvalidArgs, "`message` is empty, or has a zero byte; say what it does"));
    }
    let files = input.files.as_deref().unwrap_or_default();
    let (git, _) = Git::committing(workspace, ctx, files.first().map_or(".", String::as_str)).await?;
    let git = git.with_files()?;
    if input.files.is_none() {
        let changed = status(&git, ctx, &[], "no").await?;
        staged(&git, &changed, input)?;
        return Ok((git, Vec::new()));
    }
    whole_only(&git)?;
    let (mut wanted, mut gone) = (Vec::new(), Vec::new());
    for file in files {
        let (of, place) = Git::committing(workspace, ctx, file).await?;
        if of.repository != git.repository {
            let why = "it belongs to another repository than the first file; make one commit for each";
            return Err(cannot(ErrorCode::InvalidArgs, "commit", file, why));
        }
        let paths = git.paths_of(&place);
        if matches!(git.root.meta(&place), Ok(None)) {
            gone.push((file, paths.clone()));
        }
        wanted.extend(paths);
    }
    let changed =
        if wanted.is_empty() { RepositoryStatus::default() } else { status(&git, ctx, &wanted, "all").await? };
    // What git knows and is gone has changed.
    if let Some((file, _)) = gone.iter().find(|(_, paths)| !paths.iter().any(|path| changed.has(path))) {
        let why = "it does not exist, and git does not know it; `git_status` shows what has changed";
        return Err(cannot(ErrorCode::FileNotFound, "commit", file, why));
    }
    let paths = to_stage(&changed.entries, &SecretPaths::of(&git));
    // An empty commit of named files would take along what else is staged.
    match (paths.is_empty(), changed.entries.first()) {
        (false, _) => Ok((git, paths)),
        (true, Some(ChangedPath { path, .. })) => Err(nothing(&format!(
            "what has changed there is left out, because names such as `{}` say that they hold secrets; ask a \
             person to commit it if it must be",
            git.shown(path)
        ))),
        (true, None) if git.repository.has_submodules(&wanted) => Err(nothing(
            "the named `files` are as they were committed, or git ignores them; what has changed inside a \
             submodule is committed by naming paths beneath it, and the submodule itself after that",
        )),
        (true, None) => Err(nothing("the named `files` are as they were committed, or git ignores them")),
    }
}

/// Refuses to commit some files where git commits only the whole of what is staged.
fn whole_only(git: &Git) -> Result<(), ToolError> {
    let begun = [("MERGE_HEAD", "merge"), ("CHERRY_PICK_HEAD", "cherry-pick or rebase")];
    match begun.iter().find(|(name, _)| git.repository.own.join(name).exists()) {
        None => Ok(()),
        Some((_, what)) => {
            let message = format!(
                "a {what} is in progress, and git commits it only as a whole: stage what you have resolved with \
                 `shell_exec` and `git add`, then call `git_commit` without `files`"
            );
            Err(ToolError::new(ErrorCode::InvalidArgs, message))
        }
    }
}

async fn status(git: &Git, ctx: &ToolCtx, paths: &[PathBuf], untracked: &str) -> Result<RepositoryStatus, ToolError> {
    let arguments = Arguments::of(STATUS).with(format!("--untracked-files={untracked}")).at(paths);
    let said = git.look_at_files(ctx, arguments, LimitedOutput::default()).await?;
    Ok(RepositoryStatus::read(&said.bytes))
}

/// Refuses a commit of what is staged where that is nothing, or more than the workspace.
fn staged(git: &Git, changed: &RepositoryStatus, input: &Input) -> Result<(), ToolError> {
    let staged: Vec<&ChangedPath> = changed.entries.iter().filter(|entry| entry.is_staged()).collect();
    let beyond = staged.iter().find(|entry| git.repository.place_of(&git.root, &entry.path).is_none());
    if let Some(entry) = beyond {
        let why = "it is staged and lies outside the workspace; name `files` to commit only those";
        return Err(cannot(ErrorCode::InvalidPath, "commit", &git.shown(&entry.path), why));
    }
    let merges = git.repository.own.join("MERGE_HEAD").exists();
    if staged.is_empty() && !input.allow_empty && !merges {
        return Err(nothing("nothing is staged; name `files` to stage and commit them"));
    }
    Ok(())
}

fn nothing(why: &str) -> ToolError {
    ToolError::new(ErrorCode::NoMatch, format!("nothing to commit: {why}; `git_status` shows what has changed"))
}

/// The changed paths. What holds secrets is left out: it looks empty to commands.
fn to_stage(entries: &[ChangedPath], secrets: &SecretPaths) -> Vec<Vec<u8>> {
    let paths = entries.iter().flat_map(|entry| [Some(&entry.path), entry.from.as_ref()]).flatten();
    let all: BTreeSet<&Vec<u8>> = paths.filter(|path| !secrets.hold(path)).collect();
    all.into_iter().cloned().collect()
}

/// Paths as git takes them word for word, each with a zero behind it, in the form that `printf %b` reads.
fn list(paths: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for path in paths {
        text.push_str(":(top,literal)");
        for byte in path.iter().copied().chain([0]) {
            match byte {
                b' '..=b'~' if byte != b'\\' => text.push(char::from(byte)),
                _ => text.push_str(&format!("\\0{byte:03o}")),
            }
        }
    }
    text
}

/// Whether the repository's hooks run.
#[derive(Clone, Copy)]
enum Hooks {
    Run,
    Off,
}

/// Where nothing is held aside, a hook could change what nobody sees or undoes.
fn hooks(workspace: &Workspace, git: &Git) -> Result<Hooks, ToolError> {
    Ok(if workspace.written_directly(git)?.is_empty() { Hooks::Run } else { Hooks::Off })
}

fn steps(hooks: Hooks, input: &Input, paths: &[Vec<u8>]) -> Steps {
    let hooks = match hooks {
        Hooks::Run => "",
        Hooks::Off => "none",
    };
    let empty = if input.allow_empty { "--allow-empty" } else { "" };
    let arguments = [input.message.as_str(), empty, hooks];
    Steps {
        words: STEPS,
        arguments: arguments.map(str::to_owned).to_vec(),
        input: list(paths),
        typed: "git commit".to_owned(),
    }
}

/// Whether the user wants commits to be signed, which only the user can do.
async fn wants_signature(git: &Git, ctx: &ToolCtx) -> Result<bool, ToolError> {
    let asked = Arguments::of(&["config", "--type=bool", "--get", "commit.gpgSign"]);
    Ok(git.look(ctx, asked, LimitedOutput::default()).await?.heard.bytes.starts_with(b"true"))
}

/// What would be committed, where it cannot be tried.
async fn staged_diff(git: &Git, ctx: &ToolCtx, paths: &[Vec<u8>]) -> Result<String, ToolError> {
    let mut arguments = Arguments::of(&["diff"]);
    arguments.0.extend(PATCH.iter().map(Into::into));
    arguments = if paths.is_empty() { arguments.with("--cached") } else { arguments.with("HEAD") };
    let paths: Vec<PathBuf> = paths.iter().map(|path| OsStr::from_bytes(path).into()).collect();
    let patch = git.look_at_files(ctx, arguments.at(&paths), Patch::without(SecretPaths::of(git))).await?;
    Ok(CommitDiff::of(patch).text())
}

impl Output {
    /// Reads what the steps say: the branch, the commit, its numbers.
    fn read(said: &str, message: &str, wants_signature: bool) -> Result<Self, ToolError> {
        let mut lines = said.splitn(5, '\n');
        let mut next = || lines.next().unwrap_or_default();
        let (branch, hash, short, subject, numbers) = (next(), next(), next(), next(), next().trim_matches('\n'));
        let count = |word: &str| {
            let part = numbers.split(',').find(|part| part.contains(word));
            part.and_then(|part| part.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
        };
        let at = if branch.is_empty() { "detached HEAD" } else { branch };
        let body = message.trim_end().split_once('\n').map_or("", |(_, body)| body.trim());
        let body = if body.is_empty() { String::new() } else { format!("\n    {}", body.replace('\n', "\n    ")) };
        let numbers = if numbers.trim().is_empty() { "" } else { &format!("\n{numbers}") };
        let unsigned =
            if wants_signature { "\n(not signed: signing needs your key, which the sandbox hides)" } else { "" };
        if hash.is_empty() {
            return Err(ToolError::new(ErrorCode::ExecutionError, "git made a commit and did not say which"));
        }
        Ok(Self {
            hash: hash.to_owned(),
            branch: branch.to_owned(),
            files_changed: count("file"),
            insertions: count("insertion"),
            deletions: count("deletion"),
            text: format!("[{at} {short}] {subject}{numbers}{unsigned}{body}"),
            wants_signature,
        })
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        self.text.clone()
    }

    fn metadata(&self) -> Map<String, Value> {
        let mut facts = Map::from_iter([("exit_code".to_owned(), 0.into())]);
        if self.wants_signature {
            facts.insert("signed".to_owned(), false.into());
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_listed_without_loss() {
        let paths = [b"plain".to_vec(), b"b\\0101 \n\xff%".to_vec(), "ü".as_bytes().to_vec()];
        let listed = r":(top,literal)plain\0000:(top,literal)b\01340101 \0012\0377%\0000:(top,literal)\0303\0274\0000";
        assert_eq!(list(&paths), listed);
    }
}
