//! `haft wait`

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{End, Outcome};
use serde_json::json;

use crate::{
    cli::{Everywhere, ServerFlag},
    commands::{changes::status, flags::parse_seconds, which::open_named},
    exit::CliExit,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call to wait for, or the beginning of its id
    call: String,
    /// How long; as long as it takes when left out
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (backend, record) = open_named(everywhere, &args.call).await?;
    let deadline = tokio::time::Instant::now() + args.timeout.unwrap_or(Duration::from_secs(365 * 86400));
    let mut call = record.call;
    let ended = loop {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        match backend.ended(&call, left).await? {
            Some(Outcome { end: End::Pending { pending }, .. }) if pending.pending_tool_call_id != call => {
                call = pending.pending_tool_call_id;
            }
            Some(outcome) => break Some(outcome),
            None if left.is_zero() => break None,
            // Whoever was to carry it on may have died meanwhile, and its time may be over.
            None => backend.look_after_calls().await?,
        }
    };
    let standing = backend.record(&call).await?;
    let ended = match ended {
        Some(ended) => Some(backend.whole(ended).await),
        None => None,
    };
    backend.leave().await?;
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
