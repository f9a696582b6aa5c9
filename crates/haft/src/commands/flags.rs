//! haft's own flags of `haft call` and `haft batch`.

use std::time::Duration;

use clap::{
    Args as _,
    builder::{PossibleValuesParser, TypedValueParser},
};
use haft_runtime::{AutoApprove, CallRequest};

use crate::{
    cli::{Everywhere, ServerFlag},
    commands::prompt::Person,
    settings,
    settings::Settings,
};

/// What a call takes beside the tool's own fields.
#[derive(clap::Args, Debug)]
pub(crate) struct CallFlags {
    /// The input: a JSON object, @FILE, or - for standard input; flags add to it
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) options: CallOptions,
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

/// A command that takes them.
pub(crate) fn call_command(name: String) -> clap::Command {
    CallFlags::augment_args(clap::Command::new(name))
}

/// How a call shall be made, whatever the tool.
#[derive(clap::Args, Debug)]
pub(crate) struct CallOptions {
    /// What may run without asking; `safe` is what only reads
    #[arg(long, value_name = "MODE", value_parser = modes())]
    auto_approve: Option<AutoApprove>,
    /// How long to wait for an answer before the call is handed back as pending: 30s, 10m; at a terminal you are asked
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    wait: Option<Duration>,
    /// How long the tool may work: 500ms, 60s, 5m; a bare number is milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse_milliseconds)]
    timeout: Option<Duration>,
    /// Run the tool even if a cached result is still valid
    #[arg(long)]
    no_cache: bool,
}

impl CallOptions {
    /// Whether it is said what may run without asking.
    pub(crate) fn chooses_a_mode(&self) -> bool {
        self.auto_approve.is_some()
    }

    /// Makes the request so.
    pub(crate) fn lay_over(&self, request: &mut CallRequest, settings: &Settings, person: Person) {
        request.auto_approve = self.auto_approve.unwrap_or(settings.mode);
        request.timeout = self.timeout;
        request.fresh = self.no_cache;
        request.wait = match (self.wait, person) {
            (Some(wait), _) => wait,
            (None, Person::Absent) => Duration::ZERO,
            (None, Person::Terminal | Person::SaysYes) => settings.expire,
        };
        // A call of this process ends with it, so that a form can be open only as long as somebody waits.
        request.form_wait = Some(request.wait);
    }
}

/// The modes, with their names in the help.
fn modes() -> impl TypedValueParser<Value = AutoApprove> {
    PossibleValuesParser::new(["none", "safe", "all"]).try_map(|text| settings::mode(&text))
}

pub(crate) fn parse_mode(text: &str) -> Result<AutoApprove, String> {
    settings::mode(text).map_err(|err| err.to_string())
}

fn parse_milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        Err(_) => settings::duration(text)
            .map_err(|_| "write it like `500ms`, `60s` or `10m`; a bare number is milliseconds".to_owned()),
    }
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    settings::duration(text).map_err(|err| err.to_string())
}
