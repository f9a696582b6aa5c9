//! The folder that the tools work in.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{CallId, ChangeList, ErrorCode, ToolCtx, ToolError};
use haft_sandbox::{
    Root,
    changes::{self, Draft, Progress, Sync},
    fence::{Probe, Toolchains},
};
use tokio::sync::mpsc;

use crate::{
    blocking::{Stop, StopWith, blocking, inline, stopped},
    fenced::{Around, Bench, Fenced},
    lsp::{Desk, LanguageServers},
    recent_changes::RecentChanges,
    refusal::Trying,
    shell::Tasks,
    shown::change_list,
    web::{Web, WebAccess},
    workbench::SandboxWorkbench,
};

/// So much is compared before another thread would have woken up.
const SMALL: u64 = 32 << 10;

/// Where in the data folder the changes of all calls lie.
pub(crate) const CHANGES: &str = "changes";

/// The folder that the tools work in, and where its staged changes lie.
#[derive(Debug)]
pub struct Workspace {
    root: Arc<Root>,
    data: PathBuf,
    sync: Sync,
    /// Absent where no command may be run.
    fenced: Option<Arc<Fenced>>,
    /// Absent where nothing outlives its call.
    tasks: Option<Arc<Tasks>>,
    /// Absent where no command may be run.
    servers: Option<Desk>,
    web: Arc<Web>,
    /// What was worked out last.
    recent: Arc<RecentChanges>,
}

impl Workspace {
    /// Opens a folder; `data` is haft's own, where changes are held aside and no tool may look.
    pub fn open(dir: &Path, data: &Path) -> Result<Self, ToolError> {
        let root = Root::open(dir, &[data.to_owned()]).trying("open the workspace")?;
        Ok(Self {
            root: Arc::new(root),
            data: data.to_owned(),
            sync: Sync::Process,
            fenced: None,
            tasks: None,
            servers: None,
            web: Arc::new(Web::new(WebAccess::default())),
            recent: Arc::default(),
        })
    }

    /// The same workspace, whose changes survive a power cut too.
    #[must_use]
    pub fn down_to_the_disk(self) -> Self {
        Self { sync: Sync::Disk, ..self }
    }

    /// The same workspace, in which commands can be run.
    #[must_use]
    pub fn running_commands(self, around: Around) -> Self {
        let fenced = Some(Arc::new(Fenced::new(around, self.root.path(), &self.data)));
        Self { fenced, ..self }
    }

    /// The same workspace, with as much of the web as the user lets it have.
    #[must_use]
    pub fn reaching(self, access: WebAccess) -> Self {
        Self { web: Arc::new(Web::new(access)), ..self }
    }

    /// The same workspace in a haft that lives on between calls, so that commands can run in the background.
    #[must_use]
    pub fn outliving_calls(self) -> Self {
        Self { tasks: Some(Arc::default()), ..self }
    }

    /// The same workspace, in which language servers can be asked.
    #[must_use]
    pub fn asking(self, servers: LanguageServers) -> Self {
        Self { servers: Some(Desk::new(servers)), ..self }
    }

    /// Whether this haft lives on between calls.
    pub(crate) fn outlives_calls(&self) -> bool {
        self.tasks.is_some()
    }

    /// The language servers that are asked here.
    pub(crate) fn language_servers(&self) -> Result<&Desk, ToolError> {
        let none = || ToolError::new(ErrorCode::SandboxUnavailable, "no language server can be run in this workspace");
        self.servers.as_ref().ok_or_else(none)
    }

    /// Ends every command that runs in the background and every language server, and waits for that.
    pub async fn end_background(&self) {
        if let Some(tasks) = &self.tasks {
            tasks.end_all().await;
        }
        if let Some(servers) = &self.servers {
            servers.end_all().await;
        }
    }

    /// The commands that run in the background.
    pub(crate) fn tasks(&self) -> Result<&Tasks, ToolError> {
        let message = "a background command ends with the haft that started it, and this one ends with its call; \
                       use `shell_exec`, or call from a haft that stays, such as `haft mcp`";
        self.tasks.as_deref().ok_or_else(|| ToolError::new(ErrorCode::Unavailable, message))
    }

