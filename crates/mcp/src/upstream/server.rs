//! One upstream server: started when it is first needed, started again when it broke, left alone when it breaks often.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use haft_runtime::{Category, Effect, ErrorCode, Redactor, ToolError};
use haft_sandbox::fence::Process;
use tokio::{sync::Mutex as Turns, task::AbortHandle};

use super::{
    connection::UpstreamConnection,
    definition::{Dropped, ToolDefinition},
    http::{Endpoint, NEEDS_LOGIN},
    secret_filter::SecretFilter,
};

/// How long a server may take to answer the first question.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long a call waits for that: less than any client waits for an answer.
pub(super) const CALL_PATIENCE: Duration = Duration::from_secs(45);
/// How often a server is started again in a row, and how long it is left alone after that.
const MOST_RESTARTS: u32 = 3;
const REST: Duration = Duration::from_secs(60);

/// What does not pass by itself when a server did not start.
const LASTING: &[&str] = &["cannot find the program", "No such file", "Cannot find module", NEEDS_LOGIN];

/// What programs say of a file that is not there.
const MISSING: &[&str] = &["No such file", "Cannot find module", "cannot open", "not found"];

/// Starts the server in the fence, or says where it is. It may block.
pub type Launch = Arc<dyn Fn() -> Result<LaunchedServer, ToolError> + Send + Sync>;

/// A server that was started.
pub struct LaunchedServer {
    /// How it is talked with.
    pub transport: Transport,
    /// Knows everything that may be a secret of what it was given, which it may tell when something goes wrong.
    pub redactor: Redactor,
    /// Knows what the user calls a secret, which is taken out of everything that it says.
    pub named: Redactor,
}

/// How a server is talked with.
pub enum Transport {
    /// A process; what is written into the socket is its standard input.
    Process(Process, UnixStream),
    /// It runs elsewhere.
    Http(Endpoint),
}

/// Hears of a server whatever should be known of it later.
pub type ServerListener = Arc<dyn Fn(ServerEvent) + Send + Sync>;

/// What became of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// It runs, and said this of itself.
    Met(ServerDescription),
    /// It could not be had, and why.
    Failed(String),
    /// It broke in the middle of its work, and why.
    Broke(String),
}

/// What a server said of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDescription {
    /// The version of the protocol that it speaks.
    pub version: String,
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// What it listed and no tool could be made of.
    pub dropped: Vec<Dropped>,
}

/// A server as the user wants it.
#[derive(Clone)]
pub struct UpstreamSpec {
    /// What it is called in names of tools.
    pub name: String,
    /// What is started, in words for people.
    pub command: String,
    /// Starts it.
    pub launch: Launch,
    /// How long it may say nothing in the middle of a call.
    pub timeout: Duration,
    /// The only tools that are used; `None` for all.
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Tools that are not used.
    pub denied_tools: BTreeSet<String>,
    /// How far tools reach, where the user says so.
    pub effects: BTreeMap<String, Effect>,
    /// Whether what the server says of the effects of its tools is believed.
    pub trusted: bool,
    /// Whether it reaches the network.
    pub network: bool,
    /// Whether it writes into the workspace.
    pub writes: bool,
    /// Where it runs, if that is elsewhere.
    pub host: Option<String>,
}

impl UpstreamSpec {
    /// Whether a tool of the server is used.
    pub fn uses(&self, tool: &str) -> bool {
        self.allowed_tools.as_ref().is_none_or(|allowed| allowed.contains(tool)) && !self.denied_tools.contains(tool)
    }
}

/// One upstream server.
pub struct Upstream {
    pub(super) spec: UpstreamSpec,
    listener: ServerListener,
    /// The version that the same command spoke before.
    version: Mutex<Option<String>>,
    /// Takes the secrets of the one that was last started out of what is said of it.
    redactor: Mutex<Redactor>,
    state: Turns<ConnectionState>,
    /// The last start, which everybody waits for who comes before it has ended.
    start: Mutex<Option<UpstreamStart>>,
    /// Whether somebody wants it started anew.
    is_stale: AtomicBool,
}

/// A start of a server. It goes on when nobody waits for it any more.
struct UpstreamStart {
    task: AbortHandle,
    ended: Shared<BoxFuture<'static, StartResult>>,
}

type StartResult = Result<Arc<UpstreamConnection>, ToolError>;

#[derive(Default)]
struct ConnectionState {
    connection: Option<Arc<UpstreamConnection>>,
    /// How often it broke since it last answered, when, and why.
    broke: u32,
    broke_at: Option<Instant>,
    why: String,
}

