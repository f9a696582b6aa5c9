//! Work that goes on by itself. Whoever holds the lease does it; when the lease has run out, another node may.
//!
//! A job is due when somebody has to look at it next: while a node has it, that is when the lease of that node ends. So one
//! index leads to everything that is to be done, and to what a dead node left.

use std::time::Duration;

use haft_runtime::{ALL_TENANTS, HouseWide, Scope};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
};

/// Whose job it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOwner {
    /// One tenant's.
    Tenant(Scope),
    /// That of all tenants.
    AllTenants,
}

/// Who may do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobPlace {
    /// Any node.
    AnyNode,
    /// The node of this name alone.
    Node(String),
}

/// A job to be added. There is one of each owner, kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// What is to be done.
    pub kind: &'static str,
    /// Which one of this kind.
    pub name: String,
    /// What whoever does it needs to know, as JSON.
    pub payload: String,
    /// When.
    pub due: Timestamp,
    /// Where.
    pub place: JobPlace,
}

/// A job that this node does, for as long as its lease lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedJob {
    /// Whose it is.
    pub of: JobOwner,
    /// What it is found by.
    pub id: String,
    /// What is to be done.
    pub kind: String,
    /// Which one of this kind.
    pub name: String,
    /// What whoever does it needs to know, as JSON.
    pub payload: String,
    /// How often it was begun since it last went well, this time included.
    pub attempts: u32,
    /// Until when it is this node's. Nobody else has the same lease, so that a late word of an earlier node is refused.
    pub lease_until: Timestamp,
}

/// Which jobs a node does.
#[derive(Clone, Copy, Debug)]
pub struct JobFilter<'a> {
    /// Its name.
    pub node: &'a str,
    /// The kinds that it knows.
    pub kinds: &'a [&'static str],
}

const ADD: &str = "insert into jobs (tenant, id, kind, name, payload, due, node, owner, lease_until, attempts) \
                   values ($1, $2, $3, $4, $5, $6, $7, '', 0, 0) on conflict do nothing returning 1 as added";
const ADD_TO_EACH: &str = "insert into jobs (tenant, id, kind, name, payload, due, node, owner, lease_until, attempts) \
                           select id, 'jb_' || $1, $1, '', '{}', $2, '', '', 0, 0 from tenants \
                           where not exists (select 1 from jobs where tenant = tenants.id and kind = $1 and name = '') \
                           on conflict do nothing returning 1 as added";
const HASTEN: &str = "update jobs set due = $1 where due > $1 and owner = '' and (node = '' or node = $2) and kind in ";
const DUE: &str = "select tenant, id, kind, name, payload, due, attempts from jobs /*index jobs_due*/ \
                   where due <= $1 and (node = '' or node = $2) and kind in ";
const NEXT: &str = "select due from jobs /*index jobs_due*/ where (node = '' or node = $1) and kind in ";
const CLAIM: &str = "update jobs set owner = $4, lease_until = $5, due = $5, attempts = attempts + 1 \
                     where tenant = $1 and id = $2 and due = $3 returning 1 as claimed";
const RENEW: &str = "update jobs set lease_until = $5, due = $5 \
                     where tenant = $1 and id = $2 and owner = $3 and lease_until = $4 returning 1 as renewed";
/// A job to which something was added meanwhile is not done.
const FINISH: &str = "delete from jobs where tenant = $1 and id = $2 and owner = $3 and lease_until = $4 \
                      and payload = $5 returning 1 as finished";
/// Adds to a job that may be there already, which then has another payload.
const ADD_OR_RENEW: &str = "insert into jobs (tenant, id, kind, name, payload, due, node, owner, lease_until, attempts) \
                            values ($1, $2, $3, $4, $5, $6, '', '', 0, 0) on conflict (tenant, kind, name) \
                            do update set payload = excluded.payload";
const PUT_OFF: &str = "update jobs set owner = '', lease_until = 0, due = $5, attempts = $6 \
                       where tenant = $1 and id = $2 and owner = $3 and lease_until = $4 returning 1 as put_off";

impl Store {
    /// Adds a job; `false` when there is one of this kind and name already.
    pub async fn add_job(&self, _house: &HouseWide, of: &JobOwner, job: &NewJob) -> Result<bool, StoreError> {
        let node = match &job.place {
            JobPlace::AnyNode => "",
            JobPlace::Node(name) => name,
        };
        let add = Statement::new(ADD)
            .bind(of.column())
            .bind(format!("jb_{}", uuid::Uuid::now_v7().simple()))
            .bind(job.kind)
            .bind(job.name.as_str())
            .bind(job.payload.as_str())
            .bind(job.due.as_microsecond())
            .bind(node);
        let added = self.change(ConditionalWrite::of_database(add)).await?;
        self.work().notify_one();
        Ok(added)
    }

    /// Sees to it that each tenant has a job of this kind.
    pub async fn add_job_to_each_tenant(
        &self,
        _house: &HouseWide,
        kind: &'static str,
        due: Timestamp,
    ) -> Result<(), StoreError> {
        let add = Statement::new(ADD_TO_EACH).bind(kind).bind(due.as_microsecond());
        self.change(ConditionalWrite::of_database(add)).await?;
        self.work().notify_one();
        Ok(())
    }

    /// Has the jobs of these kinds that nobody does at this moment be due now.
    pub async fn hasten_jobs(&self, _house: &HouseWide, filter: JobFilter<'_>) -> Result<(), StoreError> {
        let hasten = Statement::new(HASTEN).bind(self.now().as_microsecond()).bind(filter.node);
        let hasten = hasten.push_list(filter.kinds.iter().copied());
        self.change(ConditionalWrite::of_database(hasten)).await?;
        self.work().notify_one();
        Ok(())
    }

