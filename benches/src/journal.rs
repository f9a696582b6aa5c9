//! The views of a journal with a million calls: no view may cost more because much has happened.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use haft_runtime::{
    AutoApprove, CallEvent, CallId, CallState, Caller, End, Entry, ErrorCode, Journal, Opening, Outcome, Scope, Source,
    ToolError, ToolOutput,
};
use haft_store::{Durability, Store};
use jiff::Timestamp;
use serde_json::json;

use crate::{Measured, median, program::program};

const CALLS: u64 = 1_000_000;
/// The calls are spread over so many days, so that some are past their time.
const DAYS: i64 = 120;
const RUNS: usize = 15;
const TOOLS: &[&str] = &["read_file", "read_file", "read_file", "list_directory", "edit_file", "write_file", "grep"];
const RARE_TOOL: &str = "delete_file";

/// Each view as the whole program, beside the same program on an empty store.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let haft = program()?;
    let folder = haft.with_file_name("bench-journal");
    let call = fill(&folder).await?;
    let empty = tempfile::tempdir()?;
    fs::create_dir(empty.path().join("work"))?;
    let views: &[(&'static str, &[&str])] = &[
        ("haft log", &["log"]),
        ("haft log --tool (rare)", &["log", "--tool", RARE_TOOL]),
        ("haft log --status rejected (rare)", &["log", "--status", "rejected"]),
        ("haft log --tool --status error", &["log", "--tool", "read_file", "--status", "error"]),
        ("haft log --since 2h", &["log", "--since", "2h"]),
        ("haft log show", &["log", "show", call.as_str()]),
        ("haft stats", &["stats"]),
        ("haft stats --since 7d", &["stats", "--since", "7d"]),
        ("haft approvals", &["approvals"]),
        ("haft", &[]),
        ("haft call read_file", &["call", "read_file", "--path", "a.txt", "--json"]),
    ];
    let mut table = Vec::new();
    for (what, arguments) in views {
        let without = if *what == "haft log show" { None } else { Some(timed(&haft, empty.path(), arguments)?) };
        let with = timed(&haft, &folder, arguments)?;
        let beside = without.map_or_else(String::new, |without| format!(" (empty store {without:.1?})"));
        let held = with < Duration::from_millis(50);
        table.push(Measured::new(what, format!("p50 {with:.1?}{beside}, 1 M calls"), "p50 < 50 ms", held));
    }
    let begin = Instant::now();
    let swept = command(&haft, &folder, &["gc", "--dry-run", "--json"]).output()?;
    ensure!(swept.status.success(), "gc failed");
    let found = format!("{:.1?}, 1 M calls, a quarter of them old", begin.elapsed());
    table.push(Measured::new("haft gc --dry-run", found, "", true));
    Ok(table)
}

fn command(haft: &Path, folder: &Path, arguments: &[&str]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a benchmark starts the program that it measures")]
    let mut command = Command::new(haft);
    command.args(arguments).current_dir(folder.join("work")).env("HAFT_DATA_DIR", folder.join("data"));
    // The step that a command does once a day would take part of the store away.
    command.env("HAFT_RETENTION_JOURNAL", "36500d").stdin(Stdio::null());
    if arguments.first() == Some(&"gc") {
        command.env("HAFT_RETENTION_JOURNAL", "90d");
    }
    command
}

fn timed(haft: &Path, folder: &Path, arguments: &[&str]) -> Result<Duration> {
    fs::write(folder.join("work/a.txt"), "hello\n")?;
    let mut laps = Vec::new();
    for _ in 0..RUNS {
        let begin = Instant::now();
        let ended = command(haft, folder, arguments).stdout(Stdio::null()).status()?;
        laps.push(begin.elapsed());
        ensure!(ended.success(), "{arguments:?} failed");
    }
    Ok(median(laps))
}

/// Makes the store, or finds the one that an earlier run has made. Gives a call in its middle.
async fn fill(folder: &Path) -> Result<CallId> {
    let work = folder.join("work");
    let (call, mark) = (folder.join("call"), folder.join(format!("version-{}", newest_version().await?)));
    if mark.exists() {
        return CallId::parse(&fs::read_to_string(call)?).context("the store of an earlier run is damaged");
    }
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(&work)?;
    let scope = Scope::local(work.canonicalize()?.to_string_lossy());
    let store = Store::open(&folder.join("data"), Durability::Normal).await?;
    let first = Timestamp::now().as_millisecond() - DAYS * 86_400_000;
    let mut middle = None;
    for number in 0..CALLS {
        let at = first + (number as i64 * DAYS * 86_400_000) / CALLS as i64;
        let entry = entry(number, Timestamp::from_millisecond(at)?)?;
        if number == CALLS / 2 {
            middle = Some(entry.call.clone());
        }
        store.record_later(&scope, entry).await?;
    }
    store.close().await?;
    let middle = middle.context("there is a middle")?;
    fs::write(call, middle.as_str())?;
    fs::write(mark, "")?;
    Ok(middle)
}

/// The version of a new store, so that an old one is made again.
async fn newest_version() -> Result<i64> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&PathBuf::from(folder.path()), Durability::Normal).await?;
    let version = store.health().await?.schema_version;
    store.close().await?;
    Ok(version)
}

/// One call as it would be after some time of work: most read and succeed quickly, a few fail, very few are refused.
fn entry(number: u64, at: Timestamp) -> Result<Entry> {
    // A cheap, steady shuffle.
    let dice = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33;
    let rare = number.is_multiple_of(50_000);
    let tool = if rare { RARE_TOOL } else { TOOLS[(dice % TOOLS.len() as u64) as usize] };
    let millis = u64::try_from(at.as_millisecond())?;
    let id = format!("tc_{millis:012x}7000{number:016x}");
    let call = CallId::parse(&id).context("an id")?;
    let input = json!({"path": format!("crates/store/src/part{}.rs", dice % 900), "limit": 200});
    let end = match dice % 10_000 {
        0 => End::Rejected {
            reason: "no".into(),
            user_message: None,
            error: ToolError::new(ErrorCode::Rejected, "User rejected the operation"),
        },
        1..300 => End::Error { error: ToolError::new(ErrorCode::FileNotFound, "cannot read it: it does not exist") },
        _ => End::Success { result: ToolOutput { content: "x".repeat(120), ..ToolOutput::default() } },
    };
    let mut outcome = Outcome::refused(tool, ToolError::new(ErrorCode::Internal, ""));
    outcome.end = end;
    outcome.tool_call_id = call.clone();
    outcome.execution_time_ms = (dice % 7) * (dice % 11) * (dice % 13);
    (outcome.started_at, outcome.finished_at) = (at, Some(at));
    let opening = Opening {
        tool: tool.into(),
        input: input.clone(),
        parent: None,
        caller: Caller::owner("bench", Scope::local("bench"), Source::Cli).record(),
        auto_approve: AutoApprove::Reads,
        at,
    };
    let called = CallEvent::Called { tool: tool.into(), called_as: None, remove_by: None, args: input, test: false };
    let done = CallEvent::Completed { execution_time_ms: outcome.execution_time_ms, late: false };
    Ok(Entry {
        call,
        via: Arc::default(),
        opening: Some(opening),
        state: CallState::Ended,
        turn: None,
        outcome: Some(Arc::new(outcome)),
        whole_output: None,
        result_of: None,
        events: vec![(at, called), (at, done)],
    })
}
