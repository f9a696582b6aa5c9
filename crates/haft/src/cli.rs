//! The command line as it is typed, and which command it means.

use std::{env::ArgsOs, ffi::OsString, io::IsTerminal, path::PathBuf};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use haft_runtime::{ErrorCode, ToolError};
use serde_json::json;

use crate::{
    commands::{self, admin::as_operator},
    exit::CliExit,
    settings::{self, LogFormat},
    show::{Out, pager::page, style::STRONG},
};

const TOPICS: &str = "\
Topics: calls, approvals, changes, commands, policy, trust, settings, servers,
        mcp, remote
`haft help TOPIC` explains a topic, `haft help COMMAND` a command.";

/// What somebody is told who starts the MCP server by hand.
const MCP_BY_HAND: &str = "\
`haft mcp` serves MCP clients, which start it themselves; it is not for typing.
  haft mcp install CLIENT    add it to claude, codex, opencode, vscode or zed
  haft help mcp              how it works
Ctrl-C ends it.";

/// The commands as `haft --help` lists them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Use tools", &["call", "batch", "tools"]),
    ("Answer questions", &["approvals", "approve", "reject", "grants", "policy"]),
    ("Changes of a call", &["changes", "commit", "discard", "undo", "redo"]),
    ("Follow calls", &["log", "wait", "cancel", "stats", "receipt"]),
    ("Set up", &["trust", "init", "doctor", "mcp", "mcp-servers", "completions"]),
    ("Serve tenants", &["serve", "open", "admin", "secret"]),
    ("Use a server", &["login", "logout"]),
    ("Data", &["backup", "restore", "gc", "store"]),
    ("Learn", &["help"]),
];

/// One tool system for AI agents and the people who work beside them.
///
/// Every call is recorded, asks before it changes anything, and can be undone. Run `haft` in a folder to see where you
/// are, `haft tools` to list the tools, and `haft call TOOL --help` to learn about one.
#[derive(Parser)]
#[command(name = "haft", version, max_term_width = 80, disable_help_subcommand = true, after_help = TOPICS)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// What every command takes.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Everywhere {
    /// The workspace [default: the nearest folder upward with a `.haft`, `haft.toml` or `.git`, else the current one]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON document and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
    /// The gateway that a command is done at which takes a `ServerFlag`.
    #[arg(skip)]
    pub(crate) server: Option<String>,
}

/// What a command takes that can be done at a gateway.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ServerFlag {
    /// Do it at this gateway; --workspace is then the name of a workspace there [default: the variable HAFT_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
}

