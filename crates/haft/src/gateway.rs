//! The house of many tenants: people and programs ask over HTTP, each in the workspaces of their tenant.

mod folders;
mod layers;
mod policies;
mod retention;
mod tenant_logins;
mod tenant_pins;
mod tenant_server;
mod tenant_servers;

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use futures_util::future::BoxFuture;
use haft_mcp::{Callers, ClientPeer, QuestionListeners, Server, ServerDeps};
use haft_platform::{
    AuthoredTools, JobLoop, JobRunner, MasterKey, Notices, OidcSignIn, PatchedTools, Platform, SignInsLast,
    TenantGuard, TenantWeb, WorkspaceFolder,
};
use haft_runtime::{
    Caller, Catalog, Doors, ErrorCode, HouseWide, Journal, LayerSource, Layers, Limits, Pipeline, Questions, Redactor,
    Registry, Scope, Shown, SpanSink, ToolError, Within, Workbench,
};
use haft_sandbox::web::{FetchLimits, WebClient};
use haft_server::{App, Metrics, OpenRequests, Place, SignInMethods};
use haft_store::Store;
use haft_tools::{OpenWorkspaces, SandboxWorkbench, Workspaces};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    commands::mcp::{plain_card, stop_call},
    notify::Notifier,
    rooms,
    settings::Settings,
    telemetry::Telemetry,
};
use folders::TenantFolders;
use layers::{ProjectLayer, UpstreamLayer, UsableTools, WorkspaceTools};
use policies::TenantPolicies;
use retention::{FolderRetention, JournalRetention};
use tenant_servers::TenantServers;

/// The right to work for every tenant.
pub(crate) fn wide() -> HouseWide {
    HouseWide::of_house(Within::Everything)
}

/// A line for all tenants, with everything behind its doors.
pub struct TenantHouse {
    /// What the HTTP door stands on.
    pub app: Arc<App>,
    /// The tools over MCP.
    pub mcp: Server,
    /// What goes on by itself.
    pub jobs: JobLoop,
    folders: Arc<TenantFolders>,
    servers: Arc<TenantServers>,
    notifier: Arc<Notifier>,
    telemetry: Option<Arc<Telemetry>>,
    store: Store,
}

impl TenantHouse {
    /// Where the workspace of a scope lies.
    pub(crate) async fn folder_of(&self, scope: &Scope) -> Result<WorkspaceFolder, ToolError> {
        self.folders.folder_of(scope).await
    }

    /// Waits for what is under way, so long at most, and writes what is queued. What has not ended by then is ended by
    /// whoever starts next.
    pub async fn leave(&self, within: Duration) -> Result<()> {
        let ended = tokio::time::timeout(within, async {
            self.mcp.finish().await;
            self.app.under_way.close();
            self.app.under_way.wait().await;
            self.app.pipeline.finish().await;
            self.folders.close().await;
            self.servers.close().await;
            self.notifier.finish().await;
        });
        if ended.await.is_err() {
            tracing::warn!("something was still under way at the end");
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.finish().await;
        }
        Ok(self.store.leave().await.map_err(ToolError::from)?)
    }
}

