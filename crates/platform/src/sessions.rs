//! Sessions: the threads that calls belong to.

use haft_runtime::{CallId, Caller, CallerRef, ToolError};
use haft_store::{SessionCalls, SessionRecord};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    Permission, Platform,
    platform::{mistake, not_found},
};

/// A session as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// What it is found by.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// Who began it.
    pub created_by: CallerRef,
    /// Since when.
    pub created_at: Timestamp,
    /// Where it stands; only of one that is looked at by itself.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub stands: Option<SessionStanding>,
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionStanding {
    /// `waiting` for somebody, `running`, or `idle`.
    pub status: &'static str,
    /// How many calls it has.
    pub calls: SessionCounts,
}

/// How many calls a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SessionCounts {
    /// All of them.
    pub total: u32,
    /// Those that wait for somebody.
    pub waiting: u32,
    /// Those that are under way.
    pub running: u32,
}

impl From<SessionRecord> for SessionView {
    fn from(SessionRecord { id, title, by, created_at }: SessionRecord) -> Self {
        Self { id, title, created_by: by, created_at, stands: None }
    }
}

impl From<SessionCalls> for SessionStanding {
    fn from(SessionCalls { total, waiting, running }: SessionCalls) -> Self {
        let status = match (waiting, running) {
            (0, 0) => "idle",
            (0, _) => "running",
            (_, _) => "waiting",
        };
        Self { status, calls: SessionCounts { total, waiting, running } }
    }
}

impl Platform {
    /// Begins a session.
    pub async fn add_session(&self, caller: &Caller, title: &str) -> Result<SessionView, ToolError> {
        let title = title.trim();
        if title.chars().count() > 200 || title.contains(char::is_control) {
            return Err(mistake("a title has 200 characters at most"));
        }
        let id = format!("se_{}", uuid::Uuid::now_v7().simple());
        self.store.add_session(caller, (&id, title)).await?;
        self.session(caller, &id).await
    }

    /// A session that the caller may see, and where it stands.
    pub async fn session(&self, caller: &Caller, id: &str) -> Result<SessionView, ToolError> {
        let mut session = SessionView::from(self.seen_session(caller, id).await?);
        session.stands = Some(self.store.calls_of_session(&caller.scope, id).await?.into());
        Ok(session)
    }

    /// Sessions, newest first, before the one that is named: everybody's for those who may see them, else one's own.
    pub async fn sessions(
        &self,
        caller: &Caller,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SessionView>, ToolError> {
        let own = Some(&caller.id).filter(|_| !sees_all(caller));
        let found = self.store.sessions(&caller.scope, own, (before, limit)).await?;
        Ok(found.into_iter().map(SessionView::from).collect())
    }

    /// A session that the caller may see; one of somebody else looks like one that never was.
    pub async fn seen_session(&self, caller: &Caller, id: &str) -> Result<SessionRecord, ToolError> {
        let found = self.store.session(&caller.scope, id).await?;
        let seen = found.filter(|session| session.by.id == caller.id || sees_all(caller));
        seen.ok_or_else(|| not_found("such session"))
    }

    /// Whether somebody asked for a call themselves.
    pub async fn is_own_call(&self, caller: &Caller, call: &CallId) -> Result<bool, ToolError> {
        Ok(self.store.caller_of(&caller.scope, call).await?.is_some_and(|by| by.id == caller.id))
    }
}

fn sees_all(caller: &Caller) -> bool {
    caller.permissions.allow(Permission::CallsTeamRead.word())
}
