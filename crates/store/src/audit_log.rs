//! Reading the audit log, checking its chain, and forgetting what is past its time.

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;

use crate::{
    AuditAction, AuditEntry, AuditRow, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
};

/// Which rows are wanted, newest first. What is absent limits nothing.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Acts of this kind.
    pub action: Option<AuditAction>,
    /// By whom, as `kind:id`.
    pub by: Option<String>,
    /// On what, as `kind:id`.
    pub on: Option<String>,
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Rows before this one.
    pub before: Option<i64>,
    /// So many at most.
    pub limit: u32,
}

/// What became of a chain of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditChain {
    /// The first row that is kept; those before it were deleted by retention.
    pub first: i64,
    /// The last row, and its hash. Whoever noted both elsewhere sees whether rows were cut off at the end.
    pub last: i64,
    /// The hash of the last row.
    pub hash: String,
    /// The first row that does not fit, and why.
    pub broken: Option<(i64, &'static str)>,
}

macro_rules! rows {
    ($rest:literal) => {
        concat!(
            "select tenant, seq, at, action, subject, actor, actor_name, source, via, address, detail, previous, hash ",
            "from audit where tenant = $1 ",
            $rest
        )
    };
}
const PAGE: &str = rows!("");
const FOLLOWING: &str = rows!("and seq > $2 order by seq limit $3");
const LOGS: &str = "select distinct tenant from audit order by tenant";
/// Only from the beginning, and never the last one: the chain goes on from there.
const OLD: &str = "select max(seq) as last from audit where tenant = $1 and seq < coalesce((select min(seq) from audit \
                   where tenant = $1 and at >= $2), (select max(seq) from audit where tenant = $1))";
const FORGET: &str = "delete from audit where tenant = $1 and seq <= $2 returning 1 as forgotten";
const COUNT: &str = "select count(*) as old from audit where tenant = $1 and seq <= $2";
const NOTHING_ELSE: &str = "select 1 as noted";
const CHECKED_AT_ONCE: u32 = 500;

impl Store {
    /// Writes down an act that changes nothing here, such as a sign-in that was refused.
    pub async fn note_act(&self, _house: &HouseWide, act: AuditEntry) -> Result<(), StoreError> {
        self.change(ConditionalWrite::of_database(Statement::new(NOTHING_ELSE)).audited(act)).await.map(drop)
    }

    /// Rows of a tenant's log, newest first.
    pub async fn audit(&self, scope: &Scope, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        self.read(page(tenant(scope), filter)).await?.iter().map(record).collect()
    }

    /// The same of a log whose tenant may be gone.
    pub async fn audit_of(
        &self,
        _house: &HouseWide,
        tenant: &str,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditRow>, StoreError> {
        self.read(page(tenant, filter)).await?.iter().map(record).collect()
    }

    /// The next rows of a log, oldest first.
    pub async fn audit_after(
        &self,
        _house: &HouseWide,
        (tenant, seq): (&str, i64),
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let following = Statement::new(FOLLOWING).bind(tenant).bind(seq).bind(limit);
        self.read(following).await?.iter().map(record).collect()
    }

    /// The tenants that have a log, also those that are gone.
    pub async fn audit_logs(&self, _house: &HouseWide) -> Result<Vec<String>, StoreError> {
        let rows = self.read(Statement::new(LOGS)).await?;
        rows.iter().map(|row| Columns { of: "audit", row }.text("tenant")).collect()
    }

    /// Checks every row of a log against the one before it.
    pub async fn check_audit(&self, house: &HouseWide, tenant: &str) -> Result<AuditChain, StoreError> {
        let mut chain = AuditChain { first: 0, last: 0, hash: String::new(), broken: None };
        loop {
            let rows = self.audit_after(house, (tenant, chain.last), CHECKED_AT_ONCE).await?;
            if rows.is_empty() {
                return Ok(chain);
            }
            for row in rows {
                let is_first = chain.last == 0;
                chain.broken = match () {
                    () if row.hash != row.computed_hash() => Some((row.seq, "it was changed")),
                    () if !is_first && row.seq != chain.last + 1 => Some((row.seq, "the row before it is missing")),
                    () if !is_first && row.previous != chain.hash => {
                        Some((row.seq, "the row before it is another one"))
                    }
                    () if row.seq == 1 && !row.previous.is_empty() => Some((row.seq, "there were rows before it")),
                    () => None,
                };
                if chain.broken.is_some() {
                    return Ok(chain);
                }
                chain.first = if is_first { row.seq } else { chain.first };
                (chain.last, chain.hash) = (row.seq, row.hash);
            }
        }
    }

    /// How far a log is past its time, where there is something to forget.
    pub async fn old_audit(
        &self,
        _house: &HouseWide,
        tenant: &str,
        before: Timestamp,
    ) -> Result<Option<i64>, StoreError> {
        let old = Statement::new(OLD).bind(tenant).bind(before.as_microsecond());
        let row = self.read_one(old).await?;
        Ok(row.map(|row| Columns { of: "audit", row: &row }.number_or_none("last")).transpose()?.flatten())
    }

    /// How many rows of a tenant's log there are up to one.
    pub async fn count_audit(&self, scope: &Scope, through: i64) -> Result<u64, StoreError> {
        let row = self.read_one(Statement::new(COUNT).bind(tenant(scope)).bind(through)).await?;
        row.map_or(Ok(0), |row| Columns { of: "audit", row: &row }.number("old").map(i64::unsigned_abs))
    }

    /// Forgets the beginning of a tenant's log, and writes down that it did.
    pub async fn forget_audit(&self, scope: &Scope, through: i64) -> Result<(), StoreError> {
        let forget = Statement::new(FORGET).bind(tenant(scope)).bind(through);
        let act = AuditEntry::new(AuditAction::AuditForgotten, scope, ("audit", &through.to_string()));
        self.change(ConditionalWrite::new(tenant(scope), forget).audited(act)).await.map(drop)
    }
}

fn page(tenant: &str, filter: &AuditFilter) -> Statement {
    let mut page = Statement::new(PAGE).bind(tenant);
    if let Some(action) = filter.action {
        page = page.push_bind("and action = ", action.word());
    }
    if let Some(by) = &filter.by {
        page = page.push_bind(" and actor = ", by.as_str());
    }
    if let Some(on) = &filter.on {
        page = page.push_bind(" and subject = ", on.as_str());
    }
    if let Some(since) = filter.since {
        page = page.push_bind(" and at >= ", since.as_microsecond());
    }
    if let Some(before) = filter.before {
        page = page.push_bind(" and seq < ", before);
    }
    page.push_bind(" order by seq desc limit ", filter.limit)
}

fn record(row: &Row) -> Result<AuditRow, StoreError> {
    AuditRow::read(&Columns { of: "audit", row })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_log_is_read_without_those_of_others() {
        crate::schema::tests::assert_quick(&[FOLLOWING, OLD, FORGET, COUNT]);
        let all = AuditFilter {
            action: Some(AuditAction::KeyAdded),
            by: Some("person:a".to_owned()),
            on: Some("key:a".to_owned()),
            since: Some(Timestamp::UNIX_EPOCH),
            before: Some(7),
            limit: 5,
        };
        crate::schema::tests::assert_quick(&[&page("t", &all).sql, &page("t", &AuditFilter::default()).sql]);
    }
}
