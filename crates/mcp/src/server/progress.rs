//! What happens during a call, told as progress to a client that wants to hear it.

use std::{sync::Arc, time::Duration};

use haft_runtime::{CallEvent, CallId, CallListener, ProgressPart};
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
                let _full = sender.try_send((part(event), words));
            }
        });
        let teller = Teller { peer: context.peer.clone(), token, progress: ToldProgress::default() };
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
    progress: ToldProgress,
}

/// Progress must grow, and never beyond the whole. Where it is not known how far a call is, what was said is counted.
#[derive(Default)]
struct ToldProgress {
    /// Nothing was told before.
    at: Option<f64>,
    /// Known once a part of the whole was told.
    total: Option<f64>,
}

/// The whole, where parts of a hundred are told.
const WHOLE: f64 = 100.0;
/// So little of what is left that progress is only seen to grow.
const A_LITTLE: f64 = 0.001;

impl ToldProgress {
    /// How far to say it is, where there is something to tell: whoever has heard of the whole hears of no more.
    fn grow(&mut self, part: Option<ProgressPart>) -> Option<f64> {
        let before = self.at;
        let at = before.unwrap_or_default();
        self.total = part.map(|part| part.total).filter(|total| *total > at).or(self.total);
        let next = match (part, self.total) {
            (Some(part), _) if before.is_none_or(|before| part.done > before) => part.done,
            (_, Some(total)) => at + (total - at).max(0.0) * A_LITTLE,
            (_, None) => at + 1.0,
        };
        self.at = Some(next);
        before.is_none_or(|before| next > before).then_some(next)
    }
}

impl Teller {
    async fn tell(mut self, mut events: Receiver<(Option<ProgressPart>, String)>) {
        let mut alive = interval_at(Instant::now() + ALIVE, ALIVE);
        let mut last = None;
        loop {
            let (part, words) = tokio::select! {
                told = events.recv() => match told {
                    Some(told) => told,
                    None => return,
                },
                _ = alive.tick() => (None, still(last.as_deref())),
            };
            let Some(at) = self.progress.grow(part) else { continue };
            let mut said = ProgressNotificationParam::new(self.token.clone(), at).with_message(words.clone());
            said.total = self.progress.total;
            if self.peer.notify_progress(said).await.is_err() {
                return;
            }
            if !words.starts_with(STILL) {
                last = words.lines().next().map(str::to_owned);
            }
        }
    }
}

/// How a note begins that only says that the call goes on.
const STILL: &str = "still ";

fn still(last: Option<&str>) -> String {
    last.map_or_else(|| format!("{STILL}working"), |last| format!("{STILL}working: {last}"))
}

/// How much of the whole is done, where an event tells.
fn part(event: &CallEvent) -> Option<ProgressPart> {
    let CallEvent::Progress { progress, part, .. } = event else { return None };
    part.or_else(|| Some(ProgressPart { done: f64::from((*progress)?), total: WHOLE }))
}

/// What of a call a client hears while it goes on.
fn words(event: &CallEvent, call: &CallId) -> Option<String> {
    match event {
        CallEvent::Progress { progress, message, .. } => {
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

#[cfg(test)]
mod tests {
    use haft_runtime::ProgressPart;

    use super::ToldProgress;

    #[test]
    fn progress_grows_up_to_the_whole_whatever_is_told() {
        let mut progress = ToldProgress::default();
        let mut told = Vec::new();
        let of = |total: f64| move |done: f64| Some(ProgressPart { done, total });
        let hundred = of(100.0);
        let parts = [None, hundred(5.0), None, hundred(5.0), hundred(60.0), hundred(7.0), hundred(100.0)];
        for part in parts.into_iter().chain((0..500).map(|_| None)) {
            told.extend(progress.grow(part).map(|at| (at, progress.total)));
        }
        assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0), "{told:?}");
        assert_eq!((told[0], told[1], told.len()), ((1.0, None), (5.0, Some(100.0)), 7));
        assert_eq!(told[6], (100.0, Some(100.0)));
        let mut own = ToldProgress::default();
        assert_eq!((own.grow(of(7.0)(3.0)), own.total), (Some(3.0), Some(7.0)));
        assert!((0..9999).all(|_| own.grow(None).is_some_and(|at| at < 7.0)), "{:?}", own.at);
    }

    #[test]
    fn a_count_from_nothing_and_one_after_other_words_have_their_total() {
        let of_six = |done: f64| Some(ProgressPart { done, total: 6.0 });
        let mut from_nothing = ToldProgress::default();
        let told: Vec<_> = (0..4).map(|done| from_nothing.grow(of_six(done.into()))).collect();
        assert_eq!((told, from_nothing.total), ((0..4).map(|done| Some(done.into())).collect(), Some(6.0)));
        let mut after_words = ToldProgress::default();
        assert_eq!((after_words.grow(None), after_words.total), (Some(1.0), None));
        assert!(after_words.grow(of_six(0.0)).is_some_and(|at| at > 1.0 && at < 2.0));
        assert_eq!((after_words.grow(of_six(2.0)), after_words.total), (Some(2.0), Some(6.0)));
    }
}
