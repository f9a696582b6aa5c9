//! The houses. All that differs between them is said here, once.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use haft_runtime::{
    AutoApprove, CallId, Caller, CallerKind, CallerRecord, Catalog, Delivery, Doors, ErrorCode, Guard, HouseWide,
    Journal, LayerSource, Layers, Limits, OnePolicy, Only, Permissions, Pipeline, Policy, Question, QuestionAndAnswer,
    Questions, Redactor, Registry, Scope, Source, ToolError, ToolSpec, Tools, Within, Workbench, WorkspaceId,
};
use haft_sandbox::fence::Limits as FenceLimits;
use haft_store::{Store, Sync};
use haft_tools::{Around, LanguageServers, WebAccess, Workspace};

use crate::{notify::Notifier, project::ProjectTools, retention, rules, settings::Settings, upstreams::Upstreams};

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
    workspace: Arc<Workspace>,
    notifier: Arc<Notifier>,
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

/// One owner, one folder, embedded SQLite; it lives for one command.
pub async fn solo(settings: Settings, store: Store, folder: &Path) -> Result<House> {
    let workspace = workspace(&settings, folder)?;
    build(settings, store, Arc::new(workspace), folder, Served::default()).await
}

/// The same house in a process that goes on living between calls.
pub async fn living(settings: Settings, store: Store, folder: &Path) -> Result<House> {
    serving(settings, store, folder, Served::default()).await
}

/// What somebody who is served wants of a house.
#[derive(Default)]
pub(crate) struct Served {
    /// Who else hears of its calls.
    pub(crate) others: Vec<Arc<dyn Delivery>>,
    /// The only tools that there are.
    pub(crate) only: Option<Only>,
}

/// A living house that serves somebody.
pub(crate) async fn serving(settings: Settings, store: Store, folder: &Path, served: Served) -> Result<House> {
    let workspace = workspace(&settings, folder)?.outliving_calls();
    let house = build(settings, store, Arc::new(workspace), folder, served).await?;
    house.upstreams.meet_in_background();
    Ok(house)
}

async fn build(
    settings: Settings,
    store: Store,
    workspace: Arc<Workspace>,
    folder: &Path,
    served: Served,
) -> Result<House> {
    let journal: Arc<dyn Journal> = Arc::new(store.clone());
    let questions: Arc<dyn Questions> = Arc::new(store.clone());
    let workbench: Arc<dyn Workbench> = Arc::new(workspace.workbench());
    let mut tools = haft_tools::all(&workspace);
    tools.extend(haft_runtime::tools::all(&journal, &questions, &workbench));
    let registry = Arc::new(Registry::with(tools)?);
    let project = Arc::new(ProjectTools::beside(&registry, &workspace, &settings.data));
    let upstreams = Upstreams::of(&settings, &workspace);
    let layers: Vec<Arc<dyn LayerSource>> = vec![registry.clone(), project.clone(), upstreams.clone()];
    let catalog = Arc::new(Layers::new(layers).pinning(settings.client.pins.clone()).only(served.only));
    let about: Arc<dyn Catalog> = catalog.clone();
    for tool in haft_runtime::tools::about(&about) {
        registry.register(tool)?;
    }
    let scope = scope_of(folder);
    let here = Within::Only(WorkspaceId::new(folder.to_string_lossy()));
    let caller = Caller::owner(settings.user.clone(), scope.clone(), Source::Cli);
    let tools = catalog.tools(&caller);
    let notifier = Arc::new(Notifier::new(&settings));
    let pipeline = Pipeline::new(Doors {
        catalog: catalog.clone(),
        guard: Arc::new(OwnerGuard::new(scope.clone())),
        workbench: workbench.clone(),
        questions,
        journal,
        deliveries: std::iter::once(notifier.clone() as Arc<dyn Delivery>).chain(served.others).collect(),
        house: HouseWide::of_house(here.clone()),
        policies: Arc::new(OnePolicy::new(Policy {
            rules: rules::in_force(&settings.rules, settings.shipped(), &tools),
            tightening: rules::named(settings.workspace_rules.clone(), &tools),
            minimum_unasked: settings.sandbox.minimum_unasked,
        })),
        limits: Limits {
            longest_work: settings.longest_work,
            idle: settings.idle,
            answer_within: settings.expire,
            ..Limits::default()
        },
    });
    let redactor = Redactor::default();
    let house = House {
        workspace,
        pipeline,
        catalog,
        registry,
        store,
        workbench,
        settings,
        scope,
        here,
        caller,
        redactor,
        project,
        upstreams,
        notifier,
    };
    house.pipeline.recover().await?;
    house.pipeline.expire().await?;
    Ok(house)
}

