//! `haft wait`

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{End, Journal, Outcome};
use serde_json::json;

use crate::{
    cli::Everywhere,
    commands::{changes::status, flags::parse_seconds, which::open_named, whole},
    exit::CliExit,
    show::{Out, outcome},
};

/// How long to wait before looking whether somebody must carry the call on.
const ONE_LOOK: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call to wait for, or the beginning of its id
    call: String,
    /// How long; as long as it takes when left out
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (house, record) = open_named(everywhere, &args.call).await?;
    let deadline = tokio::time::Instant::now() + args.timeout.unwrap_or(Duration::from_secs(365 * 86400));
    let mut call = record.call;
    let ended = loop {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        match house.store.ended(&house.scope, &call, left.min(ONE_LOOK)).await? {
            Some(Outcome { end: End::Pending { pending }, .. }) if pending.pending_tool_call_id != call => {
                call = pending.pending_tool_call_id;
            }
            Some(outcome) => break Some(outcome),
            None if left.is_zero() => break None,
            // Whoever was to carry it on may have died meanwhile, and its time may be over.
            None => {
                house.pipeline.recover().await?;
                house.pipeline.expire().await?;
            }
        }
    };
    let standing = Journal::find(&house.store, &house.scope, &call).await?;
    let ended = match ended {
        Some(ended) => Some(whole(&house, ended).await),
        None => None,
    };
    house.leave().await?;
    match (ended, standing) {
        (Some(ended), _) => Ok(outcome::print(*out, &ended)),
        (None, Some(record)) if out.json => {
            out.document(&json!({"status": status(&record), "tool_call_id": call}));
            Ok(CliExit::Pending)
        }
        (None, _) => {
            anstream::eprintln!("{call} has not ended yet");
            Ok(CliExit::Pending)
        }
    }
}
