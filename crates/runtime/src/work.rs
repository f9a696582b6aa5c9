//! Work under limits: streamed, timed, stoppable, and never able to take the house down with it.

use std::{
    any::Any,
    collections::VecDeque,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::Pin,
    task::Poll,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    CallEvent, CallRequest, CallState, Doors, Effect, ErrorCode, Stream, ToolCtx, ToolError,
    form_session::{FormRequest, FormSession},
    log::CallLog,
    ran::MayBePartial,
    tool::ToolMessage,
};

/// Work that lasts longer than this is put into the journal while it goes on, so that it can be seen and stopped.
const SHOWN_AFTER: Duration = Duration::from_millis(100);
/// From then on, others see what it says at most so much later.
const SHOWN_EVERY: Duration = Duration::from_millis(250);
/// Messages that may wait for the line to take them: pieces of output are large when there are many.
const WORDS_IN_FLIGHT: usize = 8;
/// Output of one call that the journal keeps as events.
const JOURNALED_OUTPUT: u64 = 256 << 10;
/// The end of the output that an error carries.
const PARTIAL_OUTPUT: usize = 8 << 10;
/// Adjacent pieces of one stream are joined up to this size.
const LARGEST_CHUNK: usize = 64 << 10;
/// How long work that was stopped may take to put away what it has set aside.
const TIDYING: Duration = Duration::from_secs(1);
/// What became of work that may also have panicked.
type Caught<T> = Result<Result<T, ToolError>, Box<dyn Any + Send>>;

const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long things may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// No call works longer, whatever it or its caller says.
    pub longest_work: Duration,
    /// How long a call may be silent; `None` means as long as it likes.
    pub idle: Option<Duration>,
    /// How long a question stays open.
    pub answer_within: Duration,
    /// Characters of a result's text that reach the caller; the rest is kept for `result_query`.
    pub content_chars: usize,
    /// About how many bytes of a result's value reach the caller; the rest is kept for `result_query`.
    pub structured_bytes: usize,
    /// The most bytes that are kept of a result's text, and of its value.
    pub kept_bytes: usize,
    /// Whether the journal has the end of every call before its caller has it. Otherwise that of a call that only read, or
    /// that the journal could tell by itself, may be written behind the answer.
    pub recorded_first: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            longest_work: Duration::from_secs(600),
            idle: None,
            answer_within: Duration::from_secs(24 * 3600),
            content_chars: 30_000,
            structured_bytes: 256 << 10,
            kept_bytes: 10 << 20,
            recorded_first: false,
        }
    }
}

/// How long a call may work, and when that is over.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    whole: Duration,
    end: Instant,
    /// How long the call had waited for answers when it began.
    waited: Duration,
}

impl Limit {
    pub(crate) fn from_now(whole: Duration, log: &CallLog) -> Self {
        Self { whole, end: Instant::now() + whole, waited: log.waited }
    }

    /// Waiting for an answer does not count.
    pub(crate) fn until(&self, log: &CallLog) -> Instant {
        self.end + log.waited.saturating_sub(self.waited)
    }
}

/// One piece of work and what it is done under.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) request: &'a CallRequest,
    pub(crate) limit: Limit,
    pub(crate) idle: Option<Duration>,
    pub(crate) doors: &'a Doors,
    /// What the journal is told if the work lasts.
    pub(crate) state: CallState,
    /// When the caller hears what it says.
    pub(crate) heard: OutputRelease,
    /// How far it reaches.
    pub(crate) effect: Effect,
}

/// When the caller hears what a tool says. The journal hears it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputRelease {
    AtOnce,
    AfterTheYes,
}