/// Where the calls of a folder belong.
pub(crate) fn scope_of(folder: &Path) -> Scope {
    Scope::local(folder.to_string_lossy())
}

/// A folder to work in, with the fence around its commands.
pub(crate) fn workspace(settings: &Settings, folder: &Path) -> Result<Workspace> {
    let workspace = Workspace::open(folder, &settings.data)
        .map_err(|error| anyhow::anyhow!("{}", error.message))
        .with_context(|| format!("cannot work in {}", folder.display()))?;
    let settings_file = settings.user_file();
    let servers = LanguageServers { settings_file: settings_file.clone(), ..settings.lsp.clone() };
    let web = WebAccess { settings_file, ..settings.web.access(&settings.data, &settings.variables) };
    let workspace = workspace.running_commands(around(settings)).asking(servers).reaching(web);
    Ok(match settings.sync {
        Sync::Normal => workspace,
        Sync::Full => workspace.down_to_the_disk(),
    })
}

/// What commands are run with.
fn around(settings: &Settings) -> Around {
    let sandbox = &settings.sandbox;
    Around {
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
        writable: sandbox.write.clone(),
        hidden: sandbox.hide.clone(),
        timeout: settings.shell_timeout,
    }
}

/// The owner may do everything in the owner's own workspace, and nobody else anything.
pub struct OwnerGuard {
    scope: Scope,
}

impl OwnerGuard {
    /// For the owner's workspace.
    pub fn new(scope: Scope) -> Self {
        Self { scope }
    }
}

impl Guard for OwnerGuard {
    fn permit<'a>(&'a self, caller: &'a Caller, tool: &'a ToolSpec) -> BoxFuture<'a, Result<(), ToolError>> {
        let at_home = caller.id.kind == CallerKind::Owner && caller.scope == self.scope;
        let may = at_home && caller.permissions.allow(&tool.permission);
        let refusal = || {
            let message = format!("`{}` may not be used here by {}: another workspace", tool.name, caller.name);
            ToolError::new(ErrorCode::Forbidden, message)
        };
        Box::pin(std::future::ready(if may { Ok(()) } else { Err(refusal()) }))
    }

    fn may_answer<'a>(&'a self, caller: &'a Caller, question: &'a Question) -> BoxFuture<'a, Result<(), ToolError>> {
        let is_owner = caller.id.kind == CallerKind::Owner && caller.scope.tenant() == self.scope.tenant();
        let refusal = || {
            let message = format!("{} may not be answered by {}; its owner can", question.call, caller.name);
            ToolError::new(ErrorCode::Forbidden, message)
        };
        Box::pin(std::future::ready(if is_owner { Ok(()) } else { Err(refusal()) }))
    }

    fn most_unasked(&self, caller: &Caller) -> AutoApprove {
        if caller.id.kind == CallerKind::Owner { AutoApprove::Everything } else { AutoApprove::Nothing }
    }

    fn permissions_of<'a>(
        &'a self,
        _scope: &'a Scope,
        recorded: &'a CallerRecord,
    ) -> BoxFuture<'a, Result<Permissions, ToolError>> {
        let is_owner = recorded.who.id.kind == CallerKind::Owner;
        let permissions = if is_owner { Permissions::everything() } else { Permissions::none() };
        Box::pin(std::future::ready(Ok(permissions)))
    }
}
