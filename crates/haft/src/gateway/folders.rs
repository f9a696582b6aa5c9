//! The folders that tenants work in.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use anyhow::{Context, Result};
use haft_mcp::Upstreams;
use haft_platform::{Platform, WorkspaceFolder};
use haft_runtime::{ErrorCode, Registry, Scope, ToolError};
use haft_tools::{Workspace, Workspaces};

use crate::{
    project::ProjectTools,
    rooms,
    settings::Settings,
    upstreams::{self, SettingsLogins},
};

/// The folders that are worked in, each opened when it is first needed.
pub(super) struct TenantFolders {
    pub(super) settings: Settings,
    platform: Arc<Platform>,
    registry: OnceLock<Arc<Registry>>,
    open: Mutex<HashMap<Scope, Arc<OpenFolder>>>,
    opening: tokio::sync::Mutex<()>,
}

/// A folder with what works in it.
pub(super) struct OpenFolder {
    /// The tenant's version when it was last looked whether the folder still belongs to this node.
    version: AtomicI64,
    pub(super) workspace: Arc<Workspace>,
    pub(super) project: Option<Arc<ProjectTools>>,
    pub(super) upstreams: Option<Arc<Upstreams>>,
    pub(super) settings: Settings,
}

impl TenantFolders {
    pub(super) fn new(settings: Settings, platform: Arc<Platform>) -> Self {
        let (open, opening) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { settings, platform, registry: OnceLock::new(), open, opening }
    }

    /// The tools of haft itself, which no folder can take the place of.
    pub(super) fn know(&self, registry: &Arc<Registry>) {
        // It is told once, before anybody asks.
        let _known = self.registry.set(registry.clone());
    }

    pub(super) fn find(&self, scope: &Scope) -> Option<Arc<OpenFolder>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(scope).cloned()
    }

    /// Opens the workspace of a scope, where it has one and it is not open yet. One that was moved to another node is closed.
    pub(super) async fn open(self: &Arc<Self>, scope: &Scope) -> Result<(), ToolError> {
        if scope.workspace().is_none() {
            return Ok(());
        }
        let version = self.platform.version(scope).await?;
        let is_known = |folder: Arc<OpenFolder>| folder.version.load(Ordering::Relaxed) >= version;
        if self.find(scope).is_some_and(is_known) {
            return Ok(());
        }
        let _one_at_a_time = self.opening.lock().await;
        let folder = match self.folder_of(scope).await {
            Ok(folder) => folder,
            Err(elsewhere) => {
                let gone = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(scope);
                if let Some(gone) = gone {
                    gone.end().await;
                }
                return Err(elsewhere);
            }
        };
        if let Some(open) = self.find(scope) {
            open.version.fetch_max(version, Ordering::Relaxed);
            return Ok(());
        }
        let unusable = |err: anyhow::Error| ToolError::new(ErrorCode::Unavailable, format!("{err:#}"));
        let opened = self.opened(scope, folder, version).map_err(unusable)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(scope.clone(), Arc::new(opened));
        Ok(())
    }

    /// Where the workspace of a scope lies.
    pub(super) async fn folder_of(&self, scope: &Scope) -> Result<WorkspaceFolder, ToolError> {
        self.platform.folder_of(scope, &managed(&self.settings.data)).await
    }

    fn opened(self: &Arc<Self>, scope: &Scope, folder: WorkspaceFolder, version: i64) -> Result<OpenFolder> {
        let version = AtomicI64::new(version);
        match folder {
            WorkspaceFolder::OfThisUser(folder) => {
                let settings = Settings::read(&folder)?;
                let settings = Settings { store_url: self.settings.store_url.clone(), ..settings };
                let workspace = Arc::new(rooms::workspace(&settings, &folder)?.outliving_calls());
                let logins = SettingsLogins::with(&self.platform, scope);
                let upstreams = upstreams::of(&settings, &workspace, &logins);
                let workspaces: Arc<dyn Workspaces> = self.clone();
                let project = self
                    .registry
                    .get()
                    .map(|registry| Arc::new(ProjectTools::beside(registry, (&workspaces, &workspace), &settings)));
                Ok(OpenFolder { version, workspace, project, upstreams: Some(upstreams), settings })
            }
            WorkspaceFolder::Mapped(folder) => self.of_tenant(&folder, version, None),
            WorkspaceFolder::Managed(folder) => {
                let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
                made.with_context(|| format!("cannot make {}", folder.display()))?;
                self.of_tenant(&folder, version, Some(self.settings.serve.workspace_quota))
            }
        }
    }

    /// What lies in the folder of a tenant says nothing about how haft behaves there.
    fn of_tenant(&self, folder: &Path, version: AtomicI64, most: Option<u64>) -> Result<OpenFolder> {
        let settings = Settings { rules: Vec::new(), workspace_rules: Vec::new(), ..self.settings.clone() };
        let workspace = rooms::workspace(&settings, folder)?.outliving_calls();
        let workspace = Arc::new(match most {
            Some(most) => workspace.holding_at_most(most),
            None => workspace,
        });
        Ok(OpenFolder { version, workspace, project: None, upstreams: None, settings })
    }

    pub(super) async fn close(&self) {
        let open: Vec<Arc<OpenFolder>> =
            self.open.lock().unwrap_or_else(PoisonError::into_inner).drain().map(|(_, folder)| folder).collect();
        for folder in open {
            folder.end().await;
        }
    }
}

impl OpenFolder {
    /// Ends what goes on in it.
    async fn end(&self) {
        self.workspace.end_background().await;
        if let Some(upstreams) = &self.upstreams {
            upstreams.end().await;
        }
    }
}

/// Where the folders lie that haft makes for tenants: beside the data, so that no fence that shows one shows the other.
fn managed(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push("-workspaces");
    name.into()
}

impl Workspaces for TenantFolders {
    fn of(&self, scope: &Scope) -> Result<Arc<Workspace>, ToolError> {
        let closed = || ToolError {
            recoverable: false,
            ..ToolError::new(ErrorCode::Unavailable, "this call belongs to no workspace; name one with `workspace`")
        };
        self.find(scope).map(|folder| folder.workspace.clone()).ok_or_else(closed)
    }

    fn data(&self, _scope: &Scope) -> Result<PathBuf, ToolError> {
        Ok(self.settings.data.clone())
    }
}
