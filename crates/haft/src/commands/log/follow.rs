//! `haft log --follow`

use std::io::IsTerminal;

use anyhow::Result;
use haft_runtime::Redactor;
use haft_store::CallFilter;

use super::{LoggedCall, SHORT_ID, status_of};
use crate::{
    commands::prompt::Interrupts,
    exit::CliExit,
    house::House,
    show::{
        Out,
        safe::safe,
        style::{DIM, PLACE},
        table::{cut, width},
    },
};

/// Tells each call as it asks and ends, until Ctrl-C, or until nobody reads any more.
pub(super) async fn run(house: &House, out: &Out, filter: &CallFilter) -> Result<CliExit> {
    let mut calls = house.store.follow(&house.scope, &house.here, filter).await?;
    let mut interrupts = Interrupts::listen();
    out.hint("waiting for calls; Ctrl-C ends");
    loop {
        let call = tokio::select! {
            call = calls.next() => call?,
            () = interrupts.next() => break,
        };
        let call = LoggedCall::of(house, call).await?;
        let text = if out.json { call.document(&house.redactor).to_string() } else { line(&call, &house.redactor) };
        if !out.next_line(&text) {
            break;
        }
    }
    house.leave().await?;
    Ok(CliExit::Success)
}

fn line(logged: &LoggedCall, redactor: &Redactor) -> String {
    let call = &logged.row;
    let time = call.finished_at.unwrap_or(call.started_at).strftime("%H:%M:%S").to_string();
    let took = call.duration_ms.map_or_else(String::new, |ms| format!("{ms} ms"));
    let status = status_of(logged);
    let rest = format!("{took:<8}  {status:<9}  {}", safe(&logged.what(redactor)));
    if !std::io::stdout().is_terminal() {
        return format!("{time}  {}  {rest}", call.id);
    }
    let id: String = call.id.as_str().chars().take(SHORT_ID).collect();
    let rest = cut(&rest, width().saturating_sub(time.len() + id.len() + 4));
    format!("{DIM}{time}{DIM:#}  {PLACE}{id}{PLACE:#}  {rest}")
}
