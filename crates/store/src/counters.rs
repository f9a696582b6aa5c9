//! How often each tool was used, how that ended and how long it took, counted in the transaction that ends a call.

use std::collections::BTreeMap;

use haft_runtime::{Scope, Within};
use jiff::Timestamp;

use crate::{
    DurationHistogram, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, only, tenant},
    duration_histogram::bucket,
    journal_write::CallEnd,
    sql::{Row, Statement},
};

/// All ended calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// Which tool.
    pub tool: String,
    /// How many calls.
    pub calls: i64,
    /// How many did what was asked.
    pub success: i64,
    /// How many did not.
    pub error: i64,
    /// To how many a person said no.
    pub rejected: i64,
    /// How many were stopped.
    pub cancelled: i64,
    /// About how many somebody was asked.
    pub asked: i64,
    /// How many were answered from the cache.
    pub cached: i64,
    /// How often they were tried again, all together.
    pub retries: i64,
    /// How long they worked together.
    pub total_ms: i64,
    /// How long each took.
    pub took: DurationHistogram,
}

const DAY_MICROS: i64 = 86_400_000_000;

/// What the calls of one batch add, one row for each counter that they touch.
#[derive(Default)]
pub(crate) struct Counted(BTreeMap<CounterKey, [i64; 9]>);

/// Tenant, workspace, day, tool and bucket.
type CounterKey = (String, String, i64, String, i64);

const ADD: &str = "insert into counters (tenant, workspace, day, tool, bucket, calls, success, error, rejected, cancelled, \
                   asked, cached, retried, total_ms) \
                   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
                   on conflict (tenant, workspace, day, tool, bucket) do update set calls = counters.calls + excluded.calls, \
                   success = counters.success + excluded.success, error = counters.error + excluded.error, \
                   rejected = counters.rejected + excluded.rejected, cancelled = counters.cancelled + excluded.cancelled, \
                   asked = counters.asked + excluded.asked, cached = counters.cached + excluded.cached, \
                   retried = counters.retried + excluded.retried, total_ms = counters.total_ms + excluded.total_ms";

impl Counted {
    /// Counts one call that has ended.
    pub(crate) fn add(&mut self, tenant: &str, end: &CallEnd) {
        let ended = |status: &str| i64::from(end.status.as_deref() == Some(status));
        let day = end.finished_at.unwrap_or_default() / DAY_MICROS;
        let key = (tenant.to_owned(), end.workspace.clone(), day, end.tool.clone(), bucket(end.duration_ms));
        let numbers = [
            1,
            ended("success"),
            ended("error"),
            ended("rejected"),
            ended("cancelled"),
            end.asked.into(),
            end.cached.into(),
            end.retries,
            end.duration_ms,
        ];
        let sums = self.0.entry(key).or_default();
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }

    /// What adds it to the counters.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        let add = |((tenant, workspace, day, tool, bucket), sums): (&CounterKey, &[i64; 9])| {
            let key = Statement::new(ADD).bind(tenant.as_str()).bind(workspace.as_str()).bind(*day);
            let key = key.bind(tool.as_str()).bind(*bucket);
            sums.iter().fold(key, |statement, sum| statement.bind(*sum))
        };
        self.0.iter().map(add).collect()
    }
}

macro_rules! sums {
    ($only:literal) => {
        concat!(
            "select tool, bucket, cast(sum(calls) as bigint) as calls, cast(sum(success) as bigint) as success, ",
            "cast(sum(error) as bigint) as error, cast(sum(rejected) as bigint) as rejected, ",
            "cast(sum(cancelled) as bigint) as cancelled, cast(sum(asked) as bigint) as asked, ",
            "cast(sum(cached) as bigint) as cached, cast(sum(retried) as bigint) as retries, ",
            "cast(sum(total_ms) as bigint) as total_ms from counters where tenant = $1 and day >= $2 ",
            $only,
            " group by tool, bucket"
        )
    };
}
const OF_WORKSPACE: &str = sums!("and workspace = $3");
const OF_TENANT: &str = sums!("");
const FORGET: &str = "delete from counters where tenant = $1 and day < $2";

impl ToolUse {
    /// Takes the sums of more calls in.
    fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.success += more.success;
        self.error += more.error;
        self.rejected += more.rejected;
        self.cancelled += more.cancelled;
        self.asked += more.asked;
        self.cached += more.cached;
        self.retries += more.retries;
        self.total_ms += more.total_ms;
    }
}

impl Store {
    /// How often each tool was used, how that ended and how long it took, by name, counted from the day of `since` on.
    pub async fn tools_used(
        &self,
        scope: &Scope,
        within: &Within,
        since: Option<Timestamp>,
    ) -> Result<Vec<ToolUse>, StoreError> {
        let day = since.map_or(0, |since| since.as_microsecond() / DAY_MICROS);
        let find = match only(within) {
            Some(workspace) => Statement::new(OF_WORKSPACE).bind(tenant(scope)).bind(day).bind(workspace),
            None => Statement::new(OF_TENANT).bind(tenant(scope)).bind(day),
        };
        let mut tools: BTreeMap<String, ToolUse> = BTreeMap::new();
        for row in self.read(find).await? {
            let (bucket, counted) = part_of_a_tool(&row)?;
            let tool = tools.entry(counted.tool.clone()).or_default();
            tool.tool.clone_from(&counted.tool);
            tool.add(&counted);
            tool.took.add(bucket, counted.calls);
        }
        Ok(tools.into_values().collect())
    }

    /// Drops the counters of the days before a time.
    pub async fn forget_counters(&self, scope: &Scope, before: Timestamp) -> Result<(), StoreError> {
        let forget = Statement::new(FORGET).bind(tenant(scope)).bind(before.as_microsecond() / DAY_MICROS);
        self.change(ConditionalWrite::new(tenant(scope), forget)).await.map(drop)
    }
}

/// The calls of one tool that fell into one bucket.
fn part_of_a_tool(row: &Row) -> Result<(i64, ToolUse), StoreError> {
    let columns = Columns { of: "counters", row };
    let counted = ToolUse {
        tool: columns.text("tool")?,
        calls: columns.number("calls")?,
        success: columns.number("success")?,
        error: columns.number("error")?,
        rejected: columns.number("rejected")?,
        cancelled: columns.number("cancelled")?,
        asked: columns.number("asked")?,
        cached: columns.number("cached")?,
        retries: columns.number("retries")?,
        total_ms: columns.number("total_ms")?,
        took: DurationHistogram::default(),
    };
    Ok((columns.number("bucket")?, counted))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_counters() {
        crate::schema::tests::assert_quick(&[super::ADD, super::OF_WORKSPACE, super::OF_TENANT, super::FORGET]);
    }
}
