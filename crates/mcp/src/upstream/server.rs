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
use tokio::{
    sync::{Mutex as Turns, watch},
    task::AbortHandle,
    time::timeout,
};

use super::{
    connection::UpstreamConnection,
    definition::{Dropped, ToolDefinition},
    entry_place::EntryPlace,
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
const LASTING: &[&str] = &["was not found in the sandbox", "No such file", "Cannot find module", NEEDS_LOGIN];

/// What programs say of a file that is not there.
const MISSING: &[&str] = &["No such file", "Cannot find module", "cannot open", "not found"];

/// Starts the server in the fence, or says where it is.
pub type Launch = Arc<dyn Fn() -> BoxFuture<'static, Result<LaunchedServer, ToolError>> + Send + Sync>;

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
pub type ServerListener = Arc<dyn Fn(ServerEvent) -> BoxFuture<'static, ()> + Send + Sync>;

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
    /// Where its entry stands.
    pub entry: EntryPlace,
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
    /// Whether it is used no more.
    is_closed: AtomicBool,
    /// How many use it now, and when the last one began or ended.
    uses: watch::Sender<usize>,
    last_used: Mutex<Instant>,
}

/// Somebody uses a server.
pub(super) struct UpstreamUse<'a>(&'a Upstream);

impl Drop for UpstreamUse<'_> {
    fn drop(&mut self) {
        self.0.note_use();
        self.0.uses.send_modify(|uses| *uses -= 1);
    }
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
            is_closed: AtomicBool::new(false),
            uses: watch::Sender::new(0),
            last_used: Mutex::new(Instant::now()),
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

    /// Asks it for its tools now, so that the listener hears of them; one that does not run, or does not answer, is
    /// started anew.
    pub async fn look_again(self: &Arc<Self>, patience: Duration) -> Result<(), ToolError> {
        let _use = self.begin_use();
        let running = match self.state.try_lock() {
            // It is just starting, or ending.
            Err(_) => return self.meet(patience).await,
            Ok(state) => state.connection.clone().filter(|running| running.is_alive()),
        };
        if let Some(running) = running
            && let Ok(Ok(description)) = timeout(patience, running.list()).await
        {
            self.heard(description).await;
            return Ok(());
        }
        self.end_soon();
        self.meet(patience).await
    }

    /// Ends it if nobody has used it for so long; the next call starts it again.
    pub async fn end_if_idle(&self, idle: Duration) {
        let is_idle = || *self.uses.borrow() == 0 && self.last_used().elapsed() >= idle;
        if !is_idle() {
            return;
        }
        let mut state = self.state.lock().await;
        // Whoever has begun since then waits for the state behind us, and finds no connection.
        if is_idle()
            && let Some(connection) = state.connection.take()
        {
            connection.end().await;
            tracing::info!(server = self.spec.name, "upstream server stopped, as nobody uses it");
        }
    }

    /// Lets nobody use it any more, and ends it when whoever uses it now is ready, or after so long.
    pub async fn close(&self, patience: Duration) {
        self.is_closed.store(true, Ordering::SeqCst);
        let mut uses = self.uses.subscribe();
        // What takes longer is broken off.
        drop(timeout(patience, uses.wait_for(|uses| *uses == 0)).await);
        self.end().await;
    }

    /// Says that somebody uses it, so that it is not ended meanwhile.
    pub(super) fn begin_use(&self) -> UpstreamUse<'_> {
        self.uses.send_modify(|uses| *uses += 1);
        self.note_use();
        UpstreamUse(self)
    }

    fn note_use(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
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
            "is still starting after {} s. Call again in a moment; look with {}",
            waited.as_secs(),
            self.spec.entry.to_look(&self.spec.name)
        );
        // The time of this call is over, so that it is not tried again by itself.
        self.unavailable(&what, "").in_category(Category::Timeout).having_done_nothing()
    }

    async fn connection_within(&self, patience: Duration) -> StartResult {
        let mut state = self.state.lock().await;
        if self.is_closed.load(Ordering::SeqCst) {
            let what = "was changed or removed while this call waited for it; call again";
            return Err(self.unavailable(what, "").having_done_nothing());
        }
        self.note_use();
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
        let begun = match (self.spec.launch)().await {
            Ok(LaunchedServer { transport, redactor, named }) => {
                *self.redactor.lock().unwrap_or_else(PoisonError::into_inner) = redactor;
                let filter = SecretFilter::new(&self.spec.name, named);
                UpstreamConnection::begin(filter, transport, version.as_deref(), patience).await
            }
            Err(error) => {
                tracing::warn!(server = self.spec.name, reason = error.message, "upstream server cannot be started");
                (self.listener)(ServerEvent::Failed(error.message.clone())).await;
                return Err(error.having_done_nothing());
            }
        };
        match begun {
            Ok((connection, description)) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(description.version.clone());
                let (server, version, tools) = (&self.spec.name, &description.version, description.tools.len());
                tracing::info!(server, version, tools, "upstream server started");
                (self.listener)(ServerEvent::Met(description)).await;
                Ok(connection)
            }
            Err(why) => {
                let why = self.without_secrets(&why);
                tracing::warn!(server = self.spec.name, reason = why, "upstream server did not start");
                state.note(why.clone());
                let mut error = self.unavailable(&format!("did not start: {why}"), &why);
                if LASTING.iter().any(|words| why.contains(words)) || !self.hints(&why).is_empty() {
                    error.recoverable = false;
                    error = error.in_category(Category::Execution);
                }
                (self.listener)(ServerEvent::Failed(error.message.clone())).await;
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
        let restart = self.spec.entry.to_restart(&self.spec.name);
        let what = format!(
            "broke {} times and is left alone for a while: {}\nwhen that is corrected, {restart}",
            state.broke, state.why
        );
        let mut error = self.unavailable(&what, &state.why).in_category(Category::Execution);
        error.recoverable = false;
        Err(error.having_done_nothing())
    }

    /// Its tools were listed anew.
    pub(super) async fn heard(&self, description: ServerDescription) {
        (self.listener)(ServerEvent::Met(description)).await;
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
        (self.listener)(ServerEvent::Broke(error.message.clone())).await;
        error
    }

    /// What it said, without what it was trusted with.
    pub(super) fn without_secrets(&self, said: &str) -> String {
        self.redactor.lock().unwrap_or_else(PoisonError::into_inner).text(said).into_owned()
    }

    /// What it said of a failure, and the setting that lets it write if it may not.
    pub(super) fn with_write_hint(&self, mut error: ToolError) -> ToolError {
        let hint = self.write_hint(&error.message);
        error.message.extend(hint.map(|hint| format!("\n{hint}")));
        error
    }

    fn write_hint(&self, why: &str) -> Option<String> {
        let is_refused = ["EROFS", "ead-only file system"].iter().any(|words| why.contains(words));
        let may_not = is_refused && !self.spec.writes && self.spec.host.is_none();
        may_not.then(|| self.spec.entry.to_write(&self.spec.name))
    }

    /// The settings that would help, as far as what it said tells.
    fn hints(&self, why: &str) -> Vec<String> {
        if self.spec.host.is_some() {
            return Vec::new();
        }
        let (name, command, entry) = (&self.spec.name, &self.spec.command, &self.spec.entry);
        let has_no_network = !self.spec.network && wants_a_network(command, why);
        let network = has_no_network.then(|| entry.to_have_network(name));
        let show = hidden(command, why).map(|folder| entry.to_show(&folder));
        [network, show, self.write_hint(why)].into_iter().flatten().collect()
    }

    fn unavailable(&self, what: &str, why: &str) -> ToolError {
        let (name, command) = (&self.spec.name, &self.spec.command);
        let mut message = format!("the MCP server `{name}` (`{command}`) {what}");
        message.extend(self.hints(why).into_iter().map(|hint| format!("\n{hint}")));
        ToolError::new(ErrorCode::Unavailable, message).with("server", name.as_str())
    }
}

