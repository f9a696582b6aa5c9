//! `haft log`

mod follow;
mod show;

use std::io::IsTerminal;

use anyhow::Result;
use haft_runtime::{CallState, Outcome, Redactor};
use haft_store::{CallFilter, CallRow};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    backend::{Backend, ListedCall},
    cli::{Everywhere, ServerFlag},
    commands::{open_backend, which::call_id_at},
    exit::CliExit,
    settings::duration,
    show::{
        Out,
        subject::subject,
        table::{table, width},
        time::ago,
    },
};

/// From this width on there is room for who asked.
const WIDE: usize = 100;
/// So much of an id tells its millisecond, and with it nearly always the call.
const SHORT_ID: usize = 15;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<LogCommand>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls with this status
    #[arg(long, value_name = "STATUS", value_parser = ["success", "error", "rejected", "pending", "cancelled"])]
    status: Option<String>,
    /// Only calls of the last 30m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_back)]
    since: Option<Timestamp>,
    /// At most this many [default: 50, with --follow 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: Option<u32>,
    /// Only calls before this one: the next page
    #[arg(long, value_name = "CALL", conflicts_with = "follow")]
    before: Option<String>,
    /// Keep printing calls of all processes as they ask and end, until Ctrl-C; JSON Lines with --json
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

#[derive(clap::Subcommand)]
enum LogCommand {
    /// Show everything about one call
    Show {
        /// The call, or the beginning of its id; the last one when left out
        call: Option<String>,
    },
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    match &args.what {
        Some(LogCommand::Show { call }) => show::run(everywhere, out, call.as_deref()).await,
        None => {
            let backend = open_backend(everywhere).await?;
            let filter = filter(&backend, args).await?;
            if args.follow { follow::run(&backend, out, &filter).await } else { list(&backend, out, &filter).await }
        }
    }
}

async fn filter(backend: &Backend, args: &Args) -> Result<CallFilter> {
    let before = match &args.before {
        None => None,
        Some(text) => Some(call_id_at(backend, text).await?),
    };
    Ok(CallFilter {
        tool: args.tool.clone(),
        status: args.status.clone(),
        since: args.since,
        before,
        limit: args.limit.unwrap_or(if args.follow { 10 } else { 50 }),
        ..CallFilter::default()
    })
}

/// The time so long ago.
pub(crate) fn parse_back(text: &str) -> Result<Timestamp, String> {
    let length = duration(text).map_err(|err| err.to_string())?;
    Timestamp::now().checked_sub(length).map_err(|_| format!("`{text}` reaches further back than there is time"))
}

async fn list(backend: &Backend, out: &Out, filter: &CallFilter) -> Result<CliExit> {
    let calls = backend.calls(filter).await?;
    backend.leave().await?;
    if out.json {
        out.document(&calls.iter().map(|call| call.document(backend.redactor())).collect::<Vec<_>>());
        return Ok(CliExit::Success);
    }
    let Some(oldest) = calls.last() else {
        out.line("no such calls yet; try `haft call list_directory`");
        return Ok(CliExit::Success);
    };
    let wide = width() >= WIDE || !std::io::stdout().is_terminal();
    let length = id_length(&calls);
    let rows: Vec<Vec<String>> = calls.iter().map(|call| row(call, length, wide, backend.redactor())).collect();
    let head = if wide { &["CALL", "WHEN", "TOOK", "BY", "STATUS", "WHAT"][..] } else { HEAD };
    out.text(&table(head, &rows));
    out.hint("everything about one: haft log show CALL");
    if calls.len() == filter.limit as usize {
        out.hint(&format!("the next page: add --before {}", oldest.row.id));
    }
    Ok(CliExit::Success)
}

const HEAD: &[&str] = &["CALL", "WHEN", "TOOK", "STATUS", "WHAT"];

/// How much of each id is shown: at a terminal enough to tell these calls apart, as the beginning of an id is understood.
/// In a pipe, all of it.
fn id_length(calls: &[ListedCall]) -> usize {
    if !std::io::stdout().is_terminal() {
        return usize::MAX;
    }
    // They come in order, so that each is most like its neighbours.
    let alike = |pair: &[ListedCall]| {
        let (one, other) = (pair[0].row.id.as_str(), pair[1].row.id.as_str());
        one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
    };
    calls.windows(2).map(alike).max().map_or(SHORT_ID, |alike| (alike + 1).max(SHORT_ID))
}

/// What its record says of a call of the list.
impl ListedCall {
    fn outcome(&self) -> Option<&Outcome> {
        self.record.as_ref()?.outcome.as_ref()
    }

    /// What the command that it ran ended with.
    fn exit_code(&self) -> Option<i64> {
        self.outcome()?.exit_code()
    }

    /// The tool, and what it was used on.
    fn what(&self, redactor: &Redactor) -> String {
        let told = self.record.as_ref().and_then(|record| subject(&redactor.value(&record.opening.input)));
        let told = told.map_or_else(String::new, |told| format!(" {}", redactor.text(&told)));
        format!("{}{told}", self.row.tool)
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

fn row(call: &ListedCall, length: usize, wide: bool, redactor: &Redactor) -> Vec<String> {
    let CallRow { id, caller, started_at, duration_ms, .. } = &call.row;
    let took = duration_ms.map_or_else(String::new, |ms| format!("{ms} ms"));
    let mut cells = vec![id.as_str().chars().take(length).collect(), ago(*started_at), took];
    if wide {
        cells.push(caller.clone());
    }
    cells.extend([status_of(call), call.what(redactor)]);
    cells
}

/// How a call ended, in a word. One that has ended and still says `pending` goes on as another call.
fn status_of(logged: &ListedCall) -> String {
    let call = &logged.row;
    if let Some(code) = logged.exit_code().filter(|code| *code != 0) {
        return format!("exit {code}");
    }
    match (call.state, call.status.as_deref(), call.code.as_deref()) {
        (CallState::Ended, Some("pending"), _) => "edited".to_owned(),
        (CallState::Ended, Some("rejected"), Some("APPROVAL_EXPIRED")) => "expired".to_owned(),
        (CallState::Ended | CallState::Waiting, Some("error"), Some(code)) => code.to_owned(),
        (CallState::Ended | CallState::Waiting, Some(status), _) => status.to_owned(),
        (CallState::Waiting, None, _) => "pending".to_owned(),
        (CallState::Preparing | CallState::Executing, _, _) => "running".to_owned(),
        (CallState::Ended, None, _) => "ended".to_owned(),
    }
}
