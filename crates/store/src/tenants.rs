//! Tenants, and the version that changes with everything that decides which tools and workspaces they have.

use haft_runtime::{HouseWide, Scope, TenantId};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    copy,
    sql::{Row, Statement},
};

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRecord {
    /// The tenant itself, without a workspace.
    pub scope: Scope,
    /// What it is called in addresses and on the command line.
    pub slug: String,
    /// The name that people read.
    pub name: String,
    /// Changes with everything that its tools depend on.
    pub version: i64,
    /// Since when there is one.
    pub created_at: Timestamp,
}

macro_rules! tenants {
    ($rest:literal) => {
        concat!("select id as tenant, slug, name, version, created_at from tenants ", $rest)
    };
}
const INSERT: &str = "insert into tenants (id, slug, name, version, created_at) values ($1, $2, $3, 1, $4) \
                      on conflict do nothing returning 1 as added";
const ALL: &str = tenants!("order by slug");
const BY_SLUG: &str = tenants!("where slug = $1");
const BY_ID: &str = tenants!("where id = $1");
const VERSION: &str = "select slug, version from tenants where id = $1";
const REMOVE: &str = "delete from tenants where id = $1 returning 1 as removed";
const KEY_NAME: &str = "master_key";
const NOTE_KEY: &str = "insert into meta (name, number) values ($1, $2) on conflict do nothing returning 1 as noted";
const CHANGE_KEY: &str = "insert into meta (name, number) values ($1, $2) \
                          on conflict (name) do update set number = excluded.number returning 1 as noted";
const KEPT_KEY: &str = "select number from meta where name = $1";
const REPLACE_KEY: &str = "update meta set number = $3 where name = $1 and number = $2 returning 1 as replaced";
const BUMP: &str = "update tenants set version = version + 1 where id = $1";
const BUMP_ALL: &str = "update tenants set version = version + 1";

impl Store {
    /// Adds a tenant; `false` when the slug is taken.
    pub async fn add_tenant(
        &self,
        _house: &HouseWide,
        (id, slug, name): (&TenantId, &str, &str),
    ) -> Result<bool, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let insert = Statement::new(INSERT).bind(id.as_str()).bind(slug).bind(name).bind(now);
        let act = AuditEntry::in_tenant(AuditAction::TenantAdded, id, ("tenant", slug));
        let act = act.change(Value::Null, json!({"name": name}));
        self.change(ConditionalWrite::new(id.as_str(), insert).audited(act)).await
    }

    /// Every tenant, by slug.
    pub async fn tenants(&self, _house: &HouseWide) -> Result<Vec<TenantRecord>, StoreError> {
        self.read(Statement::new(ALL)).await?.iter().map(record).collect()
    }

    /// The tenant with this slug.
    pub async fn tenant_by_slug(&self, _house: &HouseWide, slug: &str) -> Result<Option<TenantRecord>, StoreError> {
        self.read_one(Statement::new(BY_SLUG).bind(slug)).await?.as_ref().map(record).transpose()
    }

    /// The tenant with this id.
    pub async fn tenant_by_id(&self, _house: &HouseWide, id: &str) -> Result<Option<TenantRecord>, StoreError> {
        self.read_one(Statement::new(BY_ID).bind(id)).await?.as_ref().map(record).transpose()
    }

    /// The tenant of a scope.
    pub async fn tenant_of(&self, scope: &Scope) -> Result<Option<TenantRecord>, StoreError> {
        self.read_one(Statement::new(BY_ID).bind(tenant(scope))).await?.as_ref().map(record).transpose()
    }

    /// The version of a tenant's tools and workspaces; 0 where there is no such tenant.
    pub async fn tenant_version(&self, scope: &Scope) -> Result<i64, StoreError> {
        let row = self.read_one(name_and_version(scope)).await?;
        row.map_or(Ok(0), |row| Columns { of: "tenants", row: &row }.number("version"))
    }

    /// Notes which master key this database is used with, whatever was noted before.
    pub async fn note_master_key(&self, _house: &HouseWide, number: i64) -> Result<(), StoreError> {
        let note = Statement::new(CHANGE_KEY).bind(KEY_NAME).bind(number);
        self.change(ConditionalWrite::of_database(note)).await.map(drop)
    }

    /// Notes which master key this database is used with; another one than before is refused.
    pub async fn check_master_key(&self, house: &HouseWide, number: i64) -> Result<(), StoreError> {
        let kept = match self.master_key_number(house).await? {
            Some(kept) => Some(kept),
            None => {
                let note = Statement::new(NOTE_KEY).bind(KEY_NAME).bind(number);
                self.change(ConditionalWrite::of_database(note)).await?;
                // Another process may have been quicker.
                self.master_key_number(house).await?
            }
        };
        if kept == Some(number) { Ok(()) } else { Err(StoreError::AnotherKey) }
    }

    /// The number of the master key that this database is used with, once it is known.
    pub async fn master_key_number(&self, _house: &HouseWide) -> Result<Option<i64>, StoreError> {
        let kept = self.read_one(kept_key()).await?;
        kept.map(|row| Columns { of: "meta", row: &row }.number("number")).transpose()
    }

    /// Removes a tenant with everything that it has but its audit log; `false` when there is none.
    pub async fn remove_tenant(&self, _house: &HouseWide, scope: &Scope) -> Result<bool, StoreError> {
        let slug = self.tenant_of(scope).await?.map(|record| record.slug).unwrap_or_default();
        let act = AuditEntry::new(AuditAction::TenantRemoved, scope, ("tenant", &slug));
        let remove = ConditionalWrite::of_database(Statement::new(REMOVE).bind(tenant(scope))).audited(act);
        let rows = copy::tables_of_tenants()
            .filter(|table| *table != "audit")
            .map(|table| Statement::new(format!("delete from {table} where tenant = $1")).bind(tenant(scope)));
        self.change(rows.fold(remove, ConditionalWrite::and_then)).await
    }
}

