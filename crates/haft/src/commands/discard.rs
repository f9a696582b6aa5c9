//! `haft discard`

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{Answer, CallRequest};
use serde_json::json;

use crate::{
    cli::{Everywhere, ServerFlag},
    commands::{
        answer::give,
        prompt::{Person, see_through},
        which::{DefaultCall, open_call},
    },
    exit::CliExit,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call, or the beginning of its id; the last one with something to drop when left out
    call: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

/// While the question is open this is a no; later it is a call of its own.
pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (backend, record) = open_call(everywhere, out, args.call.as_deref(), DefaultCall::Staged).await?;
    let waits = matches!(backend.question(&record.call).await?, Some((_, None)));
    let exit = if waits {
        outcome::print(*out, &give(&backend, &record.call, Answer::Reject { message: None }).await?);
        CliExit::Success
    } else {
        let mut request =
            CallRequest::new(backend.caller_in(&record.scope), "discard_call", json!({"callId": record.call}));
        request.wait = Duration::from_secs(60);
        outcome::print(*out, &see_through(&backend, request, &Person::SaysYes).await?)
    };
    backend.leave().await?;
    Ok(exit)
}
