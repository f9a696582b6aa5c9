//! The upstream servers of somebody: the layer of their tools, and what was accepted of each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use futures_util::future::{BoxFuture, join_all};
use haft_runtime::{Caller, Layer, LayerSource, RegisteredTool, ToolError, usable};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    definition::tool_name,
    pins::ServerPins,
    server::{CALL_PATIENCE, PATIENCE, ServerEvent, Upstream, UpstreamSpec},
    tool::{held_as_new, tools_of},
};

/// What every name of an upstream tool begins with.
pub const PREFIX: &str = "mcp__";

/// Where what is known of a server is kept, for all processes that use it.
pub trait PinStore: Send + Sync {
    /// What is known now. Where that cannot be read, nothing is accepted.
    fn read(&self) -> ServerPins;

    /// Changes what is known. The change may be made more than once: anew on what another process has left meanwhile.
    fn change<'a>(
        &'a self,
        change: &'a mut (dyn FnMut(&mut ServerPins) + Send),
    ) -> BoxFuture<'a, Result<(), ToolError>>;

    /// What tells one state from the next; cheap.
    fn version(&self) -> String;
}

/// How long a server that could not be met is left alone.
const REST: Duration = Duration::from_secs(5);
/// How long a server that failed the last time may take when somebody only looks.
const GLANCE: Duration = Duration::from_secs(5);

/// The tools of the servers of a house.
pub struct Upstreams {
    servers: BTreeMap<String, UpstreamServer>,
    layer: Mutex<Arc<Layer>>,
    meeting: Mutex<Option<JoinHandle<()>>>,
}

/// A server that is to be used, and where what is known of it is kept.
pub struct UpstreamPlan {
    /// What it is.
    pub spec: UpstreamSpec,
    /// What is known of it.
    pub pins: Arc<dyn PinStore>,
    /// Whether it is started to learn what it has; an entry that stands for a broken list is not.
    pub can_be_met: bool,
}

/// One server, and what is known of it.
pub struct UpstreamServer {
    /// The server.
    pub upstream: Arc<Upstream>,
    /// What was accepted of it.
    pub pins: Arc<dyn PinStore>,
    can_be_met: bool,
    taken: Mutex<RegisteredTools>,
}

/// What was taken in.
#[derive(Default)]
struct RegisteredTools {
    version: Option<String>,
    tools: Vec<Arc<RegisteredTool>>,
    faults: Vec<String>,
    restarts: u64,
    /// When it could not be met, and why.
    failed: Option<(Instant, ToolError)>,
}

impl Upstreams {
    /// Of these servers. Nothing is started: what was accepted of each is listed from the record.
    pub fn new(plans: Vec<UpstreamPlan>) -> Arc<Self> {
        let upstreams = Arc::new_cyclic(|me: &Weak<Self>| Self {
            servers: plans.into_iter().map(|plan| (plan.spec.name.clone(), UpstreamServer::new(plan, me))).collect(),
            layer: Mutex::default(),
            meeting: Mutex::default(),
        });
        upstreams.refresh();
        upstreams
    }

    /// The servers that are used.
    pub fn servers(&self) -> impl Iterator<Item = &UpstreamServer> {
        self.servers.values()
    }

    /// One of them.
    pub fn server(&self, name: &str) -> Option<&UpstreamServer> {
        self.servers.get(name)
    }

    /// The servers that were never met.
    pub fn new_ones(&self) -> impl Iterator<Item = &UpstreamServer> {
        self.servers.values().filter(|server| server.can_be_met && !server.pins.read().was_met())
    }

