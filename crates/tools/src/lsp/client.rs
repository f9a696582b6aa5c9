//! A language server that runs, and the conversation with it.

mod hear;
mod speak;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::{
    Root, WorkspacePath,
    fence::{Bound, CommandExit, FenceStopper, Process, ProcessEnd},
};
use serde_json::{Value, json};
use tokio::{
    net::UnixStream,
    sync::{mpsc, oneshot, watch},
    time::{sleep, timeout},
};

use super::{
    documents::{DocumentContext, DocumentUpdate, Documents, OpenDocument, PendingWork, note},
    error::LanguageServerError,
    frame::framed,
    handshake::{LanguageCapabilities, greeting},
    launch::launch,
    server_state::{LanguageServerState, LanguageServerTail, Needs},
    servers::{LanguageServer, LanguageServers},
    watched::Snapshot,
};
use crate::{
    blocking::StopFlag,
    fenced::{CommandContext, keep},
};

/// How many messages wait for a server that is slow to listen.
const WAITING: usize = 256;
/// How long a server has to end by itself when it is told to.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long a server that did not answer in time has to show that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// How many times as long as for an answer a server may take to start: some load much before their first word.
const START_ANSWERS: u32 = 4;
/// The number of our first request.
const GREETING: i64 = 0;

/// A language server that runs.
#[derive(Debug)]
pub(super) struct LanguageClient {
    pub(super) server: LanguageServer,
    pub(super) started: Instant,
    pub(super) heard: watch::Sender<LanguageServerState>,
    workspace: PathBuf,
    outbox: mpsc::Sender<Vec<u8>>,
    asked: Mutex<HashMap<i64, oneshot::Sender<Result<Value, LanguageServerError>>>>,
    number: AtomicI64,
    /// How many calls talk with it.
    users: AtomicUsize,
    documents: Mutex<Documents>,
    /// What may have begun since the server was last waited for.
    pub(super) unsettled: Mutex<PendingWork>,
    /// Whether all files are compared, and not only open documents.
    pub(super) sees_all: AtomicBool,
    stderr: Mutex<LanguageServerTail>,
    stopper: FenceStopper,
}

impl LanguageClient {
    /// Starts a server, which begins with the files as they were `seen`. It must be called in a runtime.
    pub(super) fn start(
        context: &CommandContext,
        server: LanguageServer,
        all: &LanguageServers,
        seen: Snapshot,
    ) -> Result<Arc<Self>, ToolError> {
        let failed = |err| ToolError::new(ErrorCode::ExecutionError, format!("cannot talk to a process: {err}"));
        let (process, socket) = launch(context, &server, all)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let (reading, writing) = UnixStream::from_std(socket).map_err(failed)?.into_split();
        let (outbox, waiting) = mpsc::channel(WAITING);
        let client = Arc::new(Self {
            server,
            started: Instant::now(),
            heard: watch::Sender::new(LanguageServerState::default()),
            workspace: context.root.path().to_owned(),
            outbox,
            asked: Mutex::default(),
            number: AtomicI64::new(GREETING + 1),
            users: AtomicUsize::new(0),
            unsettled: Mutex::new(PendingWork { project: true, checks: true }),
            sees_all: AtomicBool::new(seen.is_whole()),
            documents: Mutex::new(Documents::new(seen)),
            stderr: Mutex::default(),
            stopper: process.stopper(),
        });
        let hello = request(GREETING, "initialize", greeting(&client.server, &client.workspace));
        // There is room for the first message.
        let _ = client.outbox.try_send(framed(&hello));
        let (watching, dir) = (Arc::clone(&client), context.dir.clone());
        // All three end with the process, which ends with us; `end` waits for that.
        drop(tokio::task::spawn_blocking(move || {
            watching.watch(process);
            keep(&dir);
            // Where nothing else is held for the call that started it, its folder goes.
            let _ = std::fs::remove_dir(&dir);
            watching.heard.send_modify(|heard| heard.gone = true);
        }));
        drop(tokio::spawn(Arc::clone(&client).listen(reading)));
        drop(tokio::spawn(Arc::clone(&client).speak(waiting, writing, all.idle)));
        Ok(client)
    }

