//! Runs a program to its end: heard as it speaks, and ended with everything that it has started.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, prlimit};

use super::error::LimitsError;
use super::lifeline::Lifeline;
use super::order::{Order, Walls};
use super::stopper::Stopper;
use super::walls;
use crate::fence::{Exit, Stream};

/// The largest piece of output that is told at once.
const PIECE: usize = 64 << 10;
/// How large a file may become that it writes.
const LARGEST_FILE: u64 = 8 << 30;

/// Runs a program and hears its output, in the order in which it is read, until it has ended or is stopped.
pub fn run(order: &Order, stopper: &Stopper, hear: &mut dyn FnMut(Stream, &[u8])) -> Result<Exit, LimitsError> {
    let mut group = Group::start(order)?;
    group.hear(stopper, hear).map_err(LimitsError::Lost)
}

/// A program and what it has started, as far as that stays in its process group.
struct Group {
    child: Child,
    leader: Pid,
    /// Readable when the leader has ended.
    end: OwnedFd,
    _lifeline: UnixStream,
}

impl Group {
    fn start(order: &Order) -> Result<Group, LimitsError> {
        let lifeline = Lifeline::new().map_err(LimitsError::Lost)?;
        let input = lifeline.standard_input().map_err(LimitsError::Lost)?;
        let mut child = match &order.walls {
            Walls::Open => spawn(order, input),
            Walls::Alone { readable } => thread::scope(|scope| {
                let walled = scope.spawn(|| walls::raise(readable).and_then(|()| spawn(order, input)));
                let broke_off = || Err(LimitsError::Lost(io::Error::other("the thread that starts it broke off")));
                walled.join().unwrap_or_else(|_| broke_off())
            }),
        }?;
        let leader = Pid::from_child(&child);
        let held = limit(leader, order.cpu_seconds)
            .and_then(|()| Ok((pidfd_open(leader, PidfdFlags::empty())?, lifeline.tie(leader)?)));
        match held {
            Ok((end, ours)) => Ok(Group { child, leader, end, _lifeline: ours }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(LimitsError::Lost(error))
            }
        }
    }

    fn hear(&mut self, stopper: &Stopper, hear: &mut dyn FnMut(Stream, &[u8])) -> io::Result<Exit> {
        let mut pipes: Vec<(Stream, OwnedFd)> = Vec::with_capacity(2);
        pipes.extend(self.child.stdout.take().map(|pipe| (Stream::Stdout, pipe.into())));
        pipes.extend(self.child.stderr.take().map(|pipe| (Stream::Stderr, pipe.into())));
        let mut piece = vec![0; PIECE];
        let (mut lives, mut stopped) = (true, false);
        loop {
            let mut polled: Vec<_> = pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)).collect();
            if lives {
                polled.push(PollFd::new(&self.end, PollFlags::IN));
            }
            if lives && !stopped {
                polled.push(PollFd::new(stopper.bell(), PollFlags::IN));
            }
            // What it had said lies in the pipes when it has ended; nobody is left to say more.
            let patience = if lives { None } else { Some(&Timespec { tv_sec: 0, tv_nsec: 0 }) };
            rustix::io::retry_on_intr(|| poll(&mut polled, patience))?;
            let ready: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
            let (of_pipes, others) = ready.split_at(pipes.len());
            let (ended, rung) = (others.first() == Some(&true), others.get(1) == Some(&true));
            if !lives && !of_pipes.contains(&true) {
                break;
            }
            pipes = heard(pipes, of_pipes, &mut piece, hear)?;
            if ended || rung {
                self.end_all();
            }
            lives &= !ended;
            stopped |= rung;
        }
        Ok(exit_of(self.child.wait()?, stopped))
    }

    /// Before the leader was waited for, the number of the group cannot belong to others.
    fn end_all(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.end_all();
            let _ = self.child.wait();
        }
    }
}

/// Invariant: nothing here may make the standard library fork instead of calling posix_spawn, whose cost does not grow
/// with our memory: no pre_exec, uid, gid or groups.
fn spawn(order: &Order, input: OwnedFd) -> Result<Child, LimitsError> {
    #[expect(clippy::disallowed_methods, reason = "this is one of the two places where processes are started")]
    Command::new(&order.program)
        .args(&order.arguments)
        .current_dir(&order.folder)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(Stdio::from(input))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| LimitsError::Start { program: order.program.clone(), source })
}

/// The first moments of a program are without limits; it can do little in them, and all that it starts inherits them.
fn limit(leader: Pid, cpu_seconds: u64) -> io::Result<()> {
    for (resource, most) in [(Resource::Cpu, cpu_seconds), (Resource::Fsize, LARGEST_FILE), (Resource::Core, 0)] {
        match prlimit(Some(leader), resource, Rlimit { current: Some(most), maximum: Some(most) }) {
            // It has ended already, or has a lower limit than this.
            Ok(_) | Err(Errno::SRCH | Errno::PERM | Errno::INVAL) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Tells what can be read, and gives the pipes that are still open.
fn heard(
    pipes: Vec<(Stream, OwnedFd)>,
    ready: &[bool],
    piece: &mut [u8],
    hear: &mut dyn FnMut(Stream, &[u8]),
) -> io::Result<Vec<(Stream, OwnedFd)>> {
    let mut open = Vec::with_capacity(pipes.len());
    for ((stream, pipe), ready) in pipes.into_iter().zip(ready) {
        if *ready {
            match rustix::io::read(pipe.as_fd(), &mut *piece) {
                Ok(0) => continue,
                Ok(length) => hear(stream, &piece[..length]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        open.push((stream, pipe));
    }
    Ok(open)
}

/// What came to its own end in the moment in which it was stopped did come to its end.
fn exit_of(status: ExitStatus, stopped: bool) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, _) if stopped => Exit::Stopped,
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}
