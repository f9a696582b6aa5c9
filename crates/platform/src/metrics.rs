//! How often each tool was used, how that ended and how long it took.

use haft_runtime::{ErrorCode, Scope, ToolError, Within};
use haft_store::{LastError, ToolUse};
use jiff::Timestamp;
use serde::Serialize;

use crate::Platform;

/// The numbers of one tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMetrics {
    /// The tool's own name.
    pub tool_name: String,
    /// How many calls have ended.
    pub total_calls: i64,
    /// How many did what was asked.
    pub success_count: i64,
    /// How many did not.
    pub error_count: i64,
    /// To how many a person said no.
    pub rejected_count: i64,
    /// How many were stopped.
    pub cancelled_count: i64,
    /// How long one took on average, in milliseconds.
    pub avg_execution_time_ms: f64,
    /// Half of them took at most this long, in milliseconds.
    pub p50: Option<i64>,
    /// 95 % of them did.
    pub p95: Option<i64>,
    /// 99 % of them did.
    pub p99: Option<i64>,
    /// How many were answered from the cache.
    pub cached: i64,
    /// How often they were tried again.
    pub retried: i64,
    /// About how many somebody was asked.
    pub asked: i64,
    /// The last error.
    pub last_error: Option<LastError>,
}

impl Platform {
    /// The numbers of all tools of a tenant, by name, counted in whole days (UTC) from that of `since` on.
    pub async fn tool_metrics(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<ToolMetrics>, ToolError> {
        let since = since.map(begin_of_day);
        let mut all = Vec::new();
        for tool in self.store.tools_used(scope, &Within::Everything, since).await? {
            let about = (tool.tool.as_str(), since);
            let last_error = match tool.error {
                0 => None,
                _ => self.store.last_error(scope, &Within::Everything, about).await?,
            };
            // A mistyped name is no tool.
            let is_none = |last: &LastError| last.error.code == ErrorCode::ToolNotFound && tool.error == tool.calls;
            if !last_error.as_ref().is_some_and(is_none) {
                all.push(metrics(tool, last_error));
            }
        }
        Ok(all)
    }
}

/// Midnight before a time, in UTC: the counters know whole days.
fn begin_of_day(at: Timestamp) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(86_400)).unwrap_or(at)
}

fn metrics(tool: ToolUse, last_error: Option<LastError>) -> ToolMetrics {
    ToolMetrics {
        total_calls: tool.calls,
        success_count: tool.success,
        error_count: tool.error,
        rejected_count: tool.rejected,
        cancelled_count: tool.cancelled,
        avg_execution_time_ms: (tool.total_ms * 100 / tool.calls.max(1)) as f64 / 100.0,
        p50: tool.took.percentile(50),
        p95: tool.took.percentile(95),
        p99: tool.took.percentile(99),
        cached: tool.cached,
        retried: tool.retries,
        asked: tool.asked,
        tool_name: tool.tool,
        last_error,
    }
}
