//! The log on standard error, for whoever looks for a fault: only where `HAFT_LOG` asks for one.

use std::io;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result, bail};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::settings::{LOG, LogFormat, log_filter};

/// Whose events a level means that stands alone: those of all our crates.
const OURS: &str = "haft";

/// Starts the log. Where none is wanted, nothing is set up and events cost nothing.
pub fn start(format: LogFormat) -> Result<()> {
    let Some(written) = log_filter()? else { return Ok(()) };
    let filter = filter(&written).with_context(|| format!("cannot use {LOG}={written:?}"))?;
    let colours = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
    // Standard output belongs to results and to MCP.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(colours).init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).with_span_list(false).init(),
    }
    Ok(())
}

/// The filter that is meant. A level alone is for haft's own events: a dependency may log what it is given, so it has to
/// be named.
fn filter(written: &str) -> Result<EnvFilter> {
    let mut directives = Vec::new();
    for directive in written.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        match directive.parse::<LevelFilter>() {
            Ok(level) => directives.push(format!("{OURS}={level}")),
            Err(_) if directive.contains(['=', '[']) => directives.push(directive.to_owned()),
            Err(_) => bail!(
                "`{directive}` is not a level; write `error`, `warn`, `info`, `debug`, `trace` or `off`, or one for each \
                 target, such as `info,haft_mcp=debug`"
            ),
        }
    }
    EnvFilter::builder().parse(directives.join(",")).context("write it like `info` or `info,haft_mcp=debug`")
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn a_level_alone_is_for_our_own_crates() {
        assert_eq!(filter("debug").unwrap().to_string(), "haft=debug");
        assert_eq!(filter(" info , rmcp=trace").unwrap().to_string(), "rmcp=trace,haft=info");
        assert_eq!(filter("off").unwrap().to_string(), "haft=off");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for written in ["debgu", "info,haft_mcp", "haft=loud", "[unclosed=info"] {
            assert!(filter(written).is_err(), "{written}");
        }
    }
}
