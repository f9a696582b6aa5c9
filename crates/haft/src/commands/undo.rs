//! `haft undo` and `haft redo`

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{CallRecord, CallRequest, Direction};
use serde_json::json;

use crate::{
    backend::Backend,
    cli::{Everywhere, ServerFlag},
    commands::{
        mistake,
        prompt::{Person, see_through},
        which::{DefaultCall, open_call},
    },
    exit::CliExit,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call, or the beginning of its id; the last one when left out
    call: Option<String>,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

pub(crate) async fn undo(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (backend, record) = open_call(everywhere, out, args.call.as_deref(), DefaultCall::Committed).await?;
    take_back(&backend, out, &record, args.yes).await
}

/// A redo is the undo of the undo.
pub(crate) async fn redo(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (backend, record) = open_call(everywhere, out, args.call.as_deref(), DefaultCall::Undone).await?;
    let of = record.turn.as_ref().map_or(&record.call, |turn| &turn.of);
    let last = backend.last_turn_of(of).await?;
    let undo = last.filter(|last| last.turn.as_ref().is_some_and(|turn| turn.direction == Direction::Undo));
    let Some(undo) = undo else {
        return Err(mistake(format!("{} has not been undone, so there is nothing to bring back", record.call)));
    };
    take_back(&backend, out, &undo, args.yes).await
}

async fn take_back(backend: &Backend, out: &Out, record: &CallRecord, yes: bool) -> Result<CliExit> {
    let person = if yes { Person::SaysYes } else { Person::at_the_terminal() };
    let mut request = CallRequest::new(backend.caller_in(&record.scope), "undo_call", json!({"callId": record.call}));
    request.wait = match person {
        Person::Absent => Duration::ZERO,
        Person::Terminal | Person::SaysYes => backend.settings().expire,
    };
    let ended = see_through(backend, request, &person).await?;
    backend.leave().await?;
    Ok(outcome::print(*out, &ended))
}