    /// The fence around the commands that are run here.
    pub(crate) fn fenced(&self) -> Result<&Arc<Fenced>, ToolError> {
        let none = || ToolError::new(ErrorCode::SandboxUnavailable, "no command can be run in this workspace");
        self.fenced.as_ref().ok_or_else(none)
    }

    /// Which fences can be built around the commands that are run here, found out by building them.
    pub fn fences(&self) -> Result<&Probe, ToolError> {
        Ok(self.fenced()?.probe())
    }

    /// What those commands see of the user's own tools.
    pub fn toolchains(&self) -> Result<&Toolchains, ToolError> {
        Ok(self.fenced()?.toolchains())
    }

    /// The web as the tools reach it.
    pub(crate) fn web(&self) -> &Arc<Web> {
        &self.web
    }

    pub(crate) fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Where what belongs to a call is held aside.
    pub(crate) fn bench(&self, call: &CallId) -> Result<Bench, ToolError> {
        Ok(Bench {
            fenced: Arc::clone(self.fenced()?),
            root: Arc::clone(&self.root),
            dir: changes_of(&self.data, call),
            sync: self.sync,
        })
    }

    /// The door to the changes that are staged here, and to those of every other workspace in the same data folder.
    pub fn workbench(&self) -> SandboxWorkbench {
        SandboxWorkbench::beside(&self.data, Arc::clone(&self.recent))
    }

    /// Its own path, links resolved.
    pub fn path(&self) -> &Path {
        self.root.path()
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
        work: impl FnOnce(&Root, &Stop) -> Result<T, ToolError> + Send + 'static,
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
        let root = Arc::clone(&self.root);
        let dir = changes_of(&self.data, &ctx.call_id);
        let (sync, of, recent) = (self.sync, ctx.clone(), Arc::clone(&self.recent));
        let is_quick = sync == Sync::Process && self.root.is_near() && bytes <= SMALL;
        let plan = move |stop: &Stop| {
            let draft = Draft::new(&root, &dir).trying("stage changes")?;
            let mut draft = draft.stop_when(stop.flag()).surviving(sync);
            let output = work(&root, &mut draft)?;
            Ok((output, sealed(draft, &dir, &of, &recent)?))
        };
        if is_quick { inline(|| plan(&Stop::default())) } else { blocking(StopWith::Call(ctx), plan).await }
    }

    /// Works changes out for a call; they are held aside under its id.
    pub(crate) async fn plan<T: Send + 'static>(
        &self,
        ctx: &ToolCtx,
        work: impl FnOnce(&Root, &mut Draft) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<(T, ChangeList), ToolError> {
        let root = Arc::clone(&self.root);
        let dir = changes_of(&self.data, &ctx.call_id);
        let (sync, of, recent) = (self.sync, ctx.clone(), Arc::clone(&self.recent));
        let (tell, mut heard) = mpsc::channel(1);
        let working = blocking(StopWith::Call(ctx), move |stop| {
            let draft = Draft::new(&root, &dir).trying("stage changes")?.stop_when(stop.flag()).surviving(sync);
            // Whoever is slow to listen misses only what the next word says again.
            let mut draft = draft.telling(move |progress| {
                let _missed = tell.try_send(progress);
            });
            let output = work(&root, &mut draft)?;
            Ok((output, sealed(draft, &dir, &of, &recent)?))
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

/// What was worked out, unless its call was stopped in this very moment: nobody is asked about that any more.
fn sealed(draft: Draft, dir: &Path, ctx: &ToolCtx, recent: &RecentChanges) -> Result<ChangeList, ToolError> {
    let changes = draft.seal().trying("stage changes")?;
    if ctx.cancel.is_cancelled() {
        drop(changes);
        changes::remove(dir).trying("drop the changes")?;
        return Err(stopped());
    }
    let listed = change_list(changes.list());
    recent.put(ctx.call_id.clone(), changes);
    Ok(listed)
}

fn so_far(progress: Progress) -> String {
    match progress.bytes {
        0 => format!("{} paths so far", progress.paths),
        bytes => format!("{} paths so far, {bytes} bytes copied", progress.paths),
    }
}

/// Where the changes of a call lie.
pub(crate) fn changes_of(data: &Path, call: &CallId) -> PathBuf {
    data.join(CHANGES).join(call.as_str())
}
