//! Starting fenced processes.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::error::FenceError;
use super::job::Job;
use super::process::Process;
use super::tick::Tick;
use super::wire::{self, Input, Order};

/// The hidden first argument by which a program becomes the process that builds the fence.
pub const HELPER: &str = "__fence";

/// Starts fenced processes.
#[derive(Clone, Debug)]
pub struct Fence {
    program: Arc<Path>,
}

impl Fence {
    /// A fence that `program` builds: one that calls [`become_helper_if_asked`](super::become_helper_if_asked) first.
    pub fn new(program: impl Into<PathBuf>) -> Fence {
        Fence { program: program.into().into() }
    }

    /// The program that builds the fence.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts a job. What goes wrong inside is heard from [`Process::wait`].
    pub fn start(&self, job: &Job) -> Result<Process, FenceError> {
        self.start_with(job, Stdio::piped(), Input::Given)
    }

    /// Starts a job that is talked with: what is written into the socket is its standard input, what is read from it is
    /// its standard output. [`Process::wait`] hears only its standard error, and must be waiting.
    pub fn converse(&self, job: &Job) -> Result<(Process, UnixStream), FenceError> {
        let (ours, theirs) = UnixStream::pair().map_err(FenceError::Order)?;
        let process = self.start_with(job, Stdio::from(OwnedFd::from(theirs)), Input::Conversation)?;
        Ok((process, ours))
    }

    fn start_with(&self, job: &Job, stdout: Stdio, input: Input) -> Result<Process, FenceError> {
        let asked = Tick::latest();
        let (ours, theirs) = UnixStream::pair().map_err(FenceError::Order)?;
        // Invariant: nothing here may make the standard library fork instead of calling posix_spawn, whose cost does
        // not grow with our memory: no pre_exec, uid, gid or groups.
        #[expect(clippy::disallowed_methods, reason = "this is the place where processes are started")]
        let child = Command::new(&*self.program)
            .arg(HELPER)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| FenceError::Helper { program: self.program.to_path_buf(), source })?;
        let process = Process::new(child, ours, job.command.first().cloned().unwrap_or_default(), asked);
        let order = Order { job: Job { stdin: Vec::new(), ..job.clone() }, asked, input };
        wire::send(process.socket(), &order)
            .and_then(|()| wire::send_bytes(process.socket(), &job.stdin))
            .map_err(FenceError::Order)?;
        Ok(process)
    }
}
