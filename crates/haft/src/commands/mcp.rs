//! `haft mcp`

pub(crate) mod install;

use anyhow::Result;
use clap::Subcommand;

use crate::{cli::Everywhere, exit::Exit, show::Out};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write haft into the settings of a client that speaks MCP
    Install(install::Args),
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<Exit> {
    match &args.command {
        Command::Install(args) => install::run(everywhere, out, args).await,
    }
}