    /// Meets those that were never met while others work; [`end`](Self::end) waits for it.
    pub fn meet_in_background(self: &Arc<Self>) {
        if self.servers.is_empty() {
            return;
        }
        let us = Arc::clone(self);
        let task = tokio::spawn(async move { drop(join_all(us.new_ones().map(UpstreamServer::meet)).await) });
        *self.meeting.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// What is wrong with tools that servers list.
    pub fn faults(&self) -> Vec<String> {
        self.servers.values().flat_map(|server| server.taken().faults.clone()).collect()
    }

    /// Ends every server, and waits for that.
    pub async fn end(&self) {
        let meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(meeting) = meeting {
            meeting.abort();
            let _ = meeting.await;
        }
        join_all(self.servers.values().map(|server| server.upstream.end())).await;
    }

    /// The server that the name of a tool seems to belong to.
    pub fn server_of(&self, tool: &str) -> Option<&UpstreamServer> {
        let (server, _) = tool.strip_prefix(PREFIX)?.split_once("__")?;
        self.servers.get(server)
    }

    /// Takes in what was accepted since the last look, here or by another process.
    fn refresh(&self) {
        let mut layer = self.layer.lock().unwrap_or_else(PoisonError::into_inner);
        let changed: Vec<bool> = self.servers.values().map(UpstreamServer::refresh).collect();
        if changed.contains(&true) {
            // Names begin with their server's, and each server's own are told apart by now.
            let tools = self.servers.values().flat_map(|server| server.taken().tools.clone());
            *layer = Arc::new(Layer::of(tools).0);
        }
    }

    /// A server said something, could not be had, or broke.
    async fn heard(&self, name: &str, report: ServerEvent) {
        let Some(server) = self.servers.get(name) else { return };
        let started = &server.upstream.spec().command;
        if let Err(error) = server.pins.change(&mut |pins| pins.hear(started, report.clone())).await {
            tracing::warn!(server = name, error = error.message, "what an upstream server said could not be kept");
        }
        self.refresh();
    }

    /// Why there is no tool of this name although it seems to be a server's.
    fn why_missing(&self, name: &str) -> Option<ToolError> {
        let server = self.server_of(name)?;
        let pins = server.pins.read();
        let wanted = |tool: &&String| tool_name(server.name(), tool) == name && server.upstream.spec().uses(tool);
        let tool = pins.seen.keys().filter(|tool| pins.is_held(tool)).find(wanted)?;
        Some(held_as_new(server.upstream.spec(), tool))
    }
}

impl UpstreamServer {
    fn new(plan: UpstreamPlan, house: &Weak<Upstreams>) -> Self {
        let UpstreamPlan { spec, pins, can_be_met } = plan;
        let (house, name) = (Weak::clone(house), spec.name.clone());
        let listener = move |report| -> BoxFuture<'static, ()> {
            let (house, name) = (house.upgrade(), name.clone());
            Box::pin(async move {
                if let Some(house) = house {
                    house.heard(&name, report).await;
                }
            })
        };
        let version = pins.read().version_of(&spec.command);
        let upstream = Upstream::new(spec, version, Arc::new(listener));
        Self { upstream, pins, can_be_met, taken: Mutex::default() }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.upstream.spec().name
    }

    /// Meets it for the first time. Whoever asks again right after a failure hears of that one.
    async fn meet(&self) -> Result<(), ToolError> {
        self.meet_within(PATIENCE).await
    }

    /// The same for somebody who only looks: one that failed the last time has little time.
    pub async fn meet_at_a_glance(&self) -> Result<(), ToolError> {
        if self.pins.read().last_error.is_none() {
            return self.meet().await;
        }
        let begun = Instant::now();
        self.meet_within(GLANCE).await.map_err(|mut error| {
            if begun.elapsed() >= GLANCE {
                let (name, seconds) = (self.name(), GLANCE.as_secs());
                error.message.push_str(&format!(
                    "\nit failed before, so it had only {seconds} s; `haft mcp-servers restart {name}` waits longer"
                ));
            }
            error
        })
    }

    /// The same where it has not been met yet.
    pub async fn meet_if_new(&self) -> Result<(), ToolError> {
        if self.was_met() { Ok(()) } else { self.meet().await }
    }

    /// Whether it has ever said what its tools are.
    pub fn was_met(&self) -> bool {
        !self.taken().tools.is_empty() || self.pins.read().was_met()
    }

