//! What a shell offers while a command is typed: commands, tools, their fields, ids of calls. Quick, and never an error.

use std::{ffi::OsString, path::PathBuf};

use anyhow::Result;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::{ArgValueCandidates, CompleteEnv, CompletionCandidate};
use haft_runtime::{CallState, Grant, ToolSpec};
use haft_store::{CallFilter, CallRow};

use crate::{
    cli::Cli,
    commands::{arguments, flags::call_command, help::TOPICS, open_in},
    house::House,
    settings::Settings,
    show::{safe::safe, time::ago},
    workspace,
};

/// The variable by which a completion script asks.
pub const VARIABLE: &str = "HAFT_COMPLETE";

/// Commands that are about a call that waits.
const ABOUT_WAITING: &[&str] = &["approve", "reject"];
/// Commands that are about any call.
const ABOUT_ANY: &[&str] = &["cancel", "changes", "commit", "discard", "redo", "undo", "wait"];

/// Answers a shell that asks, and says whether one did.
pub fn answered(typed: Vec<OsString>) -> bool {
    let words = typed.clone();
    let complete = CompleteEnv::with_factory(move || command(&words)).var(VARIABLE);
    // A shell has no place for an error.
    complete.try_complete(typed, std::env::current_dir().ok().as_deref()).unwrap_or(true)
}

/// The command line with everything that depends on the workspace in it.
fn command(typed: &[OsString]) -> Command {
    let here = Here::named_in(typed);
    let mut program = Cli::command();
    if typed.iter().any(|word| word == "call") {
        program = program.mut_subcommand("call", |_| here.call_command());
    }
    for name in ABOUT_WAITING {
        program = program.mut_subcommand(name, |command| here.with_calls(command, Which::Waiting));
    }
    for name in ABOUT_ANY {
        program = program.mut_subcommand(name, |command| here.with_calls(command, Which::Any));
    }
    program
        .mut_subcommand("log", |log| {
            let log = with_values(log, "tool", &here.tool_names());
            log.mut_subcommand("show", |show| here.with_calls(show, Which::Any))
        })
        .mut_subcommand("policy", |policy| {
            policy.mut_subcommand("explain", |explain| here.with_calls(explain, Which::Any))
        })
        .mut_subcommand("grants", |grants| {
            let grants = grants.mut_subcommand("add", |add| with_values(add, "tool", &here.tool_names()));
            let grants = grants.mut_subcommand("show", |show| with_values(show, "grant", &here.grants()));
            grants.mut_subcommand("revoke", |revoke| with_values(revoke, "grant", &here.grants()))
        })
        .mut_subcommand("tools", |tools| with_values(tools, "name", &here.tool_names()))
        .mut_subcommand("help", |help| with_values(help, "about", &ArgValueCandidates::new(subjects)))
}

/// Topics and commands.
fn subjects() -> Vec<CompletionCandidate> {
    let program = Cli::command();
    let commands: Vec<String> = program.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let topics = TOPICS.iter().map(|(name, _)| (*name).to_owned()).filter(|topic| !commands.contains(topic));
    topics.chain(commands.iter().cloned()).map(CompletionCandidate::new).collect()
}

/// Which calls make sense.
#[derive(Clone, Copy)]
enum Which {
    Waiting,
    Any,
}

/// The workspace that was typed, or the one around the current folder.
#[derive(Clone)]
struct Here(Option<PathBuf>);

impl Here {
    fn named_in(typed: &[OsString]) -> Self {
        let at = typed.iter().position(|word| word == "--workspace");
        Self(at.and_then(|at| typed.get(at + 1)).map(PathBuf::from))
    }

    /// `call`, with each tool as a command of its own and each field as a flag.
    fn call_command(&self) -> Command {
        let one = |spec: &ToolSpec| {
            let command =
                arguments::with_fields(call_command(spec.name.clone()).about(first_sentence(spec)), spec, &spec.name);
            let is_path = |arg: &Arg| arg.get_long() == Some("path");
            command.mut_args(|arg| if is_path(&arg) { arg.value_hint(ValueHint::AnyPath) } else { arg })
        };
        let tools = self.tools().unwrap_or_default();
        Command::new("call").about("Use one tool").disable_help_subcommand(true).subcommands(tools.iter().map(one))
    }

    fn tool_names(&self) -> ArgValueCandidates {
        let here = self.clone();
        let candidate = |spec: &ToolSpec| candidate(&spec.name, &first_sentence(spec));
        ArgValueCandidates::new(move || here.tools().unwrap_or_default().iter().map(candidate).collect())
    }

    fn with_calls(&self, command: Command, which: Which) -> Command {
        let here = self.clone();
        let calls = move || here.calls(which).unwrap_or_default();
        with_values(command, "call", &ArgValueCandidates::new(calls))
    }

    fn grants(&self) -> ArgValueCandidates {
        let here = self.clone();
        let remembered = move || here.ask(async |house| Ok(house.store.all_grants(&house.scope, &house.here).await?));
        let one = |grant: &Grant| candidate(grant.id.as_str(), &grant.tool);
        ArgValueCandidates::new(move || remembered().unwrap_or_default().iter().map(one).collect())
    }

    fn tools(&self) -> Result<Vec<ToolSpec>> {
        self.ask(async |house| Ok(house.tools().specs()))
    }

    fn calls(&self, which: Which) -> Result<Vec<CompletionCandidate>> {
        let state = match which {
            Which::Waiting => Some(CallState::Waiting),
            Which::Any => None,
        };
        let filter = CallFilter { state, limit: 30, ..CallFilter::default() };
        let rows = self.ask(async |house| Ok(house.store.calls(&house.scope, &house.here, &filter).await?))?;
        let one = |row: &CallRow| {
            let status = row.status.as_deref().unwrap_or("running");
            candidate(row.id.as_str(), &format!("{} {} {status}", ago(row.started_at), row.tool))
        };
        Ok(rows.iter().map(one).collect())
    }

    /// Asks something in the house of the workspace.
    fn ask<T>(&self, ask: impl AsyncFnOnce(&House) -> Result<T>) -> Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let folder = workspace::find(self.0.as_deref())?;
            let house = open_in(Settings::read(&folder)?, &folder).await?;
            let told = ask(&house).await;
            house.leave().await?;
            told
        })
    }
}

/// Not `mut_arg`, which would move a positional argument behind the others.
fn with_values(command: Command, argument: &str, values: &ArgValueCandidates) -> Command {
    command.mut_args(|arg| if arg.get_id() == argument { arg.add(values.clone()) } else { arg })
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(safe(help).into()))
}

fn first_sentence(spec: &ToolSpec) -> String {
    spec.description.split(". ").next().unwrap_or_default().replace('\n', " ")
}
