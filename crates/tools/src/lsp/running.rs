//! The language servers of a workspace, each started when it is first asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use haft_runtime::{ToolCtx, ToolError};
use tokio::time::sleep;

use super::{
    client::{LanguageClient, lock},
    error::{Unanswered, UnusableServer},
    servers::{LanguageServer, LanguageServers, unavailable},
    watched::Snapshot,
};
use crate::{
    blocking::{StopWith, blocking, stopped},
    fenced::CommandContext,
};

/// How long is waited before a server that broke is started again. After that it is left alone.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// How long a server that broke that often is left alone.
const REST: Duration = Duration::from_secs(60);

/// The language servers of a workspace.
#[derive(Debug)]
pub(crate) struct RunningServers {
    pub(crate) servers: LanguageServers,
    slots: Mutex<HashMap<ServerKey, Arc<Mutex<LanguageServerSlot>>>>,
}

/// A server by its language and the command that starts it.
type ServerKey = (String, Vec<String>);

/// One server.
#[derive(Debug, Default)]
struct LanguageServerSlot {
    client: Option<Arc<LanguageClient>>,
    /// How often it broke since it last answered, and when, and its last words.
    broke: usize,
    broke_at: Option<Instant>,
    words: String,
}

/// Whether a server was started for this very call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LanguageServerStart {
    Running,
    Started,
}

impl RunningServers {
    pub(crate) fn new(servers: LanguageServers) -> Self {
        Self { servers, slots: Mutex::default() }
    }

    /// A server: the one that runs, or a new one.
    pub(super) async fn client(
        &self,
        ctx: &ToolCtx,
        context: CommandContext,
        server: LanguageServer,
    ) -> Result<(Arc<LanguageClient>, LanguageServerStart), Unanswered> {
        let slot = self.slot(&server);
        if let Some(running) = lock(&slot).running() {
            return Ok((running, LanguageServerStart::Running));
        }
        let pause = lock(&slot).pause(&server)?;
        tokio::select! {
            () = sleep(pause) => {}
            () = ctx.cancel.cancelled() => return Err(Unanswered::Told(stopped())),
        }
        let (all, told) = (self.servers.clone(), ctx.clone());
        let started = blocking(StopWith::Call(ctx), move |stop| {
            let mut slot = lock(&slot);
            if let Some(running) = slot.running() {
                return Ok((running, LanguageServerStart::Running));
            }
            let seen = Snapshot::take(&context.root, &server, (&told, stop))?;
            let client = LanguageClient::start(&context, server, &all, seen)?;
            slot.client = Some(Arc::clone(&client));
            Ok((client, LanguageServerStart::Started))
        });
        Ok(started.await?)
    }

    /// A server has answered.
    pub(super) fn worked(&self, server: &LanguageServer) {
        lock(&self.slot(server)).broke = 0;
    }

    /// A server broke.
    pub(super) fn broke(&self, server: &LanguageServer, words: String) {
        let slot = self.slot(server);
        let mut slot = lock(&slot);
        (slot.broke, slot.broke_at, slot.words) = (slot.broke + 1, Some(Instant::now()), words);
    }

    /// Ends all of them, and waits for that.
    pub(crate) async fn end_all(&self) {
        let all = self.clients();
        all.iter().for_each(|client| client.dismiss());
        for client in all {
            client.is_gone().await;
        }
    }

    fn clients(&self) -> Vec<Arc<LanguageClient>> {
        lock(&self.slots).values().filter_map(|slot| lock(slot).client.clone()).collect()
    }

    fn slot(&self, server: &LanguageServer) -> Arc<Mutex<LanguageServerSlot>> {
        let key = (server.language.clone(), server.command.clone());
        Arc::clone(lock(&self.slots).entry(key).or_default())
    }
}

impl Drop for RunningServers {
    fn drop(&mut self) {
        self.clients().iter().for_each(|client| client.kill());
    }
}

impl LanguageServerSlot {
    fn running(&self) -> Option<Arc<LanguageClient>> {
        self.client.clone().filter(|client| client.is_alive())
    }

    /// How long to wait before it is started again; refused when it broke too often.
    fn pause(&mut self, server: &LanguageServer) -> Result<Duration, UnusableServer> {
        let Some(broke_at) = self.broke_at.filter(|_| self.broke > 0) else { return Ok(Duration::ZERO) };
        if let Some(pause) = PAUSES.get(self.broke - 1) {
            return Ok(pause.saturating_sub(broke_at.elapsed()));
        }
        if broke_at.elapsed() < REST {
            let what = format!("broke {} times", self.broke);
            return Err(UnusableServer { server: Box::new(server.clone()), what, words: self.words.clone() });
        }
        // One more chance.
        self.broke = PAUSES.len();
        Ok(Duration::ZERO)
    }
}

/// That none of the servers of a language can be used, why, and what to do.
pub(super) fn none_usable(all: &[UnusableServer], settings_file: &str) -> ToolError {
    let Some(UnusableServer { server, .. }) = all.first() else {
        return unavailable("there is no language server for this file".to_owned());
    };
    let what = |one: &UnusableServer| format!("`{}`, {}: {}", one.server.command.join(" "), one.what, one.words);
    let reasons = all.iter().map(what).collect::<Vec<_>>().join("\n");
    let (language, command) = (&server.language, server.command.join(" "));
    let message = format!(
        "the language server for {language}, {reasons}\nsee that `{command}` works on its own; if it does not, {}",
        server.hint(settings_file)
    );
    unavailable(message).with("language", language.as_str())
}
