//! The tools that a tenant's people wrote and what they changed of others, with every version of both.

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    columns::{Columns, tenant},
    sql::{Row, Statement},
    tenants,
    usage::within_quota,
};

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ToolRowKind {
    /// A tool that is wholly written by a tenant.
    #[serde(rename = "tenant_custom")]
    Custom,
    /// What is changed of a tool in code, for one tenant or for all.
    #[serde(rename = "system_override")]
    Override,
}

impl ToolRowKind {
    /// The word in the column and on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Custom => "tenant_custom",
            Self::Override => "system_override",
        }
    }
}

/// A tool, or what is changed of one, as it stands in the database now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRow {
    /// What it is called by.
    pub slug: String,
    /// What it is.
    pub kind: ToolRowKind,
    /// Whether there shall be such a tool.
    pub enabled: bool,
    /// How often it was saved.
    pub version: i64,
    /// What it is, as JSON.
    pub body: String,
    /// Who saved it last.
    pub saved_by: String,
    /// When.
    pub saved_at: Timestamp,
}

/// A tool that is about to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToolRow {
    /// What it is called by.
    pub slug: String,
    /// What it is.
    pub kind: ToolRowKind,
    /// Whether there shall be such a tool.
    pub enabled: bool,
    /// What it is, as JSON.
    pub body: String,
    /// The hash of that.
    pub hash: String,
    /// Who saves it.
    pub saved_by: String,
}

/// One save of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolVersion {
    /// Its number, from 1.
    pub version: i64,
    /// The hash of what was saved; equal where that is.
    pub hash: String,
    /// Who saved it.
    pub saved_by: String,
    /// When.
    pub saved_at: Timestamp,
}

/// Everything that decides which tools a tenant has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantToolRows {
    /// What the tenant is called; `None` where there is no such tenant.
    pub tenant: Option<String>,
    /// The version of it that these are at least of.
    pub version: i64,
    /// Its own rows, by slug.
    pub rows: Vec<ToolRow>,
    /// What is changed for all tenants, by slug.
    pub for_all: Vec<ToolRow>,
}

macro_rules! tools {
    ($rest:literal) => {
        concat!("select slug, kind, enabled, version, body, saved_by, saved_at from tools where tenant = $1 ", $rest)
    };
}
const INSERT: &str = concat!(
    "insert into tools (tenant, slug, kind, version, enabled, body, saved_by, saved_at) ",
    "select $1, $2, $3, 1, $4, $5, $6, $7",
    // What a tenant changes of other tools is no tool of its own.
    within_quota!("tools", "tools c where c.kind = 'tenant_custom' and", "$1"),
    " or $3 <> 'tenant_custom' on conflict do nothing returning 1 as saved"
);
const UPDATE: &str = "update tools set version = version + 1, enabled = $5, body = $6, saved_by = $7, saved_at = $8 \
                      where tenant = $1 and slug = $2 and kind = $3 and version = $4 returning 1 as saved";
const NOTE_VERSION: &str = "insert into tool_versions (tenant, slug, kind, version, hash, saved_by, saved_at) \
                            values ($1, $2, $3, $4, $5, $6, $7)";
const KEEP_CONTENT: &str =
    "insert into contents (tenant, hash, body) values ($1, $2, $3) on conflict (tenant, hash) do nothing";
const ALL: &str = tools!("order by slug, kind");
const FIND: &str = tools!("and slug = $2 and kind = $3");
const REMOVE: &str = "delete from tools where tenant = $1 and slug = $2 and kind = $3 returning 1 as removed";
const FORGET: &str = "delete from tool_versions where tenant = $1 and slug = $2 and kind = $3";
const VERSIONS: &str = "select version, hash, saved_by, saved_at from tool_versions \
                        where tenant = $1 and slug = $2 and kind = $3 order by version desc";
const CONTENT: &str = "select c.body from tool_versions v join contents c on c.tenant = v.tenant and c.hash = v.hash \
                       where v.tenant = $1 and v.slug = $2 and v.kind = $3 and v.version = $4";

