//! The last steps of a process before it becomes the command.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::fork::heed_signals;
use super::{landlock, seccomp, watch};
use crate::fence::job::{FenceJob, Rung};
use crate::fence::wire::{self, AtStep, FenceReport, StepFailure};

/// Locks itself in and becomes the command, or says why it could not.
pub(super) fn become_command(socket: &UnixStream, job: &FenceJob, input: &OwnedFd) {
    let report = match lock_in(job, input) {
        Ok(()) => not_run(job, &execute(job)),
        Err(failure) => FenceReport::Failed(failure),
    };
    let _ = wire::send(socket, &report);
}

fn lock_in(job: &FenceJob, input: &OwnedFd) -> Result<(), StepFailure> {
    rustix::process::setsid().at(|| "make a session".to_owned())?;
    rustix::stdio::dup2_stdin(input).at(|| "give it its standard input".to_owned())?;
    rustix::process::chdir(&job.folder).at(|| format!("enter {}", job.folder.display()))?;
    limit(job)?;
    drop_capabilities(job.rung).at(|| "drop all capabilities".to_owned())?;
    rustix::thread::set_no_new_privs(true).at(|| "gain no rights any more".to_owned())?;
    landlock::restrict(job)?;
    seccomp::restrict(job)
}

/// Sets what the kernel limits for each process.
fn limit(job: &FenceJob) -> Result<(), StepFailure> {
    let limits = &job.limits;
    // The kernel also counts forks that are about to fail, so that a bomb has far fewer processes than this. Its limit
    // only slows the bomb down until the first process counts those that there are, and ends it.
    let processes = match job.rung {
        Rung::Namespaces => 2 * limits.processes,
        Rung::Landlock => 2 * limits.processes + watch::tasks_of_user(),
    };
    for (resource, soft, hard) in [
        (Resource::Core, 0, 0),
        (Resource::Cpu, limits.cpu_seconds, limits.cpu_seconds + 1),
        (Resource::Nofile, limits.open_files, limits.open_files),
        (Resource::Fsize, limits.file_size, limits.file_size),
        (Resource::Nproc, processes, processes),
    ] {
        let highest = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(soft.min(highest)), maximum: Some(hard.min(highest)) };
        setrlimit(resource, limit).at(|| format!("limit {resource:?}"))?;
    }
    Ok(())
}

fn drop_capabilities(rung: Rung) -> Result<(), Errno> {
    if rung == Rung::Namespaces {
        rustix::thread::clear_ambient_capability_set()?;
        for capability in CapabilitySet::all().iter() {
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                // An older kernel has fewer of them.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            }
        }
        let bits = CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
        rustix::thread::set_capabilities_secure_bits(bits)?;
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Becomes the command; returns only if that failed.
fn execute(job: &FenceJob) -> io::Error {
    let Some((program, arguments)) = job.command.split_first() else { return io::ErrorKind::NotFound.into() };
    heed_signals();
    // The standard library looks a name up in the PATH that the command gets, and blocks no signal.
    #[expect(clippy::disallowed_methods, reason = "this is the place where a process becomes the command")]
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .exec()
}

/// Why a program did not start; what is wrong with it is no fault of the fence.
fn not_run(job: &FenceJob, error: &io::Error) -> FenceReport {
    if error.kind() == io::ErrorKind::NotFound && !is_there(job) {
        return FenceReport::NotFound;
    }
    let hint = match Errno::from_io_error(error) {
        Some(Errno::NOENT) => "the interpreter that its first line names is not there",
        Some(Errno::ACCESS) => "make it an executable file, outside of folders that forbid programs",
        Some(Errno::TXTBSY) => "somebody is writing it; try again when that is done",
        Some(Errno::TOOBIG) => "give it fewer or shorter arguments and variables",
        Some(_) | None => "see what kind of file it is",
    };
    FenceReport::NotRun(format!("{error}; {hint}"))
}

/// Whether there is a file with the program's name where it was looked for.
fn is_there(job: &FenceJob) -> bool {
    let Some(program) = job.command.first().filter(|program| !program.is_empty()) else { return false };
    let path = job.environment.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let mut folders = std::env::split_paths(if program.contains('/') { "" } else { path });
    folders.any(|folder| folder.join(program).is_file())
}
