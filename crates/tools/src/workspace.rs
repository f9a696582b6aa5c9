//! The folder that the tools work in.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{CallId, ToolCtx, ToolError};
use haft_sandbox::{
    Root,
    changes::{Changes, Draft, Sync},
};

use crate::{
    aside::{Stop, aside},
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
        let sync = self.sync;
        aside(ctx, move |stop| {
            let mut draft = Draft::new(&root, &dir).trying("stage changes")?.stop_when(stop.flag()).surviving(sync);
            let output = work(&root, &mut draft)?;
            Ok((output, draft.seal().trying("stage changes")?))
        })
        .await
    }
}

/// Where the changes of a call lie.
pub(crate) fn changes_of(data: &Path, call: &CallId) -> PathBuf {
    data.join("changes").join(call.as_str())
}