impl Upstream {
    /// A server that nobody has started yet. `version` is the one that the same command spoke before.
    pub fn new(spec: UpstreamSpec, version: Option<String>, listener: ServerListener) -> Arc<Self> {
        Arc::new(Self {
            spec,
            listener,
            version: Mutex::new(version),
            redactor: Mutex::default(),
            state: Turns::default(),
            start: Mutex::default(),
            is_stale: AtomicBool::new(false),
        })
    }

    /// What it is.
    pub fn spec(&self) -> &UpstreamSpec {
        &self.spec
    }

    /// Starts it if it does not run, so that the listener hears of its tools. It has so long to answer.
    pub async fn meet(self: &Arc<Self>, patience: Duration) -> Result<(), ToolError> {
        self.start(patience).await.map(drop)
    }

    /// Ends it, also while it starts, and forgets how often it broke.
    pub async fn end(&self) {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = start {
            start.task.abort();
        }
        let before = std::mem::take(&mut *self.state.lock().await);
        if let Some(connection) = before.connection {
            connection.end().await;
            tracing::info!(server = self.spec.name, "upstream server stopped");
        }
    }

    /// Lets the next call start it anew; what is under way then breaks off.
    pub fn end_soon(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// The server that runs, or a new one. Whoever cannot wait so long leaves it to the next.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<UpstreamConnection>, ToolError> {
        self.start(PATIENCE).await
    }

