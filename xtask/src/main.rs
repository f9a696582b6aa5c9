//! Chores of this workspace: `cargo xtask tidy`, `conformance`, `bench`, `changelog` and `release`.
#![expect(clippy::print_stdout, reason = "a chore talks to whoever runs it")]
#![expect(clippy::disallowed_methods, reason = "a chore runs cargo; no tool is behind it")]

mod changelog;
mod conformance;
mod release;
mod tidy;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

fn main() -> Result<ExitCode> {
    let chore = std::env::args().nth(1).unwrap_or_default();
    match chore.as_str() {
        "tidy" => {
            let faults = tidy::faults(&root())?;
            faults.iter().for_each(|fault| println!("{fault}"));
            Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        "conformance" => conformance::run(&root()),
        "bench" => bench(),
        "changelog" => changelog::write(&root()).map(|()| ExitCode::SUCCESS),
        "release" => {
            println!("{}", release::run(&root(), std::env::args().nth(2))?);
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("there is no chore `{other}`: tidy, conformance, bench, changelog or release"),
    }
}

/// Builds the program and the benches as they are released, and runs everything, or the part that is named.
fn bench() -> Result<ExitCode> {
    let part: Vec<String> = std::env::args().skip(2).collect();
    for arguments in [&["build", "--release", "-p", "haft"][..], &["run", "--release", "-p", "haft-benches", "--"][..]]
    {
        let part = if arguments[0] == "run" { &part[..] } else { &[] };
        let ended = cargo(&root()).args(arguments).args(part).status().context("cannot start cargo")?;
        if !ended.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Cargo without what it told this chore about itself: `ring` would be built anew for that, and all that stands on it.
fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(root);
    cargo
}

/// The workspace cargo was called in. Asked when it runs: build output is shared between clones, and a path that was
/// compiled in may be another clone's.
fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    Path::new(&xtask).parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}
