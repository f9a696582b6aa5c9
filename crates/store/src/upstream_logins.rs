//! Logins at upstream MCP servers: sealed tokens, whose turn it is to refresh them, and logins that were begun.

use std::time::Duration;

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
};

/// Which login: of whom, at which server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginKey {
    /// The server.
    pub server: String,
    /// Whose it is.
    pub holder: String,
}

/// A login, still sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRow {
    /// Changes with every write.
    pub revision: i64,
    /// The tokens, as the master key sealed them.
    pub sealed: Vec<u8>,
}

/// A login that somebody has begun, still sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginAttemptRow {
    /// The hash of what the authorization server sends back.
    pub id: String,
    /// Which login comes of it.
    pub key: LoginKey,
    /// Who began it.
    pub person: String,
    /// The sign-in that they did it by; empty for a program of theirs.
    pub sign_in: String,
    /// What it goes on with, as the master key sealed it.
    pub sealed: Vec<u8>,
    /// Until when it can be ended.
    pub expires_at: Timestamp,
}

const FIND: &str = "select revision, sealed from upstream_logins where tenant = $1 and server = $2 and holder = $3";
const SET: &str = "insert into upstream_logins (tenant, server, holder, revision, sealed, turn_until) \
                   values ($1, $2, $3, $4, $5, 0) on conflict (tenant, server, holder) do update set \
                   revision = case when upstream_logins.revision < excluded.revision then excluded.revision \
                   else upstream_logins.revision + 1 end, sealed = excluded.sealed, turn_until = 0 returning 1 as saved";
const SAVE: &str = "update upstream_logins set sealed = $5, revision = revision + 1, turn_until = 0 \
                    where tenant = $1 and server = $2 and holder = $3 and revision = $4 returning 1 as saved";
const TAKE_TURN: &str = "update upstream_logins set turn_until = $6 where tenant = $1 and server = $2 and holder = $3 \
                         and revision = $4 and turn_until < $5 returning 1 as taken";
const REMOVE: &str =
    "delete from upstream_logins where tenant = $1 and server = $2 and holder = $3 returning 1 as removed";
const ADD_ATTEMPT: &str = "insert into upstream_login_attempts (id, tenant, server, holder, person, sign_in, sealed, \
                           expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8) returning 1 as added";
const FORGET_ATTEMPTS: &str = "delete from upstream_login_attempts where expires_at < $1";
const ATTEMPT: &str = "select id, server, holder, person, sign_in, sealed, expires_at from upstream_login_attempts \
                       where id = $1 and tenant = $2";
const USE_ATTEMPT: &str = "delete from upstream_login_attempts where id = $1 and tenant = $2 returning 1 as used";
const FORGET_SERVER: &str = "delete from upstream_logins where tenant = $1 and server = $2";
const FORGET_SERVER_ATTEMPTS: &str = "delete from upstream_login_attempts where tenant = $1 and server = $2";
const FORGET_HOLDER: &str = "delete from upstream_logins where tenant = $1 and holder = $2";

impl Store {
    /// A login.
    pub async fn upstream_login(&self, scope: &Scope, key: &LoginKey) -> Result<Option<LoginRow>, StoreError> {
        self.read_one(of(FIND, scope, key)).await?.as_ref().map(record).transpose()
    }

    /// Keeps a login, in the place of any before it.
    pub async fn set_upstream_login(&self, scope: &Scope, key: &LoginKey, sealed: Vec<u8>) -> Result<(), StoreError> {
        let set = of(SET, scope, key).bind(Timestamp::now().as_microsecond()).bind(sealed);
        self.change(ConditionalWrite::new(tenant(scope), set).audited(act(AuditAction::ServerLoggedIn, scope, key)))
            .await
            .map(drop)
    }

    /// Keeps a login, if it is still at the revision `over`, and ends the turn; `false` when it is not.
    pub async fn save_upstream_login(
        &self,
        scope: &Scope,
        (key, over): (&LoginKey, i64),
        sealed: Vec<u8>,
    ) -> Result<bool, StoreError> {
        let save = of(SAVE, scope, key).bind(over).bind(sealed);
        self.change(ConditionalWrite::new(tenant(scope), save).unaudited("it is the same login with newer tokens"))
            .await
    }

    /// Takes the turn to refresh a login for so long; `false` when somebody else has it, or has had it by now.
    pub async fn take_login_turn(
        &self,
        scope: &Scope,
        (key, over): (&LoginKey, i64),
        length: Duration,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        let until = now.checked_add(length).unwrap_or(Timestamp::MAX);
        let take = of(TAKE_TURN, scope, key).bind(over).bind(now.as_microsecond()).bind(until.as_microsecond());
        self.change(ConditionalWrite::new(tenant(scope), take).unaudited("the login stays what it is")).await
    }

