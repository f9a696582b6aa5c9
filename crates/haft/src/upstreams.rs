//! The upstream MCP servers of a house: the layer of their tools, and what was accepted of them in the data folder.

mod kept;
mod launch;
mod waiting;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use futures_util::future::{BoxFuture, join_all};
use haft_mcp::{PATIENCE, Pins, Report, Upstream, held_as_new, tool_name, tools_of};
use haft_runtime::{Caller, Layer, LayerSource, RegisteredTool, ToolError, usable};
use haft_tools::Workspace;
use tokio::task::JoinHandle;

use crate::settings::{McpServer, Settings};
use kept::Stamp;
pub(crate) use kept::{Kept, was_met_in_a_workspace};
pub(crate) use waiting::told;

/// What every name of an upstream tool begins with.
pub(crate) const PREFIX: &str = "mcp__";

/// How long a server that could not be met is left alone.
const REST: Duration = Duration::from_secs(5);
/// How long a server that failed the last time may take when somebody only looks.
const GLANCE: Duration = Duration::from_secs(5);

/// The tools of the servers of a house.
pub(crate) struct Upstreams {
    servers: BTreeMap<String, Server>,
    layer: Mutex<Arc<Layer>>,
    meeting: Mutex<Option<JoinHandle<()>>>,
}

/// One server, and what is known of it.
pub(crate) struct Server {
    pub(crate) wanted: McpServer,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) kept: Kept,
    taken: Mutex<Taken>,
}

/// What was taken in.
#[derive(Default)]
struct Taken {
    stamp: Option<Stamp>,
    tools: Vec<Arc<RegisteredTool>>,
    faults: Vec<String>,
    restarts: u64,
    /// When it could not be met, and why.
    failed: Option<(Instant, ToolError)>,
}

impl Upstreams {
    /// Of the settings. Nothing is started: what was accepted of each server is listed from the record.
    pub(crate) fn of(settings: &Settings, workspace: &Arc<Workspace>) -> Arc<Self> {
        let used = settings.mcp.servers().into_iter().filter(|server| server.enabled);
        let upstreams = Arc::new_cyclic(|me: &Weak<Self>| Self {
            servers: used.map(|wanted| (wanted.name.clone(), Server::new(wanted, workspace, settings, me))).collect(),
            layer: Mutex::default(),
            meeting: Mutex::default(),
        });
        upstreams.refresh();
        upstreams
    }

    /// The servers that are used.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.values()
    }

    /// One of them.
    pub(crate) fn server(&self, name: &str) -> Option<&Server> {
        self.servers.get(name)
    }

    /// The servers that were never met.
    fn new_ones(&self) -> impl Iterator<Item = &Server> {
        self.servers.values().filter(|server| !server.wanted.is_list() && !server.kept.read().was_met())
    }

    /// Starts the servers that were never met, side by side, while somebody looks on, and says what went wrong.
    pub(crate) async fn meet_new(&self) -> Vec<ToolError> {
        let met = join_all(self.new_ones().map(|server| told(&server.wanted.name, server.meet_at_a_glance()))).await;
        met.into_iter().filter_map(Result::err).collect()
    }

    /// The same while others work; [`end`](Self::end) waits for it.
    pub(crate) fn meet_in_background(self: &Arc<Self>) {
        if self.servers.is_empty() {
            return;
        }
        let us = Arc::clone(self);
        let task = tokio::spawn(async move { drop(join_all(us.new_ones().map(Server::meet)).await) });
        *self.meeting.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Starts the server that a name seems to belong to, if it was never met, while somebody looks on.
    pub(crate) async fn meet_for(&self, tool: &str) -> Result<(), ToolError> {
        match self.server_of(tool) {
            Some(server) => told(&server.wanted.name, server.meet_if_new()).await,
            None => Ok(()),
        }
    }

    /// What is wrong with tools that servers list.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.servers.values().flat_map(|server| server.taken().faults.clone()).collect()
    }

    /// Ends every server, and waits for that.
    pub(crate) async fn end(&self) {
        let meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(meeting) = meeting {
            meeting.abort();
            let _ = meeting.await;
        }
        join_all(self.servers.values().map(|server| server.upstream.end())).await;
    }

    fn server_of(&self, tool: &str) -> Option<&Server> {
        let (server, _) = tool.strip_prefix(PREFIX)?.split_once("__")?;
        self.servers.get(server)
    }

    /// Takes in what was accepted since the last look, here or by another process.
    fn refresh(&self) {
        let mut layer = self.layer.lock().unwrap_or_else(PoisonError::into_inner);
        let changed: Vec<bool> = self.servers.values().map(Server::refresh).collect();
        if changed.contains(&true) {
            // Names begin with their server's, and each server's own are told apart by now.
            let tools = self.servers.values().flat_map(|server| server.taken().tools.clone());
            *layer = Arc::new(Layer::of(tools).0);
        }
    }

    /// A server said something, could not be had, or broke.
    fn heard(&self, name: &str, report: Report) {
        let Some(server) = self.servers.get(name) else { return };
        let started = server.wanted.reached.shown();
        server.kept.change(|pins| pins.hear(&started, report));
        self.refresh();
    }

    /// Why there is no tool of this name although it seems to be a server's.
    fn why_missing(&self, name: &str) -> Option<ToolError> {
        let server = self.server_of(name)?;
        let pins = server.kept.read();
        let wanted = |tool: &&String| tool_name(&server.wanted.name, tool) == name && server.upstream.spec().uses(tool);
        let tool = pins.seen.keys().filter(|tool| pins.is_held(tool)).find(wanted)?;
        Some(held_as_new(&server.wanted.name, tool))
    }
}

