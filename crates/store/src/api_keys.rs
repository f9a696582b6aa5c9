//! The keys of programs.

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    columns::{Columns, tenant, workspace},
    sql::{Row, Statement},
    tenants,
    usage::within_quota,
};

/// A key, with everything that one request needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// What it is found by.
    pub id: String,
    /// Its tenant, and its workspace where it has one.
    pub scope: Scope,
    /// What that tenant is called.
    pub slug: String,
    /// The version of its tools and workspaces.
    pub version: i64,
    /// The name that people gave it.
    pub name: String,
    /// The hash of its secret.
    pub secret: String,
    /// The hash of the secret before it, and until when that counts.
    pub old_secret: Option<(String, Timestamp)>,
    /// What it is for, as words with commas between.
    pub scopes: String,
    /// Who made it, and their role now: `None` where the operator did, and a role of `None` for whoever left.
    pub made_by: Option<(String, Option<String>)>,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// A key that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// What it is found by.
    pub id: String,
    /// The name that people gave it.
    pub name: String,
    /// The hash of its secret.
    pub secret: String,
    /// What it is for, as words with commas between.
    pub scopes: String,
    /// Who made it; `None` for the operator.
    pub made_by: Option<String>,
    /// Until when it is one.
    pub expires_at: Option<Timestamp>,
}

macro_rules! keys {
    ($rest:literal) => {
        concat!(
            "select k.id, k.tenant, k.workspace, k.name, k.secret, k.scopes, k.made_by, k.created_at, ",
            "k.expires_at, k.last_used_at, k.old_secret, k.old_until, m.role, t.slug, t.version from api_keys k join tenants t on t.id = k.tenant left join memberships m ",
            "on m.tenant = k.tenant and m.person = k.made_by where ",
            $rest
        )
    };
}
const INSERT: &str = concat!(
    "insert into api_keys (id, tenant, name, secret, scopes, workspace, made_by, created_at, expires_at) ",
    "select $1, $2, $3, $4, $5, $6, $7, $8, $9",
    within_quota!("keys", "api_keys c where", "$2"),
    " returning 1 as added"
);
const FIND: &str = keys!("k.id = $1");
const ALL: &str = keys!("k.tenant = $1 order by k.id");
const USED: &str = "update api_keys set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at < $2) \
                    returning 1 as noted";
const ROTATE: &str = "update api_keys set old_secret = secret, old_until = $4, secret = $3 \
                      where tenant = $1 and id = $2 returning 1 as rotated";
const REMOVE: &str = "delete from api_keys where tenant = $1 and id = $2 returning 1 as removed";

impl Store {
    /// Adds a key, for the workspace of the scope where it has one; `false` when the tenant has as many as it may.
    pub async fn add_api_key(&self, scope: &Scope, key: &NewApiKey) -> Result<bool, StoreError> {
        let insert = Statement::new(INSERT)
            .bind(key.id.as_str())
            .bind(tenant(scope))
            .bind(key.name.as_str())
            .bind(key.secret.as_str())
            .bind(key.scopes.as_str())
            .bind(workspace(scope))
            .bind(key.made_by.as_deref())
            .bind(Timestamp::now().as_microsecond())
            .bind(key.expires_at.map(Timestamp::as_microsecond));
        let made =
            json!({"name": key.name, "scopes": key.scopes, "workspace": workspace(scope), "until": key.expires_at});
        let act = AuditEntry::new(AuditAction::KeyAdded, scope, ("key", &key.id)).change(Value::Null, made);
        self.change(ConditionalWrite::new(tenant(scope), insert).audited(act)).await
    }

    /// The key with this id, of whatever tenant: it is what tells the tenant.
    pub async fn api_key(&self, _house: &HouseWide, id: &str) -> Result<Option<ApiKeyRecord>, StoreError> {
        self.read_one(Statement::new(FIND).bind(id)).await?.as_ref().map(record).transpose()
    }

    /// The keys of a tenant.
    pub async fn api_keys(&self, scope: &Scope) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.read(Statement::new(ALL).bind(tenant(scope))).await?.iter().map(record).collect()
    }

    /// Notes that a key was used, behind whatever it was used for.
    pub async fn note_use_of_key(&self, _house: &HouseWide, id: &str) -> Result<(), StoreError> {
        let used = Statement::new(USED).bind(id).bind(Timestamp::now().as_microsecond());
        self.queue().write_later(StoreWrite::Change(ConditionalWrite::of_database(used))).await
    }

    /// Gives a key another secret; the one before counts until then. `false` when there is no such key.
    pub async fn rotate_api_key(
        &self,
        scope: &Scope,
        (id, secret): (&str, &str),
        old_until: Timestamp,
    ) -> Result<bool, StoreError> {
        let rotate = Statement::new(ROTATE).bind(tenant(scope)).bind(id).bind(secret).bind(old_until.as_microsecond());
        let act = AuditEntry::new(AuditAction::KeyRotated, scope, ("key", id))
            .change(json!(null), json!({"oldSecretUntil": old_until}));
        let rotate = ConditionalWrite::new(tenant(scope), rotate).and_then(tenants::changed(scope));
        self.change(rotate.audited(act)).await
    }

    /// Removes a key; `false` when there is none.
    pub async fn remove_api_key(&self, scope: &Scope, id: &str) -> Result<bool, StoreError> {
        let remove = Statement::new(REMOVE).bind(tenant(scope)).bind(id);
        let act = AuditEntry::new(AuditAction::KeyRemoved, scope, ("key", id));
        let remove = ConditionalWrite::new(tenant(scope), remove).and_then(tenants::changed(scope));
        self.change(remove.audited(act)).await
    }
}

fn record(row: &Row) -> Result<ApiKeyRecord, StoreError> {
    let columns = Columns { of: "api_keys", row };
    let role = columns.text_or_none("role")?;
    Ok(ApiKeyRecord {
        id: columns.text("id")?,
        scope: columns.scope()?,
        slug: columns.text("slug")?,
        version: columns.number("version")?,
        name: columns.text("name")?,
        secret: columns.text("secret")?,
        old_secret: columns.text_or_none("old_secret")?.zip(columns.time_or_none("old_until")?),
        scopes: columns.text("scopes")?,
        made_by: columns.text_or_none("made_by")?.map(|person| (person, role)),
        created_at: columns.time("created_at")?,
        expires_at: columns.time_or_none("expires_at")?,
        last_used_at: columns.time_or_none("last_used_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_key_is_found_without_reading_the_others() {
        crate::schema::tests::assert_quick(&[super::FIND, super::ALL, super::USED, super::ROTATE, super::REMOVE]);
    }
}