    /// Takes jobs that are due, at most so many, each with a lease of this length. Of several nodes one gets each.
    pub async fn claim_jobs(
        &self,
        _house: &HouseWide,
        filter: JobFilter<'_>,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<ClaimedJob>, StoreError> {
        let now = self.now();
        let due = Statement::new(DUE).bind(now.as_microsecond()).bind(filter.node);
        let due = due.push_list(filter.kinds.iter().copied()).push_bind(" order by due limit ", limit);
        let mut claimed = Vec::new();
        for row in self.read(due).await? {
            let lease_until = after(now, lease);
            let job = job(&row, lease_until)?;
            let seen = Columns { of: &job.id, row: &row }.number("due")?;
            let claim = job.statement(CLAIM).bind(seen).bind(self.owner()).bind(lease_until.as_microsecond());
            if self.change(ConditionalWrite::of_database(claim)).await? {
                claimed.push(job);
            }
        }
        Ok(claimed)
    }

    /// When the next job is due, if there is any.
    pub async fn next_job(&self, _house: &HouseWide, filter: JobFilter<'_>) -> Result<Option<Timestamp>, StoreError> {
        let next = Statement::new(NEXT).bind(filter.node).push_list(filter.kinds.iter().copied());
        let row = self.read_one(next.push(" order by due limit 1")).await?;
        row.map(|row| Columns { of: "jobs", row: &row }.time("due")).transpose()
    }

    /// Keeps a job for longer; `None` when it is another node's by now.
    pub async fn renew_job(
        &self,
        _house: &HouseWide,
        job: &ClaimedJob,
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let until = after(self.now(), lease);
        let renew = job.held_by(self, RENEW).bind(until.as_microsecond());
        let renewed = self.change(ConditionalWrite::of_database(renew)).await?;
        Ok(renewed.then(|| ClaimedJob { lease_until: until, ..job.clone() }))
    }

    /// A job is done and gone; `false` when it is another node's by now, or something was added to it meanwhile.
    pub async fn finish_job(&self, _house: &HouseWide, job: &ClaimedJob) -> Result<bool, StoreError> {
        let finish = job.held_by(self, FINISH).bind(job.payload.as_str());
        self.change(ConditionalWrite::of_database(finish)).await
    }

    /// A job is to be done again at another time, and was begun in vain so often until now. `false` when it is another
    /// node's by now.
    pub async fn put_off_job(
        &self,
        _house: &HouseWide,
        job: &ClaimedJob,
        due: Timestamp,
        failures: u32,
    ) -> Result<bool, StoreError> {
        let put_off = job.held_by(self, PUT_OFF).bind(due.as_microsecond()).bind(failures);
        self.change(ConditionalWrite::of_database(put_off)).await
    }

    /// Returns when a job or a question was added on this node since the last time.
    pub async fn work_added(&self, _house: &HouseWide) {
        self.work().notified().await;
    }
}

impl JobOwner {
    fn column(&self) -> &str {
        match self {
            Self::Tenant(scope) => tenant(scope),
            Self::AllTenants => ALL_TENANTS,
        }
    }
}

impl ClaimedJob {
    /// A statement about this job.
    fn statement(&self, sql: &'static str) -> Statement {
        Statement::new(sql).bind(self.of.column()).bind(self.id.as_str())
    }

    /// A statement that counts only as long as the job is this node's.
    fn held_by(&self, store: &Store, sql: &'static str) -> Statement {
        self.statement(sql).bind(store.owner()).bind(self.lease_until.as_microsecond())
    }
}

/// A statement that adds a job of a tenant for any node, due now, or adds to the one that is there.
pub(crate) fn adding_or_renewing(tenant: &str, kind: &str, now: Timestamp) -> Statement {
    let id = uuid::Uuid::now_v7().simple();
    Statement::new(ADD_OR_RENEW)
        .bind(tenant)
        .bind(format!("jb_{id}"))
        .bind(kind)
        .bind("")
        .bind(serde_json::json!({"added": id.to_string()}).to_string())
        .bind(now.as_microsecond())
}

fn job(row: &Row, lease_until: Timestamp) -> Result<ClaimedJob, StoreError> {
    let id = Columns { of: "jobs", row }.text("id")?;
    let columns = Columns { of: &id, row };
    let of = match columns.text("tenant")?.as_str() {
        ALL_TENANTS => JobOwner::AllTenants,
        _ => JobOwner::Tenant(columns.scope_of_tenant()?),
    };
    Ok(ClaimedJob {
        of,
        kind: columns.text("kind")?,
        name: columns.text("name")?,
        payload: columns.text("payload")?,
        attempts: columns.count("attempts")?.saturating_add(1),
        lease_until,
        id: id.clone(),
    })
}

/// As exactly as a column keeps it.
fn after(now: Timestamp, time: Duration) -> Timestamp {
    let then = now.checked_add(time).unwrap_or(Timestamp::MAX);
    Timestamp::from_microsecond(then.as_microsecond()).unwrap_or(then)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_found_without_reading_the_rest() {
        crate::schema::tests::assert_quick(&[CLAIM, RENEW, FINISH, PUT_OFF]);
        for statement in [format!("{DUE}($3, $4) order by due limit 5"), format!("{NEXT}($2) order by due limit 1")] {
            let statement = crate::sqlite::with_hints(&statement);
            crate::schema::tests::assert_reads_only(&statement, "jobs_due");
            let steps = crate::schema::tests::plan(&statement);
            assert!(!steps.iter().any(|step| step.contains("TREE FOR ORDER BY")), "{steps:?}");
        }
    }
}
