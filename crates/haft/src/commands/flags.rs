//! haft's own flags of `haft call`.

use std::time::Duration;

use haft_runtime::AutoApprove;

use crate::{cli::Everywhere, settings};

/// What a call takes beside the tool's own fields.
#[derive(clap::Args, Debug)]
pub(crate) struct CallFlags {
    /// The input: a JSON object, @FILE, or - for standard input; flags below are laid over it
    pub(crate) input: Option<String>,
    /// What may happen without asking: none, safe (what only reads) or all
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub(crate) auto_approve: Option<AutoApprove>,
    /// How long to wait for an answer before handing the call back as pending; on a terminal you are asked instead
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) wait: Option<Duration>,
    /// How long the tool may work, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
}

fn parse_mode(text: &str) -> Result<AutoApprove, String> {
    settings::mode(text).map_err(|err| err.to_string())
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    settings::duration(text).map_err(|err| err.to_string())
}
