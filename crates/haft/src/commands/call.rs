//! `haft call`

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::{ArgMatches, FromArgMatches};
use haft_runtime::{CallRequest, Catalog, ErrorCode, Outcome, ToolError, ToolSpec};

use crate::{
    backend::Backend,
    cli::{Everywhere, ServerFlag, not_a_command, program, unreadable},
    commands::{
        arguments,
        flags::{CallFlags, call_command},
        mistake, open_backend,
        prompt::{Person, see_through},
    },
    exit::CliExit,
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
    #[command(flatten)]
    pub(crate) server: ServerFlag,
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
    if let Some(folder) = flag_in(&args.rest, "--workspace") {
        everywhere.workspace = Some(PathBuf::from(folder));
    }
    if let Some(url) = flag_in(&args.rest, "--server") {
        everywhere.server = Some(url);
    }
    let backend = open_backend(&everywhere).await?;
    let spec = described(&backend, tool, args).await?;
    let (flags, matches) = match parse(tool, spec.as_ref(), args) {
        Ok(parsed) => parsed,
        Err(err) => {
            let out = Out::new(everywhere.json || args.rest.iter().any(|word| word == "--json"));
            let missing = missing(&backend, tool, spec.as_ref()).await;
            backend.leave().await?;
            // Which flags there are is for the tool to say.
            if let (Some(missing), true) = (missing, err.use_stderr()) {
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
    let folder = match &backend {
        Backend::Here(house) => Some(house.workspace.path()),
        Backend::There(_) => None,
    };
    let ended = match arguments::input(typed, spec.as_ref(), &matches, folder) {
        Ok(input) => {
            let call = one_call(&backend, tool, input, &flags, &stream);
            match &backend {
                Backend::Here(house) => upstreams::told_of_a_call(&house.upstreams, tool, call).await,
                Backend::There(_) => call.await,
            }
        }
        Err(error) => {
            backend.leave().await?;
            return Ok(outcome::print_refused(out, tool, &error));
        }
    };
    let ended = match ended {
        Ok(ended) => Ok(backend.whole(ended).await),
        Err(err) => Err(err),
    };
    backend.leave().await?;
    let ended = ended?;
    Ok(outcome::print_rest(out, &ended, stream.seen()).or_that_of_its_command(&ended, out))
}

/// What the tool is. A server that was never met is waited for here only where its fields were given as flags; otherwise
/// the call itself waits, and says why a server cannot be had.
async fn described(backend: &Backend, tool: &str, args: &Args) -> Result<Option<ToolSpec>> {
    let known = backend.describe(tool).await?;
    if let Backend::Here(house) = backend
        && known.is_none()
        && parse(tool, None, args).is_err()
    {
        let _ = upstreams::meet_for(&house.upstreams, tool).await;
        return backend.describe(tool).await;
    }
    Ok(known)
}

/// Why there is no such tool; `None` where there is one.
async fn missing(backend: &Backend, tool: &str, spec: Option<&ToolSpec>) -> Option<ToolError> {
    match backend {
        Backend::Here(house) => house.catalog.find(&house.caller, tool).await.err(),
        Backend::There(remote) if spec.is_none() => {
            let message = format!("there is no tool `{tool}` at {}; `haft tools` lists them", remote.url());
            Some(ToolError::new(ErrorCode::ToolNotFound, message))
        }
        Backend::There(_) => None,
    }
}

async fn one_call(
    backend: &Backend,
    tool: &str,
    input: serde_json::Value,
    flags: &CallFlags,
    stream: &Arc<LiveOutput>,
) -> Result<Outcome> {
    // When the input came from standard input there is nobody there to ask.
    let person = if flags.input.as_deref() == Some("-") { Person::Absent } else { Person::at_the_terminal() };
    let mut request = CallRequest::new(backend.caller().clone(), tool, input);
    flags.options.lay_over(&mut request, backend.settings(), person);
    if let Backend::There(remote) = backend
        && flags.options.chooses_a_mode()
    {
        let sentence = "decides by its own rules what runs without asking; leave out --auto-approve";
        return Err(mistake(format!("{} {sentence}", remote.url())));
    }
    let stream = Arc::clone(stream);
    request.listener = Some(Arc::new(move |event| stream.hear(event)));
    see_through(backend, request, &person).await
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

/// The tools depend on the workspace and the server, and the flags on the tools, so both are looked for first.
fn flag_in(rest: &[String], flag: &str) -> Option<String> {
    let value = |word: &String| word.strip_prefix(flag).and_then(|rest| rest.strip_prefix('=')).map(str::to_owned);
    let at = rest.iter().position(|word| word == flag || value(word).is_some())?;
    value(&rest[at]).or_else(|| rest.get(at + 1).cloned())
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
