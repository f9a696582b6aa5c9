//! Running a command for a call: heard as it speaks, ended when its call ends, and what it changed taken over.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use haft_runtime::{ChangeList, ErrorCode, Isolation, Redactor, Stream, ToolCtx, ToolError};
use haft_sandbox::{
    EntryKind, Root, WorkspacePath,
    changes::{self, CommitDurability, Draft, OutsideLayer, PathOrigin, Steering},
    fence::{self, CommandExit, FenceJob, FileTime, LayeredFolder, Process, ProcessEnd, Rung, WorkspaceView},
};
use tokio::runtime::Handle;

use super::{
    command_spec::{CommandResult, CommandSpec, Interruption},
    derived::DerivedPaths,
    fence::{WorkspaceFence, isolation},
    hints::{could_not_write_repository, unseen},
    output::OutputBuffer,
    owners::complained_of,
    stopper::{CommandStopper, StopReason},
};
use crate::{
    blocking::broke_off,
    git::{look_at_commit, tell_commit, with_outside_repository},
    refusal::Trying,
    shown,
};

/// The most that a command may say, all together.
const LONGEST_OUTPUT: u64 = 4 << 30;

/// The most bytes that the paths of all changes may have together: a tree of folders in folders, made in a moment, has
/// paths that would fill the journal.
const LONGEST_LIST: usize = 128 << 20;

/// Where in a layer that lies which a command has written.
const UPPER: &str = "upper";

/// A moment that no change comes after.
const NEVER: (i64, u32) = (i64::MAX, 0);

/// Where a command works, and for which call.
#[derive(Clone)]
pub(crate) struct CommandContext {
    pub(crate) fenced: Arc<WorkspaceFence>,
    pub(crate) root: Arc<Root>,
    /// The folder of the call's changes.
    pub(crate) dir: PathBuf,
    pub(crate) sync: CommitDurability,
}

/// Whether a command writes into a layer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteLocation {
    Aside,
    Directly,
}

/// Runs a command and waits for its end, also after a cancel: everything that it has started ends at once.
pub(crate) async fn run(
    ctx: &ToolCtx,
    context: CommandContext,
    spec: CommandSpec,
    writes: WriteLocation,
) -> Result<CommandResult, ToolError> {
    let stopper = Arc::new(CommandStopper::default());
    let _ends_with_us = StopCommandOnDrop(Arc::clone(&stopper));
    let begun = Instant::now();
    let limit = spec.limit.min(ctx.deadline.saturating_duration_since(begun));
    let (held, told) = (Arc::clone(&stopper), ctx.clone());
    let mut task = tokio::task::spawn_blocking(move || match writes {
        WriteLocation::Aside => context.run_aside(&spec, (&held, limit), &told),
        WriteLocation::Directly => context.run_directly(&spec, (&held, limit), &told),
    });
    let ended = tokio::select! {
        ended = &mut task => ended,
        () = tokio::time::sleep(limit) => {
            stopper.stop(StopReason::TimeOut);
            task.await
        }
        () = ctx.cancel.cancelled() => {
            stopper.stop(StopReason::Cancel);
            task.await
        }
    };
    ended.unwrap_or_else(|_| Err(broke_off()))
}

/// A call that nobody waits for any more keeps nothing running.
struct StopCommandOnDrop(Arc<CommandStopper>);

impl Drop for StopCommandOnDrop {
    fn drop(&mut self) {
        self.0.stop(StopReason::Cancel);
    }
}

