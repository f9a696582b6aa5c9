//! `haft undo` and `haft redo`

use std::time::Duration;

use anyhow::{Result, bail};
use haft_runtime::{CallId, CallRequest, Direction};
use serde_json::json;

use crate::{
    cli::Everywhere,
    commands::{
        prompt::{Person, see_through},
        which::{DefaultCall, open_call},
    },
    exit::CliExit,
    house::House,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call, or the beginning of its id; the last one when left out
    call: Option<String>,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn undo(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (house, record) = open_call(everywhere, out, args.call.as_deref(), DefaultCall::Committed).await?;
    take_back(&house, out, &record.call, args.yes).await
}

/// A redo is the undo of the undo.
pub(crate) async fn redo(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (house, record) = open_call(everywhere, out, args.call.as_deref(), DefaultCall::Undone).await?;
    let of = record.turn.as_ref().map_or(&record.call, |turn| &turn.of);
    let last = house.store.last_turn_of(&house.scope, of).await?;
    let undo = last.filter(|last| last.turn.as_ref().is_some_and(|turn| turn.direction == Direction::Undo));
    let Some(undo) = undo else {
        bail!("{} has not been undone, so there is nothing to bring back", record.call);
    };
    take_back(&house, out, &undo.call, args.yes).await
}

async fn take_back(house: &House, out: &Out, call: &CallId, yes: bool) -> Result<CliExit> {
    let person = if yes { Person::SaysYes } else { Person::at_the_terminal() };
    let mut request = CallRequest::new(house.caller.clone(), "undo_call", json!({"callId": call}));
    request.wait = match person {
        Person::Absent => Duration::ZERO,
        Person::Terminal | Person::SaysYes => house.settings.expire,
    };
    let ended = see_through(house, request, &person).await?;
    house.leave().await?;
    Ok(outcome::print(*out, &ended))
}