    /// Starts it if it does not run. Whoever comes while it starts waits for that very start and shares its end, good or
    /// bad.
    fn start(self: &Arc<Self>, patience: Duration) -> Shared<BoxFuture<'static, StartResult>> {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(under_way) = start.as_ref().filter(|start| !start.task.is_finished()) {
            return under_way.ended.clone();
        }
        let (upstream, us) = (Arc::clone(self), Arc::clone(self));
        let starting = tokio::spawn(async move { upstream.connection_within(patience).await });
        let task = starting.abort_handle();
        let ended = starting.map(move |ended| {
            let stopped = |_| Err(us.unavailable("was ended while it started", "").having_done_nothing());
            ended.unwrap_or_else(stopped)
        });
        let ended = ended.boxed().shared();
        *start = Some(UpstreamStart { task, ended: ended.clone() });
        ended
    }

    /// That a call waits no longer for it to start.
    pub(super) fn still_starts(&self, waited: Duration) -> ToolError {
        let what = format!(
            "is still starting after {} s; it goes on starting, so call again, or look with `haft mcp-servers`",
            waited.as_secs()
        );
        // The time of this call is over, so that it is not tried again by itself.
        self.unavailable(&what, "").in_category(Category::Timeout).having_done_nothing()
    }

    async fn connection_within(&self, patience: Duration) -> StartResult {
        let mut state = self.state.lock().await;
        if self.is_stale.swap(false, Ordering::SeqCst) {
            state.broke = 0;
            if let Some(old) = state.connection.take() {
                old.end().await;
            }
        }
        if let Some(running) = state.connection.as_ref().filter(|running| running.is_alive()) {
            return Ok(Arc::clone(running));
        }
        if let Some(gone) = state.connection.take() {
            gone.end().await;
        }
        self.refuse_if_it_breaks_often(&mut state)?;
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner).take();
        let launch = Arc::clone(&self.spec.launch);
        let begun = match tokio::task::spawn_blocking(move || launch()).await {
            Ok(Ok(LaunchedServer { transport, redactor, named })) => {
                *self.redactor.lock().unwrap_or_else(PoisonError::into_inner) = redactor;
                let filter = SecretFilter::new(&self.spec.name, named);
                UpstreamConnection::begin(filter, transport, version.as_deref(), patience).await
            }
            Ok(Err(error)) => {
                tracing::warn!(server = self.spec.name, reason = error.message, "upstream server cannot be started");
                (self.listener)(ServerEvent::Failed(error.message.clone()));
                return Err(error.having_done_nothing());
            }
            Err(_) => Err("starting it failed".to_owned()),
        };
        match begun {
            Ok((connection, description)) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(description.version.clone());
                let (server, version, tools) = (&self.spec.name, &description.version, description.tools.len());
                tracing::info!(server, version, tools, "upstream server started");
                (self.listener)(ServerEvent::Met(description));
                Ok(connection)
            }
            Err(why) => {
                let why = self.without_secrets(&why);
                tracing::warn!(server = self.spec.name, reason = why, "upstream server did not start");
                state.note(why.clone());
                let mut error = self.unavailable(&format!("did not start: {why}"), &why);
                if LASTING.iter().any(|words| why.contains(words)) {
                    error.recoverable = false;
                    error = error.in_category(Category::Execution);
                }
                (self.listener)(ServerEvent::Failed(error.message.clone()));
                Err(error.having_done_nothing())
            }
        }
    }

    fn refuse_if_it_breaks_often(&self, state: &mut ConnectionState) -> Result<(), ToolError> {
        // Asking one that runs elsewhere costs nothing.
        if self.spec.host.is_some() {
            return Ok(());
        }
        let Some(broke_at) = state.broke_at.filter(|_| state.broke > MOST_RESTARTS) else { return Ok(()) };
        if broke_at.elapsed() > REST {
            // One more chance.
            state.broke = MOST_RESTARTS;
            return Ok(());
        }
        let name = &self.spec.name;
        let what = format!(
            "broke {} times and is left alone for a while: {}\nwhen that is corrected, `haft mcp-servers restart {name}`",
            state.broke, state.why
        );
        let mut error = self.unavailable(&what, &state.why).in_category(Category::Execution);
        error.recoverable = false;
        Err(error.having_done_nothing())
    }

    /// Its tools were listed anew.
    pub(super) fn heard(&self, description: ServerDescription) {
        (self.listener)(ServerEvent::Met(description));
    }

    /// A call was answered.
    pub(super) async fn worked(&self) {
        self.state.lock().await.broke = 0;
    }

    /// It broke in the middle of a call.
    pub(super) async fn broke(&self, why: &str) -> ToolError {
        let why = self.without_secrets(why);
        tracing::warn!(server = self.spec.name, reason = why, "upstream server broke");
        self.state.lock().await.note(why.clone());
        let error = self.unavailable(&format!("broke: {why}"), &why);
        (self.listener)(ServerEvent::Broke(error.message.clone()));
        error
    }

    /// What it said, without what it was trusted with.
    pub(super) fn without_secrets(&self, said: &str) -> String {
        self.redactor.lock().unwrap_or_else(PoisonError::into_inner).text(said).into_owned()
    }

    /// What it said of a failure, and the setting that lets it write if it may not.
    pub(super) fn with_write_hint(&self, mut error: ToolError) -> ToolError {
        let is_refused = ["EROFS", "ead-only file system"].iter().any(|words| error.message.contains(words));
        if is_refused && !self.spec.writes && self.spec.host.is_none() {
            error.message.push_str(&format!(
                "\nthis server may only read the workspace; to let it write there, add to your haft.toml:\n\
                 [mcp.servers.{}]\nworkspace = \"write\"",
                self.spec.name
            ));
        }
        error
    }

    fn unavailable(&self, what: &str, why: &str) -> ToolError {
        let (name, command) = (&self.spec.name, &self.spec.command);
        let mut message = format!("the MCP server `{name}` (`{command}`) {what}");
        if !self.spec.network && self.spec.host.is_none() && wants_a_network(command, why) {
            message.push_str(&format!(
                "\nit has no network; if that is what it wants, add to your haft.toml:\n[mcp.servers.{name}]\nnetwork = true"
            ));
        }
        if let Some(folder) = hidden(command, why).filter(|_| self.spec.host.is_none()) {
            message.push_str(&format!(
                "\nthat file is there, but not inside the fence; to let it be read, add to your haft.toml:\n\
                 [sandbox]\nread = [{folder:?}]"
            ));
        }
        self.with_write_hint(ToolError::new(ErrorCode::Unavailable, message).with("server", name.as_str()))
    }
}

impl ConnectionState {
    fn note(&mut self, why: String) {
        (self.broke, self.broke_at, self.why) = (self.broke + 1, Some(Instant::now()), why);
    }
}

/// The folder of a file that the command names, that is there, and that the server complains of.
fn hidden(command: &str, why: &str) -> Option<PathBuf> {
    let named = command.split_whitespace().map(Path::new).find(|word| word.is_absolute() && word.is_file())?;
    let complains = why.contains(named.to_str()?) && MISSING.iter().any(|words| why.contains(words));
    named.parent().filter(|_| complains).map(Path::to_owned)
}

/// Programs that fetch what they run, and words that tell of a missing network.
fn wants_a_network(command: &str, why: &str) -> bool {
    const FETCHING: &[&str] = &["npx", "uvx", "bunx", "pipx", "pnpm", "deno", "docker"];
    const WORDS: &[&str] = &["ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "ENOTCACHED", "resolve", "network", "offline"];
    let program = command.split_whitespace().next().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    FETCHING.contains(&program) || WORDS.iter().any(|word| why.contains(word))
}
