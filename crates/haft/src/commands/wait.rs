//! `haft wait`

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{End, Journal, Outcome};

use crate::{
    cli::Everywhere,
    commands::{flags::parse_seconds, open_for},
    exit::Exit,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call to wait for
    call: String,
    /// How long; as long as it takes when left out
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<Exit> {
    let (house, record) = open_for(everywhere, &args.call).await?;
    let deadline = tokio::time::Instant::now() + args.timeout.unwrap_or(Duration::from_secs(365 * 86400));
    let mut call = record.call;
    let ended = loop {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        match house.store.ended(&house.scope, &call, left).await? {
            Some(Outcome { end: End::Pending { pending }, .. }) if pending.pending_tool_call_id != call => {
                call = pending.pending_tool_call_id;
            }
            ended => break ended,
        }
    };
    house.leave().await?;
    let Some(ended) = ended else {
        anstream::eprintln!("{call} has not ended yet");
        return Ok(Exit::Pending);
    };
    Ok(outcome::print(*out, &ended))
}
