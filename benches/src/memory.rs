//! What a process holds for itself alone; pages of files that others share cost nothing more.

use std::fs;

/// KiB that are private to a process: the larger of what it has written to and what no file is behind, since most pages
/// are both. `None` once it has ended.
pub(crate) fn private(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(field(&rollup, "Private_Dirty:")?.max(field(&rollup, "Anonymous:")?))
}

fn field(rollup: &str, name: &str) -> Option<u64> {
    rollup.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
