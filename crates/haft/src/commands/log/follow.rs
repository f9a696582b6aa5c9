//! `haft log --follow`

use std::io::IsTerminal;

use anyhow::Result;
use haft_runtime::Redactor;
use haft_store::CallFilter;

use super::{SHORT_ID, status_of};
use crate::{
    backend::{Backend, ListedCall},
    commands::prompt::Interrupts,
    exit::CliExit,
    show::{
        Out,
        safe::safe,
        style::{DIM, PLACE},
        table::{cut, width},
    },
};

/// Tells each call as it asks and ends, until Ctrl-C, or until nobody reads any more.
pub(super) async fn run(backend: &Backend, out: &Out, filter: &CallFilter) -> Result<CliExit> {
    let mut calls = backend.follow(filter).await?;
    let mut interrupts = Interrupts::listen();
    out.hint("waiting for calls; Ctrl-C ends");
    loop {
        let call = tokio::select! {
            call = calls.next() => call?,
            () = interrupts.next() => break,
        };
        let text =
            if out.json { call.document(backend.redactor()).to_string() } else { line(&call, backend.redactor()) };
        if !out.next_line(&text) {
            break;
        }
    }
    backend.leave().await?;
    Ok(CliExit::Success)
}

fn line(logged: &ListedCall, redactor: &Redactor) -> String {
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
