//! How often each tool was used, how that ended and how long it took, counted in the transaction that ends a call.

use std::collections::BTreeMap;

use haft_runtime::{Scope, Within, WorkspaceId};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use sqlx::sqlite::SqliteRow;

use crate::{
    Store, StoreError,
    batch::Statement,
    columns::Columns,
    took::{self, Took},
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
    /// How many were tried more than once.
    pub retried: i64,
    /// How long they worked together.
    pub total_ms: i64,
    /// How long each took.
    pub took: Took,
}

/// The end of one call, for the counters.
pub(crate) struct End {
    pub(crate) status: Option<&'static str>,
    pub(crate) asked: bool,
    pub(crate) cached: bool,
    pub(crate) retried: bool,
    pub(crate) finished_at: Option<i64>,
    pub(crate) duration_ms: i64,
}

const DAY_MICROS: i64 = 86_400_000_000;

/// Counts one call from its row.
macro_rules! count {
    ($only:literal) => {
        concat!(
            "insert into counters (tenant, workspace, tool, calls, success, error, rejected, cancelled, asked, cached, ",
            "retried, total_ms, day, took) ",
            "select tenant, coalesce(workspace, ''), tool, 1, ?, ?, ?, ?, case when asked or ? then 1 else 0 end, ",
            "?, ?, ?, ?, ? from calls where tenant = ? and id = ?",
            $only,
            " on conflict (tenant, workspace, day, tool, took) do update set calls = counters.calls + excluded.calls, ",
            "success = counters.success + excluded.success, error = counters.error + excluded.error, ",
            "rejected = counters.rejected + excluded.rejected, cancelled = counters.cancelled + excluded.cancelled, ",
            "asked = counters.asked + excluded.asked, cached = counters.cached + excluded.cached, ",
            "retried = counters.retried + excluded.retried, total_ms = counters.total_ms + excluded.total_ms"
        )
    };
}
macro_rules! sums {
    () => {
        "sum(calls) as calls, sum(success) as success, sum(error) as error, sum(rejected) as rejected, \
         sum(cancelled) as cancelled, sum(asked) as asked, sum(cached) as cached, sum(retried) as retried, \
         sum(total_ms) as total_ms"
    };
}

/// Counts a call whose row says already that it has ended.
const COUNT_ENDED: &str = count!("");
/// Counts a call that is about to end, unless it has ended before.
const COUNT_ENDING: &str = count!(" and state <> 'ended'");

const OF_WORKSPACE: &str = concat!(
    "select tool, took, ",
    sums!(),
    " from counters where tenant = $1 and workspace = $2 and day >= $3 group by tool, took"
);
const OF_TENANT: &str = concat!(
    "select tool, took, ",
    sums!(),
    " from counters where tenant = $1 and $2 is null and day >= $3 group by tool, took"
);
const FORGET: &str = "delete from counters where tenant = $1 and day < $2";

impl End {
    /// Counts a call, named by tenant and id, that was written as ended just now.
    pub(crate) fn count_ended(&self, conn: &Connection, call: (&str, &str)) -> Result<(), StoreError> {
        self.count(conn, COUNT_ENDED, call)
    }

    /// Counts a call that is about to be written as ended.
    pub(crate) fn count_ending(&self, conn: &Connection, call: (&str, &str)) -> Result<(), StoreError> {
        self.count(conn, COUNT_ENDING, call)
    }

    fn count(&self, conn: &Connection, sql: &str, (tenant, call): (&str, &str)) -> Result<(), StoreError> {
        let ended = |status| self.status == Some(status);
        conn.prepare_cached(sql)?.execute(params![
            ended("success"),
            ended("error"),
            ended("rejected"),
            ended("cancelled"),
            self.asked,
            self.cached,
            self.retried,
            self.duration_ms,
            self.finished_at.unwrap_or_default() / DAY_MICROS,
            took::bucket(self.duration_ms),
            tenant,
            call,
        ])?;
        Ok(())
    }
}

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
        self.retried += more.retried;
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
        let text = if within.only().is_some() { OF_WORKSPACE } else { OF_TENANT };
        let day = since.map_or(0, |since| since.as_microsecond() / DAY_MICROS);
        let query =
            sqlx::query(text).bind(scope.tenant().as_str()).bind(within.only().map(WorkspaceId::as_str)).bind(day);
        let mut tools: BTreeMap<String, ToolUse> = BTreeMap::new();
        for row in query.fetch_all(self.reads().await?).await? {
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
        let statement = Statement::new(FORGET).bind_text(scope.tenant().as_str());
        self.writer().run(statement.bind(before.as_microsecond() / DAY_MICROS)).await.map(drop)
    }
}

/// The calls of one tool that fell into one bucket.
fn part_of_a_tool(row: &SqliteRow) -> Result<(i64, ToolUse), StoreError> {
    let columns = Columns { of: "counters", row };
    let counted = ToolUse {
        tool: columns.plain("tool")?,
        calls: columns.plain("calls")?,
        success: columns.plain("success")?,
        error: columns.plain("error")?,
        rejected: columns.plain("rejected")?,
        cancelled: columns.plain("cancelled")?,
        asked: columns.plain("asked")?,
        cached: columns.plain("cached")?,
        retried: columns.plain("retried")?,
        total_ms: columns.plain("total_ms")?,
        took: Took::default(),
    };
    Ok((columns.plain("took")?, counted))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_counters() {
        crate::schema::tests::assert_quick(&[super::OF_WORKSPACE, super::OF_TENANT, super::FORGET]);
    }
}
