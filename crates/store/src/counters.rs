//! How often each tool was used and how that ended, counted in the transaction that ends a call.

use std::collections::BTreeMap;

use haft_runtime::Scope;
use sqlx::SqliteConnection;

use crate::{
    Store, StoreError,
    batch::{Bound, Insert, MOST_ROWS},
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

macro_rules! add_up {
    () => {
        "on conflict (tenant, workspace, tool) do update set calls = counters.calls + excluded.calls, \
         success = counters.success + excluded.success, error = counters.error + excluded.error, \
         rejected = counters.rejected + excluded.rejected, cancelled = counters.cancelled + excluded.cancelled, \
         asked = counters.asked + excluded.asked, total_ms = counters.total_ms + excluded.total_ms"
    };
}
macro_rules! into_counters {
    () => {
        "insert into counters (tenant, workspace, tool, calls, success, error, rejected, cancelled, asked, total_ms) "
    };
}

/// Adds up rows of sums.
pub(crate) static ADD: Insert = Insert::new(concat!(into_counters!(), "values"), 10, add_up!());

/// Counts a call that is about to end, unless it has ended before.
pub(crate) const COUNT_END: &str = concat!(
    into_counters!(),
    "select tenant, coalesce(workspace, ''), tool, 1, ?, ?, ?, ?, case when asked or ? then 1 else 0 end, ? ",
    "from calls where tenant = ? and id = ? and state <> 'ended' ",
    add_up!()
);

const OF_TENANT: &str = "select tool, sum(calls) as calls, sum(success) as success, sum(error) as error, \
     sum(rejected) as rejected, sum(cancelled) as cancelled, sum(asked) as asked, sum(total_ms) as total_ms \
     from counters where tenant = $1 and ($2 is null or workspace = $2) group by tool order by tool";

impl End {
    /// One call as sums.
    pub(crate) fn as_sums(&self) -> ToolUse {
        let counts = |status| i64::from(self.status == Some(status));
        ToolUse {
            tool: String::new(),
            calls: 1,
            success: counts("success"),
            error: counts("error"),
            rejected: counts("rejected"),
            cancelled: counts("cancelled"),
            asked: i64::from(self.asked),
            total_ms: self.duration_ms,
        }
    }
}

impl ToolUse {
    /// Binds the sums, in the order of the columns after `calls`.
    pub(crate) fn bind(&self, query: Bound) -> Bound {
        let query = query.bind(self.success).bind(self.error).bind(self.rejected).bind(self.cancelled);
        query.bind(self.asked).bind(self.total_ms)
    }
}

/// What a batch adds to the counters.
#[derive(Default)]
pub(crate) struct Tally(BTreeMap<(String, String, String), ToolUse>);

impl Tally {
    /// Counts one call that ended.
    pub(crate) fn add(&mut self, (tenant, workspace, tool): (&str, Option<String>, String), end: &End) {
        let counted = self.0.entry((tenant.to_owned(), workspace.unwrap_or_default(), tool)).or_default();
        let one = end.as_sums();
        counted.calls += one.calls;
        counted.success += one.success;
        counted.error += one.error;
        counted.rejected += one.rejected;
        counted.cancelled += one.cancelled;
        counted.asked += one.asked;
        counted.total_ms += one.total_ms;
    }

    /// Adds everything to the counters.
    pub(crate) async fn write(self, conn: &mut SqliteConnection) -> Result<(), StoreError> {
        let counted: Vec<_> = self.0.into_iter().collect();
        for rows in counted.chunks(MOST_ROWS) {
            let mut query = sqlx::query(ADD.text(rows.len()));
            for ((tenant, workspace, tool), sums) in rows {
                query = query.bind(tenant.as_str()).bind(workspace.as_str()).bind(tool.as_str());
                query = sums.bind(query.bind(sums.calls));
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
