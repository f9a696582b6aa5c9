//! The audit log: one row for each administrative act, written in the transaction of the act itself.
//!
//! The rows of a tenant are a chain: each holds the hash of the one before. Writes of a tenant come one after the other, since
//! each of them holds its row of `heads`; so there is one last row to go on from, on either database.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use haft_runtime::{CallerId, CallerKind, CallerRef, Scope, Source, TenantId};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    AuditAction, StoreError,
    columns::{Columns, word},
    db::Transaction,
    sql::Statement,
};

/// The longest change that a row holds whole; of a longer one it holds the hash.
const LONGEST_DETAIL: usize = 4096;

/// Who does something, and how they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Who; `None` where nobody is known yet, as at a sign-in.
    pub by: Option<CallerRef>,
    /// Through which door.
    pub source: Source,
    /// By which key, program or sign-in.
    pub via: Option<String>,
    /// The address that they came from, as far as it is known.
    pub address: Option<String>,
}

impl Actor {
    /// haft itself, which nobody asked.
    fn house() -> Self {
        let id = CallerId { kind: CallerKind::House, id: "haft".to_owned() };
        Self { by: Some(CallerRef { id, name: "haft".to_owned() }), source: Source::House, via: None, address: None }
    }
}

tokio::task_local! {
    /// For whom this task works. It stands beside the work, so that no act can be done without it.
    static ACTOR: Arc<Actor>;
}

/// Does something in somebody's name: what it changes is written down as theirs.
pub async fn acting_as<W: Future>(actor: Actor, work: W) -> W::Output {
    ACTOR.scope(Arc::new(actor), work).await
}

/// The same work for a task of its own, in the name of whoever this task works for.
pub fn still_acting<W: Future>(work: W) -> impl Future<Output = W::Output> {
    let actor = ACTOR.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Actor::house()));
    ACTOR.scope(actor, work)
}

/// An act that is about to be written down with what it changes.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    tenant: String,
    action: AuditAction,
    /// What it is done to, as `kind:id`.
    on: String,
    detail: Value,
    actor: Arc<Actor>,
    at: Timestamp,
}

impl AuditEntry {
    /// An act in a tenant, by whoever this task works for. What holds for all tenants is the operator's own.
    pub fn new(action: AuditAction, scope: &Scope, on: (&str, &str)) -> Self {
        match scope.tenant().is_all() {
            true => Self::in_tenant(action, &TenantId::local(), on),
            false => Self::in_tenant(action, scope.tenant(), on),
        }
    }

    /// The same in a tenant that is being made, or that nobody has named.
    pub fn in_tenant(action: AuditAction, tenant: &TenantId, on: (&str, &str)) -> Self {
        Self {
            tenant: tenant.to_string(),
            action,
            on: format!("{}:{}", on.0, on.1),
            detail: Value::Null,
            actor: ACTOR.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Actor::house())),
            at: Timestamp::now(),
        }
    }

    /// The same with what it was and what it is now. No secret may be among it.
    #[must_use]
    pub fn change(mut self, before: Value, after: Value) -> Self {
        self.detail = json!({"before": short(before), "after": short(after)});
        self
    }

    /// The same by somebody who is known only now.
    #[must_use]
    pub fn by(mut self, by: CallerRef, source: Source) -> Self {
        let known = self.actor.by.as_ref().is_some_and(|known| known.id.kind != CallerKind::House);
        if !known {
            self.actor = Arc::new(Actor { by: Some(by), source, ..Actor::clone(&self.actor) });
        }
        self
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }
}

/// Of something long only how long it is, and its hash.
fn short(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= LONGEST_DETAIL { value } else { json!({"bytes": text.len(), "sha256": hash_of(&text)}) }
}

pub(crate) fn hash_of(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One row as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Whose log it is in.
    pub tenant: String,
    /// Which row of it, from 1.
    pub seq: i64,
    /// When.
    pub at: Timestamp,
    /// What was done.
    pub action: AuditAction,
    /// To what, as `kind:id`.
    pub on: String,
    /// By whom, as `kind:id`; empty where nobody was known.
    pub by: String,
    /// What they were called.
    pub by_name: String,
    /// Through which door.
    pub source: String,
    /// By which key, program or sign-in.
    pub via: Option<String>,
    /// From which address.
    pub address: Option<String>,
    /// What changed, as JSON.
    pub detail: String,
    /// The hash of the row before; empty for the first.
    pub previous: String,
    /// The hash of this row.
    pub hash: String,
}

impl AuditRow {
    fn after(entry: &AuditEntry, (seq, previous): (i64, String)) -> Result<Self, StoreError> {
        let Actor { by, source, via, address } = &*entry.actor;
        let mut row = Self {
            tenant: entry.tenant.clone(),
            seq: seq + 1,
            at: entry.at,
            action: entry.action,
            on: entry.on.clone(),
            by: by.as_ref().map(|by| by.id.to_string()).unwrap_or_default(),
            by_name: by.as_ref().map(|by| by.name.clone()).unwrap_or_default(),
            source: word(source)?,
            via: via.clone(),
            address: address.clone(),
            detail: entry.detail.to_string(),
            previous,
            hash: String::new(),
        };
        row.hash = row.computed_hash();
        Ok(row)
    }

