//! `haft completions`

use anyhow::{Context, Result};
use clap_complete::{Shell, env::Shells};

use crate::{complete::VARIABLE, exit::CliExit, show::Out};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which shell; `source <(haft completions bash)` in your `.bashrc` is all that is needed, and zsh alike; for fish,
    /// `haft completions fish | source` in `config.fish`
    shell: Shell,
}

pub(crate) fn run(out: &Out, args: &Args) -> Result<CliExit> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell.to_string()).context("there is no script for this shell")?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "haft", "haft", &program(), &mut script)?;
    out.text(&String::from_utf8_lossy(&script));
    Ok(CliExit::Success)
}

/// The script starts haft as it was started now: by its name, or by its path.
fn program() -> String {
    let typed = std::env::args_os().next().unwrap_or_else(|| "haft".into());
    let path = std::path::Path::new(&typed);
    let by_name = path.components().count() == 1;
    let program = if by_name { path.to_owned() } else { std::path::absolute(path).unwrap_or_else(|_| path.to_owned()) };
    program.to_string_lossy().into_owned()
}
