//! The keeper of a fence, as it is held by whoever asks for fenced processes.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::error::FenceError;
use super::process::CommandStream;
use super::start::HELPER;

/// How long the keeper of the fence has to end everything by itself before it is killed, which ends everything too.
const GRACE: Duration = Duration::from_millis(500);

/// A keeper, which waits for its order until it is given one. Dropping it ends everything that it keeps.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    /// Orders go out on it and reports come in. When our end closes, everything ends.
    lifeline: Arc<UnixStream>,
}

impl Keeper {
    /// Starts one.
    pub(super) fn start(program: &Path, stdout: Stdio) -> Result<Keeper, FenceError> {
        let (ours, theirs) = UnixStream::pair().map_err(FenceError::Order)?;
        // Invariant: nothing here may make the standard library fork instead of calling posix_spawn, whose cost does
        // not grow with our memory: no pre_exec, uid, gid or groups.
        #[expect(clippy::disallowed_methods, reason = "this is the place where processes are started")]
        let child = Command::new(program)
            .arg(HELPER)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| FenceError::Helper { program: program.to_path_buf(), source })?;
        Ok(Keeper { child, lifeline: Arc::new(ours) })
    }

    pub(super) fn lifeline(&self) -> &Arc<UnixStream> {
        &self.lifeline
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// It, unless it has ended.
    pub(super) fn if_it_lives(mut self) -> Option<Keeper> {
        self.lives().then_some(self)
    }

    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What there is to hear of the command: nothing the second time.
    pub(super) fn take_outputs(&mut self) -> Vec<(CommandStream, OwnedFd)> {
        let mut outputs = Vec::with_capacity(2);
        outputs.extend(self.child.stdout.take().map(|pipe| (CommandStream::Stdout, pipe.into())));
        outputs.extend(self.child.stderr.take().map(|pipe| (CommandStream::Stderr, pipe.into())));
        outputs
    }

    /// Waits until it has ended, which it does at once when it has closed its end of the line.
    pub(super) fn wait(&mut self) {
        let _ = self.child.wait();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.lives() {
            return;
        }
        // An error means that the other end is gone already.
        let _ = self.lifeline.shutdown(Shutdown::Write);
        if !ends_within(&self.child, GRACE) {
            // Whatever it still keeps dies with it.
            let _ = self.child.kill();
        }
        self.wait();
    }
}

fn ends_within(child: &Child, limit: Duration) -> bool {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return false };
    // Before it was waited for, the id cannot belong to another process.
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
    matches!(poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)), Ok(1))
}