impl Store {
    /// Saves a tool as its next version, if the last one is still `over` (0 for one that is new); `false` when it is not.
    pub async fn save_tool(&self, scope: &Scope, tool: &NewToolRow, over: i64) -> Result<bool, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let key = |sql| of_tool(sql, scope, tool.kind, &tool.slug);
        let first = if over == 0 { key(INSERT) } else { key(UPDATE).bind(over) };
        let first = first.bind(tool.enabled).bind(tool.body.as_str()).bind(tool.saved_by.as_str()).bind(now);
        let version = key(NOTE_VERSION).bind(over + 1).bind(tool.hash.as_str()).bind(tool.saved_by.as_str()).bind(now);
        let content =
            Statement::new(KEEP_CONTENT).bind(tenant(scope)).bind(tool.hash.as_str()).bind(tool.body.as_str());
        let save = tenants::write_of(scope, first).and_then(version).and_then(content);
        let before = if over == 0 { Value::Null } else { json!({"version": over}) };
        let after = json!({"version": over + 1, "kind": tool.kind.word(), "enabled": tool.enabled, "sha256": tool.hash,
            "allTenants": scope.tenant().is_all()});
        let act = AuditEntry::new(AuditAction::ToolSaved, scope, ("tool", &tool.slug)).change(before, after);
        self.change(save.and_then(tenants::changed(scope)).audited(act)).await
    }

    /// Everything that decides which tools a tenant has, all of the same moment.
    pub async fn tools_of_tenant(&self, scope: &Scope, house: &HouseWide) -> Result<TenantToolRows, StoreError> {
        let all = |scope: &Scope| Statement::new(ALL).bind(tenant(scope));
        let read = [tenants::name_and_version(scope), all(scope), all(&house.all_tenants())];
        let found = self.read_together(&read).await?;
        let [known, rows, for_all] = found.as_slice() else { return Err(StoreError::Closed) };
        let columns = known.first().map(|row| Columns { of: "tenants", row });
        Ok(TenantToolRows {
            tenant: columns.as_ref().map(|columns| columns.text("slug")).transpose()?,
            version: columns.as_ref().map_or(Ok(0), |columns| columns.number("version"))?,
            rows: rows.iter().map(record).collect::<Result<_, _>>()?,
            for_all: for_all.iter().map(record).collect::<Result<_, _>>()?,
        })
    }

    /// One row.
    pub async fn tool_row(&self, scope: &Scope, kind: ToolRowKind, slug: &str) -> Result<Option<ToolRow>, StoreError> {
        self.read_one(of_tool(FIND, scope, kind, slug)).await?.as_ref().map(record).transpose()
    }

    /// Removes a row with its versions; `false` when there is none.
    pub async fn remove_tool(&self, scope: &Scope, kind: ToolRowKind, slug: &str) -> Result<bool, StoreError> {
        let [remove, forget] = [REMOVE, FORGET].map(|sql| of_tool(sql, scope, kind, slug));
        let before = json!({"kind": kind.word(), "allTenants": scope.tenant().is_all()});
        let act = AuditEntry::new(AuditAction::ToolRemoved, scope, ("tool", slug)).change(before, Value::Null);
        let remove = tenants::write_of(scope, remove).and_then(forget).and_then(tenants::changed(scope));
        self.change(remove.audited(act)).await
    }

    /// Every save of a row, newest first.
    pub async fn tool_versions(
        &self,
        scope: &Scope,
        kind: ToolRowKind,
        slug: &str,
    ) -> Result<Vec<ToolVersion>, StoreError> {
        self.read(of_tool(VERSIONS, scope, kind, slug)).await?.iter().map(version).collect()
    }

    /// What a version of a row was, as JSON.
    pub async fn tool_content(
        &self,
        scope: &Scope,
        (kind, slug): (ToolRowKind, &str),
        version: i64,
    ) -> Result<Option<String>, StoreError> {
        let found = self.read_one(of_tool(CONTENT, scope, kind, slug).bind(version)).await?;
        found.map(|row| Columns { of: slug, row: &row }.text("body")).transpose()
    }
}

/// A statement about one row.
fn of_tool(sql: &'static str, scope: &Scope, kind: ToolRowKind, slug: &str) -> Statement {
    Statement::new(sql).bind(tenant(scope)).bind(slug).bind(kind.word())
}

fn record(row: &Row) -> Result<ToolRow, StoreError> {
    let slug = Columns { of: "tools", row }.text("slug")?;
    let columns = Columns { of: &slug, row };
    Ok(ToolRow {
        slug: slug.clone(),
        kind: columns.word("kind")?,
        enabled: columns.flag("enabled")?,
        version: columns.number("version")?,
        body: columns.text("body")?,
        saved_by: columns.text("saved_by")?,
        saved_at: columns.time("saved_at")?,
    })
}

fn version(row: &Row) -> Result<ToolVersion, StoreError> {
    let columns = Columns { of: "tool_versions", row };
    Ok(ToolVersion {
        version: columns.number("version")?,
        hash: columns.text("hash")?,
        saved_by: columns.text("saved_by")?,
        saved_at: columns.time("saved_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_tool_is_found_without_reading_those_of_others() {
        use super::{ALL, CONTENT, FIND, FORGET, REMOVE, UPDATE, VERSIONS};
        crate::schema::tests::assert_quick(&[ALL, FIND, UPDATE, REMOVE, FORGET, VERSIONS, CONTENT]);
    }
}
