//! The program that a client starts: one that is installed, never one that the next build or clean-up takes away.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::settings::Settings;

/// What the program is called wherever it is installed.
const NAME: &str = "haft";
/// Cargo puts this file beside the programs it builds.
const BUILT_HERE: &str = ".cargo-lock";

/// This program, or the installed one where this one is a build that was never installed.
pub(super) fn installed_program(settings: &Settings) -> Result<PathBuf> {
    let variable = |name: &str| settings.variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = variable("HOME");
    let cache = variable("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|home| home.join(".cache")));
    let stays =
        |program: &Path| !is_built_here(program) && !cache.as_ref().is_some_and(|cache| program.starts_with(cache));
    if stays(&settings.program) {
        return Ok(settings.program.clone());
    }
    let on_path = settings.variables.get("PATH").map(|path| std::env::split_paths(path).collect::<Vec<_>>());
    let folders = on_path.into_iter().flatten().filter(|folder| folder.is_absolute());
    let folders = folders.chain(home.map(|home| home.join(".local/bin")));
    let mut programs = folders.map(|folder| folder.join(NAME)).filter(|program| is_program(program) && stays(program));
    programs.next().with_context(|| {
        format!(
            "{} is a build that the next clean-up may delete. Run `make install` first, then this again.",
            settings.program.display()
        )
    })
}

fn is_built_here(program: &Path) -> bool {
    program.parent().is_some_and(|folder| folder.join(BUILT_HERE).exists())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
