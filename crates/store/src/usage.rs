//! How much a tenant may have and use, and how much it does.
//!
//! A quota is looked at by the statement that adds something, in its own transaction. Writes of a tenant come one after the
//! other, so that two nodes never both take the last place. Without a quota nothing is counted.

use haft_runtime::Scope;
use jiff::Timestamp;
use serde_json::json;

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
    tenants,
};

/// A day in microseconds.
const A_DAY: i64 = 24 * 3600 * 1_000_000;

/// What a quota is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaKind {
    /// Calls on one day, by UTC.
    CallsPerDay,
    /// People in the tenant.
    People,
    /// Keys.
    Keys,
    /// Tools that the tenant wrote.
    Tools,
    /// Questions that nobody has answered yet.
    OpenQuestions,
    /// Bytes of media.
    Media,
}

impl QuotaKind {
    /// Every kind.
    pub const ALL: &[Self] =
        &[Self::CallsPerDay, Self::People, Self::Keys, Self::Tools, Self::OpenQuestions, Self::Media];

    /// The kind as it is written. The statements that look at it have the same word.
    pub fn word(self) -> &'static str {
        match self {
            Self::CallsPerDay => "calls_per_day",
            Self::People => "people",
            Self::Keys => "keys",
            Self::Tools => "tools",
            Self::OpenQuestions => "open_questions",
            Self::Media => "media",
        }
    }

    /// The kind that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }

    /// What counts how much there is, up to `$2` where there may be many.
    fn count(self) -> &'static str {
        match self {
            Self::CallsPerDay => "select used from usage where tenant = $1 and name = 'calls_per_day' and period = $2",
            Self::People => "select count(*) as used from memberships where tenant = $1 and $2 > 0",
            Self::Keys => "select count(*) as used from api_keys where tenant = $1 and $2 > 0",
            Self::Tools => "select count(*) as used from tools where tenant = $1 and kind = 'tenant_custom' and $2 > 0",
            Self::OpenQuestions => {
                "select count(*) as used from (select 1 as one from questions where tenant = $1 and open = 1 limit $2) q"
            }
            Self::Media => {
                "select cast(coalesce(sum(size), 0) as bigint) as used from media where tenant = $1 and $2 > 0"
            }
        }
    }
}

/// A quota and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaUse {
    /// What it is about.
    pub kind: QuotaKind,
    /// The most that there may be; `None` where nobody set it.
    pub most: Option<i64>,
    /// How much there is now. Open questions are counted up to 10,000 or the quota; calls only where there is one.
    pub used: i64,
}

/// Ends a statement that adds something: nothing is added where a quota is reached.
macro_rules! within_quota {
    ($word:literal, $counted:literal, $tenant:literal) => {
        concat!(
            " where not exists (select 1 from quotas q where q.tenant = ",
            $tenant,
            " and q.name = '",
            $word,
            "' and q.most <= (select count(*) from ",
            $counted,
            " c.tenant = ",
            $tenant,
            "))"
        )
    };
}
pub(crate) use within_quota;

const ALL: &str = "select name, most from quotas where tenant = $1 order by name";
const SET: &str = "insert into quotas (tenant, name, most) values ($1, $2, $3) on conflict (tenant, name) \
                   do update set most = excluded.most returning 1 as saved";
const LIFT: &str = "delete from quotas where tenant = $1 and name = $2 returning 1 as lifted";
const TAKE: &str = "insert into usage (tenant, name, period, used) select $1, 'calls_per_day', $2, 1 where exists \
                    (select 1 from quotas q where q.tenant = $1 and q.name = 'calls_per_day' and q.most > 0) \
                    on conflict (tenant, name, period) do update set used = usage.used + 1 where usage.used < \
                    (select q.most from quotas q where q.tenant = $1 and q.name = 'calls_per_day') returning used";
const FORGET_DAYS: &str = "delete from usage where tenant = $1 and name = 'calls_per_day' and period < $2";
/// How far open questions are counted where nobody set a quota.
const COUNTED: i64 = 10_000;

impl Store {
    /// The quotas of a tenant.
    pub async fn quotas(&self, scope: &Scope) -> Result<Vec<(QuotaKind, i64)>, StoreError> {
        let rows = self.read(Statement::new(ALL).bind(tenant(scope))).await?;
        let quota = |row: &Row| -> Result<Option<(QuotaKind, i64)>, StoreError> {
            let columns = Columns { of: "quotas", row };
            Ok(QuotaKind::parse(&columns.text("name")?).zip(Some(columns.number("most")?)))
        };
        rows.iter().filter_map(|row| quota(row).transpose()).collect()
    }

    /// Sets a quota of a tenant, or lifts it.
    pub async fn set_quota(&self, scope: &Scope, kind: QuotaKind, most: Option<i64>) -> Result<(), StoreError> {
        let before = self.quotas(scope).await?.into_iter().find(|(known, _)| *known == kind).map(|(_, most)| most);
        let key = |sql| Statement::new(sql).bind(tenant(scope)).bind(kind.word());
        let change = match most {
            Some(most) => key(SET).bind(most),
            None => key(LIFT),
        };
        let act = AuditEntry::new(AuditAction::QuotaSet, scope, ("quota", kind.word()));
        let change = ConditionalWrite::new(tenant(scope), change).and_then(tenants::changed(scope));
        self.change(change.audited(act.change(json!(before), json!(most)))).await.map(drop)
    }

    /// How much a tenant has and uses of everything that there is a quota for.
    pub async fn quota_use(&self, scope: &Scope) -> Result<Vec<QuotaUse>, StoreError> {
        let quotas = self.quotas(scope).await?;
        let mut all = Vec::new();
        for kind in QuotaKind::ALL {
            let most = quotas.iter().find(|(known, _)| known == kind).map(|(_, most)| *most);
            all.push(QuotaUse { kind: *kind, most, used: self.used(scope, *kind, most).await? });
        }
        Ok(all)
    }

    /// How much a tenant uses of one thing.
    pub async fn used(&self, scope: &Scope, kind: QuotaKind, most: Option<i64>) -> Result<i64, StoreError> {
        let bound = if kind == QuotaKind::CallsPerDay { today() } else { most.unwrap_or(COUNTED).max(1) };
        let row = self.read_one(Statement::new(kind.count()).bind(tenant(scope)).bind(bound)).await?;
        row.map_or(Ok(0), |row| Columns { of: "usage", row: &row }.number("used"))
    }

    /// Counts a call that begins today; `false` when the quota of the day is used up.
    pub async fn take_call(&self, scope: &Scope) -> Result<bool, StoreError> {
        let take = Statement::new(TAKE).bind(tenant(scope)).bind(today());
        let forget = Statement::new(FORGET_DAYS).bind(tenant(scope)).bind(today() - 1);
        self.change(ConditionalWrite::new(tenant(scope), take).and_then(forget)).await
    }
}

/// The number of this day since the epoch.
fn today() -> i64 {
    Timestamp::now().as_microsecond().div_euclid(A_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_found_without_reading_other_tenants() {
        crate::schema::tests::assert_quick(&[ALL, SET, LIFT, FORGET_DAYS]);
        for kind in QuotaKind::ALL {
            assert_eq!(QuotaKind::parse(kind.word()), Some(*kind));
            let steps = crate::schema::tests::plan(kind.count());
            assert!(!steps.iter().any(|step| step.starts_with("SCAN") && !step.starts_with("SCAN q")), "{steps:?}");
        }
    }
}
