//! Whose each MCP session is: one of another caller looks like one that never was.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Mutex, PoisonError},
};

use axum::http::{HeaderMap, HeaderName};
use haft_runtime::CallerId;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// How many sessions there are, and how many of each caller. The oldest one ends when another one begins.
const MOST: usize = 10_000;
const MOST_EACH: usize = 256;

/// Who began which session.
#[derive(Default)]
pub(crate) struct SessionOwners(Mutex<KnownOwners>);

#[derive(Default)]
struct KnownOwners {
    owners: HashMap<String, CallerId>,
    oldest_first: VecDeque<String>,
    of_each: HashMap<CallerId, VecDeque<String>>,
}

impl SessionOwners {
    /// Whether a request may use the session that it names. One that names none may.
    pub(crate) fn admit(&self, headers: &HeaderMap, caller: &CallerId) -> bool {
        let Some(session) = headers.get(SESSION) else { return true };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        session.to_str().is_ok_and(|session| known.owners.get(session) == Some(caller))
    }

    /// Notes the session that an answer begins, and says which one has to end for it.
    pub(crate) fn note(&self, headers: &HeaderMap, caller: &CallerId) -> Option<String> {
        let session = headers.get(SESSION).and_then(|session| session.to_str().ok())?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.owners.insert(session.to_owned(), caller.clone()).is_some() {
            return None;
        }
        known.oldest_first.push_back(session.to_owned());
        let own = known.of_each.entry(caller.clone()).or_default();
        own.push_back(session.to_owned());
        let oldest = match own.len() > MOST_EACH {
            true => own.front().cloned(),
            false => known.oldest_first.front().filter(|_| known.owners.len() > MOST).cloned(),
        };
        known.forget(oldest?)
    }
}

impl KnownOwners {
    fn forget(&mut self, session: String) -> Option<String> {
        let owner = self.owners.remove(&session)?;
        self.oldest_first.retain(|known| *known != session);
        if let Entry::Occupied(mut own) = self.of_each.entry(owner) {
            own.get_mut().retain(|known| *known != session);
            if own.get().is_empty() {
                own.remove();
            }
        }
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use axum::http::HeaderValue;
    use haft_runtime::CallerKind;

    use super::*;

    #[test]
    fn a_session_is_of_use_to_whoever_began_it() {
        let key = |id: &str| CallerId { kind: CallerKind::Key, id: id.to_owned() };
        let (sessions, mut headers) = (SessionOwners::default(), HeaderMap::new());
        assert!(sessions.admit(&headers, &key("a")));
        headers.insert(SESSION, HeaderValue::from_static("s1"));
        assert!(!sessions.admit(&headers, &key("a")), "nobody has begun it");
        sessions.note(&headers, &key("a"));
        assert!(sessions.admit(&headers, &key("a")) && !sessions.admit(&headers, &key("b")));
    }

    #[test]
    fn whoever_begins_too_many_sessions_ends_their_own_oldest() {
        let key = |id: &str| CallerId { kind: CallerKind::Key, id: id.to_owned() };
        let sessions = SessionOwners::default();
        let begin = |session: &str, caller: &str| {
            let headers = HeaderMap::from_iter([(SESSION, HeaderValue::from_str(session).unwrap())]);
            sessions.note(&headers, &key(caller))
        };
        assert_eq!(begin("of-b", "b"), None);
        assert!((0..MOST_EACH).all(|n| begin(&format!("s{n}"), "a").is_none()));
        assert_eq!(begin("one-more", "a").as_deref(), Some("s0"));
        assert_eq!(begin("one-more", "a"), None, "it has begun already");
        for caller in 0..MOST / MOST_EACH + 2 {
            for n in 0..MOST_EACH {
                begin(&format!("{caller}-{n}"), &format!("c{caller}"));
            }
        }
        let known = sessions.0.lock().unwrap();
        assert!(known.owners.len() == MOST && known.oldest_first.len() == MOST, "{}", known.owners.len());
        assert!(!known.owners.contains_key("of-b"), "the oldest of all has ended");
    }
}
