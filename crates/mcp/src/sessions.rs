//! The sessions of older clients over HTTP. What was sent in one is kept for a while: a client whose stream has broken off
//! hears the rest of it, also when the call has ended meanwhile.
//!
//! Clients of the later era have no sessions: for them a stream that breaks off is a call that is cancelled.

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{Stream, future::BoxFuture, stream::unfold};
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{
        EventId, EventStore, EventStoreError, EventStream, ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, SessionConfig},
    },
};
use tokio::sync::Notify;

/// How many messages are kept, of all sessions together.
const KEPT: usize = 512;

type InnerSessions = LocalSessionManager;
type SessionManagerError = <InnerSessions as SessionManager>::Error;

/// The sessions.
pub struct Sessions(InnerSessions);

impl Sessions {
    pub(crate) fn new(config: SessionConfig) -> Self {
        let mut inner = LocalSessionManager::default().with_event_store(Arc::new(Sent::default()));
        inner.session_config = config;
        Self(inner)
    }

    /// Ends a session; its client begins another one.
    pub async fn end(&self, id: &str) {
        if let Err(err) = self.0.close_session(&id.into()).await {
            // It has ended by itself.
            tracing::debug!(%err, "a session could not be ended");
        }
    }
}

// Invariant: the messages are kept for sessions alone, so that the manager says nothing of its store.
impl SessionManager for Sessions {
    type Error = SessionManagerError;
    type Transport = <InnerSessions as SessionManager>::Transport;

    fn create_session(&self) -> impl Future<Output = Result<(SessionId, Self::Transport), SessionManagerError>> + Send {
        self.0.create_session()
    }

    fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<ServerJsonRpcMessage, SessionManagerError>> + Send {
        self.0.initialize_session(id, message)
    }

    fn has_session(&self, id: &SessionId) -> impl Future<Output = Result<bool, SessionManagerError>> + Send {
        self.0.has_session(id)
    }

    fn close_session(&self, id: &SessionId) -> impl Future<Output = Result<(), SessionManagerError>> + Send {
        self.0.close_session(id)
    }

    fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionManagerError>> + Send
    {
        self.0.create_stream(id, message)
    }

    fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SessionManagerError>> + Send {
        self.0.accept_message(id, message)
    }

    fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> impl Future<Output = Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionManagerError>> + Send
    {
        self.0.create_standalone_stream(id)
    }

    fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> impl Future<Output = Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionManagerError>> + Send
    {
        self.0.resume(id, last_event_id)
    }
}

/// The messages that were sent last.
#[derive(Default)]
struct Sent(Arc<EventBuffer>);

#[derive(Default)]
struct EventBuffer {
    events: Mutex<Events>,
    news: Notify,
}

#[derive(Default)]
struct Events {
    count: u64,
    last: VecDeque<Event>,
}

#[derive(Clone)]
struct Event {
    number: u64,
    stream: String,
    message: ServerSseMessage,
}

impl EventBuffer {
    /// Keeps a message. Its id has that of its stream in it, which nobody knows who has not heard it.
    fn keep(&self, stream: &str, message: &ServerSseMessage) -> EventId {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.count += 1;
        let (number, mut message) = (events.count, message.clone());
        let id = format!("{number}/{stream}");
        message.event_id = Some(id.clone());
        if events.last.len() == KEPT {
            events.last.pop_front();
        }
        events.last.push_back(Event { number, stream: stream.to_owned(), message });
        drop(events);
        self.news.notify_waiters();
        id
    }

    fn find(&self, wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).last.iter().find(|event| wanted(event)).cloned()
    }

    /// The next message of the same stream, which may not be sent yet; none comes after the answer.
    async fn after(&self, before: &Event) -> Option<Event> {
        if before.is_answer() {
            return None;
        }
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let next = self.find(|event| event.stream == before.stream && event.number > before.number);
            if next.is_some() {
                return next;
            }
            news.await;
        }
    }
}

impl Event {
    fn is_answer(&self) -> bool {
        matches!(self.message.message.as_deref(), Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)))
    }
}

impl EventStore for Sent {
    fn store_event<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        stream: &'life1 str,
        event: &'life2 ServerSseMessage,
    ) -> BoxFuture<'async_trait, Result<EventId, EventStoreError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(std::future::ready(Ok(self.0.keep(stream, event))))
    }

    fn replay_events_after<'life0, 'life1, 'async_trait>(
        &'life0 self,
        last: &'life1 str,
    ) -> BoxFuture<'async_trait, Result<EventStream, EventStoreError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        let heard = self.0.find(|event| event.message.event_id.as_deref() == Some(last));
        let replayed = heard.ok_or_else(|| EventStoreError::from("it is kept no longer")).map(|heard| {
            let kept = Arc::clone(&self.0);
            let next = |(kept, before): (Arc<EventBuffer>, Event)| async move {
                let event = kept.after(&before).await?;
                Some((event.message.clone(), (kept, event)))
            };
            Box::pin(unfold((kept, heard), next)) as EventStream
        });
        Box::pin(std::future::ready(replayed))
    }
}
