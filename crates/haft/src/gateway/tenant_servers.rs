//! The tools of tenants' upstream MCP servers: a layer of each tenant's catalogue, and the connections behind it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use futures_util::future::{BoxFuture, join_all};
use haft_mcp::{LoginAnswer, PREFIX, PinStore, ServerPins, tool_name};
use haft_platform::{Platform, ServerDefinition, ServerReach, ServerRecord, TenantWeb};
use haft_runtime::{Caller, ErrorCode, Layer, LayerSource, Scope, Source, TenantId, ToolError};
use haft_server::{AcceptedTools, LoginLink, LoginReturn, ServerConnections};
use tokio::{sync::Mutex as Turns, task::JoinHandle, time::timeout};
use tokio_util::task::TaskTracker;

use super::{
    layers::no_tools,
    tenant_logins::TenantLogins,
    tenant_pins::changed,
    tenant_server::{ServerHost, ServerSetup, TenantServer},
};
use crate::settings::Settings;

/// How long whoever wants a server looked at again waits for that.
const LOOK: Duration = Duration::from_secs(20);
/// How long calls that are under way may take to end when their server becomes another one.
const FAREWELL: Duration = Duration::from_secs(30);
/// How long what is known of a tenant is kept that nobody asks for: longer than any call waits for its answer.
const FORGET: Duration = Duration::from_secs(3600);
/// How often it is looked for servers that nobody uses, at least.
const SWEEP: Duration = Duration::from_secs(30);

/// The upstream servers of all tenants, each used when it is first needed.
pub(super) struct TenantServers {
    host: Arc<ServerHost>,
    tenants: Mutex<HashMap<TenantId, Arc<TenantEntry>>>,
    closing: TaskTracker,
    sweeping: Mutex<Option<JoinHandle<()>>>,
}

/// What is known of one tenant's servers.
struct TenantEntry {
    scope: Scope,
    reading: Turns<()>,
    kept: Mutex<Arc<KeptServers>>,
    looked: Mutex<Instant>,
}

/// The servers of one tenant as of a version.
#[derive(Default)]
struct KeptServers {
    version: Option<i64>,
    servers: BTreeMap<String, Arc<TenantServer>>,
    /// Those that have not said yet what their tools are.
    unmet: Vec<Arc<TenantServer>>,
    /// The tools of each server, and of all together.
    layers: Vec<Arc<Layer>>,
    layer: Option<Arc<Layer>>,
}

