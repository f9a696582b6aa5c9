//! The secrets of a tenant: sealed, each with the hosts that it may be sent to.

use haft_runtime::Scope;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    columns::{Columns, tenant},
    sql::{Row, Statement},
    tenants,
};

/// A secret, still sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// What it is called.
    pub name: String,
    /// The hosts that it may be sent to, with commas between; empty as long as none is bound.
    pub hosts: String,
    /// Its value, as the master key sealed it.
    pub sealed: Vec<u8>,
    /// When it was set.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

macro_rules! secrets {
    ($rest:literal) => {
        concat!("select name, hosts, sealed, created_at, last_used_at from secrets where tenant = $1 ", $rest)
    };
}
const SET: &str = "insert into secrets (tenant, name, hosts, sealed, created_at) values ($1, $2, $3, $4, $5) \
                   on conflict (tenant, name) do update set \
                   hosts = case when excluded.hosts = '' then secrets.hosts else excluded.hosts end, sealed = excluded.sealed, \
                   created_at = excluded.created_at returning 1 as added";
const ALL: &str = secrets!("order by name");
const FIND: &str = secrets!("and name = $2");
const BIND: &str = "update secrets set hosts = $3 where tenant = $1 and name = $2 and hosts = '' returning 1 as bound";
const USED: &str = "update secrets set last_used_at = $3 where tenant = $1 and name = $2 \
                    and (last_used_at is null or last_used_at < $3) returning 1 as noted";
const REMOVE: &str = "delete from secrets where tenant = $1 and name = $2 returning 1 as removed";

impl Store {
    /// Sets a secret, in the place of one of the same name; without hosts it keeps those of the one before.
    pub async fn set_secret(
        &self,
        scope: &Scope,
        (name, hosts): (&str, &str),
        sealed: Vec<u8>,
    ) -> Result<(), StoreError> {
        let now = Timestamp::now().as_microsecond();
        let set = Statement::new(SET).bind(tenant(scope)).bind(name).bind(hosts).bind(sealed).bind(now);
        let act = of_secret(AuditAction::SecretSet, scope, name).change(Value::Null, json!({"hosts": hosts}));
        let set = ConditionalWrite::new(tenant(scope), set).and_then(tenants::changed(scope));
        self.change(set.audited(act)).await.map(drop)
    }

    /// The secrets of a tenant, by name.
    pub async fn secrets(&self, scope: &Scope) -> Result<Vec<SealedSecret>, StoreError> {
        self.read(Statement::new(ALL).bind(tenant(scope))).await?.iter().map(record).collect()
    }

    /// The secret with this name.
    pub async fn secret(&self, scope: &Scope, name: &str) -> Result<Option<SealedSecret>, StoreError> {
        self.read_one(Statement::new(FIND).bind(tenant(scope)).bind(name)).await?.as_ref().map(record).transpose()
    }

    /// Binds a secret that has no host yet to one; `false` when it has.
    pub async fn bind_secret(&self, scope: &Scope, name: &str, host: &str) -> Result<bool, StoreError> {
        let bind = Statement::new(BIND).bind(tenant(scope)).bind(name).bind(host);
        let act = of_secret(AuditAction::SecretBound, scope, name).change(Value::Null, json!({"hosts": host}));
        self.change(ConditionalWrite::new(tenant(scope), bind).audited(act)).await
    }

    /// Notes that a secret was used, behind whatever it was used for.
    pub async fn note_use_of_secret(&self, scope: &Scope, name: &str) -> Result<(), StoreError> {
        let used = Statement::new(USED).bind(tenant(scope)).bind(name).bind(Timestamp::now().as_microsecond());
        let used = ConditionalWrite::new(tenant(scope), used).unaudited("it follows from a call");
        self.queue().write_later(StoreWrite::Change(used)).await
    }

    /// Removes a secret; `false` when there is none.
    pub async fn remove_secret(&self, scope: &Scope, name: &str) -> Result<bool, StoreError> {
        let remove = Statement::new(REMOVE).bind(tenant(scope)).bind(name);
        let remove = ConditionalWrite::new(tenant(scope), remove).and_then(tenants::changed(scope));
        self.change(remove.audited(of_secret(AuditAction::SecretRemoved, scope, name))).await
    }
}

/// An act on a secret. Its value is no part of it.
fn of_secret(action: AuditAction, scope: &Scope, name: &str) -> AuditEntry {
    AuditEntry::new(action, scope, ("secret", name))
}

fn record(row: &Row) -> Result<SealedSecret, StoreError> {
    let columns = Columns { of: "secrets", row };
    Ok(SealedSecret {
        name: columns.text("name")?,
        hosts: columns.text("hosts")?,
        sealed: columns.bytes("sealed")?.to_vec(),
        created_at: columns.time("created_at")?,
        last_used_at: columns.time_or_none("last_used_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_secret_is_found_without_reading_the_others() {
        use super::{ALL, BIND, FIND, REMOVE, USED};
        crate::schema::tests::assert_quick(&[ALL, FIND, BIND, REMOVE, USED]);
    }
}
