//! A name for whom a fenced process runs as, where the system has none: many programs want one.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::process::{getgid, getuid};

use super::mounts::{self, Access, MountDepth};
use super::root::FenceRoot;
use crate::fence::job::FenceJob;
use crate::fence::wire::{AtStep, StepFailure};

/// The name that is given, unless somebody else has it or the user's variables say another.
const NAME: &str = "haft";

/// Adds a line to what a fenced process sees of the system's users and groups, if there is none for its own.
pub(super) fn apply(root: &FenceRoot, job: &FenceJob) -> Result<(), StepFailure> {
    let variable = |name: &str| job.environment.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let home = variable("HOME").filter(|home| !home.contains([':', '\n'])).unwrap_or("/");
    let wanted = variable("USER").filter(|name| is_plain(name)).unwrap_or(NAME);
    add(root, "passwd", wanted, |name| format!("{name}:x:{user}:{group}:{name}:{home}:/bin/sh"))?;
    add(root, "group", wanted, |name| format!("{name}:x:{group}:"))
}

/// Shows `/etc/<file>` with one more line, if none has the same number.
fn add(root: &FenceRoot, file: &str, wanted: &str, line: impl Fn(&str) -> String) -> Result<(), StepFailure> {
    let step = || format!("add a name to /etc/{file}");
    let Ok(place) = root.open(&Path::new("/etc").join(file)) else { return Ok(()) };
    let Ok(mut content) = std::fs::read_to_string(path_of(&place)) else { return Ok(()) };
    let has = |at: usize, value: &str| content.lines().any(|line| line.split(':').nth(at) == Some(value));
    if has(2, line(wanted).split(':').nth(2).unwrap_or_default()) {
        return Ok(());
    }
    let name = [wanted, NAME].into_iter().find(|name| !has(0, name)).unwrap_or("haft-fenced");
    let newline = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    content = format!("{content}{newline}{}\n", line(name));
    let shown = root.file(&Path::new("/run/hidden").join(file))?;
    std::fs::write(path_of(&shown), content).at(step)?;
    let shown = mounts::clone_of(shown, MountDepth::Alone).at(step)?;
    mounts::restrict(&shown, Access::Read, MountDepth::Alone).at(step)?;
    mounts::attach(shown, place).at(step)
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte))
}

fn path_of(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