impl CommandContext {
    fn run_aside(
        &self,
        spec: &CommandSpec,
        held: (&CommandStopper, Duration),
        ctx: &ToolCtx,
    ) -> Result<CommandResult, ToolError> {
        let root = with_outside_repository(&self.root);
        let mut draft = Draft::new(&root, &self.dir).trying("stage changes")?.surviving(self.sync);
        let layer = draft.layer().trying("stage changes")?;
        let view = WorkspaceView::Aside { layer: layer.clone() };
        let git = draft.git_layer().trying("stage changes")?;
        let git_upper = git.as_ref().map(|git| git.layer.join(UPPER));
        for pinned in &spec.pinned {
            draft.pin(&pinned.place, &pinned.bytes).trying("stage changes")?;
        }
        let mut job = self.fenced.job(&self.root, &self.dir, spec, (Rung::Namespaces, view))?;
        if let Some(git) = git {
            lay_over(&mut job, git);
        }
        draft.hide(&job.masks);
        draft.know_programs(&self.fenced.toolchains().readable);
        let (heard, ended) = self.hear(&job, &spec.secrets, held, ctx)?;
        let look = look_at_commit(&layer.join(UPPER), &spec.folder, git_upper.as_deref());
        let commit = look.filter(|_| heard.cut.is_none()).and_then(|look| self.said_by(look, job, held.0));
        for pinned in &spec.pinned {
            draft.unpin(&pinned.place, &pinned.bytes).trying("look at what the command changed")?;
        }
        if heard.cut.is_some() {
            // Half a cache is none, and what filled `/tmp` should not stay there.
            throw_away(&self.dir);
        }
        let derived = RefCell::new(DerivedPaths::new(&root));
        let sort = |place: &WorkspacePath, kind| match derived.borrow_mut().holds(place, kind == EntryKind::Directory) {
            true => PathOrigin::Derived,
            false => PathOrigin::Source,
        };
        let FileTime(seconds, nanoseconds) = ended.began;
        let taken = draft.take_layer((seconds, nanoseconds), &sort).trying("look at what the command changed")?;
        let changes = draft.seal().trying("stage changes")?;
        if changes.listed_bytes() > LONGEST_LIST {
            drop(changes);
            return Err(self.too_long());
        }
        let mut changes = shown::change_list(changes.list());
        if let Some(commit) = commit {
            tell_commit(&mut changes, &commit, (&self.root, &spec.folder));
        }
        let told = taken.left_out.into_iter().chain(taken.notes).map(|(path, why)| (path, why.to_owned()));
        let told = told.chain(complained_of(&self.root, &heard.said.both));
        let left_out = told.chain(self.unseen(spec, &heard)).collect();
        Ok(CommandResult { changes: Some(changes), left_out, ..heard })
    }

    /// What a look at the files that a command has left says; `None` where it cannot be had.
    fn said_by(&self, look: Vec<String>, after: FenceJob, stopper: &CommandStopper) -> Option<String> {
        let more = ("GIT_DISCOVERY_ACROSS_FILESYSTEM".to_owned(), "1".to_owned());
        let environment = after.environment.iter().cloned().chain([more]).collect();
        let job = FenceJob { command: look, environment, stdin: Vec::new(), network: false, ..after };
        let process = self.fenced.fence().start(&job).ok()?;
        stopper.hold(process.stopper());
        let mut said = Vec::new();
        let ended = process.wait_taking(&mut |stream, bytes| match stream {
            fence::CommandStream::Stdout => said.extend(bytes),
            fence::CommandStream::Stderr => {}
        });
        let is_whole = ended.is_ok_and(|ended| ended.exit == CommandExit::Code(0));
        is_whole.then(|| String::from_utf8_lossy(&said).into_owned())
    }

    fn run_directly(
        &self,
        spec: &CommandSpec,
        held: (&CommandStopper, Duration),
        ctx: &ToolCtx,
    ) -> Result<CommandResult, ToolError> {
        let before = Steering::look(&self.root);
        let (heard, _) = self.hear(&self.direct(spec)?, &spec.secrets, held, ctx)?;
        let changes = self.end_directly(&before)?;
        Ok(CommandResult { changes, left_out: self.unseen(spec, &heard), ..heard })
    }

    /// What a command that failed names and was not shown.
    fn unseen(&self, spec: &CommandSpec, heard: &CommandResult) -> Vec<(String, String)> {
        match heard.exit {
            CommandExit::Code(0) => Vec::new(),
            CommandExit::Code(_) | CommandExit::Signal(_) | CommandExit::Stopped => {
                let is_seen = |path: &Path| self.fenced.shows(&self.root, path);
                unseen(spec, &heard.said.both, self.fenced.config(), is_seen)
            }
        }
    }

    /// Keeps what a command that wrote into the workspace itself had for its own, and holds what it made there aside
    /// that would steer haft or git: that comes in only after a question, as if it had been made aside.
    pub(crate) fn end_directly(&self, before: &Steering) -> Result<Option<ChangeList>, ToolError> {
        keep(&self.dir);
        let come = before.come(&self.root);
        if come.is_empty() {
            return Ok(None);
        }
        // The layers that were kept have left it empty.
        let _made_anew = std::fs::remove_dir(&self.dir);
        let mut draft = Draft::new(&self.root, &self.dir).trying("stage changes")?.surviving(self.sync);
        draft.layer().trying("stage changes")?;
        for place in &come {
            draft.withdraw(place).trying("hold back what steers haft or git")?;
        }
        // Nothing is left there that somebody else could have changed.
        draft.take_layer(NEVER, &|_, _| PathOrigin::Source).trying("look at what the command changed")?;
        Ok(Some(shown::change_list(draft.seal().trying("stage changes")?.list())))
    }

