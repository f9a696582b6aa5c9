//! Git that changes a repository: run aside like any command, so that it is seen, committed and undone like one.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use haft_runtime::{Prepared, Ran, ToolCtx, ToolError};
use haft_sandbox::{RepositoryKind, WorkspacePath, changes, fence::CommandExit};

use super::{program::Git, refused::refused, repository::Repository};
use crate::{
    command::CommandLine,
    fenced::{CommandResult, CommandSpec, throw_away},
    workspace::Workspace,
};

/// How long git and the user's hooks may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Several steps of git that are one command. The words are fixed: whatever differs from call to call is an argument, or
/// comes by the standard input.
pub(super) struct Steps {
    pub(super) words: &'static str,
    pub(super) arguments: Vec<String>,
    pub(super) input: String,
    /// What it comes to, as it would be typed, for whoever is asked.
    pub(super) typed: String,
}

impl Steps {
    fn command_spec(&self, git: &Git, writable: Vec<PathBuf>) -> Result<CommandSpec, ToolError> {
        let first = ["sh", "-ec", self.words, "git"].map(str::to_owned);
        let repository = &git.repository;
        CommandSpec {
            command: first.into_iter().chain(self.arguments.iter().cloned()).collect(),
            folder: repository.place_of(&git.root, b"").unwrap_or_else(WorkspacePath::root),
            // Inside, the workspace is mounted by itself, also where its repository begins further up.
            environment: BTreeMap::from(
                [("LC_ALL", "C.UTF-8"), ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
            ),
            stdin: self.input.clone(),
            network: false,
            writable,
            pinned: Vec::new(),
            secrets: haft_runtime::Redactor::default(),
            limit: LIMIT,
        }
        .checked()
    }
}

impl Workspace {
    /// What of a repository git writes to itself, because it lies where nothing can be held aside.
    pub(super) fn written_directly(&self, git: &Git) -> Result<Vec<PathBuf>, ToolError> {
        let Repository { kind, shared, .. } = &git.repository;
        Ok(match kind {
            RepositoryKind::Inside | RepositoryKind::Bare => Vec::new(),
            RepositoryKind::Linked if self.runs_aside()? && git.repository.can_be_held_aside(&git.root) => Vec::new(),
            RepositoryKind::Linked | RepositoryKind::Around => vec![shared.clone()],
        })
    }

    /// Takes the steps aside, or describes them with `preview` where the repository lies elsewhere.
    pub(super) async fn prepare_git<O>(
        &self,
        ctx: &ToolCtx,
        (git, steps): (&Git, &Steps),
        preview: impl FnOnce() -> String,
        read: impl FnOnce(&str) -> Result<O, ToolError>,
    ) -> Result<Prepared<O>, ToolError> {
        let command = CommandLine::read(&steps.typed);
        let writable = self.written_directly(git)?;
        if !writable.is_empty() {
            let mut described = self.described(&command, crate::fenced::WriteLocation::Aside, None)?;
            described.preview = Some(preview());
            return Ok(Prepared::Plain(described));
        }
        let ctx = &quiet(ctx);
        let spec = steps.command_spec(git, writable)?;
        let read = |done: &CommandResult| said(git, done).and_then(read);
        Ok(match self.prepare_aside(ctx, spec, &command, read).await? {
            Prepared::Staged { output: Ok(output), changes, turn, isolation } => {
                Prepared::Staged { output, changes, turn, isolation }
            }
            Prepared::Staged { output: Err(error), .. } => {
                self.drop_staged(ctx);
                return Err(error);
            }
            Prepared::Plain(described) => Prepared::Plain(described),
            Prepared::CutShort(cut) => Prepared::CutShort(cut),
        })
    }

    /// Takes the steps after the yes.
    pub(super) async fn run_git<O>(
        &self,
        ctx: &ToolCtx,
        (git, steps): (&Git, &Steps),
        read: impl FnOnce(&str) -> Result<O, ToolError>,
    ) -> Result<Ran<O>, ToolError> {
        let ctx = &quiet(ctx);
        let spec = steps.command_spec(git, self.written_directly(git)?)?;
        let ran = self.run_after_a_yes(ctx, spec, |done| said(git, done).and_then(read));
        Ok(match ran.await? {
            Ran::Done { output: Ok(output), isolation, staged } => Ran::Done { output, isolation, staged },
            Ran::Done { output: Err(error), .. } => {
                self.drop_staged(ctx);
                return Err(error);
            }
            Ran::CutShort(cut) => Ran::CutShort(cut),
            Ran::Waits(wait) => Ran::Waits(wait),
        })
    }

    /// What refused git has left is of use to nobody.
    fn drop_staged(&self, ctx: &ToolCtx) {
        if let Ok(context) = self.command_context(&ctx.call_id) {
            throw_away(&context.dir);
            let _swept_later = changes::remove(&context.dir);
        }
    }
}

/// What the steps say is read by a program; people hear what came of it.
fn quiet(ctx: &ToolCtx) -> ToolCtx {
    let mut quiet = ToolCtx::detached(ctx.call_id.clone(), ctx.caller.clone());
    quiet.cancel = ctx.cancel.clone();
    quiet.deadline = ctx.deadline;
    quiet
}

/// What git said in the end, or why it refused.
fn said<'d>(git: &Git, done: &'d CommandResult) -> Result<&'d str, ToolError> {
    match done.exit {
        CommandExit::Code(0) => Ok(&done.said.stdout),
        CommandExit::Code(_) | CommandExit::Signal(_) | CommandExit::Stopped => {
            Err(refused(&done.said.stderr, &git.root).with("output", &*done.said.both))
        }
    }
}
