//! What happens, as it happens: streams of server-sent events.

use std::{collections::HashMap, convert::Infallible, pin::pin, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use haft_platform::{CallerIdentity, EventStream, EventsOf, JournalEvent, Permission, StreamItem, SubmitToken};
use haft_runtime::{CallEvent, CallId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::{
    event_view::{EventProfile, told as words_of},
    problem::Problem,
    route::{Asked, Route, RouteAccess, raw_route},
};

/// How often a stream looks whether its listener may still listen.
const LOOK: Duration = Duration::from_millis(400);
/// The longest that a stream can be asked to last.
const LONGEST: u64 = 24 * 3600;
/// The last words of a stream that had its time: the client comes back after a second, with the number of the last event.
const GOODBYE: &str = "retry: 1000\n: maxAge\n\n";
/// How often a stream says something at least, so that nobody between takes it for dead.
const ALIVE: Duration = Duration::from_secs(15);
/// How much is told at once.
const MOST_AT_ONCE: usize = 64 << 10;
/// Of how many calls a stream remembers whose they are.
const MOST_REMEMBERED: usize = 10_000;

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    let own = Needs(Permission::CallsOwnRead);
    vec![
        raw_route(Method::GET, "/api/events", Needs(Permission::CallsTeamRead), "Tells what happens.", all),
        raw_route(Method::GET, "/api/calls/{id}/events", own, "Tells a call.", of_call),
        raw_route(Method::GET, "/api/runs/{runId}/events", own, "Tells a run from its beginning.", of_run),
    ]
}

/// Which events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventsQuery {
    /// Only these names, parted by commas; `tool.*` means all that begin so.
    types: Option<String>,
    /// `canonical`, `spaces`, `session` or `agent`.
    profile: Option<String>,
    /// Only events of these calls, parted by commas.
    calls: Option<String>,
    /// Only events of these sessions, parted by commas.
    sessions: Option<String>,
    /// Only events of these spaces, parted by commas.
    spaces: Option<String>,
    /// Only events of these agents, parted by commas.
    agents: Option<String>,
    /// After so many seconds the stream ends, and tells how to go on.
    max_age: Option<u64>,
}

/// Everything that happens in the tenant.
pub(super) async fn all(asked: Asked<EventsQuery, Body>) -> Result<Response, Problem> {
    told(without_body(asked), EventsOf::Tenant, (StreamCalls::All, None)).await
}

/// What happens to one call, from its beginning.
pub(super) async fn of_call(asked: Asked<EventsQuery, Body>) -> Result<Response, Problem> {
    let asked = without_body(asked);
    let record = super::calls::seen(&asked).await?;
    let calls = match record.opening.caller.who.id == asked.caller()?.id {
        true => StreamCalls::Own,
        false => StreamCalls::All,
    };
    told(asked, EventsOf::Call(record.call), (calls, Some(0))).await
}

/// What happens in a run, from its beginning. A call that belongs to no run is a run of its own.
pub(super) async fn of_run(asked: Asked<EventsQuery, Body>) -> Result<Response, Problem> {
    let asked = without_body(asked);
    let run = asked.part("runId")?.to_owned();
    let Some(call) = CallId::parse(&run) else {
        return told(asked, EventsOf::Run(run), (StreamCalls::Seen, Some(0))).await;
    };
    let caller = asked.caller()?;
    let record = asked.app.journal.find(&caller.scope, &call).await?;
    let is_alone = record.is_some_and(|record| caller.may_see(&record) && record.opening.caller.via.run.is_none());
    if !is_alone {
        return Err(Problem::not_found("such run"));
    }
    told(asked, EventsOf::Call(call), (StreamCalls::Seen, Some(0))).await
}

/// What happens in a session from now on.
pub(super) async fn of_session(asked: Asked<EventsQuery, Body>) -> Result<Response, Problem> {
    let asked = without_body(asked);
    let session = asked.app.platform.seen_session(asked.caller()?, asked.part("id")?).await?;
    told(asked, EventsOf::Session(session.id), (StreamCalls::Seen, None)).await
}

/// A body cannot be looked at from two places.
fn without_body<Q>(asked: Asked<Q, Body>) -> Asked<Q, ()> {
    let Asked { app, identity, path, query, headers, from, .. } = asked;
    Asked { app, identity, path, query, body: (), headers, from }
}

