//! `haft log --follow`

use anyhow::Result;
use haft_store::CallFilter;

use super::{LoggedCall, status_of};
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
        let call = LoggedCall::of(&house, call).await?;
        let text = if out.json { call.document(&house.redactor).to_string() } else { line(&call) };
        if !out.next_line(&text) {
            break;
        }
    }
    house.leave().await?;
    Ok(CliExit::Success)
}

fn line(logged: &LoggedCall) -> String {
    let call = &logged.row;
    let time = call.finished_at.unwrap_or(call.started_at).strftime("%H:%M:%S").to_string();
    let what = format!("{:<16} {}", safe(&call.tool), status_of(logged));
    let took = call.duration_ms.map_or_else(String::new, |ms| format!(", {ms} ms"));
    let left = width().saturating_sub(time.len() + call.id.as_str().len() + 4);
    format!("{DIM}{time}{DIM:#}  {PLACE}{}{PLACE:#}  {}", call.id, cut(&format!("{what}{took}"), left))
}