    /// What the hash of this row has to be.
    pub fn computed_hash(&self) -> String {
        let row = json!([
            self.previous,
            self.tenant,
            self.seq,
            self.at.as_microsecond(),
            self.action.word(),
            self.on,
            self.by,
            self.by_name,
            self.source,
            self.via,
            self.address,
            self.detail,
        ]);
        hash_of(&row.to_string())
    }

    pub(crate) fn read(columns: &Columns<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            tenant: columns.text("tenant")?,
            seq: columns.number("seq")?,
            at: columns.time("at")?,
            action: columns.word("action")?,
            on: columns.text("subject")?,
            by: columns.text("actor")?,
            by_name: columns.text("actor_name")?,
            source: columns.text("source")?,
            via: columns.text_or_none("via")?,
            address: columns.text_or_none("address")?,
            detail: columns.text("detail")?,
            previous: columns.text("previous")?,
            hash: columns.text("hash")?,
        })
    }

    fn insert(&self) -> Statement {
        Statement::new(INSERT)
            .bind(self.tenant.as_str())
            .bind(self.seq)
            .bind(self.at.as_microsecond())
            .bind(self.action.word())
            .bind(self.on.as_str())
            .bind(self.by.as_str())
            .bind(self.by_name.as_str())
            .bind(self.source.as_str())
            .bind(self.via.as_deref())
            .bind(self.address.as_deref())
            .bind(self.detail.as_str())
            .bind(self.previous.as_str())
            .bind(self.hash.as_str())
    }
}

const INSERT: &str = "insert into audit (tenant, seq, at, action, subject, actor, actor_name, source, via, address, \
                      detail, previous, hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
const LAST: &str = "select seq, hash from audit where tenant = $1 order by seq desc limit 1";

/// Writes acts down within the transaction that does them. Its caller holds the row of `heads` of each of their tenants.
pub(crate) async fn append(tx: &impl Transaction, acts: &[&AuditEntry]) -> Result<(), StoreError> {
    let mut of_tenants: BTreeMap<&str, Vec<&AuditEntry>> = BTreeMap::new();
    for act in acts {
        of_tenants.entry(act.tenant()).or_default().push(act);
    }
    for (tenant, acts) in of_tenants {
        let last = tx.run(&[Statement::new(LAST).bind(tenant)]).await?;
        let last = last.first().and_then(|rows| rows.first());
        let mut end = match last.map(|row| Columns { of: "audit", row }) {
            Some(columns) => (columns.number("seq")?, columns.text("hash")?),
            None => (0, String::new()),
        };
        let mut rows = Vec::new();
        for act in acts {
            let row = AuditRow::after(act, end)?;
            end = (row.seq, row.hash.clone());
            rows.push(row.insert());
        }
        tx.run(&rows).await?;
    }
    Ok(())
}

/// Tables whose rows say who may do what, or what there is: every change of one is an act.
const ADMINISTERED: [&str; 16] = [
    "api_keys",
    "grants",
    "mcp_servers",
    "memberships",
    "oauth_consents",
    "oidc_accounts",
    "people",
    "quotas",
    "secrets",
    "sign_in_links",
    "sign_ins",
    "tenant_settings",
    "tenants",
    "tools",
    "upstream_logins",
    "workspaces",
];

/// The administered table that a statement changes, if it does.
pub(crate) fn administered(sql: &str) -> Option<&'static str> {
    let rest = ["insert into ", "update ", "delete from "].iter().find_map(|verb| sql.strip_prefix(verb))?;
    let named = rest.split([' ', '(']).next()?;
    ADMINISTERED.iter().copied().find(|table| *table == named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables that hold calls and what belongs to them, what follows from other tables, or nobody's data.
    const OTHERS: [&str; 29] = [
        "agreements",
        "audit",
        "calls",
        "contents",
        "counters",
        "entries",
        "heads",
        "idempotency_keys",
        "inbox_items",
        "jobs",
        "late_results",
        "link_choices",
        "media",
        "media_pieces",
        "meta",
        "nodes",
        "notice_channels",
        "notices",
        "oauth_clients",
        "oauth_devices",
        "oauth_tokens",
        "oidc_requests",
        "open_calls",
        "outputs",
        "questions",
        "sessions",
        "tool_versions",
        "upstream_login_attempts",
        "usage",
    ];

    #[test]
    fn every_table_is_administered_or_said_not_to_be() {
        let texts = crate::schema::VERSIONS.iter().flat_map(|text| text.split("create table ").skip(1));
        for table in texts.filter_map(|text| text.split([' ', '(']).next()) {
            let known = [&ADMINISTERED[..], &OTHERS[..]].iter().filter(|list| list.contains(&table)).count();
            assert_eq!(known, 1, "`{table}`: put it on the list of administered tables, or on that of the others");
        }
    }

    #[test]
    fn the_last_row_is_found_without_reading_the_others() {
        crate::schema::tests::assert_quick(&[LAST]);
        assert_eq!(administered("update api_keys set a = 1"), Some("api_keys"));
        assert_eq!(administered("select 1 from api_keys"), None);
        assert_eq!(administered("insert into tool_versions (a) values (1)"), None);
    }

    #[test]
    fn a_change_that_is_long_is_kept_as_its_hash() {
        assert_eq!(short(json!({"role": "admin"})), json!({"role": "admin"}));
        let long = short(json!("x".repeat(LONGEST_DETAIL)));
        assert_eq!(long["bytes"], LONGEST_DETAIL + 2);
        assert_eq!(long["sha256"].as_str().map(str::len), Some(64));
    }
}
