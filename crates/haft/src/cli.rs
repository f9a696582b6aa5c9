//! The command line as it is typed, and which command it means.

use std::{env::ArgsOs, path::PathBuf};

use clap::{Parser, Subcommand};

use crate::{commands, exit::CliExit, show::Out};

const TOPICS: &str = "Topics: calls, approvals, changes, commands, mcp, policy, servers, trust, settings; `haft help TOPIC` explains one";

/// One tool system for AI agents and the people who work beside them.
///
/// Every call is recorded, asks before it changes anything, and can be undone. Run `haft` in a folder to see where you
/// are, `haft tools` for what there is, and `haft call TOOL --help` for one tool.
#[derive(Parser)]
#[command(name = "haft", version, max_term_width = 100, disable_help_subcommand = true, after_help = TOPICS)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// What every command takes.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Everywhere {
    /// The workspace; by default the nearest folder upward with a `.haft`, `haft.toml` or `.git`, else the current one
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON document and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Use one tool
    #[command(disable_help_flag = true)]
    Call(commands::call::Args),
    /// Use many tools: one call a line, as JSON Lines
    ///
    /// Calls that only read run at once, at most eight. A call that may change something runs alone, after all before it
    /// and before all behind it, so that the end is the same as if they had been called one after the other. With
    /// `--json` the outcomes are JSON Lines in the order of the calls, each with the `id` that its call had. The exit
    /// code is that of the worst. Nobody is asked at the terminal: a call that needs a yes is handed back as pending,
    /// and `haft approvals` lists it.
    Batch(commands::batch::Args),
    /// The tools there are, or one of them in full
    Tools(commands::tools::Args),
    /// What has been called, newest first; `log show CALL` tells one call's whole story
    Log(commands::log::Args),
    /// The calls that wait for an answer
    Approvals(commands::approvals::Args),
    /// Say yes to a waiting call
    Approve(commands::answer::ApproveArgs),
    /// Say no to a waiting call
    Reject(commands::answer::RejectArgs),
    /// What a call changed, or would change
    Changes(commands::changes::Args),
    /// Commit all or some of what a call has staged
    Commit(commands::commit::Args),
    /// Drop what a call has staged
    Discard(commands::discard::Args),
    /// Take back what a call changed
    Undo(commands::undo::Args),
    /// Bring back what an undo took back
    Redo(commands::undo::Args),
    /// Stop a call, from any process
    Cancel(commands::cancel::Args),
    /// Wait until a call has ended
    Wait(commands::wait::Args),
    /// What is remembered, and how to remember or forget
    Grants(commands::grants::Args),
    /// The rules in force, what they would have decided, and why
    Policy(commands::policy::Args),
    /// The upstream MCP servers whose tools you use: where each stands, what has changed
    McpServers(commands::mcp_servers::Args),
    /// How often each tool was used, how that ended and how long it took
    Stats(commands::stats::Args),
    /// Look at what this workspace brings, and have it obeyed
    Trust(commands::trust::Args),
    /// Start a workspace's own settings and tools
    Init(commands::init::Args),
    /// Let go of what is past its time: old calls, outputs, changes and what crashes left
    Gc(commands::gc::Args),
    /// The database that holds the journal: copy it to another one
    Store(commands::store::Args),
    /// What works here, what does not, and what to do about it
    Doctor,
    /// Serve the tools of this workspace to an MCP client
    ///
    /// The client starts this and speaks with it over standard input and output, in whichever era of the protocol it
    /// speaks. Calls take the same line as `haft call`; `haft help mcp` says how questions are answered.
    Mcp(commands::mcp::Args),
    /// A completion script for your shell
    Completions(commands::completions::Args),
    /// A topic or a command explained; `haft help` lists both
    Help(commands::help::Args),
}

/// Reads what was typed; where that is not a command, the reason or the help is on the screen.
pub fn read(typed: ArgsOs) -> Result<Cli, CliExit> {
    Cli::try_parse_from(typed).map_err(|err| {
        let _ = err.print();
        if err.use_stderr() { CliExit::Usage } else { CliExit::Success }
    })
}

impl Cli {
    /// Whether it goes on serving others, instead of ending with its answer.
    pub fn serves(&self) -> bool {
        matches!(&self.command, Some(CliCommand::Mcp(args)) if args.serves())
    }
}

/// Runs a command. Everything that goes wrong ends in one sentence and an exit code.
pub async fn run(cli: Cli) -> CliExit {
    let out = Out::new(cli.everywhere.json);
    let ended = match cli.command {
        None => commands::status::run(&cli.everywhere, &out).await,
        Some(CliCommand::Call(args)) => commands::call::run(cli.everywhere, args).await,
        Some(CliCommand::Batch(args)) => commands::batch::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Tools(args)) => commands::tools::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Log(args)) => commands::log::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Approvals(args)) => commands::approvals::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Approve(args)) => commands::answer::approve(&cli.everywhere, &out, args).await,
        Some(CliCommand::Reject(args)) => commands::answer::reject(&cli.everywhere, &out, args).await,
        Some(CliCommand::Changes(args)) => commands::changes::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Commit(args)) => commands::commit::run(&cli.everywhere, &out, args).await,
        Some(CliCommand::Discard(args)) => commands::discard::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Undo(args)) => commands::undo::undo(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Redo(args)) => commands::undo::redo(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Cancel(args)) => commands::cancel::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Wait(args)) => commands::wait::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Grants(args)) => commands::grants::run(&cli.everywhere, &out, args).await,
        Some(CliCommand::Policy(args)) => commands::policy::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Mcp(args)) => commands::mcp::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::McpServers(args)) => commands::mcp_servers::run(&cli.everywhere, &out, args).await,
        Some(CliCommand::Stats(args)) => commands::stats::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Trust(args)) => commands::trust::run(&cli.everywhere, &out, args).await,
        Some(CliCommand::Init(args)) => commands::init::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Gc(args)) => commands::gc::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Store(args)) => commands::store::run(&cli.everywhere, &out, &args).await,
        Some(CliCommand::Doctor) => commands::doctor::run(&cli.everywhere, &out).await,
        Some(CliCommand::Completions(args)) => commands::completions::run(&out, &args),
        Some(CliCommand::Help(args)) => commands::help::run(&out, &args),
    };
    ended.unwrap_or_else(|err| out.failed(&err))
}
