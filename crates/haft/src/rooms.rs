//! What every house has: the line with its doors, the tools, the rules, and a folder to work in.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use haft_mcp::Upstreams;
use haft_runtime::{
    CallId, Caller, Catalog, Journal, LayerSource, Layers, Limits, Only, Pipeline, Policy, Question, QuestionAndAnswer,
    Questions, Redactor, Registry, Scope, Shown, ToolError, Tools, Within, Workbench,
};
use haft_sandbox::fence::FenceLimits;
use haft_store::{Durability, Store};
use haft_tools::{FenceConfig, LanguageServers, WebAccess, Workspace, Workspaces};

use crate::{notify::Notifier, project::ProjectTools, retention, rules, settings::Settings};

/// A line with everything behind its doors, for one workspace.
pub struct House {
    /// The line.
    pub pipeline: Pipeline,
    /// The tools of all layers.
    pub catalog: Arc<Layers>,
    /// The tools that are built in, for whoever brings more.
    pub registry: Arc<Registry>,
    /// The journal, the questions and everything else that lasts.
    pub store: Store,
    /// What is staged.
    pub workbench: Arc<dyn Workbench>,
    /// What it goes by.
    pub settings: Settings,
    /// The workspace, as scope.
    pub scope: Scope,
    /// The workspace, for lists.
    pub here: Within,
    /// The person at the command line.
    pub caller: Caller,
    /// Takes secrets out of what is shown.
    pub redactor: Redactor,
    /// The tools that the workspace brings, as far as they were trusted.
    pub(crate) project: Arc<ProjectTools>,
    /// The upstream MCP servers.
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) notifier: Arc<Notifier>,
}

impl House {
    /// Waits for what is under way, and writes what is queued.
    pub async fn close(&self) -> Result<()> {
        self.finish().await;
        Ok(self.store.close().await.map_err(ToolError::from)?)
    }

    /// The same for a process that ends right after: the next one finds everything in the write-ahead log.
    pub async fn leave(&self) -> Result<()> {
        self.finish().await;
        retention::quietly(self).await;
        Ok(self.store.leave().await.map_err(ToolError::from)?)
    }

    async fn finish(&self) {
        self.pipeline.finish().await;
        self.workspace.end_background().await;
        self.upstreams.end().await;
        self.notifier.finish().await;
    }

    /// The tools that there are, as of the last look.
    pub fn tools(&self) -> Arc<Tools> {
        self.catalog.tools(&self.caller)
    }

    /// The question of a call, and its answer once there is one.
    pub async fn question(&self, call: &CallId) -> Result<Option<QuestionAndAnswer>, ToolError> {
        Questions::find(&self.store, &self.scope, call).await
    }

    /// The open questions, oldest first.
    pub async fn open_questions(&self, within: &Within) -> Result<Vec<Question>, ToolError> {
        Questions::open(&self.store, &self.scope, within).await
    }
}

/// The tools that are written in Rust.
pub(crate) fn code(
    store: &Store,
    (workspaces, web_search): (&Arc<dyn Workspaces>, Shown),
    workbench: &Arc<dyn Workbench>,
) -> Result<Arc<Registry>> {
    let journal: Arc<dyn Journal> = Arc::new(store.clone());
    let questions: Arc<dyn Questions> = Arc::new(store.clone());
    let mut tools = haft_tools::all(workspaces, web_search);
    tools.extend(haft_runtime::tools::all(&journal, &questions, workbench));
    // A folder is of no tenant with a name, so that what is for some tenants only is not here.
    tools.retain(|tool| tool.tenants().is_empty());
    Ok(Arc::new(Registry::with(tools)?))
}

/// The catalogue of all layers, code first.
pub(crate) fn catalogue(layers: Vec<Arc<dyn LayerSource>>, settings: &Settings, only: Option<Only>) -> Arc<Layers> {
    Arc::new(Layers::new(layers).pinning(settings.client.pins.clone()).only(only))
}

/// Adds the tools that look into a catalogue to those that are code.
pub(crate) fn know_the_catalogue(registry: &Registry, catalog: &Arc<dyn Catalog>) -> Result<()> {
    for tool in haft_runtime::tools::about(catalog) {
        registry.register(tool)?;
    }
    Ok(())
}

/// The rules of the settings, each with its tool's own name.
pub(crate) fn policy(settings: &Settings, tools: &Tools) -> Policy {
    Policy {
        rules: rules::named(settings.rules.clone(), tools),
        defaults: settings.shipped().rules(),
        tightening: rules::named(settings.workspace_rules.clone(), tools),
        minimum_unasked: settings.sandbox.minimum_unasked,
        versions: None,
        mode: None,
    }
}

/// How long things may take.
pub(crate) fn limits(settings: &Settings) -> Limits {
    Limits {
        longest_work: settings.longest_work,
        idle: settings.idle,
        answer_within: settings.expire,
        ..Limits::default()
    }
}

/// A folder to work in, with the fence around its commands.
pub(crate) fn workspace(settings: &Settings, folder: &Path) -> Result<Workspace> {
    let names = (settings.sandbox.hide.as_slice(), settings.sandbox.show.as_slice());
    let workspace = Workspace::open_with_names(folder, &settings.data, names)
        .map_err(|error| anyhow::anyhow!("{}", error.message))
        .with_context(|| format!("cannot work in {}", folder.display()))?;
    let settings_file = settings.user_file();
    let servers = LanguageServers { settings_file: settings_file.clone(), ..settings.lsp.clone() };
    let web = WebAccess { settings_file, ..settings.web.access(&settings.data, &settings.variables) };
    let workspace = workspace.running_commands(fence(settings)).asking(servers).reaching(web);
    Ok(match settings.sync {
        Durability::Normal => workspace,
        Durability::Full => workspace.down_to_the_disk(),
    })
}

/// What commands are run with.
fn fence(settings: &Settings) -> FenceConfig {
    let sandbox = &settings.sandbox;
    FenceConfig {
        program: settings.program.clone(),
        home: settings.home.clone(),
        variables: settings.variables.clone(),
        limits: FenceLimits {
            cpu_seconds: sandbox.cpu.as_secs().max(1),
            memory: sandbox.memory,
            processes: sandbox.processes,
            written_bytes: sandbox.disk,
            ..FenceLimits::default()
        },
        minimum: sandbox.minimum_asked,
        readable: sandbox.read.clone(),
        hide: sandbox.hide.clone(),
        writable: sandbox.write.clone(),
        timeout: settings.shell_timeout,
        settings_file: settings.user_file(),
    }
}