    /// The same for a call, which must be answered before its client gives up. The start goes on behind it.
    async fn meet_for_a_call(&self, caller: &Caller) -> Result<(), ToolError> {
        if self.was_met() {
            return Ok(());
        }
        let used = self.upstream.used_by(caller).await?;
        let is_shared = Arc::ptr_eq(&used, &self.upstream);
        let meeting = async { if is_shared { self.meet().await } else { used.meet(PATIENCE).await } };
        timeout(CALL_PATIENCE, meeting).await.unwrap_or_else(|_late| Err(used.still_starts(CALL_PATIENCE)))
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

    fn taken(&self) -> MutexGuard<'_, RegisteredTools> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what was accepted since the last look, and says whether that changed anything.
    fn refresh(&self) -> bool {
        let mut taken = self.taken();
        let version = self.pins.version();
        if taken.version.as_ref() == Some(&version) {
            return false;
        }
        let pins = self.pins.read();
        let (tools, unusable) = usable(tools_of(&self.upstream, &pins));
        let (_, twice) = Layer::of(tools.iter().cloned());
        let mut faults: Vec<String> = self.dropped(&pins);
        faults.extend(unusable.iter().chain(&twice).map(ToString::to_string));
        if taken.version.is_some() && taken.restarts != pins.restarts {
            self.upstream.end_soon();
        }
        (taken.version, taken.tools, taken.faults, taken.restarts) = (Some(version), tools, faults, pins.restarts);
        true
    }

    fn dropped(&self, pins: &ServerPins) -> Vec<String> {
        let name = self.name();
        pins.dropped
            .iter()
            .map(|one| format!("a definition of `{}` of the MCP server `{name}` gives no tool: {}", one.name, one.why))
            .collect()
    }
}

impl LayerSource for Upstreams {
    fn look<'a>(&'a self, caller: &'a Caller, name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        self.refresh();
        match name.and_then(|name| self.server_of(name)) {
            Some(server) => Box::pin(server.meet_for_a_call(caller)),
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

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        sync::Arc,
        time::Duration,
    };

    use futures_util::future::BoxFuture;
    use haft_runtime::{Caller, ErrorCode, LayerSource, Scope, Source, ToolError};
    use tokio::sync::watch;

    use super::{PinStore, ServerPins, UpstreamPlan, UpstreamSpec, Upstreams};
    use crate::upstream::EntryPlace;

    struct NothingKnown;

    impl PinStore for NothingKnown {
        fn read(&self) -> ServerPins {
            ServerPins::default()
        }

        fn change<'a>(
            &'a self,
            _change: &'a mut (dyn FnMut(&mut ServerPins) + Send),
        ) -> BoxFuture<'a, Result<(), ToolError>> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn version(&self) -> String {
            String::new()
        }
    }

    /// One server, whose start lasts until the sender is dropped.
    fn one_that_starts_for_ever() -> (watch::Sender<()>, Arc<Upstreams>) {
        let (ends, starts) = watch::channel(());
        let spec = UpstreamSpec {
            name: "slow".to_owned(),
            command: "slow".to_owned(),
            launch: Arc::new(move |_person| {
                let mut starts = starts.clone();
                Box::pin(async move {
                    let _ended = starts.changed().await;
                    Err(ToolError::new(ErrorCode::ExecutionError, "the test is over"))
                })
            }),
            timeout: Duration::from_secs(30),
            allowed_tools: None,
            denied_tools: BTreeSet::new(),
            effects: BTreeMap::new(),
            trusted: false,
            network: false,
            writes: false,
            host: None,
            entry: EntryPlace::Settings,
            logins: None,
        };
        (ends, Upstreams::new(vec![UpstreamPlan { spec, pins: Arc::new(NothingKnown), can_be_met: true }]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_before_its_client_gives_up_and_the_start_goes_on() {
        let (ends, upstreams) = one_that_starts_for_ever();
        let caller = Caller::owner("ann", Scope::local("w"), Source::Mcp);
        let error = upstreams.look(&caller, Some("mcp__slow__echo")).await.unwrap_err();
        assert!(error.code == ErrorCode::Unavailable && error.recoverable, "{error:?}");
        assert!(error.message.contains("is still starting after 45 s"), "{error:?}");
        let next = upstreams.look(&caller, Some("mcp__slow__echo"));
        drop(ends);
        let ended = next.await.unwrap_err();
        assert_eq!(ended.message, "the test is over", "the next call waits for the same start");
    }

    #[tokio::test]
    async fn nobody_uses_one_that_is_closed() {
        let (_ends, upstreams) = one_that_starts_for_ever();
        let caller = Caller::owner("ann", Scope::local("w"), Source::Mcp);
        upstreams.server("slow").unwrap().upstream.close(Duration::ZERO).await;
        let error = upstreams.look(&caller, Some("mcp__slow__echo")).await.unwrap_err();
        assert!(error.message.contains("was changed or removed"), "{error:?}");
    }
}
