//! What happens during a call, told as progress to a client that wants to hear it.

use std::{sync::Arc, time::Duration};

use haft_runtime::{CallEvent, CallId, CallListener};
use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use tokio::{
    sync::mpsc::{self, Receiver},
    task::JoinHandle,
    time::{Instant, interval_at},
};
use tokio_util::sync::CancellationToken;

/// How much may wait to be told; a client that is slower misses some of it, and gets all in the result.
const QUEUE: usize = 256;
/// How often a client hears that a call still goes on, so that it does not give up.
const ALIVE: Duration = Duration::from_secs(10);

/// Tells a client of one call, until it is answered.
pub(super) struct ProgressReporter(Option<Telling>);

struct Telling {
    listener: CallListener,
    told: JoinHandle<()>,
}

impl ProgressReporter {
    /// A client that gave no token hears nothing.
    pub(super) fn of(context: &RequestContext<RoleServer>, call: &CallId) -> Self {
        let Some(token) = context.meta.get_progress_token() else { return Self(None) };
        let (sender, events) = mpsc::channel(QUEUE);
        let id = call.clone();
        let listener: CallListener = Arc::new(move |event| {
            if let Some(words) = words(event, &id) {
                // What does not fit is in the result.
                let _full = sender.try_send(words);
            }
        });
        let teller = Teller { peer: context.peer.clone(), token, step: 0.0 };
        Self(Some(Telling { listener, told: tokio::spawn(teller.tell(events)) }))
    }

    /// What hears of the call.
    pub(super) fn listener(&self) -> Option<CallListener> {
        self.0.as_ref().map(|telling| Arc::clone(&telling.listener))
    }

    /// The client has its answer, and hears nothing more although the call goes on.
    pub(super) fn stop(self) {
        if let Some(telling) = self.0 {
            telling.told.abort();
        }
    }

    /// Everything has been told before the result is. Who has cancelled the call, or is gone, is told nothing more.
    pub(super) async fn finish(self, cancelled: &CancellationToken) {
        let Some(Telling { listener, mut told }) = self.0 else { return };
        drop(listener);
        tokio::select! {
            _panicked = &mut told => {}
            () = cancelled.cancelled() => told.abort(),
        }
    }
}

struct Teller {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// Progress must grow; how far a call is can seldom be told, so this counts what was said.
    step: f64,
}

impl Teller {
    async fn tell(mut self, mut events: Receiver<String>) {
        let mut alive = interval_at(Instant::now() + ALIVE, ALIVE);
        let mut last = "under way".to_owned();
        loop {
            let words = tokio::select! {
                words = events.recv() => match words {
                    Some(words) => words,
                    None => return,
                },
                _ = alive.tick() => format!("still: {last}"),
            };
            self.step += 1.0;
            let said = ProgressNotificationParam::new(self.token.clone(), self.step).with_message(words.clone());
            if self.peer.notify_progress(said).await.is_err() {
                return;
            }
            if !words.starts_with("still: ") {
                last = words.lines().next().unwrap_or_default().to_owned();
            }
        }
    }
}

/// What of a call a client hears while it goes on.
fn words(event: &CallEvent, call: &CallId) -> Option<String> {
    match event {
        CallEvent::Progress { progress, message } => {
            Some(progress.map_or_else(|| message.clone(), |percent| format!("{message} ({percent} %)")))
        }
        CallEvent::OutputAppended { chunk, .. } => Some(chunk.clone()),
        CallEvent::NeedsApproval { reason, .. } => {
            Some(format!("waits for a person's yes ({reason}): `haft approve {call}` or `haft approvals`"))
        }
        CallEvent::Asks { form, .. } => {
            Some(format!("asks a person: {}: `haft approve {call} --input JSON` or `haft approvals`", form.message))
        }
        CallEvent::Called { .. }
        | CallEvent::Answered { .. }
        | CallEvent::Staged { .. }
        | CallEvent::Approved { .. }
        | CallEvent::Rejected { .. }
        | CallEvent::Started { .. }
        | CallEvent::Pending { .. }
        | CallEvent::Committed { .. }
        | CallEvent::Undone { .. }
        | CallEvent::Completed { .. }
        | CallEvent::Failed { .. }
        | CallEvent::Cancelled { .. }
        | CallEvent::Interrupted { .. } => None,
    }
}
