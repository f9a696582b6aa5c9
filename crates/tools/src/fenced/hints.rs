//! What whoever ran a command that failed should know: what it had no network for, what it did not see, and who writes
//! to a repository that it could only read.

use std::path::{Path, PathBuf};

use haft_sandbox::{Root, fence::CommandExit};

use super::command_spec::{CommandResult, CommandSpec};
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
pub(super) fn unseen(spec: &CommandSpec, said: &str, is_seen: impl Fn(&Path) -> bool) -> Vec<(String, String)> {
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
    found.iter().map(|path| (path.display().to_string(), how_to_show(path))).collect()
}

/// What lets commands see a file that lies outside.
pub(super) fn how_to_show(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path);
    format!(
        "it is there, but commands do not see it; to let them read its folder, add `[sandbox] read = [{folder:?}]` to your haft.toml"
    )
}
