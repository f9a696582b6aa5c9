//! `haft completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{cli::Cli, exit::Exit};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which shell; put the output where that shell looks for completions
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Exit {
    clap_complete::generate(args.shell, &mut Cli::command(), "haft", &mut std::io::stdout());
    Exit::Success
}
