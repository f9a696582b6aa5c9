//! The layers of a tenant's catalogue that depend on its folders, and what each caller is shown of all layers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use futures_util::future::BoxFuture;
use haft_platform::TenantGuard;
use haft_runtime::{
    Caller, Catalog, Layer, LayerSource, Layers, Permissions, PinnedTools, RegisteredTool, Registry, Scope, ToolError,
    ToolListing,
};

use super::folders::TenantFolders;

/// The tools that work in a folder, for those who have one.
pub(super) struct WorkspaceTools(pub(super) Arc<Registry>);

impl LayerSource for WorkspaceTools {
    fn layer(&self, caller: &Caller) -> Arc<Layer> {
        if caller.scope.workspace().is_some() { self.0.layer(caller) } else { no_tools() }
    }
}

/// The tools that a folder of this machine's own user brings.
pub(super) struct ProjectLayer(pub(super) Arc<TenantFolders>);

impl LayerSource for ProjectLayer {
    fn look<'a>(&'a self, caller: &'a Caller, name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.0.open(&caller.scope).await?;
            match self.0.find(&caller.scope).and_then(|folder| folder.project.clone()) {
                Some(project) => project.look(caller, name).await,
                None => Ok(()),
            }
        })
    }

    fn layer(&self, caller: &Caller) -> Arc<Layer> {
        let project = self.0.find(&caller.scope).and_then(|folder| folder.project.clone());
        project.map_or_else(no_tools, |project| project.layer(caller))
    }

    fn missing(&self, caller: &Caller, name: &str) -> Option<ToolError> {
        self.0.find(&caller.scope)?.project.as_ref()?.missing(caller, name)
    }
}

/// The tools of upstream servers of a folder of this machine's own user.
pub(super) struct UpstreamLayer(pub(super) Arc<TenantFolders>);

impl LayerSource for UpstreamLayer {
    fn look<'a>(&'a self, caller: &'a Caller, name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            match self.0.find(&caller.scope).and_then(|folder| folder.upstreams.clone()) {
                Some(upstreams) => upstreams.look(caller, name).await,
                None => Ok(()),
            }
        })
    }

    fn layer(&self, caller: &Caller) -> Arc<Layer> {
        let upstreams = self.0.find(&caller.scope).and_then(|folder| folder.upstreams.clone());
        upstreams.map_or_else(no_tools, |upstreams| upstreams.layer(caller))
    }

    fn missing(&self, caller: &Caller, name: &str) -> Option<ToolError> {
        self.0.find(&caller.scope)?.upstreams.as_ref()?.missing(caller, name)
    }
}

/// The same empty layer every time, so that what was merged from it stays known.
pub(super) fn no_tools() -> Arc<Layer> {
    static NONE: OnceLock<Arc<Layer>> = OnceLock::new();
    NONE.get_or_init(Arc::default).clone()
}

/// A catalogue that lists for each caller only what they may use. Whatever is called is checked again.
pub(super) struct UsableTools {
    catalog: Arc<Layers>,
    pins: PinnedTools,
    /// What was made of lists, so that the same one is the same.
    kept: Mutex<HashMap<Scope, Vec<UsableListing>>>,
}

/// What some permissions leave of a list.
struct UsableListing {
    all: Arc<ToolListing>,
    permissions: Permissions,
    usable: Arc<ToolListing>,
}

/// For how many scopes they are kept.
const MOST_SCOPES: usize = 1024;

impl UsableTools {
    pub(super) fn new(catalog: Arc<Layers>, pins: PinnedTools) -> Self {
        Self { catalog, pins, kept: Mutex::default() }
    }

    fn usable(&self, caller: &Caller, all: Arc<ToolListing>) -> Arc<ToolListing> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_SCOPES && !kept.contains_key(&caller.scope) {
            kept.clear();
        }
        let known = kept.entry(caller.scope.clone()).or_default();
        known.retain(|known| Arc::ptr_eq(&known.all, &all));
        if let Some(known) = known.iter().find(|known| known.permissions == caller.permissions) {
            return Arc::clone(&known.usable);
        }
        let may_use = |tool: &&Arc<RegisteredTool>| TenantGuard::may_use(caller, tool.spec());
        let usable = Arc::new(ToolListing::of(all.tools().iter().filter(may_use), &self.pins));
        let permissions = caller.permissions.clone();
        known.push(UsableListing { all, permissions, usable: Arc::clone(&usable) });
        usable
    }
}

impl Catalog for UsableTools {
    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, Result<Arc<RegisteredTool>, ToolError>> {
        self.catalog.find(caller, name)
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Arc<ToolListing>, ToolError>> {
        Box::pin(async move { Ok(self.usable(caller, self.catalog.list(caller).await?)) })
    }
}
