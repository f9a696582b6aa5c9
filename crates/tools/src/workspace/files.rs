//! The files of a workspace: looking at them, and planning what would change.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{CallId, ChangeList, ToolCtx, ToolError};
use haft_sandbox::{
    Root,
    changes::{self, ChangesProgress, CommitDurability, Draft},
};
use tokio::sync::mpsc;

use crate::{
    blocking::{StopFlag, StopWith, blocking, inline, stopped},
    recent_changes::RecentChanges,
    refusal::Trying,
    shown::change_list,
};

/// So much is compared before another thread would have woken up.
const SMALL: u64 = 32 << 10;

/// Where in the data folder the changes of all calls lie.
pub(crate) const CHANGES: &str = "changes";

/// The folder that tools look into and change, and where its staged changes lie.
#[derive(Debug)]
pub(crate) struct WorkspaceFiles {
    root: Arc<Root>,
    data: PathBuf,
    pub(super) sync: CommitDurability,
    recent: Arc<RecentChanges>,
}

impl WorkspaceFiles {
    /// Opens a folder; `data` is haft's own, where no tool may look.
    pub(super) fn open(dir: &Path, data: &Path, (hide, show): (&[String], &[PathBuf])) -> Result<Self, ToolError> {
        let root = Root::open(dir, &[data.to_owned()]).trying("open the workspace")?;
        let (root, recent) = (Arc::new(root.with_names(hide, show)), Arc::default());
        Ok(Self { root, data: data.to_owned(), sync: CommitDurability::Process, recent })
    }

    /// The folder that every path is opened beneath.
    pub(crate) fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// haft's own folder.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// The changes that were worked out last, still open.
    pub(crate) fn recent(&self) -> &RecentChanges {
        &self.recent
    }

    /// Looks at one path: on this very thread where the workspace is near, since waking another takes longer than a few
    /// system calls do.
    pub(crate) async fn stat_inline<T: Send + 'static>(
        &self,
        ctx: &ToolCtx,
        work: impl FnOnce(&Root) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        if self.root.is_near() { inline(|| work(&self.root)) } else { self.look(ctx, |root, _| work(root)).await }
    }

    /// Looks at files for a call.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        ctx: &ToolCtx,
        work: impl FnOnce(&Root, &StopFlag) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let root = Arc::clone(&self.root);
        blocking(StopWith::Call(ctx), move |stop| work(&root, stop)).await
    }

    /// Works out what changes at one path, where so many bytes have to be looked at.
    pub(crate) async fn plan_one<T: Send + 'static>(
        &self,
        ctx: &ToolCtx,
        bytes: u64,
        work: impl FnOnce(&Root, &mut Draft) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<(T, ChangeList), ToolError> {
        let (planning, is_quick) = (self.planning(ctx), self.sync == CommitDurability::Process && bytes <= SMALL);
        let plan = move |stop: &StopFlag| planning.carry_out(planning.draft(stop)?, work);
        if is_quick && self.root.is_near() {
            return inline(|| plan(&StopFlag::default()));
        }
        blocking(StopWith::Call(ctx), plan).await
    }

    /// Works changes out for a call; they are held aside under its id.
    pub(crate) async fn plan<T: Send + 'static>(
        &self,
        ctx: &ToolCtx,
        work: impl FnOnce(&Root, &mut Draft) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<(T, ChangeList), ToolError> {
        let planning = self.planning(ctx);
        let (tell, mut heard) = mpsc::channel(1);
        let working = blocking(StopWith::Call(ctx), move |stop| {
            // Whoever is slow to listen misses only what the next word says again.
            let draft = planning.draft(stop)?.telling(move |progress| {
                let _missed = tell.try_send(progress);
            });
            planning.carry_out(draft, work)
        });
        tokio::pin!(working);
        loop {
            tokio::select! {
                ended = &mut working => return ended,
                Some(progress) = heard.recv() => ctx.progress(None, so_far(progress)),
            }
        }
    }

    fn planning(&self, ctx: &ToolCtx) -> PlanContext {
        PlanContext {
            root: Arc::clone(&self.root),
            dir: changes_of(&self.data, &ctx.call_id),
            sync: self.sync,
            recent: Arc::clone(&self.recent),
            ctx: ctx.clone(),
        }
    }
}

/// What the work on one call's changes needs, on whichever thread it is done.
struct PlanContext {
    root: Arc<Root>,
    dir: PathBuf,
    sync: CommitDurability,
    recent: Arc<RecentChanges>,
    ctx: ToolCtx,
}

impl PlanContext {
    fn draft(&self, stop: &StopFlag) -> Result<Draft, ToolError> {
        let draft = Draft::new(&self.root, &self.dir).trying("stage changes")?;
        Ok(draft.stop_when(stop.flag()).surviving(self.sync))
    }

    fn carry_out<T>(
        &self,
        mut draft: Draft,
        work: impl FnOnce(&Root, &mut Draft) -> Result<T, ToolError>,
    ) -> Result<(T, ChangeList), ToolError> {
        let output = work(&self.root, &mut draft)?;
        Ok((output, self.seal(draft)?))
    }

    /// What was worked out, unless its call was stopped in this very moment: nobody is asked about that any more.
    fn seal(&self, draft: Draft) -> Result<ChangeList, ToolError> {
        let changes = draft.seal().trying("stage changes")?;
        if self.ctx.cancel.is_cancelled() {
            drop(changes);
            changes::remove(&self.dir).trying("drop the changes")?;
            return Err(stopped());
        }
        let listed = change_list(changes.list());
        self.recent.put(self.ctx.call_id.clone(), changes);
        Ok(listed)
    }
}

fn so_far(progress: ChangesProgress) -> String {
    match progress.bytes {
        0 => format!("{} paths so far", progress.paths),
        bytes => format!("{} paths so far, {bytes} bytes copied", progress.paths),
    }
}

/// Where the changes of a call lie.
pub(crate) fn changes_of(data: &Path, call: &CallId) -> PathBuf {
    data.join(CHANGES).join(call.as_str())
}
