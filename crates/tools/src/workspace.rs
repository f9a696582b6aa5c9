//! The folder that the tools work in.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{CallId, ToolCtx, ToolError};
use haft_sandbox::{
    Root,
    changes::{self, Changes, Draft, Progress, Sync},
};
use tokio::sync::mpsc;

use crate::{
    aside::{Stop, aside, stopped},
    refusal::Trying,
};

/// The folder that the tools work in, and where its staged changes lie.
#[derive(Debug)]
pub struct Workspace {
    root: Arc<Root>,
    data: PathBuf,
    sync: Sync,
}

impl Workspace {
    /// Opens a folder; `data` is haft's own, where changes are held aside and no tool may look.
    pub fn open(dir: &Path, data: &Path) -> Result<Self, ToolError> {
        let root = Root::open(dir, &[data.to_owned()]).trying("open the workspace")?;
        Ok(Self { root: Arc::new(root), data: data.to_owned(), sync: Sync::Process })
    }

    /// The same workspace, whose changes survive a power cut too.
    #[must_use]
    pub fn down_to_the_disk(self) -> Self {
        Self { sync: Sync::Disk, ..self }
    }

    /// Its own path, links resolved.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Looks at files for a call.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        ctx: &ToolCtx,
        work: impl FnOnce(&Root, &Stop) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let root = Arc::clone(&self.root);
        aside(ctx, move |stop| work(&root, stop)).await
    }

    /// Works changes out for a call; they are held aside under its id.
    pub(crate) async fn plan<T: Send + 'static>(
        &self,
        ctx: &ToolCtx,
        work: impl FnOnce(&Root, &mut Draft) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<(T, Changes), ToolError> {
        let root = Arc::clone(&self.root);
        let dir = changes_of(&self.data, &ctx.call_id);
        let (sync, cancel) = (self.sync, ctx.cancel.clone());
        let (tell, mut heard) = mpsc::channel(1);
        let working = aside(ctx, move |stop| {
            let draft = Draft::new(&root, &dir).trying("stage changes")?.stop_when(stop.flag()).surviving(sync);
            // Whoever is slow to listen misses only what the next word says again.
            let mut draft = draft.telling(move |progress| {
                let _missed = tell.try_send(progress);
            });
            let output = work(&root, &mut draft)?;
            let changes = draft.seal().trying("stage changes")?;
            // A call that was stopped in this very moment is not asked about any more.
            if cancel.is_cancelled() {
                drop(changes);
                changes::remove(&dir).trying("drop the changes")?;
                return Err(stopped());
            }
            Ok((output, changes))
        });
        tokio::pin!(working);
        loop {
            tokio::select! {
                ended = &mut working => return ended,
                Some(progress) = heard.recv() => ctx.progress(None, so_far(progress)),
            }
        }
    }
}

fn so_far(progress: Progress) -> String {
    match progress.bytes {
        0 => format!("{} paths so far", progress.paths),
        bytes => format!("{} paths so far, {bytes} bytes copied", progress.paths),
    }
}

/// Where the changes of a call lie.
pub(crate) fn changes_of(data: &Path, call: &CallId) -> PathBuf {
    data.join("changes").join(call.as_str())
}