    /// Removes a login; `false` when there is none.
    pub async fn remove_upstream_login(&self, scope: &Scope, key: &LoginKey) -> Result<bool, StoreError> {
        let remove = ConditionalWrite::new(tenant(scope), of(REMOVE, scope, key));
        self.change(remove.audited(act(AuditAction::ServerLoggedOut, scope, key))).await
    }

    /// Keeps what a login goes on with.
    pub async fn add_login_attempt(&self, scope: &Scope, attempt: &LoginAttemptRow) -> Result<(), StoreError> {
        let add = Statement::new(ADD_ATTEMPT)
            .bind(attempt.id.as_str())
            .bind(tenant(scope))
            .bind(attempt.key.server.as_str())
            .bind(attempt.key.holder.as_str())
            .bind(attempt.person.as_str())
            .bind(attempt.sign_in.as_str())
            .bind(attempt.sealed.clone())
            .bind(attempt.expires_at.as_microsecond());
        self.change(ConditionalWrite::new(tenant(scope), add)).await.map(drop)
    }

    /// Forgets logins that nobody ended in time.
    pub async fn forget_login_attempts(&self, _house: &HouseWide) -> Result<(), StoreError> {
        let forget = Statement::new(FORGET_ATTEMPTS).bind(Timestamp::now().as_microsecond());
        self.change(ConditionalWrite::of_database(forget)).await.map(drop)
    }

    /// A login that was begun.
    pub async fn login_attempt(&self, scope: &Scope, id: &str) -> Result<Option<LoginAttemptRow>, StoreError> {
        let find = Statement::new(ATTEMPT).bind(id).bind(tenant(scope));
        self.read_one(find).await?.as_ref().map(attempt).transpose()
    }

    /// Uses a login up that was begun; `false` when somebody has done so before.
    pub async fn use_login_attempt(&self, scope: &Scope, id: &str) -> Result<bool, StoreError> {
        let used = Statement::new(USE_ATTEMPT).bind(id).bind(tenant(scope));
        self.change(ConditionalWrite::new(tenant(scope), used)).await
    }
}

/// What goes with a server that is removed.
pub(crate) fn forget_server(scope: &Scope, server: &str) -> [Statement; 2] {
    [FORGET_SERVER, FORGET_SERVER_ATTEMPTS].map(|sql| Statement::new(sql).bind(tenant(scope)).bind(server))
}

/// What goes with a person who leaves a tenant.
pub(crate) fn forget_person(scope: &Scope, person: &str) -> Statement {
    Statement::new(FORGET_HOLDER).bind(tenant(scope)).bind(format!("person:{person}"))
}

/// What the audit log says of a login: at which server, and whose.
fn act(action: AuditAction, scope: &Scope, key: &LoginKey) -> AuditEntry {
    AuditEntry::new(action, scope, ("server", &key.server)).change(Value::Null, json!({"for": key.holder}))
}

fn of(sql: &'static str, scope: &Scope, key: &LoginKey) -> Statement {
    Statement::new(sql).bind(tenant(scope)).bind(key.server.as_str()).bind(key.holder.as_str())
}

fn record(row: &Row) -> Result<LoginRow, StoreError> {
    let columns = Columns { of: "upstream_logins", row };
    Ok(LoginRow { revision: columns.number("revision")?, sealed: columns.bytes("sealed")?.to_vec() })
}

fn attempt(row: &Row) -> Result<LoginAttemptRow, StoreError> {
    let columns = Columns { of: "upstream_login_attempts", row };
    Ok(LoginAttemptRow {
        id: columns.text("id")?,
        key: LoginKey { server: columns.text("server")?, holder: columns.text("holder")? },
        person: columns.text("person")?,
        sign_in: columns.text("sign_in")?,
        sealed: columns.bytes("sealed")?.to_vec(),
        expires_at: columns.time("expires_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_login_is_found_without_reading_the_others() {
        use super::{
            ATTEMPT, FIND, FORGET_ATTEMPTS, FORGET_HOLDER, FORGET_SERVER, FORGET_SERVER_ATTEMPTS, REMOVE, SAVE,
            TAKE_TURN, USE_ATTEMPT,
        };
        let finds = [FIND, SAVE, TAKE_TURN, REMOVE, ATTEMPT, USE_ATTEMPT, FORGET_ATTEMPTS];
        let forgets = [FORGET_SERVER, FORGET_SERVER_ATTEMPTS, FORGET_HOLDER];
        crate::schema::tests::assert_quick(&[&finds[..], &forgets[..]].concat());
    }
}