/// Whose calls a stream tells of, and so what its listener must be allowed for as long as it lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamCalls {
    /// Those of others, too.
    All,
    /// The listener's own.
    Own,
    /// Those that the listener may see; the rest is left out.
    Seen,
}

impl StreamCalls {
    fn may(self, identity: &CallerIdentity) -> bool {
        let allows = |permission: Permission| identity.caller.permissions.allow(permission.word());
        match self {
            Self::All => allows(Permission::CallsTeamRead),
            Self::Own | Self::Seen => allows(Permission::CallsOwnRead) || allows(Permission::CallsTeamRead),
        }
    }
}

async fn told(
    asked: Asked<EventsQuery, ()>,
    of: EventsOf,
    (calls, begin): (StreamCalls, Option<i64>),
) -> Result<Response, Problem> {
    let profile = EventProfile::parse(asked.query.profile.as_deref());
    let profile = profile.ok_or_else(|| Problem::mistake("`profile` is canonical, spaces, session or agent"))?;
    let after = match asked.headers.get("last-event-id") {
        Some(last) => {
            let number = last.to_str().ok().and_then(|last| last.parse().ok()).filter(|last: &i64| *last >= 0);
            Some(number.ok_or_else(|| Problem::mistake("Last-Event-ID is no number of an event"))?)
        }
        None => begin,
    };
    let ends = match asked.query.max_age {
        None => None,
        Some(seconds @ 1..=LONGEST) => Some(Instant::now() + Duration::from_secs(seconds)),
        Some(_) => return Err(Problem::mistake(format!("`maxAge` is a number of seconds from 1 to {LONGEST}"))),
    };
    let identity = asked.known()?.clone();
    let version = asked.app.platform.version(&identity.caller.scope).await?;
    let events = asked.app.platform.listen(&identity.caller.scope, of, after).await?;
    let access = ListenerAccess { asked, identity, calls, version, looks_at: Instant::now() + LOOK };
    let quiet_until = Instant::now() + ALIVE;
    let listener = Listener { access, events, profile, ends, quiet_until, own: HashMap::new() };
    let pieces = stream::unfold(Some(listener), |listener| async move {
        let mut listener = listener?;
        match listener.next().await? {
            Piece::Next(text) => Some((Ok::<_, Infallible>(Bytes::from(text)), Some(listener))),
            Piece::Last(text) => Some((Ok(Bytes::from_static(text.as_bytes())), None)),
        }
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Somebody who listens to a stream.
struct Listener {
    access: ListenerAccess,
    events: EventStream,
    profile: EventProfile,
    /// When the stream has had its time.
    ends: Option<Instant>,
    /// When something is said although there is nothing to tell.
    quiet_until: Instant,
    /// Which calls are the listener's own, as far as that was asked.
    own: HashMap<CallId, bool>,
}

/// Who listens, and until when that is known to be allowed.
struct ListenerAccess {
    asked: Asked<EventsQuery, ()>,
    identity: CallerIdentity,
    calls: StreamCalls,
    /// The version of the tenant when it was last known what the listener may.
    version: i64,
    /// When it is looked at again.
    looks_at: Instant,
}

/// What is sent at once.
enum Piece {
    Next(String),
    Last(&'static str),
}

impl Listener {
    /// Everything that can be told now, once there is something; `None` when there is nobody who may hear it.
    async fn next(&mut self) -> Option<Piece> {
        let mut text = String::new();
        while text.is_empty() {
            if Instant::now() >= self.access.looks_at && !self.access.may_listen().await {
                return None;
            }
            // One wait for all looks: a database may take longer for an answer than there is between two of them.
            let first = {
                let mut next = pin!(self.events.next());
                loop {
                    tokio::select! {
                        item = &mut next => break Some(item.ok()?),
                        () = sleep_until(self.access.looks_at) => if !self.access.may_listen().await { return None },
                        () = sleep_until(self.quiet_until) => break None,
                        () = until(self.ends) => return Some(Piece::Last(GOODBYE)),
                        () = self.access.asked.app.stop.cancelled() => return None,
                    }
                }
            };
            let Some(first) = first else {
                text.push_str(":\n\n");
                break;
            };
            self.tell(first, &mut text).await?;
            while text.len() < MOST_AT_ONCE
                && let Some(item) = self.events.next_at_hand()
            {
                self.tell(item, &mut text).await?;
            }
        }
        self.quiet_until = Instant::now() + ALIVE;
        Some(Piece::Next(text))
    }

    /// Writes an item as it is told, where it is; `None` where that cannot be known.
    async fn tell(&mut self, item: StreamItem, text: &mut String) -> Option<()> {
        match item {
            StreamItem::Resync(after) => frame(text, after, "resync", &json!({"after": after}).to_string()),
            StreamItem::Event(event) => self.tell_event(&event, text).await?,
        }
        Some(())
    }

    async fn tell_event(&mut self, event: &JournalEvent, text: &mut String) -> Option<()> {
        let (query, via) = (&self.access.asked.query, &event.via);
        let wanted = is_among(query.calls.as_deref(), Some(event.call.as_str()))
            && is_among(query.sessions.as_deref(), via.session.as_deref())
            && is_among(query.spaces.as_deref(), via.space.as_deref())
            && is_among(query.agents.as_deref(), via.agent.as_deref());
        if !wanted || !self.sees(&event.call).await? {
            return Some(());
        }
        let ListenerAccess { asked, identity, .. } = &self.access;
        let words = words_of(event, &asked.app.redactor);
        let types = asked.query.types.as_deref();
        let Some(called) = self.profile.name(&words.name).filter(|called| is_type(types, called)) else {
            return Some(());
        };
        let caller = &identity.caller;
        let may_submit = caller.permissions.allow(Permission::ToolsExecute.word());
        if may_submit && let CallEvent::Pending { result: Some(awaited), .. } = &event.event {
            let mut data: Value = serde_json::from_str(&words.data).ok()?;
            // Whoever does the work needs the input as it was given; only what haft keeps secret is not in it.
            data["args"] = asked.app.redactor.known_out_of(awaited.args.clone());
            data["submitToken"] = json!(SubmitToken::of(&asked.app.platform, &caller.scope, &event.call));
            frame(text, event.seq, called, &data.to_string());
        } else {
            frame(text, event.seq, called, &words.data);
        }
        Some(())
    }

    /// Whether the listener may see a call. Whose it is never changes, so that it is asked once.
    async fn sees(&mut self, call: &CallId) -> Option<bool> {
        let ListenerAccess { asked, identity, calls, .. } = &self.access;
        let caller = &identity.caller;
        if *calls != StreamCalls::Seen || caller.permissions.allow(Permission::CallsTeamRead.word()) {
            return Some(true);
        }
        if let Some(known) = self.own.get(call) {
            return Some(*known);
        }
        let is_own = asked.app.platform.is_own_call(caller, call).await.ok()?;
        if self.own.len() >= MOST_REMEMBERED {
            self.own.clear();
        }
        self.own.insert(call.clone(), is_own);
        Some(is_own)
    }
}

impl ListenerAccess {
    /// Whether the listener may still listen. The tenant's version tells whether anything has changed that matters, and all
    /// streams share one look at it.
    async fn may_listen(&mut self) -> bool {
        self.looks_at = Instant::now() + LOOK;
        if self.identity.until.is_some_and(|until| until <= Timestamp::now()) {
            return false;
        }
        let platform = &self.asked.app.platform;
        // What cannot be looked at is looked at the next time.
        let Ok(version) = platform.version_as_of(&self.identity.caller.scope, LOOK).await else { return true };
        if version == self.version {
            return true;
        }
        match platform.identify_again(&self.identity).await {
            Ok(Some(identity)) if self.calls.may(&identity) => {
                (self.identity, self.version) = (identity, version);
                true
            }
            Ok(_) => false,
            Err(_) => true,
        }
    }
}

/// An event of a stream. JSON of ours stands in one line.
fn frame(text: &mut String, number: i64, name: &str, data: &str) {
    use std::fmt::Write;
    // Writing to a text cannot fail.
    _ = write!(text, "id: {number}\nevent: {name}\ndata: {data}\n\n");
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn is_among(list: Option<&str>, found: Option<&str>) -> bool {
    list.is_none_or(|list| list.split(',').any(|one| Some(one) == found))
}

fn is_type(types: Option<&str>, name: &str) -> bool {
    let fits = |one: &str| one.strip_suffix('*').map_or(one == name, |start| name.starts_with(start));
    types.is_none_or(|types| types.split(',').any(fits))
}
