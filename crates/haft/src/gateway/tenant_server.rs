//! One upstream MCP server of a tenant: how it is started or reached, and with what.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use haft_mcp::{
    Endpoint, EndpointLogin, EntryPlace, LaunchedServer, PinStore, Transport, Upstream, UpstreamPlan, UpstreamSpec,
    Upstreams,
};
use haft_platform::{Platform, ResolvedServer, ServerDefinition, ServerReach, ServerRecord, StdioCommand, TenantWeb};
use haft_runtime::{ErrorCode, Redactor, Scope, ToolError};
use haft_sandbox::web::{Url, WebRules};
use haft_tools::LongLivedProcess;
use jiff::Timestamp;

use super::{tenant_logins::TenantLogins, tenant_pins::TenantPins};
use crate::{
    rooms,
    settings::{
        Settings,
        mcp::{CPU, MEMORY, OPEN_FILES},
    },
    upstreams::{FIRST_ANSWER, blocking},
};

/// How long a server that could not be met is left alone before somebody's look makes it try again.
const AGAIN: Duration = Duration::from_secs(30);

/// Everything that a server is started or reached with. When any of it changes, the server is another one.
#[derive(Clone, PartialEq)]
pub(super) struct ServerSetup {
    pub(super) definition: ServerDefinition,
    /// What its tenant may reach; `None` for one that is started here.
    pub(super) rules: Option<WebRules>,
    /// When the secrets were set that it is given.
    pub(super) secrets: Vec<(String, Option<Timestamp>)>,
}

/// What every server is started with.
pub(super) struct ServerHost {
    pub(super) platform: Arc<Platform>,
    pub(super) web: TenantWeb,
    pub(super) settings: Settings,
}

/// A server that is used.
pub(super) struct TenantServer {
    pub(super) setup: ServerSetup,
    pub(super) pins: Arc<TenantPins>,
    /// Its tools, and nobody else's.
    pub(super) upstreams: Arc<Upstreams>,
    tried: Mutex<Option<Instant>>,
}

impl TenantServer {
    pub(super) fn new(host: &Arc<ServerHost>, scope: &Scope, setup: ServerSetup, record: &ServerRecord) -> Self {
        let pins = Arc::new(TenantPins::new(&host.platform, scope, (&setup.definition.reach, record)));
        let plan = UpstreamPlan { spec: spec(host, scope, &setup), pins: pins.clone(), can_be_met: true };
        let upstreams = Upstreams::new(vec![plan]);
        Self { setup, pins, upstreams, tried: Mutex::default() }
    }

    pub(super) fn upstream(&self) -> Option<&Arc<Upstream>> {
        self.upstreams.servers().next().map(|server| &server.upstream)
    }

    /// Whether it has said what its tools are, where it is now.
    pub(super) fn was_met(&self) -> bool {
        self.pins.read().was_met()
    }

    /// Meets it behind everybody's back, now and then for as long as that fails.
    pub(super) fn meet_in_background(&self) {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if tried.is_none_or(|tried| tried.elapsed() > AGAIN) {
            *tried = Some(Instant::now());
            self.upstreams.meet_in_background();
        }
    }

    /// Lets nobody use it any more, and ends it when those who use it now are ready, or after so long.
    pub(super) async fn close(&self, patience: Duration) {
        if let Some(upstream) = self.upstream() {
            upstream.close(patience).await;
        }
        self.upstreams.end().await;
    }
}