impl Server {
    fn new(wanted: McpServer, workspace: &Arc<Workspace>, settings: &Settings, house: &Weak<Upstreams>) -> Self {
        let kept = Kept::of(&wanted, workspace.path(), &settings.data);
        let (house, name) = (Weak::clone(house), wanted.name.clone());
        let listener = move |report| {
            if let Some(house) = house.upgrade() {
                house.heard(&name, report);
            }
        };
        let version = kept.read().version_of(&wanted.reached.shown());
        let upstream = Upstream::new(launch::spec(&wanted, workspace, settings), version, Arc::new(listener));
        Self { wanted, upstream, kept, taken: Mutex::default() }
    }

    /// Meets it for the first time. Whoever asks again right after a failure hears of that one.
    async fn meet(&self) -> Result<(), ToolError> {
        self.meet_within(PATIENCE).await
    }

    /// The same for somebody who only looks: one that failed the last time has little time.
    async fn meet_at_a_glance(&self) -> Result<(), ToolError> {
        if self.kept.read().last_error.is_none() {
            return self.meet().await;
        }
        let begun = Instant::now();
        self.meet_within(GLANCE).await.map_err(|mut error| {
            if begun.elapsed() >= GLANCE {
                let (name, seconds) = (&self.wanted.name, GLANCE.as_secs());
                error.message.push_str(&format!(
                    "\nit failed before, so it had only {seconds} s; `haft mcp-servers restart {name}` waits longer"
                ));
            }
            error
        })
    }

    /// The same where it has not been met yet.
    async fn meet_if_new(&self) -> Result<(), ToolError> {
        let was_met = !self.taken().tools.is_empty() || self.kept.read().was_met();
        if was_met { Ok(()) } else { self.meet().await }
    }

    async fn meet_within(&self, patience: Duration) -> Result<(), ToolError> {
        let failed = self.taken().failed.clone();
        if let Some((_, error)) = failed.filter(|(at, _)| at.elapsed() < REST) {
            return Err(error);
        }
        let met = self.upstream.meet(patience).await;
        self.taken().failed = met.as_ref().err().map(|error| (Instant::now(), error.clone()));
        met
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what was accepted since the last look, and says whether that changed anything.
    fn refresh(&self) -> bool {
        let mut taken = self.taken();
        let stamp = self.kept.stamp();
        if taken.stamp.as_ref() == Some(&stamp) {
            return false;
        }
        let pins = self.kept.read();
        let (tools, unusable) = usable(tools_of(&self.upstream, &pins));
        let (_, twice) = Layer::of(tools.iter().cloned());
        let mut faults: Vec<String> = self.dropped(&pins);
        faults.extend(unusable.iter().chain(&twice).map(ToString::to_string));
        if taken.stamp.is_some() && taken.restarts != pins.restarts {
            self.upstream.end_soon();
        }
        (taken.stamp, taken.tools, taken.faults, taken.restarts) = (Some(stamp), tools, faults, pins.restarts);
        true
    }

    fn dropped(&self, pins: &Pins) -> Vec<String> {
        let name = &self.wanted.name;
        pins.dropped
            .iter()
            .map(|one| format!("a definition of `{}` of the MCP server `{name}` gives no tool: {}", one.name, one.why))
            .collect()
    }
}

impl LayerSource for Upstreams {
    fn look<'a>(&'a self, _caller: &'a Caller, name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        self.refresh();
        match name.and_then(|name| self.server_of(name)) {
            Some(server) => Box::pin(server.meet_if_new()),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn layer(&self, _caller: &Caller) -> Arc<Layer> {
        Arc::clone(&self.layer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn missing(&self, _caller: &Caller, name: &str) -> Option<ToolError> {
        self.why_missing(name)
    }
}
