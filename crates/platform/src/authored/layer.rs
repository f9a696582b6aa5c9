//! What the rows of a tenant say about its tools, read anew when the tenant's version has moved.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use haft_runtime::{
    AnyTool, Caller, Layer, LayerSource, RegisteredTool, Registry, Scope, TenantId, ToolError, usable_as_saved,
};
use haft_sandbox::web::WebClient;
use haft_store::{TenantToolRows, ToolRow, ToolRowKind};

use super::{
    definition::{AuthoredTool, ExecutionType},
    external::ExternalTool,
    http::HttpTool,
    internal::InternalTool,
    overrides::Overrides,
};
use crate::{Platform, TenantWeb};

/// From how many tenants on those are put away that nobody has asked for in this time.
pub(super) const MANY_TENANTS: usize = 1024;
pub(super) const IN_USE: Duration = Duration::from_secs(60);

/// The tools that people have written and what they changed of others, of every tenant.
pub struct AuthoredTools {
    pub(super) platform: Arc<Platform>,
    pub(super) web: TenantWeb,
    /// The tools that are code, whose names nobody can take.
    code: Vec<Arc<Registry>>,
    kept: Mutex<HashMap<TenantId, KeptTools>>,
    /// One reads the rows, and those who want them too wait for it.
    reading: tokio::sync::Mutex<()>,
}

/// What the rows of one tenant say, as of a version.
struct KeptTools {
    version: i64,
    /// When somebody has looked last.
    looked: Instant,
    /// What the tenant is called.
    tenant: Option<Arc<str>>,
    own: Arc<Layer>,
    /// Its own tools that are switched off.
    disabled: Arc<Layer>,
    overrides: Arc<Overrides>,
}

impl AuthoredTools {
    /// Which reach as much of the web as their tenant may; the names of `code` are taken.
    pub fn new(platform: Arc<Platform>, web: TenantWeb, code: Vec<Arc<Registry>>) -> Self {
        let (kept, reading) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { platform, web, code, kept, reading }
    }

    /// The names of the tools that are code.
    pub fn code_names(&self) -> BTreeSet<String> {
        self.code.iter().flat_map(|code| code.names()).collect()
    }

    /// The tool that is code and that a name or an alias stands for.
    pub(super) fn code(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.code.iter().find_map(|code| code.find(name))
    }

    /// Every tool that is code.
    pub(super) fn all_code(&self) -> impl Iterator<Item = Arc<Layer>> {
        self.code.iter().map(|code| code.all())
    }

    /// Reads the rows of a tenant again, if they may have changed.
    pub(super) async fn refresh(&self, scope: &Scope) -> Result<(), ToolError> {
        let version = self.platform.version(scope).await?;
        if self.is_at_hand(scope, version) {
            return Ok(());
        }
        let _one_at_a_time = self.reading.lock().await;
        if self.is_at_hand(scope, version) {
            return Ok(());
        }
        let read = self.platform.store.tools_of_tenant(scope, &self.platform.house).await?;
        self.platform.saw_version(scope, read.version);
        let kept = self.made_of(scope, &read).await?;
        let mut all = self.kept();
        if all.len() >= MANY_TENANTS {
            // Whoever has just looked finds what they looked at.
            all.retain(|_, kept| kept.looked.elapsed() < IN_USE);
        }
        all.insert(scope.tenant().clone(), kept);
        Ok(())
    }

    /// A version only grows; what was read may be newer than what somebody has seen.
    fn is_at_hand(&self, scope: &Scope, version: i64) -> bool {
        let mut all = self.kept();
        let Some(kept) = all.get_mut(scope.tenant()).filter(|kept| kept.version >= version) else { return false };
        kept.looked = Instant::now();
        true
    }

    async fn made_of(&self, scope: &Scope, read: &TenantToolRows) -> Result<KeptTools, ToolError> {
        let is = |kind: ToolRowKind| move |row: &&ToolRow| row.kind == kind;
        // A tool that is code may be newer than a row of its name.
        let own = read.rows.iter().filter(is(ToolRowKind::Custom)).filter(|row| self.code(&row.slug).is_none());
        let (on, off): (Vec<&ToolRow>, Vec<&ToolRow>) = own.partition(|row| row.enabled);
        let (own, disabled) = match on.is_empty() && off.is_empty() {
            true => (no_tools(), no_tools()),
            false => {
                let client = self.web.client(scope).await?;
                (Arc::new(self.layer_of(&on, &client)), Arc::new(self.layer_of(&off, &client)))
            }
        };
        let overrides = Overrides::of(read.for_all.iter(), read.rows.iter().filter(is(ToolRowKind::Override)));
        Ok(KeptTools {
            version: read.version,
            looked: Instant::now(),
            tenant: read.tenant.as_deref().map(Arc::from),
            own,
            disabled,
            overrides: Arc::new(overrides),
        })
    }

    fn layer_of(&self, rows: &[&ToolRow], client: &Arc<WebClient>) -> Layer {
        let mut tools = Vec::new();
        for row in rows {
            match serde_json::from_str::<AuthoredTool>(&row.body) {
                Ok(tool) => tools.push(self.made(&tool, client)),
                Err(err) => tracing::warn!(slug = row.slug, %err, "a tool cannot be read"),
            }
        }
        let (tools, faults) = usable_as_saved(tools);
        let (layer, doubles) = Layer::of(tools);
        for fault in faults.iter().chain(&doubles) {
            tracing::warn!(%fault, "a tool cannot be used");
        }
        layer
    }

    /// The tool that does what was written.
    pub(super) fn made(&self, tool: &AuthoredTool, client: &Arc<WebClient>) -> Arc<dyn AnyTool> {
        match (tool.execution_type, &tool.execution) {
            (ExecutionType::Http, Some(execution)) => {
                Arc::new(HttpTool::new(tool, execution, (&self.platform, client)))
            }
            (ExecutionType::External | ExecutionType::Space, _) => Arc::new(ExternalTool::new(tool)),
            (ExecutionType::Internal | ExecutionType::Http, _) => Arc::new(InternalTool(tool.spec())),
        }
    }

    /// What a tenant is called, and what is changed of the tools that are code for it, as of the last look.
    pub(super) fn overrides(&self, scope: &Scope) -> Option<(Option<Arc<str>>, Arc<Overrides>)> {
        self.kept().get(scope.tenant()).map(|kept| (kept.tenant.clone(), kept.overrides.clone()))
    }

    /// A tenant's own tools that are there, and those that are switched off, as of the last look.
    pub(super) fn own(&self, scope: &Scope) -> (Arc<Layer>, Arc<Layer>) {
        let own = self.kept().get(scope.tenant()).map(|kept| (kept.own.clone(), kept.disabled.clone()));
        own.unwrap_or_else(|| (no_tools(), no_tools()))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<TenantId, KeptTools>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LayerSource for AuthoredTools {
    fn look<'a>(&'a self, caller: &'a Caller, _name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.refresh(&caller.scope))
    }

    fn layer(&self, caller: &Caller) -> Arc<Layer> {
        self.own(&caller.scope).0
    }
}

/// The same empty layer every time, so that what was merged from it stays known.
pub(super) fn no_tools() -> Arc<Layer> {
    static NONE: OnceLock<Arc<Layer>> = OnceLock::new();
    NONE.get_or_init(Arc::default).clone()
}
