//! What whoever ran a command that failed should know: what it had no network for, what it did not see, and who writes
//! to a repository that it could only read.

use std::path::{Path, PathBuf};

use haft_sandbox::{Root, SensitiveNames, fence::CommandExit};

use super::{
    command_spec::{CommandResult, CommandSpec},
    fence::FenceConfig,
};
use crate::git::OutsideRepository;

/// What the system and shells say of a file that is not there.
const MISSING: &[&str] = &["o such file", "ot found", "ENOENT"];
/// What it says of a file that may only be read.
const READ_ONLY: &[&str] = &["Read-only file system", "Permission denied", "insufficient permission"];

impl CommandResult {
    /// That it ran without the network, if it failed and said something: any program may want one, by any words. A mere
    /// exit code of 1 is how programs say no.
    pub(super) fn wants_network(&self) -> bool {
        let is_no = self.exit == CommandExit::Code(1) && self.said.both.trim().is_empty();
        let failed = matches!(self.exit, CommandExit::Code(code) if code != 0 && !matches!(code, 126 | 127));
        failed && !is_no && !self.network
    }
}

/// Whether a command that failed complains that it could not write to the repository of a linked worktree.
pub(super) fn could_not_write_repository(root: &Root, exit: CommandExit, said: &str) -> bool {
    if exit == CommandExit::Code(0) || !READ_ONLY.iter().any(|words| said.contains(words)) {
        return false;
    }
    let folders = OutsideRepository::of(root).folders;
    let names = |line: &str| folders.iter().any(|folder| line.contains(&*folder.to_string_lossy()));
    said.lines().any(|line| READ_ONLY.iter().any(|words| line.contains(words)) && names(line))
}

/// Files outside that a command names by their full path, that are there, and that it says it did not find.
pub(super) fn unseen(
    spec: &CommandSpec,
    said: &str,
    config: &FenceConfig,
    is_seen: impl Fn(&Path) -> bool,
) -> Vec<(String, String)> {
    if !MISSING.iter().any(|words| said.contains(words)) {
        return Vec::new();
    }
    let ends = |letter: char| letter.is_whitespace() || "'\"`;|&()<>=,:".contains(letter);
    let words = spec.command.iter().flat_map(|word| word.split(ends)).filter(|word| word.starts_with('/'));
    let mut found: Vec<PathBuf> = words
        .map(PathBuf::from)
        .filter(|path| said.contains(&*path.to_string_lossy()) && path.is_file() && !is_seen(path))
        .collect();
    found.sort();
    found.dedup();
    let told = |path: &PathBuf| Some((path.display().to_string(), how_to_show(path, config)?));
    found.iter().filter_map(told).collect()
}

/// The setting that lets commands see a file that lies outside: its folder, or itself where the folder is too much to show.
/// Of what may hold a secret it is not even said that it is there.
pub(super) fn how_to_show(path: &Path, config: &FenceConfig) -> Option<String> {
    let secret = SensitiveNames::new(&config.hide, &[], Path::new("/"));
    let real = path.canonicalize().ok()?;
    if secret.hold_file(path) || secret.hold_file(&real) {
        return None;
    }
    let is_too_much = |folder: &Path| config.home.starts_with(folder);
    let shown = path.parent().filter(|folder| !is_too_much(folder)).unwrap_or(path);
    let read: Vec<&Path> = config.readable.iter().map(PathBuf::as_path).chain([shown]).collect();
    Some(format!(
        "it exists, but commands cannot see it. To show it, write `read = {read:?}` under `[sandbox]` in {}",
        config.settings_file
    ))
}