fn spec(host: &Arc<ServerHost>, scope: &Scope, setup: &ServerSetup) -> UpstreamSpec {
    let definition = &setup.definition;
    let (command, network, writes, at) = match &definition.reach {
        ServerReach::Http { url, .. } => {
            let at = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            (url.clone(), false, false, Some(at.unwrap_or_else(|| url.clone())))
        }
        ServerReach::Stdio(started) => {
            // Where things lie on this machine, and how they are started, is the operator's to know.
            let program = started.command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
            (program.to_string_lossy().into_owned(), started.network, writes(started), None)
        }
    };
    let launch = Arc::new((host.clone(), scope.clone(), setup.clone()));
    UpstreamSpec {
        name: definition.name.clone(),
        command,
        launch: Arc::new(move |person| {
            let launch = launch.clone();
            Box::pin(async move { launch.0.launched(&launch.1, &launch.2, person).await })
        }),
        timeout: definition.timeout(),
        allowed_tools: definition.allowed_tools.clone(),
        denied_tools: definition.denied_tools.clone(),
        effects: BTreeMap::new(),
        trusted: definition.trusted,
        network,
        writes,
        host: at,
        entry: EntryPlace::List,
        logins: TenantLogins::of(&host.platform, scope, definition).map(|logins| Arc::new(logins) as _),
    }
}

/// What haft keeps for a server is its own; a folder of the host is only as far as the operator says.
fn writes(started: &StdioCommand) -> bool {
    started.map.is_none() || started.writes
}

impl ServerHost {
    /// Starts a server, or says where it is.
    async fn launched(
        &self,
        scope: &Scope,
        setup: &ServerSetup,
        person: Option<String>,
    ) -> Result<LaunchedServer, ToolError> {
        let definition = &setup.definition;
        let given = self.platform.resolve_server(scope, definition).await?;
        match &definition.reach {
            ServerReach::Http { url, .. } => {
                let patience = definition.timeout().max(FIRST_ANSWER);
                let rules = setup.rules.clone().unwrap_or_default();
                let client = Arc::new(self.web.patient_client(rules, patience));
                let (name, url, headers) = (definition.name.clone(), url.clone(), given.headers.clone());
                let login = TenantLogins::of(&self.platform, scope, definition);
                let login = login.map_or(EndpointLogin::Impossible, |logins| logins.endpoint(&client, person));
                let endpoint = Endpoint { name, client, url, headers, patience, entry: EntryPlace::List, login };
                Ok(launched(Transport::Http(endpoint), given))
            }
            ServerReach::Stdio(started) => {
                let (started, settings) = (started.clone(), self.settings.clone());
                let name = format!("{}-{}", scope.tenant(), definition.name);
                let own = own_folder(&settings.data, scope, &definition.name);
                blocking(move || start(&started, (&name, own), &settings, given)).await
            }
        }
    }
}

fn launched(transport: Transport, given: ResolvedServer) -> LaunchedServer {
    let [redactor, named] = [given.secrets, given.named].map(|known| Redactor::knowing(Vec::new(), known));
    LaunchedServer { transport, redactor, named }
}

/// Where a server works that has no folder of the host: beside the data, so that no fence that shows one shows the other.
fn own_folder(data: &Path, scope: &Scope, name: &str) -> PathBuf {
    let mut beside = data.as_os_str().to_owned();
    beside.push("-servers");
    PathBuf::from(beside).join(scope.tenant().as_str()).join(name)
}

fn start(
    started: &StdioCommand,
    (name, own): (&str, PathBuf),
    settings: &Settings,
    given: ResolvedServer,
) -> Result<LaunchedServer, ToolError> {
    let unusable = |why: String| {
        tracing::warn!(server = name, why, "the folder of an MCP server cannot be used");
        ToolError::new(ErrorCode::ExecutionError, "its folder cannot be used; the operator finds the reason in the log")
    };
    let folder = match &started.map {
        Some(map) => PathBuf::from(map),
        None => {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&own);
            made.map_err(|err| unusable(err.to_string()))?;
            own
        }
    };
    let workspace = rooms::workspace(settings, &folder).map_err(|err| unusable(format!("{err:#}")))?;
    let (process, socket) = workspace.converse(&LongLivedProcess {
        name: format!("mcp-{name}"),
        command: started.command.clone(),
        folder: ".".to_owned(),
        scripts: Vec::new(),
        environment: given.env.clone(),
        network: started.network,
        writes: writes(started),
        cpu_seconds: CPU.as_secs(),
        memory: MEMORY,
        open_files: OPEN_FILES,
    })?;
    Ok(launched(Transport::Process(process, socket), given))
}