/// When to use colours; `auto` means at a terminal, unless `NO_COLOR` is set.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    /// Has everything that is printed from now on follow it.
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => {}
            Self::Always => anstream::ColorChoice::Always.write_global(),
            Self::Never => anstream::ColorChoice::Never.write_global(),
        }
    }
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
    /// List the tools, or show one in full
    Tools(commands::tools::Args),
    /// List past calls; `log show CALL` tells all about one
    Log(commands::log::Args),
    /// List the calls that wait for an answer
    Approvals(commands::approvals::Args),
    /// Say yes to a waiting call
    Approve(commands::answer::ApproveArgs),
    /// Say no to a waiting call
    Reject(commands::answer::RejectArgs),
    /// Show what a call changed, or would change
    Changes(commands::changes::Args),
    /// Commit all or some of the changes that a call has staged
    Commit(commands::commit::Args),
    /// Drop the changes that a call has staged
    Discard(commands::discard::Args),
    /// Undo the changes of a call
    Undo(commands::undo::Args),
    /// Redo what was undone
    Redo(commands::undo::Args),
    /// Stop a call, from any process
    Cancel(commands::cancel::Args),
    /// Wait until a call has ended
    Wait(commands::wait::Args),
    /// Print or check a signed receipt of the yes to a call
    Receipt(commands::receipt::Args),
    /// List, add and revoke remembered answers
    Grants(commands::grants::Args),
    /// List the rules, test them, explain a decision
    Policy(commands::policy::Args),
    /// List, add and accept the MCP servers whose tools you use
    McpServers(commands::mcp_servers::Args),
    /// Count calls, errors and times of each tool
    Stats(commands::stats::Args),
    /// Look at what this workspace brings, and trust it
    Trust(commands::trust::Args),
    /// Write settings and an example tool for this workspace
    Init(commands::init::Args),
    /// Delete old data: calls, outputs, changes, what crashes left
    Gc(commands::gc::Args),
    /// Write everything that haft keeps into one file, while it runs
    ///
    /// The file holds the database, media, staged and committed changes, the workspaces that haft keeps, and the secrets
    /// of this user, as they are at one moment. Commits wait while files are copied, 20 seconds at most; everything else
    /// goes on. The master key, which opens the secrets of tenants, is in it only with `--with-key`.
    Backup(commands::backup::Args),
    /// Put a backup in the place of what is here
    ///
    /// Everything is checked before anything is touched: the whole file, its version, and the fingerprint of the master
    /// key. Then it is unpacked aside and put in place by renames, so that a restore that is killed leaves the old data or
    /// the new. End every haft that uses the data first.
    Restore(commands::restore::Args),
    /// Copy the database to another one
    Store(commands::store::Args),
    /// Set, list and remove the secrets that tools of a tenant use
    Secret(commands::secret::Args),
    /// Check what works here, and say how to fix the rest
    Doctor,
    /// Serve the tools of this workspace to an MCP client
    ///
    /// The client starts this and speaks with it over standard input and output, in whichever era of the protocol it
    /// speaks. Calls take the same line as `haft call`; `haft help mcp` says how questions are answered.
    Mcp(commands::mcp::Args),
    /// Serve the tools to people and programs over HTTP
    ///
    /// On your own machine it is the place where you see and answer what every agent asks, in every folder. On a server
    /// it serves tenants with people, roles and keys. It uses the same data folder as every other command, or the
    /// PostgreSQL database that `--database` or `store.url` names. Ctrl-C ends it: no new requests are taken, and what
    /// is under way ends or is handed over.
    Serve(commands::serve::Args),
    /// Open the page of this machine's server in your browser, signed in
    ///
    /// It starts a server in the background where none runs, which ends when nobody has needed it for a while.
    /// `haft serve --stop` ends it at once.
    Open(commands::open::Args),
    /// Manage tenants, people, keys, workspaces and MCP servers
    Admin(commands::admin::Args),
    /// Log in at a gateway, for commands with --server
    ///
    /// It opens a page of the gateway in your browser, where you sign in and choose what this program may do for you. The
    /// login is kept in the data folder and renewed by itself until `haft logout`. A key in HAFT_KEY is used before it.
    Login(commands::login::LoginArgs),
    /// End a login, at the gateway and here
    Logout(commands::login::LogoutArgs),
    /// Print a completion script for your shell
    Completions(commands::completions::Args),
    /// Explain a topic or a command
    Help(commands::help::Args),
}

