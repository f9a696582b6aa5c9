//! `haft call`

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::{ArgMatches, FromArgMatches};
use haft_runtime::{CallRequest, Catalog, Outcome, ToolSpec};

use crate::{
    cli::{Everywhere, not_a_command, program, unreadable},
    commands::{
        arguments,
        flags::{CallFlags, call_command},
        mistake, open,
        prompt::{Person, see_through},
        whole,
    },
    exit::CliExit,
    house::House,
    show::{Out, as_tool_error, outcome, pager::page, stream::LiveOutput},
    upstreams,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The tool's name or one of its aliases; `haft tools` lists them
    tool: Option<String>,
    /// The input and flags; `haft call TOOL --help` lists those of a tool
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "JSON | @FILE | - | --FIELD VALUE")]
    rest: Vec<String>,
    /// Show help, for one tool when it is named
    #[arg(long, short)]
    help: bool,
}

pub(crate) async fn run(everywhere: Everywhere, args: Args) -> Result<CliExit> {
    let Some(tool) = &args.tool else { return Ok(help_for_all(Out::new(everywhere.json), &args)) };
    let json = everywhere.json || args.rest.iter().any(|word| word == "--json");
    match called(tool, everywhere, &args).await {
        // Whoever asked for an envelope gets one, also when there is no house to call in.
        Err(err) if json => Ok(outcome::print_refused(Out::new(json), tool, &as_tool_error(&err))),
        ended => ended,
    }
}

async fn called(tool: &str, mut everywhere: Everywhere, args: &Args) -> Result<CliExit> {
    if everywhere.workspace.is_none() {
        everywhere.workspace = workspace_in(&args.rest);
    }
    let house = open(&everywhere).await?;
    let spec = described(&house, tool, args).await;
    let (flags, matches) = match parse(tool, spec.as_ref(), args) {
        Ok(parsed) => parsed,
        Err(err) => {
            let out = Out::new(everywhere.json || args.rest.iter().any(|word| word == "--json"));
            let found = house.catalog.find(&house.caller, tool).await;
            house.leave().await?;
            // Which flags there are is for the tool to say.
            if let (Err(missing), true) = (found, err.use_stderr()) {
                return Ok(outcome::print_refused(out, tool, &missing));
            }
            if out.json && err.use_stderr() {
                outcome::print_refused(out, tool, &unreadable(&err));
                return Ok(CliExit::Usage);
            }
            return Ok(not_a_command(out, &err));
        }
    };
    flags.everywhere.color.apply();
    let out = Out::new(everywhere.json || flags.everywhere.json);
    let stream = Arc::new(LiveOutput::new(out));
    let typed = flags.input.as_deref();
    let ended = match arguments::input(typed, spec.as_ref(), &matches, house.workspace.path()) {
        Ok(input) => {
            let call = one_call(&house, tool, input, &flags, &stream);
            upstreams::told_of_a_call(&house.upstreams, tool, call).await
        }
        Err(error) => {
            house.leave().await?;
            return Ok(outcome::print_refused(out, tool, &error));
        }
    };
    let ended = match ended {
        Ok(ended) => Ok(whole(&house, ended).await),
        Err(err) => Err(err),
    };
    house.leave().await?;
    let ended = ended?;
    Ok(outcome::print_rest(out, &ended, stream.seen()).or_that_of_its_command(&ended, out))
}

/// What the tool is. A server that was never met is waited for here only where its fields were given as flags; otherwise
/// the call itself waits, and says why a server cannot be had.
async fn described(house: &House, tool: &str, args: &Args) -> Option<ToolSpec> {
    let known = || house.tools().get(tool).map(|found| found.spec().clone());
    if known().is_none() && parse(tool, None, args).is_err() {
        let _ = upstreams::meet_for(&house.upstreams, tool).await;
    }
    known()
}

async fn one_call(
    house: &House,
    tool: &str,
    input: serde_json::Value,
    flags: &CallFlags,
    stream: &Arc<LiveOutput>,
) -> Result<Outcome> {
    // When the input came from standard input there is nobody there to ask.
    let person = if flags.input.as_deref() == Some("-") { Person::Absent } else { Person::at_the_terminal() };
    let mut request = CallRequest::new(house.caller.clone(), tool, input);
    flags.options.lay_over(&mut request, &house.settings, person);
    let stream = Arc::clone(stream);
    request.listener = Some(Arc::new(move |event| stream.hear(event)));
    see_through(house, request, &person).await
}

fn parse(tool: &str, spec: Option<&ToolSpec>, args: &Args) -> Result<(CallFlags, ArgMatches), clap::Error> {
    let mut command = call_command(format!("haft call {tool}")).no_binary_name(true).max_term_width(80);
    if let Some(spec) = spec {
        command = arguments::with_fields(command.about(spec.description.clone()), spec, tool);
    }
    let asked_for_help = args.help.then(|| "--help".to_owned());
    let matches = command.try_get_matches_from(args.rest.iter().cloned().chain(asked_for_help))?;
    Ok((CallFlags::from_arg_matches(&matches)?, matches))
}

/// The tools depend on the workspace and the flags on the tools, so the workspace is looked for first.
fn workspace_in(rest: &[String]) -> Option<PathBuf> {
    let at = rest.iter().position(|word| word == "--workspace" || word.starts_with("--workspace="))?;
    match rest[at].strip_prefix("--workspace=") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => rest.get(at + 1).map(PathBuf::from),
    }
}

fn help_for_all(out: Out, args: &Args) -> CliExit {
    let mut program = program();
    program.build();
    let help = program.find_subcommand_mut("call").map(|call| call.render_long_help().ansi().to_string());
    let help = help.unwrap_or_default();
    if args.help {
        page(out, &help);
        return CliExit::Success;
    }
    out.failed(&mistake("name a tool; `haft tools` lists them"));
    if !out.json {
        anstream::eprintln!("\n{help}");
    }
    CliExit::Usage
}