impl Work<'_> {
    /// Does the work. Whatever ends it early also stops what it has started; work that then says what it leaves behind
    /// is heard.
    pub(crate) async fn run<'w, T, F>(&self, log: &mut CallLog, work: impl FnOnce(ToolCtx) -> F) -> Result<T, ToolError>
    where
        T: MayBePartial,
        F: Future<Output = Result<T, ToolError>> + 'w,
    {
        let (started, waited) = (Instant::now(), log.waited);
        let (words, heard) = mpsc::channel(WORDS_IN_FLIGHT);
        let cancel = self.request.cancel.child_token();
        let stop = cancel.clone().drop_guard();
        let ctx = ToolCtx {
            call_id: self.request.id.clone(),
            caller: self.request.caller.clone(),
            cancel: cancel.clone(),
            deadline: self.limit.until(log).into_std(),
            words,
        };
        let working = AssertUnwindSafe(work(ctx)).catch_unwind();
        tokio::pin!(working);
        let mut collector =
            OutputCollector { heard, when: self.heard, said: [0; 3], tail: String::new(), asked: VecDeque::new() };
        let mut session = FormSession::new(self.doors);
        let watched = match self.at_once(working.as_mut(), &cancel, log).await {
            Some(ended) => Ok(ended),
            None => self.watch(working.as_mut(), &cancel, (&mut collector, &mut session), log).await,
        };
        session.withdraw(self, log).await;
        drop(stop);
        let mut result = match watched {
            Ok(ended) => ended,
            Err(stop) => tidied(working, stop, &mut collector, log).await,
        };
        collector.rest(log);
        log.worked += started.elapsed().saturating_sub(log.waited - waited);
        let error = match &mut result {
            Ok(given) => given.cut_short().map(|cut| &mut cut.error),
            Err(error) => Some(error),
        };
        // What a command says of itself is not said again.
        let is_news = |error: &&mut ToolError| error.said().next().is_none() && !collector.tail.is_empty();
        if let Some(error) = error.filter(|_| self.heard == OutputRelease::AtOnce).filter(is_news) {
            error.details.insert("partialOutput".to_owned(), collector.tail.into());
        }
        result
    }

    /// The end of work that waits for nothing: most reads are over before a clock would have been set.
    async fn at_once<T>(
        &self,
        mut working: Pin<&mut impl Future<Output = Caught<T>>>,
        cancel: &CancellationToken,
        log: &CallLog,
    ) -> Option<Result<T, ToolError>> {
        if cancel.is_cancelled() || Instant::now() >= self.limit.until(log) {
            return None;
        }
        match poll_fn(|cx| Poll::Ready(working.as_mut().poll(cx))).await {
            Poll::Ready(caught) => Some(given(caught)),
            Poll::Pending => None,
        }
    }

    /// Waits for the end of the work; an error of the outer kind says that it did not end by itself.
    async fn watch<T>(
        &self,
        mut working: Pin<&mut impl Future<Output = Caught<T>>>,
        cancel: &CancellationToken,
        (collector, session): (&mut OutputCollector, &mut FormSession<'_>),
        log: &mut CallLog,
    ) -> Result<Result<T, ToolError>, ToolError> {
        let deadline = tokio::time::sleep_until(self.limit.until(log));
        let idle = tokio::time::sleep(self.idle.unwrap_or(NEVER));
        let shown = tokio::time::sleep(SHOWN_AFTER);
        let scope = log.scope.clone();
        let call = log.call.clone();
        let stop_wanted = self.doors.journal.stop_wanted(&scope, &call);
        tokio::pin!(deadline, idle, shown, stop_wanted);
        loop {
            if !session.is_open()
                && let Some(asking) = collector.asked.pop_front()
            {
                session.put(*asking, self, log).await;
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled")),
                () = &mut deadline, if !session.is_open() => return Err(too_long(self.limit.whole)),
                Some(words) = collector.heard.recv() => {
                    collector.take(words, log);
                    postpone(idle.as_mut(), self.idle);
                }
                caught = &mut working => return Ok(given(caught)),
                () = &mut idle, if !session.is_open() => return Err(too_quiet(self.idle)),
                news = session.news(), if session.is_open() => {
                    session.close(news, self, log).await;
                    deadline.as_mut().reset(self.limit.until(log));
                    postpone(idle.as_mut(), self.idle);
                }
                // While somebody is asked, the journal knows the call as one that waits.
                () = &mut shown, if !session.is_open() => {
                    if !log.is_recorded() || log.has_news() {
                        let entry = log.entry(self.state);
                        self.doors.journal.record_later(&scope, entry).await?;
                    }
                    shown.as_mut().reset(Instant::now() + SHOWN_EVERY);
                }
                () = &mut stop_wanted, if log.is_recorded() => {
                    return Err(ToolError::new(ErrorCode::Cancelled, "the call was stopped on request"));
                }
            }
        }
    }
}

/// Gives stopped work a moment to put away what it has set aside, and hears what it leaves.
async fn tidied<T: MayBePartial>(
    mut working: Pin<&mut impl Future<Output = Caught<T>>>,
    stop: ToolError,
    collector: &mut OutputCollector,
    log: &mut CallLog,
) -> Result<T, ToolError> {
    let over = tokio::time::sleep(TIDYING);
    tokio::pin!(over);
    let ended = loop {
        tokio::select! {
            biased;
            () = &mut over => return Err(stop),
            Some(words) = collector.heard.recv() => {
                collector.take(words, log);
                // Nobody is asked any more.
                collector.asked.clear();
            }
            ended = &mut working => break ended,
        }
    };
    let mut given = match ended {
        Ok(Ok(given)) => given,
        Ok(Err(error)) if error.nothing_done() => return Err(stop.having_done_nothing()),
        Ok(Err(_)) | Err(_) => return Err(stop),
    };
    let Some(cut) = given.cut_short() else { return Err(stop) };
    cut.stopped_by(stop);
    Ok(given)
}