impl ConnectionState {
    fn note(&mut self, why: String) {
        (self.broke, self.broke_at, self.why) = (self.broke + 1, Some(Instant::now()), why);
    }
}

/// The folder of a file that the command names, that is there, and that the server complains of.
fn hidden(command: &str, why: &str) -> Option<PathBuf> {
    if !MISSING.iter().any(|words| why.contains(words)) {
        return None;
    }
    let is_meant = |word: &&str| Path::new(word).is_absolute() && why.contains(*word) && Path::new(word).is_file();
    // A program that complains of a file names itself first.
    Path::new(command.split_whitespace().rfind(is_meant)?).parent().map(Path::to_owned)
}

/// Programs that fetch what they run, and words that tell of a missing network.
fn wants_a_network(command: &str, why: &str) -> bool {
    const FETCHING: &[&str] = &["npx", "uvx", "bunx", "pipx", "pnpm", "deno", "docker"];
    const WORDS: &[&str] = &["ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "ENOTCACHED", "resolve", "network", "offline"];
    let program = command.split_whitespace().next().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    FETCHING.contains(&program) || WORDS.iter().any(|word| why.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_file_that_was_not_found_is_named() {
        // Any file that is there.
        let (folder, script) = (env!("CARGO_MANIFEST_DIR"), concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let command = format!("/bin/sh {script}");
        let missing = format!("/bin/sh: can't open file '{script}': No such file or directory");
        assert_eq!(hidden(&command, &missing).as_deref(), Some(Path::new(folder)));
        assert_eq!(hidden(&command, &format!("{script}: it broke")), None);
        assert_eq!(hidden(&command, "other.py: No such file or directory"), None);
    }
}