/// What reads the number of the master key.
pub(crate) fn kept_key() -> Statement {
    Statement::new(KEPT_KEY).bind(KEY_NAME)
}

/// What notes another master key in the place of one.
pub(crate) fn replace_key(old: i64, new: i64) -> Statement {
    Statement::new(REPLACE_KEY).bind(KEY_NAME).bind(old).bind(new)
}

/// What says that a tenant has other tools, rules or workspaces now. What holds for all tenants changes each of them, so that
/// nobody asks for two versions.
pub(crate) fn changed(scope: &Scope) -> Statement {
    match scope.tenant().is_all() {
        true => Statement::new(BUMP_ALL),
        false => Statement::new(BUMP).bind(tenant(scope)),
    }
}

/// A write to the rows of a tenant, or to those that hold for all of them and so belong to none.
pub(crate) fn write_of(scope: &Scope, first: Statement) -> ConditionalWrite {
    match scope.tenant().is_all() {
        true => ConditionalWrite::of_database(first),
        false => ConditionalWrite::new(tenant(scope), first),
    }
}

/// What a tenant is called, and its version.
pub(crate) fn name_and_version(scope: &Scope) -> Statement {
    Statement::new(VERSION).bind(tenant(scope))
}

pub(crate) fn record(row: &Row) -> Result<TenantRecord, StoreError> {
    let slug = Columns { of: "tenants", row }.text("slug")?;
    let columns = Columns { of: &slug, row };
    Ok(TenantRecord {
        scope: columns.scope_of_tenant()?,
        slug: slug.clone(),
        name: columns.text("name")?,
        version: columns.number("version")?,
        created_at: columns.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_about_one_tenant_reads_all_of_them() {
        use super::{BUMP, BY_ID, BY_SLUG, REMOVE, VERSION};
        crate::schema::tests::assert_quick(&[BY_SLUG, BY_ID, VERSION, REMOVE, BUMP]);
    }
}