/// The command line with its commands in groups.
pub(crate) fn program() -> clap::Command {
    let program = Cli::command();
    let mut groups = String::new();
    for (heading, commands) in GROUPS {
        groups.push_str(&format!("\n{STRONG}{heading}{STRONG:#}\n"));
        for name in *commands {
            let about = program.find_subcommand(name).and_then(clap::Command::get_about).cloned().unwrap_or_default();
            groups.push_str(&format!("  {name:<12} {about}\n"));
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n{STRONG}Options{STRONG:#}\n{{options}}{{after-help}}"
    );
    program.help_template(template)
}

/// Reads what was typed; where that is not a command, the reason or the help is on the screen.
pub fn read(typed: ArgsOs) -> Result<Cli, CliExit> {
    let typed: Vec<OsString> = typed.collect();
    let out = Out::new(typed.iter().any(|word| word == "--json"));
    let read = program().try_get_matches_from(typed).and_then(|matches| Cli::from_arg_matches(&matches));
    read.map_err(|err| not_a_command(out, &err))
}

/// Shows the help that was asked for, or why what was typed cannot be read.
pub(crate) fn not_a_command(out: Out, err: &clap::Error) -> CliExit {
    if !err.use_stderr() {
        page(out, &err.render().ansi().to_string());
        return CliExit::Success;
    }
    if out.json {
        out.document(&json!({"error": unreadable(err)}));
    } else {
        let _ = err.print();
    }
    CliExit::Usage
}

/// The same as programs read it.
pub(crate) fn unreadable(err: &clap::Error) -> ToolError {
    let text = err.render().to_string();
    let sentences = text.split("\n\nUsage:").next().unwrap_or_default();
    let sentence = sentences.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ");
    ToolError::new(ErrorCode::InvalidArgs, sentence)
}

impl Cli {
    /// How its log is written.
    pub fn log_format(&self) -> LogFormat {
        match &self.command {
            Some(CliCommand::Serve(args)) => args.log_format(),
            Some(_) | None => LogFormat::default(),
        }
    }

    /// Whether it goes on serving others, instead of ending with its answer.
    pub fn serves(&self) -> bool {
        match &self.command {
            Some(CliCommand::Mcp(args)) => args.serves(),
            Some(CliCommand::Serve(_)) => true,
            Some(_) | None => false,
        }
    }
}

impl CliCommand {
    /// The flag of a command that can be done at a gateway.
    fn server(&self) -> Option<&ServerFlag> {
        match self {
            Self::Call(args) => Some(&args.server),
            Self::Tools(args) => Some(&args.server),
            Self::Log(args) => Some(&args.server),
            Self::Approvals(args) => Some(&args.server),
            Self::Approve(args) => Some(&args.server),
            Self::Reject(args) => Some(&args.server),
            Self::Changes(args) => Some(&args.server),
            Self::Commit(args) => Some(&args.server),
            Self::Discard(args) => Some(&args.server),
            Self::Undo(args) | Self::Redo(args) => Some(&args.server),
            Self::Cancel(args) => Some(&args.server),
            Self::Wait(args) => Some(&args.server),
            Self::Receipt(args) => Some(&args.server),
            Self::Batch(_)
            | Self::Grants(_)
            | Self::Policy(_)
            | Self::McpServers(_)
            | Self::Stats(_)
            | Self::Trust(_)
            | Self::Init(_)
            | Self::Gc(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Store(_)
            | Self::Secret(_)
            | Self::Doctor
            | Self::Mcp(_)
            | Self::Serve(_)
            | Self::Open(_)
            | Self::Admin(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Completions(_)
            | Self::Help(_) => None,
        }
    }
}

/// Runs a command. Everything that goes wrong ends in one sentence and an exit code.
pub async fn run(mut cli: Cli) -> CliExit {
    cli.everywhere.color.apply();
    if matches!(&cli.command, Some(CliCommand::Mcp(args)) if args.serves_over_stdio()) && std::io::stdin().is_terminal()
    {
        anstream::eprintln!("{MCP_BY_HAND}");
    }
    for name in settings::ignored_variables() {
        Out::warning(&format!("haft has no setting `{name}`, so the variable is ignored"));
    }
    let out = Out::new(cli.everywhere.json);
    if let Some(ServerFlag { server }) = cli.command.as_ref().and_then(CliCommand::server) {
        cli.everywhere.server = server.clone().or_else(settings::server);
    }
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
        Some(CliCommand::Receipt(args)) => commands::receipt::run(&cli.everywhere, &out, &args).await,
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
        Some(CliCommand::Backup(args)) => commands::backup::run(&out, &args).await,
        Some(CliCommand::Restore(args)) => commands::restore::run(&out, &args).await,
        Some(CliCommand::Serve(args)) => commands::serve::run(&out, &args).await,
        Some(CliCommand::Open(args)) => as_operator(commands::open::run(&out, &args)).await,
        Some(CliCommand::Admin(args)) => as_operator(commands::admin::run(&out, args, cli.everywhere.workspace)).await,
        Some(CliCommand::Secret(args)) => as_operator(commands::secret::run(&out, &args)).await,
        Some(CliCommand::Doctor) => commands::doctor::run(&cli.everywhere, &out).await,
        Some(CliCommand::Login(args)) => commands::login::login(&out, &args).await,
        Some(CliCommand::Logout(args)) => commands::login::logout(&out, &args).await,
        Some(CliCommand::Completions(args)) => commands::completions::run(&out, &args),
        Some(CliCommand::Help(args)) => commands::help::run(&out, &args),
    };
    ended.unwrap_or_else(|err| out.failed(&err))
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, program};

    #[test]
    fn every_command_stands_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, commands)| *commands).copied().collect();
        let program = program();
        let mut all: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
