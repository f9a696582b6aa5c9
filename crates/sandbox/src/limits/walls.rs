//! The walls around a program that only looks: what it reads is a list, and no other program is started.
//!
//! Both walls hold for one thread and whatever it starts, so they are built on a thread that starts the program, hears it
//! and then ends; haft itself stays as it is.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError,
};
use rustix::fs::FileType;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::LimitsError;

/// The newest rights that we know; an older kernel keeps those that it knows.
const KNOWN: ABI = ABI::V6;

/// What any program needs of the system: itself, its libraries, the user's name and the time zone.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/dev/urandom",
    "/dev/zero",
    "/sys/devices/system/cpu",
];
/// What it may also write.
const SINK: &str = "/dev/null";

/// Builds both walls around this thread.
pub(super) fn raise(readable: &[PathBuf]) -> Result<(), LimitsError> {
    close_paths(readable).map_err(|error| refused("restrict paths", &error))?;
    let filter = start_nothing().map_err(|error| refused("describe a filter of system calls", &error))?;
    seccompiler::apply_filter(&filter).map_err(|error| refused("restrict system calls", &error))
}

fn refused(step: &'static str, why: &dyn std::fmt::Display) -> LimitsError {
    LimitsError::Walls { step, why: why.to_string() }
}

/// Only the listed paths are read, and nothing is written. A kernel without Landlock has the other wall alone.
fn close_paths(readable: &[PathBuf]) -> Result<(), RulesetError> {
    let everything = AccessFs::from_all(KNOWN);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(everything)?;
    let mut rules = ruleset.create()?;
    let system = SYSTEM.iter().map(|path| (Path::new(path), AccessFs::from_read(KNOWN)));
    let theirs = readable.iter().map(PathBuf::as_path).filter(|path| !SYSTEM.iter().any(|own| Path::new(own) == *path));
    let theirs = theirs.map(|path| (path, AccessFs::ReadFile | AccessFs::ReadDir));
    let sink = (Path::new(SINK), AccessFs::ReadFile | AccessFs::WriteFile);
    for (path, access) in system.chain(theirs).chain([sink]) {
        let Ok(file) = PathFd::new(path) else { continue };
        let is_folder = rustix::fs::fstat(&file).is_ok_and(|kind| FileType::from_raw_mode(kind.st_mode).is_dir());
        let access: BitFlags<AccessFs> = if is_folder { access } else { access & AccessFs::from_file(KNOWN) };
        rules = rules.add_rule(PathBeneath::new(file, access))?;
    }
    rules.restrict_self()?;
    Ok(())
}

/// Whoever shares no memory with its parent is a new process; threads and the start of the program itself share it.
/// The flags of `clone3` lie in memory, where no filter sees them; everybody falls back to `clone`.
fn start_nothing() -> seccompiler::Result<BpfProgram> {
    let shares_nothing = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(libc::CLONE_VM.cast_unsigned().into()),
        0,
    )?;
    let mut refused = BTreeMap::from([
        (libc::SYS_clone, vec![SeccompRule::new(vec![shares_nothing])?]),
        (libc::SYS_clone3, Vec::new()),
        (libc::SYS_socket, Vec::new()),
    ]);
    #[cfg(target_arch = "x86_64")]
    refused.extend([(libc::SYS_fork, Vec::new()), (libc::SYS_vfork, Vec::new())]);
    let unknown = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let here = std::env::consts::ARCH.try_into().map_err(seccompiler::Error::Backend)?;
    SeccompFilter::new(refused, SeccompAction::Allow, unknown, here)?.try_into().map_err(Into::into)
}
