//! How often each tool was used and how that ended, counted in the transaction that ends a call.

use std::{collections::BTreeMap, sync::LazyLock};

use haft_runtime::Scope;
use sqlx::SqliteConnection;

use crate::{
    Store, StoreError,
    batch::{self, chunks, text_for},
    columns::Columns,
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
    /// How long they worked together.
    pub total_ms: i64,
}

/// The end of one call, for the counters.
pub(crate) struct End {
    pub(crate) status: Option<&'static str>,
    pub(crate) asked: bool,
    pub(crate) duration_ms: i64,
}

static UPSERT: LazyLock<Vec<String>> = LazyLock::new(|| {
    let head = "insert into counters (tenant, workspace, tool, calls, success, error, rejected, cancelled, asked, \
                total_ms) values ";
    let tail = " on conflict (tenant, workspace, tool) do update set calls = counters.calls + excluded.calls, \
                success = counters.success + excluded.success, error = counters.error + excluded.error, \
                rejected = counters.rejected + excluded.rejected, \
                cancelled = counters.cancelled + excluded.cancelled, asked = counters.asked + excluded.asked, \
                total_ms = counters.total_ms + excluded.total_ms";
    batch::texts(head, 10, tail)
});

const OF_TENANT: &str = "select tool, sum(calls) as calls, sum(success) as success, sum(error) as error, \
     sum(rejected) as rejected, sum(cancelled) as cancelled, sum(asked) as asked, sum(total_ms) as total_ms \
     from counters where tenant = $1 and ($2 is null or workspace = $2) group by tool order by tool";

/// What a batch adds to the counters.
#[derive(Default)]
pub(crate) struct Tally(BTreeMap<(String, String, String), ToolUse>);

impl Tally {
    /// Counts one call that ended.
    pub(crate) fn add(&mut self, (tenant, workspace, tool): (&str, Option<String>, String), end: &End) {
        let counted = self.0.entry((tenant.to_owned(), workspace.unwrap_or_default(), tool)).or_default();
        counted.calls += 1;
        counted.success += i64::from(end.status == Some("success"));
        counted.error += i64::from(end.status == Some("error"));
        counted.rejected += i64::from(end.status == Some("rejected"));
        counted.cancelled += i64::from(end.status == Some("cancelled"));
        counted.asked += i64::from(end.asked);
        counted.total_ms += end.duration_ms;
    }

    /// Adds everything to the counters.
    pub(crate) async fn write(self, conn: &mut SqliteConnection) -> Result<(), StoreError> {
        let counted: Vec<_> = self.0.into_iter().collect();
        for rows in chunks(&counted) {
            let mut query = sqlx::query(text_for(&UPSERT, rows.len()));
            for ((tenant, workspace, tool), sums) in rows {
                query = query.bind(tenant.as_str()).bind(workspace.as_str()).bind(tool.as_str());
                query = query.bind(sums.calls).bind(sums.success).bind(sums.error).bind(sums.rejected);
                query = query.bind(sums.cancelled).bind(sums.asked).bind(sums.total_ms);
            }
            query.execute(&mut *conn).await?;
        }
        Ok(())
    }
}

impl Store {
    /// How often each tool was used and how that ended, by name.
    pub async fn tools_used(&self, scope: &Scope) -> Result<Vec<ToolUse>, StoreError> {
        let query = sqlx::query(OF_TENANT).bind(&scope.tenant.0).bind(&scope.workspace);
        let rows = query.fetch_all(self.reads()).await?;
        let read = |row| {
            let columns = Columns { of: "counters", row };
            Ok(ToolUse {
                tool: columns.plain("tool")?,
                calls: columns.plain("calls")?,
                success: columns.plain("success")?,
                error: columns.plain("error")?,
                rejected: columns.plain("rejected")?,
                cancelled: columns.plain("cancelled")?,
                asked: columns.plain("asked")?,
                total_ms: columns.plain("total_ms")?,
            })
        };
        rows.iter().map(read).collect()
    }
}