    /// Waits for the end of the process, and keeps the end of what it says meanwhile.
    fn watch(&self, process: Process) {
        let ended = process.wait(&mut |_, bytes| lock(&self.stderr).push(bytes));
        self.break_off(match ended {
            Ok(ProcessEnd { bound: Some(bound), .. }) => format!("it took more than it may ({})", limit(bound)),
            Ok(ProcessEnd { exit: CommandExit::Code(code), .. }) => format!("it ended with exit code {code}"),
            Ok(ProcessEnd { exit: CommandExit::Signal(signal), .. }) => format!("it was ended by signal {signal}"),
            Ok(ProcessEnd { exit: CommandExit::Stopped, .. }) => "it was ended".to_owned(),
            Err(err) => err.to_string(),
        });
    }

    fn give_up(&self, why: String) {
        self.break_off(why);
        self.stopper.stop();
    }

    /// From now on nobody gets an answer.
    fn break_off(&self, why: String) {
        self.heard.send_modify(|heard| {
            heard.ended.get_or_insert(why);
        });
        // Invariant: only after the end was told, so that whoever asks meanwhile sees one or the other.
        lock(&self.asked).clear();
    }

    /// Keeps it from ending for want of questions.
    pub(super) fn used(self: &Arc<Self>) -> ClientUse {
        self.users.fetch_add(1, Ordering::Relaxed);
        ClientUse(Arc::clone(self))
    }

    /// Whether it can be asked.
    pub(super) fn is_alive(&self) -> bool {
        let heard = self.heard.borrow();
        heard.ended.is_none() && !heard.leaves
    }

    /// What it can do; waits until it has said so. Whoever asks waits until their own time is over; a server that was
    /// waited for much longer than one answer may take is late.
    pub(super) async fn offered(
        &self,
        ctx: &ToolCtx,
        (until, limit): (Instant, Duration),
    ) -> Result<Arc<LanguageCapabilities>, LanguageServerError> {
        let mut heard = self.heard.subscribe();
        let begun = heard.wait_for(|heard| heard.offered.is_some() || heard.ended.is_some());
        let start_limit = START_ANSWERS * limit;
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        let heard = tokio::select! {
            heard = begun => heard.map_err(|_| LanguageServerError::Broken)?,
            () = sleep(left(self.started + start_limit)) => return Err(LanguageServerError::Late(start_limit)),
            () = sleep(left(until)) => return Err(LanguageServerError::Loading),
            () = ctx.cancel.cancelled() => return Err(LanguageServerError::Told(crate::blocking::stopped())),
        };
        if heard.ended.is_some() {
            return Err(LanguageServerError::Broken);
        }
        heard.offered.clone().ok_or(LanguageServerError::Broken)
    }

