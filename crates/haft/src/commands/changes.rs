//! `haft changes`

use std::collections::HashSet;

use anyhow::{Result, bail};
use haft_runtime::{CallRecord, ChangeList, ErrorCode};
use serde::Serialize;

use crate::{
    cli::Everywhere,
    commands::open_for,
    exit::Exit,
    house::House,
    show::{
        Out,
        card::{Depth, changes_text},
        style::{DIM, STRONG},
    },
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call
    call: String,
    /// Only this path, with its whole diff
    path: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    call_id: String,
    status: String,
    changes: ChangeList,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<Exit> {
    let (house, record) = open_for(everywhere, &args.call).await?;
    let mut changes = changes_of(&house, &record).await?;
    if let Some(path) = &args.path {
        changes.0.retain(|change| change.path == *path || change.from.as_ref() == Some(path));
        if changes.0.is_empty() {
            bail!("{} does not touch `{path}`; without a path, all that it touches is shown", record.call);
        }
    }
    house.leave().await?;
    let shown = Shown { call_id: record.call.to_string(), status: status(&record), changes };
    if out.json {
        out.document(&shown);
        return Ok(Exit::Success);
    }
    out.line(&format!("{STRONG}{}{STRONG:#} {DIM}{}{DIM:#}  {}", record.opening.tool, record.call, shown.status));
    if shown.changes.0.is_empty() {
        out.line("it changes nothing");
    }
    let depth = if args.path.is_some() { Depth::Whole } else { Depth::Short };
    out.text(&changes_text(&shown.changes, depth));
    Ok(Exit::Success)
}

/// Where a call stands, in the words of the envelope.
pub(crate) fn status(record: &CallRecord) -> String {
    match (&record.state, &record.outcome) {
        (haft_runtime::CallState::Ended, Some(outcome)) => outcome.end.status().to_owned(),
        (haft_runtime::CallState::Waiting, _) => "pending".to_owned(),
        (haft_runtime::CallState::Preparing, _) => "preparing".to_owned(),
        (haft_runtime::CallState::Executing, _) => "executing".to_owned(),
        (haft_runtime::CallState::Ended, None) => "ended".to_owned(),
    }
}

/// What the call staged, or the part of an earlier call's changes that it turned.
async fn changes_of(house: &House, record: &CallRecord) -> Result<ChangeList> {
    let Some(turn) = &record.turn else { return Ok(ChangeList::default()) };
    let mut changes = match house.workbench.show(&turn.of).await {
        Ok(changes) => changes,
        Err(error) if error.code == ErrorCode::Unavailable => ChangeList::default(),
        Err(error) => return Err(error.into()),
    };
    if turn.of != record.call {
        let touched = record.outcome.as_ref().and_then(|outcome| outcome.changes.as_ref()).map(ChangeList::paths);
        let touched: HashSet<String> = touched.or_else(|| turn.paths.clone()).unwrap_or_default().into_iter().collect();
        changes.0.retain(|change| touched.contains(&change.path));
    }
    Ok(changes)
}