/// The house of all tenants of a store, reached at a place.
pub(crate) async fn build(
    settings: Settings,
    store: Store,
    key: MasterKey,
    (place, sign_ins_last): (Place, SignInsLast),
) -> Result<TenantHouse> {
    let platform = announced(&store, key).await?;
    let folders = Arc::new(TenantFolders::new(settings.clone(), platform.clone()));
    let workspaces: Arc<dyn Workspaces> = folders.clone();
    let workbench: Arc<dyn Workbench> = Arc::new(SandboxWorkbench::new(workspaces.clone()));
    let journal: Arc<dyn Journal> = Arc::new(store.clone());
    let questions: Arc<dyn Questions> = Arc::new(store.clone());
    let about_calls = Arc::new(Registry::with(haft_runtime::tools::all(&journal, &questions, &workbench))?);
    let TenantTools { catalog, authored, servers, web } =
        catalogue(&settings, &platform, (&folders, &workspaces), &about_calls)?;
    let listed: Arc<dyn Catalog> = Arc::new(UsableTools::new(catalog.clone(), settings.client.pins.clone()));
    // Whoever searches finds what they may use.
    rooms::know_the_catalogue(&about_calls, &listed)?;
    let (asked, notifier) = (Arc::new(QuestionListeners::default()), Arc::new(Notifier::new(&settings)));
    let guard = Arc::new(TenantGuard::new(platform.clone()));
    let metrics = Arc::new(Metrics::new(authored.code_names()));
    let telemetry = telemetry(&settings)?;
    let spans = telemetry.clone().map(|telemetry| telemetry as Arc<dyn SpanSink>);
    let pipeline = Pipeline::new(Doors {
        catalog: catalog.clone(),
        guard: guard.clone(),
        workbench: workbench.clone(),
        questions: questions.clone(),
        journal: journal.clone(),
        deliveries: vec![notifier.clone(), asked.clone(), metrics.clone()],
        house: wide(),
        policies: Arc::new(TenantPolicies::new(&platform, &folders, &catalog)),
        limits: Limits { recorded_first: true, ..rooms::limits(&settings) },
        spans: spans.clone(),
    });
    let mcp = mcp_server(&settings, &platform, &pipeline, (listed, asked));
    let notices = notices(&settings, &platform, (&web, &place))?;
    let jobs = jobs(&settings, &platform, &pipeline, notices.clone()).await?;
    let sign_in = sign_in_methods(&settings, &platform, &web)?;
    let app = Arc::new(App {
        platform,
        pipeline,
        catalog: catalog.clone(),
        authored,
        servers: servers.clone(),
        web,
        notices,
        guard,
        journal,
        questions,
        workbench,
        redactor: Redactor::default(),
        limits: settings.serve.limits.at(&place),
        place,
        sign_ins_last,
        sign_in,
        requests: OpenRequests::default(),
        media_limits: settings.serve.media,
        stop: CancellationToken::new(),
        under_way: TaskTracker::new(),
        metrics,
        spans,
    });
    app.pipeline.recover_in_background().await?;
    Ok(TenantHouse { app, mcp, jobs, folders, servers, notifier, telemetry, store })
}

/// The rules of everybody in a store, which knows from now on that a server uses it: whoever would put another database in
/// its place is refused.
async fn announced(store: &Store, key: MasterKey) -> Result<Arc<Platform>> {
    let platform = Arc::new(Platform::new(store.clone(), wide(), key));
    platform.have_local_tenant().await?;
    store.announce(&wide()).await.map_err(ToolError::from)?;
    Ok(platform)
}

/// Where spans go, if anybody wants them.
fn telemetry(settings: &Settings) -> Result<Option<Arc<Telemetry>>> {
    let collector = settings.telemetry.collector(&settings.data, &settings.variables)?;
    collector.map(|collector| Telemetry::start(&collector, &settings.serve.node)).transpose()
}

/// Who tells people of questions.
fn notices(settings: &Settings, platform: &Arc<Platform>, (web, place): (&TenantWeb, &Place)) -> Result<Arc<Notices>> {
    let channels = (settings.mailer()?, web.clone());
    Ok(Arc::new(Notices::new(platform.clone(), channels, place.url(), settings.mail.times)))
}

/// How people sign in, apart from links.
fn sign_in_methods(settings: &Settings, platform: &Arc<Platform>, web: &TenantWeb) -> Result<SignInMethods> {
    let (password, providers) = settings.sign_in_methods()?;
    Ok(SignInMethods { password, oidc: OidcSignIn::new(platform.clone(), providers, web.everybody()) })
}

/// The tools over MCP, for whoever the HTTP door lets in.
fn mcp_server(
    settings: &Settings,
    platform: &Platform,
    pipeline: &Pipeline,
    (listed, asked): (Arc<dyn Catalog>, Arc<QuestionListeners>),
) -> Server {
    let store = platform.store();
    Server::new(ServerDeps {
        pipeline: pipeline.clone(),
        catalog: listed,
        questions: Arc::new(store.clone()),
        journal: Arc::new(store.clone()),
        asked,
        callers: Arc::new(AdmittedCallers),
        auto_approve: haft_runtime::AutoApprove::Reads,
        may_approve: settings.client.may_approve,
        card: Box::new(plain_card),
        stop: stop_call(store),
        key: platform.master_key().derived("mcp state", b""),
    })
}

