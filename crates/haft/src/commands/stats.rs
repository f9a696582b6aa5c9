//! `haft stats`

use anyhow::Result;
use haft_runtime::ErrorCode;
use haft_store::{LastError, ToolUse};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::to_value;

use crate::{
    cli::Everywhere,
    commands::{log::parse_back, open},
    exit::CliExit,
    house::House,
    show::{
        Out,
        safe::safe,
        style::{DIM, STRONG},
        table::{cut, table, width},
        time::ago,
    },
};

/// From this width on there is room for the rarer numbers.
const WIDE: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the last 7d, 30d, in whole days (UTC) [default: everything]
    #[arg(long, value_name = "TIME", value_parser = parse_back)]
    since: Option<Timestamp>,
}

/// One tool, as programs read it.
#[derive(Serialize)]
struct ToolStats {
    tool_name: String,
    total_calls: i64,
    success_count: i64,
    error_count: i64,
    rejected_count: i64,
    cancelled_count: i64,
    asked_count: i64,
    cache_hits: i64,
    retries: i64,
    avg_execution_time_ms: f64,
    p50_ms: Option<i64>,
    p95_ms: Option<i64>,
    p99_ms: Option<i64>,
    last_error: Option<LastError>,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    // The counters know whole days; so the last error is looked for in the same ones.
    let since = args.since.map(begin_of_day);
    let house = open(everywhere).await?;
    let mut rows = Vec::new();
    for tool in house.store.tools_used(&house.scope, &house.here, since).await? {
        let failed = tool.error > 0;
        let about = (tool.tool.as_str(), since);
        let last_error = if failed { house.store.last_error(&house.scope, &house.here, about).await? } else { None };
        // A mistyped name is no tool.
        let is_none = |last: &LastError| last.error.code == ErrorCode::ToolNotFound && tool.error == tool.calls;
        if !last_error.as_ref().is_some_and(is_none) {
            rows.push(row(tool, last_error));
        }
    }
    house.leave().await?;
    if out.json {
        out.document(&house.redactor.value(&to_value(&rows)?));
        return Ok(CliExit::Success);
    }
    if rows.is_empty() {
        out.line("no calls yet; try `haft call list_directory`");
        return Ok(CliExit::Success);
    }
    people(out, &house, &rows);
    Ok(CliExit::Success)
}

/// Midnight before a time, in UTC.
fn begin_of_day(at: Timestamp) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(86_400)).unwrap_or(at)
}

fn row(tool: ToolUse, last_error: Option<LastError>) -> ToolStats {
    ToolStats {
        total_calls: tool.calls,
        success_count: tool.success,
        error_count: tool.error,
        rejected_count: tool.rejected,
        cancelled_count: tool.cancelled,
        asked_count: tool.asked,
        cache_hits: tool.cached,
        retries: tool.retries,
        avg_execution_time_ms: (tool.total_ms * 100 / tool.calls.max(1)) as f64 / 100.0,
        p50_ms: tool.took.percentile(50),
        p95_ms: tool.took.percentile(95),
        p99_ms: tool.took.percentile(99),
        tool_name: tool.tool,
        last_error,
    }
}

fn people(out: &Out, house: &House, rows: &[ToolStats]) {
    let wide = width() >= WIDE;
    let mut head = vec!["TOOL", "CALLS", "OK", "ERROR", "NO", "STOPPED", "ASKED"];
    if wide {
        head.extend(["CACHED", "RETRIES"]);
    }
    head.extend(["P50", "P95", "P99"]);
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row_cells(row, wide)).collect();
    out.text(&table(&head, &cells));
    out.line(&format!("{DIM}50, 95 and 99 % of calls took at most this long (ms){DIM:#}"));
    let failed: Vec<(&ToolStats, &LastError)> =
        rows.iter().filter_map(|row| row.last_error.as_ref().map(|error| (row, error))).collect();
    if failed.is_empty() {
        return;
    }
    out.line(&format!("\n{STRONG}LAST ERRORS{STRONG:#}"));
    for (row, last) in failed {
        let what = house.redactor.text(&last.error.message);
        let text = format!("{}  {}  {} {what}", row.tool_name, ago(last.at), last.error.code);
        out.line(&safe(&cut(&text, width())));
        out.line(&format!("  {DIM}haft log show {}{DIM:#}", last.call));
    }
}

fn row_cells(row: &ToolStats, wide: bool) -> Vec<String> {
    let counts = [row.total_calls, row.success_count, row.error_count, row.rejected_count, row.cancelled_count];
    let mut cells = vec![row.tool_name.clone()];
    cells.extend(counts.iter().chain([&row.asked_count]).map(ToString::to_string));
    if wide {
        cells.extend([row.cache_hits, row.retries].map(|count| count.to_string()));
    }
    let time =
        |ms: Option<i64>| ms.map_or_else(String::new, |ms| if ms == 0 { "<1".to_owned() } else { ms.to_string() });
    cells.extend([row.p50_ms, row.p95_ms, row.p99_ms].map(time));
    cells
}
