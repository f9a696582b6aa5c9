//! `haft policy`

mod explain;
mod test;

use std::path::PathBuf;

use anyhow::Result;
use haft_runtime::{Rule, nearest};
use serde_json::{Value, json};

use crate::{
    cli::Everywhere,
    commands::open,
    exit::CliExit,
    house::House,
    show::{
        Out,
        grant::bounds_words,
        safe::safe,
        style::{DIM, STRONG, WARN},
        table::{width, wrapped},
    },
};

/// How a rule is written, for whoever asks for help.
const HELP: &str = "\
Rules are entries of your settings, ~/.config/haft/haft.toml:

  [[rule]]
  tool = \"write_file\"                   # every tool when left out
  decision = \"allow\"                    # allow, ask or deny
  bounds = { paths = [\"target/**\"] }    # kinds, max_files, max_bytes,
                                        # executables, derived, hosts
  reason = \"build output\"

The first rule that matches decides, yours before the built-in ones. A rule that
allows must cover everything the call does, and flagged paths by name; one that
asks or denies matches if it covers any change.
Try rules before you keep them: haft policy test --rules FILE";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<PolicyCommand>,
}

#[derive(clap::Subcommand)]
enum PolicyCommand {
    /// Decide the last calls again by the rules and grants of now, and show what differs; runs nothing
    Test {
        /// How many calls
        #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        last: u32,
        /// Try the rules of this file instead of your own
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,
    },
    /// Explain why a call asked or did not: every check, in order
    Explain {
        /// The call, or the beginning of its id; the last one when left out
        call: Option<String>,
    },
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    match &args.what {
        None => list(everywhere, out).await,
        Some(PolicyCommand::Test { last, rules }) => test::run(everywhere, out, *last, rules.as_deref()).await,
        Some(PolicyCommand::Explain { call }) => explain::run(everywhere, out, call.as_deref()).await,
    }
}

async fn list(everywhere: &Everywhere, out: &Out) -> Result<CliExit> {
    let house = open(everywhere).await?;
    let policy = house.pipeline.policy(&house.scope).await?;
    house.leave().await?;
    let rules: Vec<&Rule> = policy.rules.iter().chain(&policy.defaults).chain(&policy.tightening).collect();
    if out.json {
        out.document(&rules.iter().copied().map(document).collect::<Vec<_>>());
        return Ok(CliExit::Success);
    }
    if rules.is_empty() {
        out.line("no rules: the mode and the grants decide");
        out.line("  haft policy --help    how to write one");
        out.line("  haft grants           remembered answers");
    }
    for rule in rules {
        out.line(&text(&house, rule));
    }
    Ok(CliExit::Success)
}

fn document(rule: &Rule) -> Value {
    json!({"name": rule.name, "tool": rule.tool, "decision": rule.verdict, "bounds": rule.bounds,
        "reason": rule.reason})
}

fn text(house: &House, rule: &Rule) -> String {
    let tool = rule.tool.as_deref().unwrap_or("every tool");
    let mut text = format!("{DIM}{}{DIM:#}\n    {STRONG}{}{STRONG:#} {tool}", safe(&rule.name), rule.verdict.word());
    if !rule.bounds.are_unlimited() {
        text.push_str(&format!(": {}", bounds_words(rule.bounds.written())));
    }
    if let Some(reason) = &rule.reason {
        let reason = wrapped(&safe(reason), width().saturating_sub(4)).replace('\n', "\n    ");
        text.push_str(&format!("\n    {DIM}{reason}{DIM:#}"));
    }
    if let Some(tool) = rule.tool.as_deref().filter(|tool| house.tools().get(tool).is_none()) {
        let specs = house.tools().specs();
        let near = nearest(tool, specs.iter().map(|spec| spec.name.as_str()));
        let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        text.push_str(&format!("\n    {WARN}there is no tool `{}` here{hint}{WARN:#}", safe(tool)));
    }
    text
}
