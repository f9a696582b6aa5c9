//! `haft log`

mod follow;
mod show;

use anyhow::{Context, Result, bail};
use haft_runtime::{CallId, CallRecord, CallState, Journal, Outcome, Redactor};
use haft_store::{CallFilter, CallRow};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cli::Everywhere,
    commands::open,
    exit::CliExit,
    house::House,
    settings::duration,
    show::{
        Out,
        table::{table, width},
        time::ago,
    },
};

/// From this width on there is room for who asked.
const WIDE: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<LogCommand>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls that ended so, or that are pending
    #[arg(long, value_name = "STATUS", value_parser = ["success", "error", "rejected", "pending", "cancelled"])]
    status: Option<String>,
    /// Only calls of the last 30m, 2h, 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// How many at most; 50 when left out, and 10 to begin with under --follow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: Option<u32>,
    /// Only calls older than this one: the next page
    #[arg(long, value_name = "CALL", conflicts_with = "follow")]
    before: Option<String>,
    /// Stay, and tell each call of any process when it asks and when it ends; JSON Lines with --json; Ctrl-C ends
    #[arg(long, short)]
    follow: bool,
}

#[derive(clap::Subcommand)]
enum LogCommand {
    /// One call's whole story
    Show {
        /// The call
        call: String,
    },
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    match &args.what {
        Some(LogCommand::Show { call }) => show::run(everywhere, out, call).await,
        None if args.follow => follow::run(everywhere, out, &filter(args, 10)?).await,
        None => list(everywhere, out, &filter(args, 50)?).await,
    }
}

fn filter(args: &Args, limit: u32) -> Result<CallFilter> {
    let before = match &args.before {
        None => None,
        Some(text) => Some(CallId::parse(text).with_context(|| format!("`{text}` is not a call id"))?),
    };
    Ok(CallFilter {
        tool: args.tool.clone(),
        status: args.status.clone(),
        since: args.since.as_deref().map(back).transpose()?,
        before,
        limit: args.limit.unwrap_or(limit),
        ..CallFilter::default()
    })
}

/// The time so long ago.
pub(crate) fn back(text: &str) -> Result<Timestamp> {
    match Timestamp::now().checked_sub(duration(text)?) {
        Ok(since) => Ok(since),
        Err(_) => bail!("`{text}` reaches further back than there is time"),
    }
}

async fn list(everywhere: &Everywhere, out: &Out, filter: &CallFilter) -> Result<CliExit> {
    let house = open(everywhere).await?;
    let mut calls = Vec::new();
    for call in house.store.calls(&house.scope, &house.here, filter).await? {
        calls.push(LoggedCall::of(&house, call).await?);
    }
    house.leave().await?;
    if out.json {
        out.document(&calls.iter().map(|call| call.document(&house.redactor)).collect::<Vec<_>>());
        return Ok(CliExit::Success);
    }
    let Some(oldest) = calls.last() else {
        out.line("no calls yet that fit; try `haft call list_directory`");
        return Ok(CliExit::Success);
    };
    let wide = width() >= WIDE;
    let rows: Vec<Vec<String>> = calls.iter().map(|call| row(call, wide)).collect();
    let head = if wide { &["CALL", "WHEN", "TOOK", "BY", "TOOL", "STATUS"][..] } else { HEAD };
    out.text(&table(head, &rows));
    out.hint("one call's whole story: haft log show CALL");
    if calls.len() == filter.limit as usize {
        out.hint(&format!("the next page: add --before {}", oldest.row.id));
    }
    Ok(CliExit::Success)
}

const HEAD: &[&str] = &["CALL", "WHEN", "TOOK", "TOOL", "STATUS"];

/// A call of the list, with what its record says of it.
struct LoggedCall {
    row: CallRow,
    record: Option<CallRecord>,
}

impl LoggedCall {
    async fn of(house: &House, row: CallRow) -> Result<Self> {
        let record = Journal::find(&house.store, &house.scope, &row.id).await?;
        Ok(Self { row, record })
    }

    fn outcome(&self) -> Option<&Outcome> {
        self.record.as_ref()?.outcome.as_ref()
    }

    /// What the command that it ran ended with.
    fn exit_code(&self) -> Option<i64> {
        self.outcome()?.exit_code()
    }

    /// The call as programs read it, without secrets.
    fn document(&self, redactor: &Redactor) -> Value {
        let mut document = serde_json::to_value(&self.row).unwrap_or_default();
        if let Some(fields) = document.as_object_mut() {
            let id = fields.shift_remove("id");
            fields.shift_insert(0, "callId".to_owned(), id.unwrap_or_default());
        }
        document["input"] = json!(self.record.as_ref().map(|record| &record.opening.input));
        document["approvedBy"] = json!(self.outcome().and_then(|outcome| outcome.approved_by));
        document["exitCode"] = json!(self.exit_code());
        document["error"] = json!(self.outcome().and_then(|outcome| outcome.end.error()).map(|error| &error.message));
        redactor.value(&document)
    }
}

fn row(call: &LoggedCall, wide: bool) -> Vec<String> {
    let CallRow { id, tool, caller, started_at, duration_ms, .. } = &call.row;
    let took = duration_ms.map_or_else(String::new, |ms| format!("{ms} ms"));
    let mut cells = vec![id.to_string(), ago(*started_at), took];
    if wide {
        cells.push(caller.clone());
    }
    cells.extend([tool.clone(), status_of(call)]);
    cells
}

/// How a call ended, in a word or two. One that has ended and still says `pending` goes on as another call.
fn status_of(logged: &LoggedCall) -> String {
    let call = &logged.row;
    if let Some(code) = logged.exit_code().filter(|code| *code != 0) {
        return format!("exit {code}");
    }
    match (call.state, call.status.as_deref(), call.code.as_deref()) {
        (CallState::Ended, Some("pending"), _) => "edited".to_owned(),
        (CallState::Ended | CallState::Waiting, Some(status), Some(code)) => format!("{status} {code}"),
        (CallState::Ended | CallState::Waiting, Some(status), None) => status.to_owned(),
        (CallState::Waiting, None, _) => "pending".to_owned(),
        (CallState::Preparing | CallState::Executing, _, _) => "running".to_owned(),
        (CallState::Ended, None, _) => "ended".to_owned(),
    }
}
