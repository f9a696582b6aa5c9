//! `haft cancel`

use std::time::Duration;

use anyhow::{Result, bail};
use haft_runtime::{Answer, CallState, Journal};

use crate::{
    cli::Everywhere,
    commands::{answer::give, changes::status, mistake, which::open_named},
    exit::CliExit,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call to stop, or the beginning of its id
    call: String,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (house, record) = open_named(everywhere, &args.call).await?;
    let call = &record.call;
    let ended = match record.state {
        CallState::Ended => return Err(mistake(format!("{call} has already ended: {}", status(&record)))),
        CallState::Waiting => give(&house, call, Answer::Cancel).await?,
        CallState::Preparing | CallState::Executing => {
            house.store.want_stop(&house.scope, call).await?;
            match house.store.ended(&house.scope, call, Duration::from_secs(10)).await? {
                Some(outcome) => outcome,
                None => bail!("{call} was told to stop and has not ended yet; `haft wait {call}` waits for it"),
            }
        }
    };
    house.leave().await?;
    outcome::print(*out, &ended);
    Ok(CliExit::Success)
}