impl TenantServers {
    /// Of all tenants. Those that nobody uses are ended now and then, until it is closed.
    pub(super) fn new(platform: &Arc<Platform>, web: TenantWeb, settings: &Settings) -> Arc<Self> {
        let host = Arc::new(ServerHost { platform: platform.clone(), web, settings: settings.clone() });
        let servers =
            Arc::new(Self { host, tenants: Mutex::default(), closing: TaskTracker::new(), sweeping: Mutex::default() });
        let (us, idle) = (Arc::downgrade(&servers), settings.serve.mcp_idle);
        *servers.sweeping.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokio::spawn(sweep(us, idle)));
        servers
    }

    /// Ends every server, and waits for that.
    pub(super) async fn close(&self) {
        let sweeping = self.sweeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sweeping) = sweeping {
            sweeping.abort();
            let _ended = sweeping.await;
        }
        let entries: Vec<Arc<TenantEntry>> = self.tenants().drain().map(|(_, entry)| entry).collect();
        let servers = entries.iter().flat_map(|entry| entry.kept().servers.values().cloned().collect::<Vec<_>>());
        join_all(servers.map(|server| async move { server.close(Duration::ZERO).await })).await;
        self.closing.close();
        self.closing.wait().await;
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<TenantId, Arc<TenantEntry>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, scope: &Scope) -> Arc<TenantEntry> {
        let mut tenants = self.tenants();
        let entry = tenants.entry(scope.tenant().clone()).or_insert_with(|| Arc::new(TenantEntry::new(scope)));
        *entry.looked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        entry.clone()
    }

    /// The servers of a tenant as they are now.
    async fn refresh(&self, entry: &TenantEntry) -> Result<Arc<KeptServers>, ToolError> {
        let platform = &self.host.platform;
        let kept = entry.kept();
        if kept.version == Some(platform.version(&entry.scope).await?) {
            return Ok(kept);
        }
        let _one_at_a_time = entry.reading.lock().await;
        let (before, version) = (entry.kept(), platform.version(&entry.scope).await?);
        if before.version == Some(version) {
            return Ok(before);
        }
        let now = Arc::new(self.read(&entry.scope, &before, version).await?);
        *entry.kept.lock().unwrap_or_else(PoisonError::into_inner) = now.clone();
        self.close_those_gone(&before, &now);
        Ok(now)
    }

    async fn read(&self, scope: &Scope, before: &KeptServers, version: i64) -> Result<KeptServers, ToolError> {
        let mut servers = BTreeMap::new();
        for (setup, record) in self.setups(scope).await? {
            let name = record.definition.name.clone();
            let known = before.servers.get(&name).filter(|known| known.setup == setup);
            match self.used(scope, known, (setup, &record)).await {
                Ok(server) => drop(servers.insert(name, server)),
                // It was removed at this very moment.
                Err(error) if error.code == ErrorCode::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let everybody = Caller::owner("haft", scope.clone(), Source::House);
        let mut layers = Vec::new();
        for server in servers.values() {
            server.upstreams.look(&everybody, None).await?;
            layers.push(server.upstreams.layer(&everybody));
        }
        let is_same = layers.len() == before.layers.len()
            && layers.iter().zip(&before.layers).all(|(now, before)| Arc::ptr_eq(now, before));
        let layer = match is_same {
            true => before.layer.clone(),
            // Names begin with their server's.
            false => Some(Arc::new(Layer::of(layers.iter().flat_map(|layer| layer.tools().cloned())).0)),
        };
        let unmet = servers.values().filter(|server| !server.was_met()).cloned().collect();
        Ok(KeptServers { version: Some(version), servers, unmet, layers, layer })
    }

    /// The server that is used already, with what is known of it by now, or a new one.
    async fn used(
        &self,
        scope: &Scope,
        known: Option<&Arc<TenantServer>>,
        (setup, listed): (ServerSetup, &ServerRecord),
    ) -> Result<Arc<TenantServer>, ToolError> {
        if let Some(known) = known {
            known.pins.catch_up(listed.revision).await?;
            return Ok(known.clone());
        }
        let record = self.host.platform.server(scope, &listed.definition.name).await?;
        let server = TenantServer::new(&self.host, scope, setup, &record);
        if let Some(upstream) = server.upstream() {
            let started = &upstream.spec().command;
            server.pins.change(&mut |pins| pins.move_to(started)).await?;
        }
        Ok(Arc::new(server))
    }

    /// Every server that is used, with everything that it is started or reached with.
    async fn setups(&self, scope: &Scope) -> Result<Vec<(ServerSetup, ServerRecord)>, ToolError> {
        let mut records = self.host.platform.servers(scope).await?;
        records.retain(|record| record.definition.enabled);
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let (rules, times) = (self.host.web.rules(scope).await?, self.host.platform.secret_times(scope).await?);
        let setup = |record: ServerRecord| {
            let definition = record.definition.clone();
            let secrets = definition.secrets().into_iter().map(|name| (name.clone(), times.get(&name).copied()));
            let rules = match &definition.reach {
                ServerReach::Http { .. } => Some(rules.clone()),
                ServerReach::Stdio(_) => None,
            };
            (ServerSetup { secrets: secrets.collect(), definition, rules }, record)
        };
        Ok(records.into_iter().map(setup).collect())
    }

    /// Those that are used no more end at once; what another one takes the place of ends when its calls have.
    fn close_those_gone(&self, before: &KeptServers, now: &KeptServers) {
        for (name, server) in &before.servers {
            let patience = match now.servers.get(name) {
                Some(same) if Arc::ptr_eq(same, server) => continue,
                Some(_) => FAREWELL,
                None => Duration::ZERO,
            };
            let server = server.clone();
            self.closing.spawn(async move { server.close(patience).await });
        }
    }

    /// Ends what nobody has used for so long, and forgets the tenants that nobody asks for.
    async fn sweep(&self, idle: Duration) {
        let entries: Vec<Arc<TenantEntry>> = self.tenants().values().cloned().collect();
        for entry in entries {
            if entry.looked.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > FORGET {
                self.tenants().remove(entry.scope.tenant());
                self.close_those_gone(&entry.kept(), &KeptServers::default());
                continue;
            }
            let kept = entry.kept();
            if kept.servers.is_empty() {
                continue;
            }
            // Another node may have removed one.
            if let Err(error) = self.refresh(&entry).await {
                tracing::warn!(error = error.message, "the MCP servers of a tenant could not be looked at");
            }
            let upstreams = kept.servers.values().filter_map(|server| server.upstream());
            join_all(upstreams.map(|upstream| upstream.end_if_idle(idle))).await;
        }
    }
}

async fn sweep(servers: Weak<TenantServers>, idle: Duration) {
    loop {
        tokio::time::sleep((idle / 2).clamp(Duration::from_millis(100), SWEEP)).await;
        let Some(servers) = servers.upgrade() else { return };
        servers.sweep(idle).await;
    }
}

impl TenantEntry {
    fn new(scope: &Scope) -> Self {
        let (reading, kept, looked) = (Turns::default(), Mutex::default(), Mutex::new(Instant::now()));
        Self { scope: scope.clone(), reading, kept, looked }
    }

    fn kept(&self) -> Arc<KeptServers> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl KeptServers {
    /// The server that the name of a tool seems to belong to.
    fn server_of(&self, tool: &str) -> Option<&Arc<TenantServer>> {
        let (server, _) = tool.strip_prefix(PREFIX)?.split_once("__")?;
        self.servers.get(server)
    }
}

impl LayerSource for TenantServers {
    fn look<'a>(&'a self, caller: &'a Caller, name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let entry = self.entry(&caller.scope);
            let kept = self.refresh(&entry).await?;
            kept.unmet.iter().for_each(|server| server.meet_in_background());
            let Some(server) = name.and_then(|name| kept.server_of(name)) else { return Ok(()) };
            server.upstreams.look(caller, name).await?;
            // One that was only met now has said what its tools are.
            self.refresh(&entry).await.map(drop)
        })
    }

    fn layer(&self, caller: &Caller) -> Arc<Layer> {
        let entry = self.tenants().get(caller.scope.tenant()).cloned();
        entry.and_then(|entry| entry.kept().layer.clone()).unwrap_or_else(no_tools)
    }

    fn missing(&self, caller: &Caller, name: &str) -> Option<ToolError> {
        let kept = self.tenants().get(caller.scope.tenant())?.kept();
        kept.server_of(name)?.upstreams.missing(caller, name)
    }
}