fn postpone(timer: Pin<&mut Sleep>, by: Option<Duration>) {
    if let Some(by) = by {
        timer.reset(Instant::now() + by);
    }
}

fn too_long(limit: Duration) -> ToolError {
    ToolError::new(ErrorCode::Timeout, format!("Tool timed out after {}ms", limit.as_millis()))
}

fn too_quiet(limit: Option<Duration>) -> ToolError {
    let limit = limit.unwrap_or(NEVER).as_millis();
    ToolError::new(ErrorCode::Timeout, format!("Tool timed out: no output for {limit}ms"))
}

/// What the work gave; a fault of its own is an error like any other.
fn given<T>(caught: Caught<T>) -> Result<T, ToolError> {
    caught.unwrap_or_else(|panic| Err(fault(&*panic)))
}

fn fault(panic: &(dyn Any + Send)) -> ToolError {
    let what = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ToolError::new(ErrorCode::Internal, format!("the tool stopped on a fault of its own: {what}"))
}

/// Hears what a tool says, and hands it to the listener and the journal.
struct OutputCollector {
    heard: mpsc::Receiver<ToolMessage>,
    when: OutputRelease,
    /// Bytes of each stream so far.
    said: [u64; 3],
    tail: String,
    /// The forms that it wants to put.
    asked: VecDeque<Box<FormRequest>>,
}

impl OutputCollector {
    /// Takes what has been said so far; whoever talks without end is not listened to without end.
    fn take(&mut self, first: ToolMessage, log: &mut CallLog) {
        let mut words = first;
        for _ in 0..WORDS_IN_FLIGHT {
            let Ok(next) = self.heard.try_recv() else { break };
            match joined(words, next) {
                Ok(both) => words = both,
                Err((before, next)) => {
                    self.hand_on(before, log);
                    words = next;
                }
            }
        }
        self.hand_on(words, log);
    }

    /// A tool may have said its last words in the very step in which it ended.
    fn rest(&mut self, log: &mut CallLog) {
        if let Ok(words) = self.heard.try_recv() {
            self.take(words, log);
        }
    }

    fn hand_on(&mut self, words: ToolMessage, log: &mut CallLog) {
        match words {
            ToolMessage::Ask(asking) => self.asked.push_back(asking),
            ToolMessage::Begun => log.has_begun(),
            // Progress is for whoever may look on now.
            ToolMessage::Progress { progress, part, message } => {
                if self.when == OutputRelease::AtOnce {
                    log.tell(&CallEvent::Progress { progress, part, message });
                }
            }
            ToolMessage::Output { stream, chunk } => self.hand_on_output(stream, chunk, log),
        }
    }

    fn hand_on_output(&mut self, stream: Stream, chunk: String, log: &mut CallLog) {
        log.has_begun();
        let said = &mut self.said[slot(stream)];
        let offset = *said;
        *said += chunk.len() as u64;
        keep_tail(&mut self.tail, &chunk);
        let total: u64 = self.said.iter().sum();
        let event = CallEvent::OutputAppended { stream, chunk, offset };
        match (self.when, total <= JOURNALED_OUTPUT) {
            (OutputRelease::AtOnce, true) => log.note(event),
            (OutputRelease::AtOnce, false) => log.tell(&event),
            (OutputRelease::AfterTheYes, true) => log.note_until_the_yes(event),
            (OutputRelease::AfterTheYes, false) => {}
        }
    }
}

fn slot(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
        Stream::Text => 2,
    }
}

/// Adds a piece to the end of the output, and lets go of what is no longer near it.
fn keep_tail(tail: &mut String, piece: &str) {
    tail.push_str(&piece[piece.ceil_char_boundary(piece.len().saturating_sub(PARTIAL_OUTPUT))..]);
    if tail.len() > 2 * PARTIAL_OUTPUT {
        let cut = tail.ceil_char_boundary(tail.len() - PARTIAL_OUTPUT);
        tail.drain(..cut);
    }
}

/// Two pieces of the same stream become one, as long as it stays small.
fn joined(before: ToolMessage, next: ToolMessage) -> Result<ToolMessage, (ToolMessage, ToolMessage)> {
    match (before, next) {
        (ToolMessage::Output { stream, chunk: mut first }, ToolMessage::Output { stream: same, chunk })
            if stream == same && first.len() + chunk.len() <= LARGEST_CHUNK =>
        {
            first.push_str(&chunk);
            Ok(ToolMessage::Output { stream, chunk: first })
        }
        (before, next) => Err((before, next)),
    }
}