    /// Starts a command that writes into the workspace itself and goes on when its call has ended.
    pub(crate) fn start(&self, spec: &CommandSpec) -> Result<(Process, Isolation, Steering), ToolError> {
        let job = self.direct(spec)?;
        let before = Steering::look(&self.root);
        let process = self.fenced.fence().start_reachable(&job).map_err(|err| self.fenced.refused(&err))?;
        Ok((process, isolation(job.rung), before))
    }

    fn direct(&self, spec: &CommandSpec) -> Result<FenceJob, ToolError> {
        self.fenced.job(&self.root, &self.dir, spec, (self.fenced.rung()?, WorkspaceView::Direct))
    }

    /// Starts the job, hands its words on, and says how it ended.
    fn hear(
        &self,
        job: &FenceJob,
        secrets: &Redactor,
        (stopper, limit): (&CommandStopper, Duration),
        ctx: &ToolCtx,
    ) -> Result<(CommandResult, ProcessEnd), ToolError> {
        let begun = Instant::now();
        let process = self.fenced.fence().start(job).map_err(|err| self.fenced.refused(&err))?;
        stopper.hold(process.stopper());
        let here = Handle::current();
        here.block_on(ctx.begun());
        let mut said = OutputBuffer::without(secrets);
        let mut length = 0;
        let ended = process
            .wait_taking(&mut |stream, bytes| {
                let stream = match stream {
                    fence::CommandStream::Stdout => Stream::Stdout,
                    fence::CommandStream::Stderr => Stream::Stderr,
                };
                length += bytes.len() as u64;
                let text = said.take(stream, bytes);
                if length > LONGEST_OUTPUT {
                    stopper.stop(StopReason::Output);
                }
                here.block_on(ctx.output(stream, text));
            })
            .map_err(|err| self.fenced.refused(&err))?;
        for (stream, text) in said.rest() {
            here.block_on(ctx.output(stream, text));
        }
        let cut = match (stopper.reason(), ended.bound) {
            // What came to its own end in the same moment did come to its end.
            (Some(pulled), _) if ended.exit == CommandExit::Stopped => Some(match pulled {
                StopReason::TimeOut => Interruption::TimeOut(limit),
                StopReason::Cancel => Interruption::Cancel,
                StopReason::Output => Interruption::Output,
            }),
            (_, bound) => bound.map(Interruption::Bound),
        };
        let isolation = isolation(job.rung);
        let (exit, took, network) = (ended.exit, begun.elapsed(), job.network);
        let said = said.finish();
        let read_only_repository = could_not_write_repository(&self.root, exit, &said.both);
        let done = CommandResult {
            said,
            exit,
            took,
            changes: None,
            left_out: Vec::new(),
            isolation,
            network,
            read_only_repository,
            cut,
        };
        Ok((done, ended))
    }

    /// Nobody could look at what it has made, so it goes.
    fn too_long(&self) -> ToolError {
        let _swept_later = changes::remove(&self.dir);
        let message = "the command made paths that are too long, all together, to be shown and committed; nothing of it \
                       was kept: make fewer folders in folders";
        ToolError::new(ErrorCode::ResourceLimit, message).with("limitHit", "disk")
    }
}

/// Lets a command write into a layer over a folder that it would otherwise only read.
fn lay_over(job: &mut FenceJob, OutsideLayer { at, layer }: OutsideLayer) {
    job.readable.retain(|folder| *folder != at);
    job.layered.push(LayeredFolder { beneath: vec![at.clone()], at, layer, own_work: None });
}

/// Keeps what a command wrote into folders of its own; what cannot be kept is only a cache.
pub(crate) fn keep(dir: &Path) {
    let _only_a_cache = fence::keep(&dir.join(super::fence::PRIVATE));
}

/// Throws it away; what is left is swept away with the call's changes.
pub(crate) fn throw_away(dir: &Path) {
    let _swept_later = fence::throw_away(&dir.join(super::fence::PRIVATE));
}
