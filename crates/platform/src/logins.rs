//! Logins at upstream MCP servers: sealed at rest, begun and ended by the same person, refreshed by one at a time.

use std::time::Duration;

use haft_runtime::{Caller, CallerId, CallerKind, ErrorCode, Scope, ToolError};
use haft_store::{LoginAttemptRow, LoginKey};
use jiff::Timestamp;

use crate::{Platform, random};

/// How long somebody may take to log in.
const ATTEMPT_LASTS: Duration = Duration::from_secs(15 * 60);

/// Whose a login is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoginHolder {
    /// Everybody's in the tenant.
    Tenant,
    /// One person's.
    Person(String),
}

impl LoginHolder {
    fn word(&self) -> String {
        match self {
            Self::Tenant => "tenant".to_owned(),
            Self::Person(person) => format!("person:{person}"),
        }
    }
}

/// Which login of a tenant: of whom, at which server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginAt {
    /// The tenant.
    pub scope: Scope,
    /// The server.
    pub server: String,
    /// Whose it is.
    pub holder: LoginHolder,
}

impl LoginAt {
    fn key(&self) -> LoginKey {
        LoginKey { server: self.server.clone(), holder: self.holder.word() }
    }

    fn sealed_as(&self) -> String {
        format!("login/{}/{}/{}", self.scope.tenant(), self.server, self.holder.word())
    }
}

/// Somebody who logs in: the person, and the sign-in where they use a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginPerson {
    /// The person, or the owner of this machine.
    pub person: String,
    /// By which sign-in; empty for a program of theirs.
    pub sign_in: String,
}

impl Platform {
    /// The person whose logins a caller uses: the person themselves, or the one behind a key or whom a call is made for.
    /// A key of the operator has nobody, and a call for several people is nobody's in particular.
    pub async fn person_behind(&self, caller: &Caller) -> Result<Option<String>, ToolError> {
        match caller.via.on_behalf_of.as_slice() {
            [] => self.person_of(&caller.id).await,
            [one] => self.person_of(&one.id).await,
            [..] => Ok(None),
        }
    }

    async fn person_of(&self, id: &CallerId) -> Result<Option<String>, ToolError> {
        Ok(match id.kind {
            CallerKind::Person => Some(id.id.clone()),
            CallerKind::Key => {
                self.store.api_key(&self.house, &id.id).await?.and_then(|key| key.made_by).map(|(person, _)| person)
            }
            CallerKind::Agent | CallerKind::Token | CallerKind::Owner | CallerKind::House => None,
        })
    }

    /// What is kept of a login, and its revision.
    pub async fn login(&self, at: &LoginAt) -> Result<Option<(i64, String)>, ToolError> {
        let Some(row) = self.store.upstream_login(&at.scope, &at.key()).await? else { return Ok(None) };
        Ok(Some((row.revision, self.key.open(&at.sealed_as(), &row.sealed)?)))
    }

    /// Keeps a login, in the place of any before it.
    pub async fn set_login(&self, at: &LoginAt, text: &str) -> Result<(), ToolError> {
        let sealed = self.key.seal(&at.sealed_as(), text)?;
        Ok(self.store.set_upstream_login(&at.scope, &at.key(), sealed).await?)
    }

    /// Keeps a login, if it is still at this revision, and ends the turn; `false` when it is not.
    pub async fn save_login(&self, at: &LoginAt, over: i64, text: &str) -> Result<bool, ToolError> {
        let sealed = self.key.seal(&at.sealed_as(), text)?;
        Ok(self.store.save_upstream_login(&at.scope, (&at.key(), over), sealed).await?)
    }

    /// Takes the turn to refresh a login for so long; `false` when somebody else has it, or has had it by now.
    pub async fn take_login_turn(&self, at: &LoginAt, over: i64, length: Duration) -> Result<bool, ToolError> {
        Ok(self.store.take_login_turn(&at.scope, (&at.key(), over), length).await?)
    }

    /// Removes a login; `false` when there is none.
    pub async fn remove_login(&self, at: &LoginAt) -> Result<bool, ToolError> {
        Ok(self.store.remove_upstream_login(&at.scope, &at.key()).await?)
    }

    /// Keeps what a login goes on with when its person comes back. They bring the state back, which nobody can guess.
    pub async fn begin_login(
        &self,
        at: &LoginAt,
        who: &LoginPerson,
        (state, text): (&str, &str),
    ) -> Result<Timestamp, ToolError> {
        let expires_at = self.store.now().checked_add(ATTEMPT_LASTS).unwrap_or(Timestamp::MAX);
        let attempt = LoginAttemptRow {
            id: random::hash(state),
            key: at.key(),
            person: who.person.clone(),
            sign_in: who.sign_in.clone(),
            sealed: self.key.seal(&at.sealed_as(), text)?,
            expires_at,
        };
        self.store.add_login_attempt(&at.scope, &attempt).await?;
        Ok(expires_at)
    }

    /// What a login goes on with, once, for whoever began it. Who began it by a sign-in ends it by the same one.
    // Invariant: what somebody else began is neither told apart from nothing at all nor used up.
    pub async fn take_login_attempt(
        &self,
        scope: &Scope,
        who: &LoginPerson,
        state: &str,
    ) -> Result<(LoginAt, String), ToolError> {
        let id = random::hash(state);
        let found = self.store.login_attempt(scope, &id).await?.ok_or_else(not_begun)?;
        let is_theirs = found.person == who.person && (found.sign_in.is_empty() || found.sign_in == who.sign_in);
        if !is_theirs || found.expires_at < self.store.now() || !self.store.use_login_attempt(scope, &id).await? {
            return Err(not_begun());
        }
        let holder = match found.key.holder.strip_prefix("person:") {
            Some(person) => LoginHolder::Person(person.to_owned()),
            None => LoginHolder::Tenant,
        };
        let at = LoginAt { scope: scope.clone(), server: found.key.server, holder };
        let text = self.key.open(&at.sealed_as(), &found.sealed)?;
        Ok((at, text))
    }
}

fn not_begun() -> ToolError {
    let message =
        "this login was not begun here by you, was ended before, or took longer than 15 minutes; begin it again";
    ToolError::new(ErrorCode::NotFound, message)
}
