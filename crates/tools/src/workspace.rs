//! The folder that tools work in, as the parts that they ask for.

mod commands;
mod files;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{CallId, ErrorCode, Shown, ToolError};
use haft_sandbox::{
    changes::CommitDurability,
    fence::{Probe, Toolchains},
};

pub(crate) use commands::WorkspaceCommands;
pub(crate) use files::{CHANGES, WorkspaceFiles, changes_of};

use crate::{
    fenced::{CommandContext, FenceConfig, WorkspaceFence},
    lsp::{LanguageServers, RunningServers},
    quota::FolderQuota,
    shell::Tasks,
    web::{Web, WebAccess},
};

/// One workspace: its files, its commands, its language servers and its way to the web.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) files: WorkspaceFiles,
    pub(crate) commands: WorkspaceCommands,
    /// Absent where no command may be run.
    servers: Option<RunningServers>,
    pub(crate) web: Web,
    /// Absent where it may hold whatever fits on the disk.
    pub(crate) quota: Option<Arc<FolderQuota>>,
}

impl Workspace {
    /// Opens a folder; `data` is haft's own, where changes are held aside and no tool may look.
    pub fn open(dir: &Path, data: &Path) -> Result<Self, ToolError> {
        Self::open_with_names(dir, data, (&[], &[]))
    }

    /// The same with more names that hold secrets, and full paths at and beneath which none does.
    pub fn open_with_names(dir: &Path, data: &Path, names: (&[String], &[PathBuf])) -> Result<Self, ToolError> {
        Ok(Self {
            files: WorkspaceFiles::open(dir, data, names)?,
            commands: WorkspaceCommands::default(),
            servers: None,
            web: Web::new(WebAccess::default()),
            quota: None,
        })
    }

    /// The same workspace, which holds no more than so many bytes: a commit that would exceed that is refused.
    #[must_use]
    pub fn holding_at_most(mut self, bytes: u64) -> Self {
        self.quota = Some(Arc::new(FolderQuota::new(self.path().to_owned(), bytes)));
        self
    }

    /// The same workspace, whose changes survive a power cut too.
    #[must_use]
    pub fn down_to_the_disk(mut self) -> Self {
        self.files.sync = CommitDurability::Disk;
        self
    }

    /// The same workspace, in which commands can be run.
    #[must_use]
    pub fn running_commands(mut self, config: FenceConfig) -> Self {
        self.commands.fenced = Some(Arc::new(WorkspaceFence::new(config, self.path(), self.files.data())));
        self
    }

    /// The same workspace, with as much of the web as the user lets it have.
    #[must_use]
    pub fn reaching(self, access: WebAccess) -> Self {
        Self { web: Web::new(access), ..self }
    }

    /// The same workspace in a haft that lives on between calls, so that commands can run in the background.
    #[must_use]
    pub fn outliving_calls(mut self) -> Self {
        self.commands.tasks = Some(Arc::<Tasks>::default());
        self
    }

    /// The same workspace, in which language servers can be asked.
    #[must_use]
    pub fn asking(self, servers: LanguageServers) -> Self {
        Self { servers: Some(RunningServers::new(servers)), ..self }
    }

    /// The language servers that are asked here.
    pub(crate) fn language_servers(&self) -> Result<&RunningServers, ToolError> {
        let none = || ToolError::new(ErrorCode::SandboxUnavailable, "no language server can be run in this workspace");
        self.servers.as_ref().ok_or_else(none)
    }

    /// Ends every command that runs in the background and every language server, and waits for that.
    pub async fn end_background(&self) {
        self.commands.end_background().await;
        if let Some(servers) = &self.servers {
            servers.end_all().await;
        }
    }

    /// Which fences can be built around the commands that are run here, found out by building them.
    pub fn fences(&self) -> Result<&Probe, ToolError> {
        Ok(self.commands.fenced()?.probe())
    }

    /// What those commands see of the user's own tools.
    pub fn toolchains(&self) -> Result<&Toolchains, ToolError> {
        Ok(self.commands.fenced()?.toolchains())
    }

    /// Whether models are shown that the web can be searched.
    pub fn web_search_shown(&self) -> Shown {
        if self.web.has_search() { Shown::Always } else { Shown::Never }
    }

    /// Whether it lies in a git repository, or is one.
    pub(crate) fn is_in_a_repository(&self) -> bool {
        crate::git::has_repository(self.files.root())
    }

    /// Whether it has files that an installed language server knows, as far as a short look finds them.
    pub(crate) fn has_files_for_language_servers(&self) -> bool {
        let path = self.commands.fenced().ok().and_then(|fenced| fenced.config().variables.get("PATH"));
        let path = path.map_or("", String::as_str);
        let endings = self.servers.as_ref().map(|running| running.servers.endings_on(path)).unwrap_or_default();
        !endings.is_empty() && crate::lsp::has_files(self.path(), &endings)
    }

    /// Where what belongs to a call is held aside.
    pub(crate) fn command_context(&self, call: &CallId) -> Result<CommandContext, ToolError> {
        Ok(CommandContext {
            fenced: Arc::clone(self.commands.fenced()?),
            root: Arc::clone(self.files.root()),
            dir: changes_of(self.files.data(), call),
            sync: self.files.sync,
        })
    }

    /// Its own path, links resolved.
    pub fn path(&self) -> &Path {
        self.files.root().path()
    }
}