    /// Asks one question.
    pub(super) async fn ask(
        &self,
        ctx: &ToolCtx,
        (method, params): (&str, &Value),
        limit: Duration,
    ) -> Result<Value, LanguageServerError> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let (asker, answer) = oneshot::channel();
        lock(&self.asked).insert(number, asker);
        let _forgets = PendingRequest { client: self, number };
        if !self.is_alive() || self.outbox.send(framed(&request(number, method, params.clone()))).await.is_err() {
            return Err(LanguageServerError::Broken);
        }
        tokio::select! {
            answer = answer => answer.unwrap_or(Err(LanguageServerError::Broken)),
            () = sleep(limit) => Err(LanguageServerError::Late(limit)),
            () = ctx.cancel.cancelled() => Err(LanguageServerError::Told(crate::blocking::stopped())),
        }
    }

    /// Whether a server that has not answered in time is still at work: it loads something, or says anything at all. It
    /// was just told that nobody waits for the answer any more, which most servers confirm.
    pub(super) async fn is_at_work(&self, needs: Needs) -> bool {
        let mut heard = self.heard.subscribe();
        let (before, is_loading) = {
            let heard = heard.borrow_and_update();
            (heard.messages, heard.offered.is_some() && !heard.is_calm(needs))
        };
        let says_something = heard.wait_for(|heard| heard.messages > before || heard.ended.is_some());
        is_loading || matches!(timeout(SIGN_OF_LIFE, says_something).await, Ok(Ok(heard)) if heard.ended.is_none())
    }

    /// Brings the server in step with the files, and opens the document that is asked about. Work for a thread that may
    /// block.
    pub(super) fn keep_in_step(
        &self,
        (root, place): (&Root, &WorkspacePath),
        told: (&ToolCtx, &StopFlag),
        again: Resend,
    ) -> Result<OpenDocument, LanguageServerError> {
        let offered = self.heard.borrow().offered.clone().ok_or(LanguageServerError::Broken)?;
        let around = DocumentContext { root, server: &self.server, offered: &offered };
        let mut documents = lock(&self.documents);
        let now = match documents.seen().holds_still(root) {
            true => None,
            false => Some(Snapshot::take(root, &self.server, told)?),
        };
        let (opened, mut news) = documents.step(&around, now, place)?;
        if again == Resend::IfOthersChanged {
            documents.touch(&opened, &mut news);
        }
        self.sees_all.store(documents.sees_all(), Ordering::Relaxed);
        // Invariant: it is all said before anybody else brings the server in step.
        self.tell(news)?;
        Ok(opened)
    }

    fn tell(&self, news: DocumentUpdate) -> Result<(), LanguageServerError> {
        let DocumentUpdate { notes, expected, closed, unsettled } = news;
        let mut known = lock(&self.unsettled);
        (known.project, known.checks) = (known.project || unsettled.project, known.checks || unsettled.checks);
        drop(known);
        if !expected.is_empty() || !closed.is_empty() {
            self.heard.send_modify(|heard| {
                closed.iter().for_each(|address| heard.forget(address));
                expected.iter().for_each(|(address, version)| heard.expect(address, *version));
            });
        }
        let mut frames = notes.iter().map(framed);
        frames.try_for_each(|frame| self.outbox.blocking_send(frame)).map_err(|_| LanguageServerError::Broken)
    }

    /// Why it ended, with its last words on its standard error. Waits a moment for them.
    pub(super) async fn last_words(&self) -> String {
        self.is_gone_within(FAREWELL).await;
        let why = self.heard.borrow().ended.clone().unwrap_or_default();
        match lock(&self.stderr).lines() {
            lines if lines.is_empty() => why,
            lines => format!("{why}; it said:\n{lines}"),
        }
    }

    /// Ends it at once: it does not answer.
    pub(super) fn kill(&self) {
        self.give_up("it was ended".to_owned());
    }

    /// Tells it to end.
    pub(super) fn dismiss(&self) {
        self.heard.send_modify(|heard| heard.leaves = true);
    }

    /// Waits until everything of it is dead.
    pub(super) async fn is_gone(&self) -> bool {
        self.is_gone_within(4 * FAREWELL).await
    }

    async fn is_gone_within(&self, limit: Duration) -> bool {
        let mut heard = self.heard.subscribe();
        timeout(limit, heard.wait_for(|heard| heard.gone)).await.is_ok()
    }
}

/// A call that talks with a server.
#[derive(Debug)]
pub(super) struct ClientUse(Arc<LanguageClient>);

impl Drop for ClientUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a document that stayed the same is told again when others have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    IfOthersChanged,
    Never,
}

/// A question that waits for its answer.
struct PendingRequest<'a> {
    client: &'a LanguageClient,
    number: i64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if lock(&self.client.asked).remove(&self.number).is_some() {
            let note = note("$/cancelRequest", json!({ "id": self.number }));
            // A server that hears nothing any more answers nothing either.
            let _ = self.client.outbox.try_send(framed(&note));
        }
    }
}

fn request(number: i64, method: &str, params: Value) -> Value {
    let mut request = note(method, params);
    request["id"] = json!(number);
    request
}

/// What may be raised in the settings.
fn limit(bound: Bound) -> &'static str {
    match bound {
        Bound::Memory => "memory; `lsp.memory` in the settings says how much",
        Bound::Cpu => "processor time",
        Bound::Processes => "processes; `sandbox.processes` in the settings says how many",
        Bound::Disk => "room on the disk; `sandbox.disk` in the settings says how much",
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
