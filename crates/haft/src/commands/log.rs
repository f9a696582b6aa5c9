//! `haft log`

use anyhow::{Result, bail};
use haft_runtime::{CallEvent, CallRecord, CallState, ChangeList};
use haft_store::{CallFilter, CallRow};
use jiff::Timestamp;
use serde_json::json;

use crate::{
    cli::Everywhere,
    commands::{answer::told, changes::status, open, open_for},
    exit::Exit,
    settings::duration,
    show::{
        Out,
        card::change_line,
        safe::safe,
        style::{DIM, PLACE, STRONG},
        table::{cut, table, width},
        time::ago,
    },
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls that ended so, or that are pending
    #[arg(long, value_name = "STATUS", value_parser = ["success", "error", "rejected", "pending", "cancelled"])]
    status: Option<String>,
    /// Only calls of the last 30m, 2h, 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

#[derive(clap::Subcommand)]
enum What {
    /// One call's whole story
    Show {
        /// The call
        call: String,
    },
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<Exit> {
    match &args.what {
        Some(What::Show { call }) => show(everywhere, out, call).await,
        None => list(everywhere, out, args).await,
    }
}

async fn list(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<Exit> {
    let since = match &args.since {
        None => None,
        Some(text) => match Timestamp::now().checked_sub(duration(text)?) {
            Ok(since) => Some(since),
            Err(_) => bail!("`{text}` reaches further back than there is time"),
        },
    };
    let house = open(everywhere).await?;
    let filter = CallFilter {
        tool: args.tool.clone(),
        status: args.status.clone(),
        since,
        limit: args.limit,
        ..CallFilter::default()
    };
    let calls = house.store.calls(&house.scope, &filter).await?;
    house.leave().await?;
    if out.json {
        out.document(&calls);
        return Ok(Exit::Success);
    }
    if calls.is_empty() {
        out.line("no calls yet that fit; try `haft call list_directory`");
        return Ok(Exit::Success);
    }
    let rows: Vec<Vec<String>> = calls
        .iter()
        .map(|call| {
            let took = call.duration_ms.map_or_else(String::new, |ms| format!("{ms} ms"));
            let status = status_of(call);
            vec![call.id.to_string(), ago(call.started_at), took, call.tool.clone(), status]
        })
        .collect();
    out.text(&table(&["CALL", "WHEN", "TOOK", "TOOL", "STATUS"], &rows));
    out.hint("one call's whole story: haft log show CALL");
    Ok(Exit::Success)
}

/// How a call ended, in a word or two. One that has ended and still says `pending` goes on as another call.
fn status_of(call: &CallRow) -> String {
    match (call.state, call.status.as_deref(), call.code.as_deref()) {
        (CallState::Ended, Some("pending"), _) => "edited".to_owned(),
        (CallState::Ended | CallState::Waiting, Some(status), Some(code)) => format!("{status} {code}"),
        (CallState::Ended | CallState::Waiting, Some(status), None) => status.to_owned(),
        (CallState::Waiting, None, _) => "pending".to_owned(),
        (CallState::Preparing | CallState::Executing, _, _) => "running".to_owned(),
        (CallState::Ended, None, _) => "ended".to_owned(),
    }
}

async fn show(everywhere: &Everywhere, out: &Out, call: &str) -> Result<Exit> {
    let (house, record) = open_for(everywhere, call).await?;
    let events = house.store.events(&house.scope, &record.call).await?;
    let question = house.question(&record.call).await?;
    house.leave().await?;
    if out.json {
        let events: Vec<_> =
            events.iter().map(|(cursor, at, event)| json!({"cursor": cursor, "at": at, "data": event})).collect();
        let (question, answer) = question.map_or((None, None), |(question, answer)| (Some(question), answer));
        out.document(&json!({
            "callId": record.call, "tool": record.opening.tool, "input": record.opening.input,
            "caller": record.opening.caller, "source": record.opening.source, "parent": record.opening.parent,
            "workspace": record.workspace, "status": status(&record), "startedAt": record.opening.at,
            "question": question, "answer": answer, "outcome": record.outcome, "events": events}));
        return Ok(Exit::Success);
    }
    head(out, &record);
    if let Some((_, Some(answer))) = &question {
        out.line(&format!("{STRONG}answer{STRONG:#}   {}", safe(&told(answer))));
    }
    for (_, at, event) in &events {
        let time = at.strftime("%H:%M:%S%.3f");
        out.line(&format!("{DIM}{time}{DIM:#}  {}", safe(&cut(&line(event), width().saturating_sub(14)))));
    }
    ending(out, &record);
    Ok(Exit::Success)
}

fn head(out: &Out, record: &CallRecord) {
    let opening = &record.opening;
    out.line(&format!("{STRONG}{}{STRONG:#}  {PLACE}{}{PLACE:#}  {}", opening.tool, record.call, status(record)));
    out.line(&format!(
        "{STRONG}asked{STRONG:#}    {} by {}",
        opening.at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        safe(&opening.caller)
    ));
    if let Some(parent) = &opening.parent {
        out.line(&format!("{STRONG}parent{STRONG:#}   {parent}"));
    }
    out.line(&format!("{STRONG}input{STRONG:#}    {}", safe(&opening.input.to_string())));
}

fn ending(out: &Out, record: &CallRecord) {
    let Some(outcome) = &record.outcome else { return };
    if let Some(error) = outcome.end.error() {
        out.line(&format!("{STRONG}error{STRONG:#}    {} {}", error.code, safe(&error.message)));
    }
    if let haft_runtime::End::Success { result } = &outcome.end
        && !result.content.is_empty()
    {
        out.line(&format!("{STRONG}output{STRONG:#}"));
        out.line(&safe(&result.content));
    }
    for change in outcome.changes.iter().flat_map(|changes| &changes.0).take(50) {
        out.text(&change_line(change));
    }
    if outcome.undoable {
        out.hint(&format!("take it back with: haft undo {}", record.call));
    }
}

/// One event in one line.
fn line(event: &CallEvent) -> String {
    let paths = |changes: &ChangeList| changes.paths().join(", ");
    match event {
        CallEvent::Called { tool, called_as: Some(alias), remove_by: Some(until), .. } => {
            format!("called as {alias}, an old name of {tool} that is understood until {until}")
        }
        CallEvent::Called { tool, called_as: Some(alias), remove_by: None, .. } => {
            format!("called as {alias} ({tool})")
        }
        CallEvent::Called { tool, called_as: None, .. } => format!("called {tool}"),
        CallEvent::Staged { changes, .. } => format!("staged {} changes: {}", changes.0.len(), paths(changes)),
        CallEvent::NeedsApproval { reason, .. } => format!("asked: {reason}"),
        CallEvent::Approved { continued_as: Some(child), .. } => format!("input edited, carried on as {child}"),
        CallEvent::Approved { by: Some(by), .. } => format!("approved by {by}"),
        CallEvent::Approved { by: None, .. } => "approved by itself: it only reads".to_owned(),
        CallEvent::Rejected { reason, user_message: Some(words) } => format!("rejected: {reason}: “{words}”"),
        CallEvent::Rejected { reason, user_message: None } => format!("rejected: {reason}"),
        CallEvent::Started { attempt } => format!("started, attempt {attempt}"),
        CallEvent::OutputAppended { chunk, .. } => format!("output: {chunk}"),
        CallEvent::Progress { message, .. } => format!("progress: {message}"),
        CallEvent::Pending { pending_tool_call_id } => format!("handed back, waiting for {pending_tool_call_id}"),
        CallEvent::Committed { changes, .. } => format!("committed {}", paths(changes)),
        CallEvent::Undone { changes, .. } => format!("took back {}", paths(changes)),
        CallEvent::Completed { execution_time_ms } => format!("completed after {execution_time_ms} ms of work"),
        CallEvent::Failed { error } => format!("failed: {error}"),
        CallEvent::Cancelled { reason } => format!("cancelled: {reason}"),
        CallEvent::Interrupted { recovered } => format!("interrupted: {recovered}"),
    }
}