/// What goes on by itself on this node.
async fn jobs(
    settings: &Settings,
    platform: &Arc<Platform>,
    pipeline: &Pipeline,
    notices: Arc<Notices>,
) -> Result<JobLoop> {
    let (store, local) = (platform.store().clone(), platform.tenant("local").await?.scope);
    let runners: Vec<Arc<dyn JobRunner>> = vec![
        Arc::new(JournalRetention { platform: platform.clone(), settings: settings.clone() }),
        Arc::new(FolderRetention { store, settings: settings.clone(), local }),
    ];
    Ok(JobLoop::new(platform, pipeline.clone(), &settings.serve.node, runners, notices))
}

/// The tools of all tenants, and where those come from that are not code.
struct TenantTools {
    catalog: Arc<Layers>,
    authored: Arc<AuthoredTools>,
    servers: Arc<TenantServers>,
    web: TenantWeb,
}

fn catalogue(
    settings: &Settings,
    platform: &Arc<Platform>,
    (folders, workspaces): (&Arc<TenantFolders>, &Arc<dyn Workspaces>),
    about_calls: &Arc<Registry>,
) -> Result<TenantTools> {
    let web_search = if settings.web.provider.is_some() { Shown::Always } else { Shown::Never };
    let in_workspaces = Arc::new(Registry::with(haft_tools::all(workspaces, web_search))?);
    folders.know(&in_workspaces);
    let code = vec![about_calls.clone(), in_workspaces.clone()];
    let web = tenant_web(settings, platform);
    let authored = Arc::new(AuthoredTools::new(platform.clone(), web.clone(), code));
    let servers = TenantServers::new(platform, web.clone(), settings);
    let as_each_has_it = |code: Arc<dyn LayerSource>| Arc::new(PatchedTools::new(code, authored.clone()));
    let layers: Vec<Arc<dyn LayerSource>> = vec![
        as_each_has_it(about_calls.clone()),
        as_each_has_it(Arc::new(WorkspaceTools(in_workspaces))),
        authored.clone(),
        Arc::new(ProjectLayer(folders.clone())),
        Arc::new(UpstreamLayer(folders.clone())),
        servers.clone(),
    ];
    let catalog = rooms::catalogue(layers, settings, None);
    Ok(TenantTools { catalog, authored, servers, web })
}

fn tenant_web(settings: &Settings, platform: &Arc<Platform>) -> TenantWeb {
    let limits = FetchLimits { connect: settings.web.connect, ..FetchLimits::default() };
    TenantWeb::new(platform.clone(), WebClient::new(settings.web.rules(), limits))
}

/// What tenants have written and changed, for somebody who only looks at it and changes it.
pub(crate) fn written_tools(settings: &Settings, platform: Platform) -> Result<AuthoredTools> {
    let nowhere: Arc<dyn Workspaces> = Arc::new(OpenWorkspaces::new(&settings.data));
    let workbench: Arc<dyn Workbench> = Arc::new(SandboxWorkbench::new(nowhere.clone()));
    let code = rooms::code(platform.store(), (&nowhere, Shown::Always), &workbench)?;
    let nothing: Arc<dyn Catalog> = rooms::catalogue(Vec::new(), settings, None);
    rooms::know_the_catalogue(&code, &nothing)?;
    let platform = Arc::new(platform);
    Ok(AuthoredTools::new(platform.clone(), tenant_web(settings, &platform), vec![code]))
}

/// Every client is whoever the HTTP door has let in; what it says of itself is only shown.
struct AdmittedCallers;

impl Callers for AdmittedCallers {
    fn caller<'a>(&'a self, client: ClientPeer<'a>) -> BoxFuture<'a, Result<Caller, ToolError>> {
        let unknown = || ToolError::new(ErrorCode::Unauthorized, "nobody knows whose this request is");
        Box::pin(std::future::ready(client.admitted.cloned().ok_or_else(unknown)))
    }

    fn answerer<'a>(&'a self, client: ClientPeer<'a>) -> BoxFuture<'a, Result<Caller, ToolError>> {
        self.caller(client)
    }
}
