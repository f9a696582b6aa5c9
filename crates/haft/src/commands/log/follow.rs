//! `haft log --follow`

use anyhow::Result;
use haft_store::{CallFilter, CallRow};

use super::status_of;
use crate::{
    cli::Everywhere,
    commands::{open, prompt::Interrupts},
    exit::CliExit,
    show::{
        Out,
        safe::safe,
        style::{DIM, PLACE},
        table::{cut, width},
    },
};

/// Tells each call as it asks and ends, until Ctrl-C, or until nobody reads any more.
pub(super) async fn run(everywhere: &Everywhere, out: &Out, filter: &CallFilter) -> Result<CliExit> {
    let house = open(everywhere).await?;
    let mut calls = house.store.follow(&house.scope, &house.here, filter).await?;
    let mut interrupts = Interrupts::listen();
    out.hint("waiting for calls; Ctrl-C ends");
    loop {
        let call = tokio::select! {
            call = calls.next() => call?,
            () = interrupts.next() => break,
        };
        let text = if out.json { serde_json::to_string(&call)? } else { line(&call) };
        if !out.next_line(&text) {
            break;
        }
    }
    house.leave().await?;
    Ok(CliExit::Success)
}

fn line(call: &CallRow) -> String {
    let time = call.finished_at.unwrap_or(call.started_at).strftime("%H:%M:%S").to_string();
    let what = format!("{:<16} {}", safe(&call.tool), status_of(call));
    let took = call.duration_ms.map_or_else(String::new, |ms| format!(", {ms} ms"));
    let left = width().saturating_sub(time.len() + call.id.as_str().len() + 4);
    format!("{DIM}{time}{DIM:#}  {PLACE}{}{PLACE:#}  {}", call.id, cut(&format!("{what}{took}"), left))
}
