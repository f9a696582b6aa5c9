//! `cargo xtask release`: the built program with its licences, man pages and completions, in one `tar.gz`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{cargo, changelog};

/// What lies beside the program.
const PAGES: [&str; 5] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Puts everything together, with a program that is built for it unless one is named; gives where it lies.
pub(crate) fn run(root: &Path, built: Option<String>) -> Result<String> {
    changelog::write(root)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = match built {
        Some(program) => PathBuf::from(program),
        None => {
            done(cargo(root).args(["build", "--release", "--locked", "-p", "haft"]))?;
            target.join("release/haft")
        }
    };
    pack(root, &program, &target.join("package"))
}

/// Puts a program into an archive in a folder.
fn pack(root: &Path, program: &Path, to: &Path) -> Result<String> {
    let version = said(Command::new(program).arg("--version"))?;
    let version = version.split_whitespace().nth(1).context("haft does not say its version")?;
    let name = format!("haft-{version}-{}-linux", std::env::consts::ARCH);
    let folder = to.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove what an earlier release left")?;
    }
    fs::create_dir_all(&folder)?;
    // The same folders as `make install` fills: unpacking it over ~/.local installs it.
    done(Command::new(root.join("scripts/install")).arg(program).arg("/").env("DESTDIR", &folder))?;
    let pages = folder.join("share/doc/haft");
    fs::create_dir_all(&pages)?;
    for page in PAGES {
        fs::copy(root.join(page), pages.join(page)).with_context(|| format!("cannot copy {page}"))?;
    }
    let archive = to.join(format!("{name}.tar.gz"));
    // Nothing of this machine: no owner, and an order that is always the same.
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--file"]);
    done(tar.arg(&archive).arg("--directory").arg(to).arg(&name))?;
    Ok(archive.display().to_string())
}

fn done(command: &mut Command) -> Result<()> {
    let ended = command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !ended.success() {
        bail!("{} failed: {ended}", command.get_program().display());
    }
    Ok(())
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    String::from_utf8(output.stdout).context("the version is not UTF-8")
}
