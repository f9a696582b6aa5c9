//! Runs a program to its end: heard as it speaks, and ended with everything that it has started.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, prlimit};

use super::error::LimitsError;
use super::lifeline::Lifeline;
use super::program_spec::{ProgramSpec, Walls};
use super::stopper::ProgramStopper;
use super::walls;
use crate::fence::{CommandExit, CommandStream};

/// The largest piece of output that is told at once.
const PIECE: usize = 64 << 10;
/// How much of it may wait to be told.
const ROOM: usize = 1 << 20;
/// How long output is left to gather: being woken by each line costs the program more than it says.
const GATHER: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000 };
/// How long a program is looked at by the clock although it has said nothing yet. Whoever is woken by what it says is often
/// woken on the processor that it runs on, and from then on takes turns with it instead of working beside it.
const EARLY: Duration = Duration::from_millis(50);
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// How large a file may become that it writes.
const LARGEST_FILE: u64 = 8 << 30;

/// Hears what a program says.
pub trait OutputListener: Send + 'static {
    /// Hears the next piece of it.
    fn hear(&mut self, stream: CommandStream, bytes: &[u8]);
}

/// Runs a program and hears its output, in the order in which it is read, until it has ended or is stopped; then tells
/// how, and gives the listener back.
///
/// All of it happens on a thread of its own: walls around a thread stay, and what is heard needs nothing from outside them.
pub fn run<L: OutputListener>(
    order: ProgramSpec,
    stopper: ProgramStopper,
    mut listener: L,
    tell: impl FnOnce(L, Result<CommandExit, LimitsError>) + Send + 'static,
) -> Result<(), LimitsError> {
    let running = move || {
        let exit = walled(&order.walls).and_then(|()| Group::start(&order));
        let exit = exit.and_then(|mut group| group.hear(&stopper, &mut listener).map_err(LimitsError::Lost));
        tell(listener, exit);
    };
    // It ends with its program, which ends when it is stopped, or when haft does.
    let started = thread::Builder::new().name("haft-program".to_owned()).spawn(running);
    started.map(drop).map_err(LimitsError::Lost)
}

fn walled(walls: &Walls) -> Result<(), LimitsError> {
    match walls {
        Walls::Open => Ok(()),
        Walls::Alone { readable } => walls::raise(readable),
    }
}

/// A program and what it has started, as far as that stays in its process group.
struct Group {
    child: Child,
    leader: Pid,
    /// Readable when the leader has ended.
    end: OwnedFd,
    since: Instant,
    _lifeline: UnixStream,
}

/// What was heard in one round.
#[derive(Clone, Copy)]
enum ReadRound {
    Nothing,
    Some,
    /// As much as is heard in one round; there may be more.
    More,
}

/// Why a wait is over.
struct WakeReason {
    ended: bool,
    rung: bool,
}

impl Group {
    fn start(order: &ProgramSpec) -> Result<Group, LimitsError> {
        let lifeline = Lifeline::new().map_err(LimitsError::Lost)?;
        let input = lifeline.standard_input().map_err(LimitsError::Lost)?;
        let mut child = spawn(order, input)?;
        let leader = Pid::from_child(&child);
        let held = limit(leader, order.cpu_seconds)
            .and_then(|()| Ok((pidfd_open(leader, PidfdFlags::empty())?, lifeline.tie(leader)?)));
        match held {
            Ok((end, ours)) => Ok(Group { child, leader, end, since: Instant::now(), _lifeline: ours }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(LimitsError::Lost(error))
            }
        }
    }

    fn hear(&mut self, stopper: &ProgramStopper, listener: &mut impl OutputListener) -> io::Result<CommandExit> {
        let mut pipes: Vec<(CommandStream, OwnedFd)> = Vec::with_capacity(2);
        pipes.extend(self.child.stdout.take().map(|pipe| (CommandStream::Stdout, pipe.into())));
        pipes.extend(self.child.stderr.take().map(|pipe| (CommandStream::Stderr, pipe.into())));
        for (_, pipe) in &pipes {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
            // With less room, the program waits more often.
            let _ = fcntl_setpipe_size(pipe, ROOM);
        }
        let mut piece = vec![0; PIECE];
        let (mut said, mut stopped) = (ReadRound::Nothing, false);
        loop {
            let WakeReason { ended, rung } = self.wait(stopper, (&pipes, said), stopped)?;
            if ended || rung {
                self.end_all();
            }
            stopped |= rung;
            // What it had said lies in the pipes when it has ended; nobody is left to say more.
            said = heard(&mut pipes, &mut piece, listener)?;
            if ended {
                return Ok(exit_of(self.child.wait()?, stopped));
            }
        }
    }

    /// Waits for its end, for the bell, and for what it says: where it may speak already, a moment, so that more comes
    /// together.
    fn wait(
        &self,
        stopper: &ProgramStopper,
        (pipes, said): (&[(CommandStream, OwnedFd)], ReadRound),
        stopped: bool,
    ) -> io::Result<WakeReason> {
        let mut polled = vec![PollFd::new(&self.end, PollFlags::IN)];
        if !stopped {
            polled.push(PollFd::new(stopper.bell(), PollFlags::IN));
        }
        let others = polled.len();
        let patience = match said {
            ReadRound::More => Some(&AT_ONCE),
            ReadRound::Some => Some(&GATHER),
            ReadRound::Nothing if self.since.elapsed() < EARLY => Some(&GATHER),
            ReadRound::Nothing => {
                polled.extend(pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
                None
            }
        };
        rustix::io::retry_on_intr(|| poll(&mut polled, patience))?;
        let is_ready = |one: Option<&PollFd<'_>>| one.is_some_and(|one| !one.revents().is_empty());
        Ok(WakeReason { ended: is_ready(polled.first()), rung: is_ready(polled[..others].get(1)) })
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
fn spawn(order: &ProgramSpec, input: OwnedFd) -> Result<Child, LimitsError> {
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

/// Tells what lies in the pipes, of each at most what fits into it, and drops those that are at their end.
// Invariant: a round has an end, however quickly the program speaks, and after its own end one round is enough.
fn heard(
    pipes: &mut Vec<(CommandStream, OwnedFd)>,
    piece: &mut [u8],
    listener: &mut impl OutputListener,
) -> io::Result<ReadRound> {
    let (mut most, mut failed) = (0, Ok(()));
    pipes.retain(|(stream, pipe)| {
        let mut length = 0;
        while length < ROOM {
            match rustix::io::read(pipe.as_fd(), &mut *piece) {
                Ok(0) => return false,
                Ok(read) => {
                    length += read;
                    most = most.max(length);
                    listener.hear(*stream, &piece[..read]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => {
                    failed = Err(errno.into());
                    return false;
                }
            }
        }
        true
    });
    failed.map(|()| match most {
        0 => ReadRound::Nothing,
        ROOM.. => ReadRound::More,
        _ => ReadRound::Some,
    })
}

/// What came to its own end in the moment in which it was stopped did come to its end.
fn exit_of(status: ExitStatus, stopped: bool) -> CommandExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Code(code),
        (None, _) if stopped => CommandExit::Stopped,
        (None, signal) => CommandExit::Signal(signal.unwrap_or_default()),
    }
}
