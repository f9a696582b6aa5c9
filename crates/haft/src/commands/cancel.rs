//! `haft cancel`

use anyhow::Result;
use haft_runtime::CallState;

use crate::{
    cli::{Everywhere, ServerFlag},
    commands::{changes::status, mistake, which::open_named},
    exit::CliExit,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call to stop, or the beginning of its id
    call: String,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (backend, record) = open_named(everywhere, &args.call).await?;
    if record.state == CallState::Ended {
        return Err(mistake(format!("{} has already ended: {}", record.call, status(&record))));
    }
    let ended = backend.cancel(&record).await?;
    backend.leave().await?;
    outcome::print(*out, &ended);
    Ok(CliExit::Success)
}
