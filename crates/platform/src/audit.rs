//! The audit log as people and programs read it.

use haft_runtime::{Scope, ToolError};
pub use haft_store::{Actor, AuditAction, AuditFilter, acting_as, still_acting};
use haft_store::{AuditChain, AuditRow};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::Platform;

/// One act.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditView {
    /// Which row of the tenant's log, from 1.
    pub seq: i64,
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// What was done, such as `key.added`.
    pub action: String,
    /// To what, as `kind:id`.
    pub on: String,
    /// Who did it.
    pub by: ActorView,
    /// What it was and what it is now, without secrets.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub change: Value,
    /// The hash of the row before, as hexadecimal digits.
    pub previous: String,
    /// The hash of this row.
    pub hash: String,
    /// Whose log it is in, where it is one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// Who did something, and how they came.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActorView {
    /// Who, as `kind:id`; absent where nobody was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What they were called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Through which door: `web`, `api`, `mcp`, `cli`, `house`.
    pub source: String,
    /// By which key, program or sign-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// From which address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl From<AuditRow> for AuditView {
    fn from(row: AuditRow) -> Self {
        let by = ActorView {
            id: Some(row.by).filter(|id| !id.is_empty()),
            name: Some(row.by_name).filter(|name| !name.is_empty()),
            source: row.source,
            via: row.via,
            address: row.address,
        };
        Self {
            seq: row.seq,
            at: row.at,
            action: row.action.word().to_owned(),
            on: row.on,
            by,
            change: serde_json::from_str(&row.detail).unwrap_or_default(),
            previous: row.previous,
            hash: row.hash,
            tenant: None,
        }
    }
}

/// What became of a tenant's log.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditCheck {
    /// The tenant.
    pub tenant: String,
    /// Whether every row fits the one before.
    pub whole: bool,
    /// The first row that is kept.
    pub first: i64,
    /// The last row that fits.
    pub last: i64,
    /// The hash of that row.
    pub hash: String,
    /// The first row that does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<i64>,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

/// How many rows of one log are read at once.
const PAGE: u32 = 500;

impl Platform {
    /// A page of a tenant's audit log, newest first.
    pub async fn audit(&self, scope: &Scope, filter: &AuditFilter) -> Result<Vec<AuditView>, ToolError> {
        Ok(self.store.audit(scope, filter).await?.into_iter().map(AuditView::from).collect())
    }

    /// The newest acts of one log or of all of them, oldest first.
    pub async fn audit_of(&self, of: Option<&str>, filter: &AuditFilter) -> Result<Vec<AuditView>, ToolError> {
        let mut rows = Vec::new();
        for (tenant, name) in self.audit_logs(of).await? {
            let found = self.store.audit_of(&self.house, &tenant, filter).await?;
            rows.extend(found.into_iter().map(|row| AuditView { tenant: Some(name.clone()), ..row.into() }));
        }
        rows.sort_by(|one, other| one.at.cmp(&other.at).then(one.seq.cmp(&other.seq)));
        let surplus = rows.len().saturating_sub(usize::try_from(filter.limit).unwrap_or(usize::MAX));
        Ok(rows.split_off(surplus))
    }

    /// What came to a log after a row, oldest first.
    pub async fn audit_after(&self, (tenant, name): (&str, &str), seq: i64) -> Result<Vec<AuditView>, ToolError> {
        let rows = self.store.audit_after(&self.house, (tenant, seq), PAGE).await?.into_iter();
        Ok(rows.map(|row| AuditView { tenant: Some(name.to_owned()), ..row.into() }).collect())
    }

    /// Every log, or that of one tenant by slug or id, each with what its tenant is called. A log outlives its tenant.
    pub async fn audit_logs(&self, of: Option<&str>) -> Result<Vec<(String, String)>, ToolError> {
        let tenants = self.store.tenants(&self.house).await?;
        let slug =
            |id: &str| tenants.iter().find(|tenant| tenant.scope.tenant().as_str() == id).map(|it| it.slug.clone());
        let logs = self.store.audit_logs(&self.house).await?.into_iter();
        let named = logs.map(|id| (slug(&id).unwrap_or_else(|| id.clone()), id)).map(|(name, id)| (id, name));
        let meant = |(id, name): &(String, String)| of.is_none_or(|of| of == id || of == name);
        Ok(named.filter(meant).collect())
    }

    /// Checks the chain of one log, or of all of them.
    pub async fn check_audit(&self, of: Option<&str>) -> Result<Vec<AuditCheck>, ToolError> {
        let mut checks = Vec::new();
        for (id, tenant) in self.audit_logs(of).await? {
            let AuditChain { first, last, hash, broken } = self.store.check_audit(&self.house, &id).await?;
            let (row, why) = broken.unzip();
            checks.push(AuditCheck { tenant, whole: row.is_none(), first, last, hash, broken: row, why });
        }
        Ok(checks)
    }
}