impl ServerConnections for TenantServers {
    fn notice<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<(), ToolError>> {
        self.look(caller, None)
    }

    fn refresh<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.host.platform.look_at_version(&caller.scope).await?;
            let entry = self.entry(&caller.scope);
            let kept = TenantServers::refresh(self, &entry).await?;
            let Some(upstream) = kept.servers.get(name).and_then(|server| server.upstream()) else {
                self.host.platform.server(&caller.scope, name).await?;
                let message = format!("the server `{name}` is disabled; set `enabled` to true first");
                return Err(ToolError::new(ErrorCode::Conflict, message));
            };
            let used = upstream.used_by(caller).await?;
            // What came of it is part of what is known of the server; what takes longer goes on behind.
            let _looked = timeout(LOOK, used.look_again(LOOK)).await;
            TenantServers::refresh(self, &entry).await.map(drop)
        })
    }

    fn begin_login<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        back: &'a LoginReturn,
    ) -> BoxFuture<'a, Result<LoginLink, ToolError>> {
        Box::pin(self.host.begin_login(caller, name, back))
    }

    fn finish_login<'a>(
        &'a self,
        caller: &'a Caller,
        sign_in: &'a str,
        answer: &'a LoginAnswer,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let name = self.host.finish_login(caller, sign_in, answer).await?;
            // What the server has for them is asked for at once; whether that works is no part of logging in.
            if let Err(error) = ServerConnections::refresh(self, caller, &name).await {
                tracing::info!(server = name, error = error.message, "a server could not be looked at after a login");
            }
            Ok(name)
        })
    }

    fn end_login<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(self.host.end_login(caller, name))
    }

    fn has_login<'a>(
        &'a self,
        caller: &'a Caller,
        server: &'a ServerDefinition,
    ) -> BoxFuture<'a, Result<Option<bool>, ToolError>> {
        Box::pin(async move {
            match TenantLogins::of(&self.host.platform, &caller.scope, server) {
                Some(logins) => logins.has_login(caller).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn accept<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        wanted: &'a AcceptedTools,
    ) -> BoxFuture<'a, Result<Vec<String>, ToolError>> {
        Box::pin(async move {
            let mut accepted = Ok(Vec::new());
            let accept = &mut |record: &ServerRecord| changed(record, |pins| accepted = accept(pins, name, wanted));
            self.host.platform.change_server_pins(&caller.scope, name, accept).await?;
            self.look(caller, None).await?;
            accepted
        })
    }
}

/// Accepts what is wanted of what a server said last, if that is what was shown. Says which tools that are.
fn accept(pins: &mut ServerPins, server: &str, wanted: &AcceptedTools) -> Result<Vec<String>, ToolError> {
    let is_wanted =
        |tool: &str| wanted.tool.as_ref().is_none_or(|name| name == tool || *name == tool_name(server, tool));
    let held: Vec<String> =
        pins.differences().iter().map(|one| one.tool.to_owned()).filter(|tool| is_wanted(tool)).collect();
    if let Some(name) = &wanted.tool
        && !pins.seen.keys().chain(&held).any(|tool| is_wanted(tool))
    {
        return Err(ToolError::new(ErrorCode::NotFound, format!("the server `{server}` has no tool `{name}`")));
    }
    let shown = match (&wanted.tool, held.first()) {
        (None, _) => pins.digest(),
        (Some(_), Some(tool)) => pins.seen.get(tool).map(haft_mcp::ToolDefinition::digest).unwrap_or_default(),
        (Some(_), None) => return Ok(held),
    };
    if wanted.digest.as_ref().is_some_and(|digest| *digest != shown) {
        let message = format!(
            "the server `{server}` says something else of its tools than you were shown; look again at `GET \
             /api/servers/{server}`"
        );
        return Err(ToolError::new(ErrorCode::Conflict, message));
    }
    held.iter().for_each(|tool| pins.accept_tool(tool));
    Ok(held)
}
