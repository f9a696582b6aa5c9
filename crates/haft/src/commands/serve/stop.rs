//! `haft serve --stop`

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{
    LONGEST_END,
    record::{ServerAddress, ServerState},
};
use crate::{commands::mistake, exit::CliExit, show::Out};

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How much longer than it may take it is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends the server of a data folder, and waits until it has.
pub(super) async fn run(out: &Out, data: &Path) -> Result<CliExit> {
    let ServerAddress { url, process } = match ServerState::of(data) {
        ServerState::Running(address) => address,
        ServerState::Starting => return Err(mistake("haft is just starting to serve this data folder; try again")),
        ServerState::Absent => {
            return Ok(told(out, &json!({"stopped": false}), "nothing serves this data folder"));
        }
    };
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).context("the record names no process")?;
    kill_process(pid, Signal::TERM).with_context(|| format!("cannot end process {process}"))?;
    let until = Instant::now() + LONGEST_END + PATIENCE;
    while ServerState::of(data) != ServerState::Absent {
        if Instant::now() >= until {
            let message = format!("haft at {url} (process {process}) has not ended yet; it was asked to");
            return Err(mistake(message));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(told(out, &json!({"stopped": true, "url": url}), &format!("haft at {url} has ended")))
}

fn told(out: &Out, document: &serde_json::Value, sentence: &str) -> CliExit {
    if out.json {
        out.document(document);
    } else {
        out.line(sentence);
    }
    CliExit::Success
}
