//! A fenced process tree: hearing it, stopping it, and that nothing of it is left.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::FenceError;
use super::file_time::FileTime;
use super::job::Bound;
use super::keeper::Keeper;
use super::wire::{self, FenceReport};

/// The largest piece of output that is told at once.
const PIECE: usize = 64 << 10;
/// Output that comes faster than this is let gather for as long, so that a flood is read in few large pieces.
const GATHERING: Duration = Duration::from_micros(250);
/// How much must have been said before a pipe is made wider, and how much it holds then.
const WIDE: usize = 1 << 20;

/// One of the two outputs of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandExit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// By a [`FenceStopper`].
    Stopped,
}

/// How a fenced process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// How the command ended.
    pub exit: CommandExit,
    /// The limit that it ran into, if it did.
    pub bound: Option<Bound>,
    /// When it began. Only for one that writes the clock had moved on since it was asked for.
    pub began: FileTime,
}

/// A fenced process tree. Dropping it ends the whole tree.
#[derive(Debug)]
pub struct Process {
    keeper: Keeper,
    stopper: FenceStopper,
    program: String,
    began: FileTime,
}

/// A signal that asks a command to end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Signal {
    /// Whoever watched it is gone.
    HangUp = 1,
    /// As by Ctrl-C.
    Interrupt = 2,
    /// As by Ctrl-\\.
    Quit = 3,
    /// The usual one.
    Terminate = 15,
}

/// Ends a whole process tree, from any thread.
#[derive(Clone, Debug)]
pub struct FenceStopper {
    lifeline: Arc<UnixStream>,
    stopped: Arc<AtomicBool>,
}

impl FenceStopper {
    /// Ends the whole tree at once. It may be called any number of times, also when the tree has ended.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Sends a signal to the process group of the command, which may end by it or not.
    pub fn signal(&self, signal: Signal) {
        // An error means that there is nobody left to hear it.
        let _ = (&*self.lifeline).write_all(&[signal as u8]);
    }

    /// Cuts the line that keeps the tree alive. An error means that the other end is gone already.
    fn cut(&self) {
        let _ = self.lifeline.shutdown(Shutdown::Write);
    }
}

impl Process {
    /// What a keeper runs that was given its order.
    pub(super) fn new(keeper: Keeper, program: String, asked: FileTime) -> Process {
        let stopper = FenceStopper { lifeline: keeper.lifeline().clone(), stopped: Arc::default() };
        Process { keeper, stopper, program, began: asked }
    }

    fn socket(&self) -> &UnixStream {
        &self.stopper.lifeline
    }

    /// What ends the tree.
    pub fn stopper(&self) -> FenceStopper {
        self.stopper.clone()
    }

    /// The process id of the fence's keeper, as it is outside.
    pub fn id(&self) -> u32 {
        self.keeper.id()
    }

    /// Hears the output, in the order in which it is read, until everything has ended.
    pub fn wait(self, hear: &mut dyn FnMut(CommandStream, &[u8])) -> Result<ProcessEnd, FenceError> {
        self.wait_taking(&mut |stream, piece| hear(stream, &piece))
    }

    /// Waits as [`Process::wait`] does, for whoever has a use for the pieces themselves.
    pub fn wait_taking(mut self, hear: &mut dyn FnMut(CommandStream, Vec<u8>)) -> Result<ProcessEnd, FenceError> {
        let mut pipes = self.keeper.take_outputs();
        let mut last = None;
        let mut keeper_lives = true;
        let mut room = Vec::with_capacity(PIECE);
        let mut flood = OutputRate { bytes: 0, last: Instant::now() };
        while keeper_lives || !pipes.is_empty() {
            let ready = self.ready(&pipes, keeper_lives).map_err(FenceError::Output)?;
            let mut open = Vec::with_capacity(2);
            for ((stream, pipe), readable) in pipes.into_iter().zip(ready.pipes) {
                let length = if readable { read(&pipe, &mut room).map_err(FenceError::Output)? } else { None };
                if let Some(length @ 1..) = length {
                    hear(stream, taken(&mut room));
                    flood.widen(&pipe, length);
                    if keeper_lives {
                        flood.let_gather(length, self.socket());
                    }
                }
                if length != Some(0) {
                    open.push((stream, pipe));
                }
            }
            pipes = open;
            if ready.report {
                match wire::receive(self.socket()) {
                    Ok(FenceReport::Began(tick)) => self.began = tick,
                    Ok(
                        report @ (FenceReport::Failed(_)
                        | FenceReport::NotFound
                        | FenceReport::NotRun(_)
                        | FenceReport::Ended { .. }),
                    ) => {
                        last.get_or_insert(report);
                    }
                    Err(_) => keeper_lives = false,
                }
            }
        }
        // The keeper closed its end, so it is at its end itself, or was killed.
        self.keeper.wait();
        self.outcome(last)
    }

    /// Waits until there is something to read.
    fn ready(&self, pipes: &[(CommandStream, OwnedFd)], keeper_lives: bool) -> io::Result<ReadyPipes> {
        let mut polled: Vec<_> = pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)).collect();
        if keeper_lives {
            polled.push(PollFd::new(self.socket(), PollFlags::IN));
        }
        rustix::io::retry_on_intr(|| poll(&mut polled, None))?;
        let mut ready: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        let report = keeper_lives && ready.pop() == Some(true);
        Ok(ReadyPipes { pipes: ready, report })
    }

    fn outcome(&self, last: Option<FenceReport>) -> Result<ProcessEnd, FenceError> {
        let stopped = self.stopper.stopped.load(Ordering::SeqCst);
        let (exit, bound) = match last {
            Some(FenceReport::Failed(failure)) => {
                return Err(FenceError::Unavailable { step: failure.step, why: failure.why });
            }
            Some(FenceReport::NotFound) => return Err(FenceError::NotFound { program: self.program.clone() }),
            Some(FenceReport::NotRun(why)) => return Err(FenceError::NotRun { program: self.program.clone(), why }),
            Some(FenceReport::Ended { status, bound }) => (exit_of(status), bound),
            Some(FenceReport::Began(_)) | None if stopped => (CommandExit::Stopped, None),
            Some(FenceReport::Began(_)) | None => return Err(FenceError::Lost),
        };
        Ok(ProcessEnd { exit, bound, began: self.began })
    }
}

/// How much output there was, and how fast it comes.
struct OutputRate {
    bytes: usize,
    /// When the last piece was heard.
    last: Instant,
}

impl OutputRate {
    /// Gives whoever talks much a wide pipe. Nobody has any number of those; a narrow one does it, too.
    fn widen(&mut self, pipe: &OwnedFd, length: usize) {
        let before = self.bytes;
        self.bytes = before.saturating_add(length);
        if before < WIDE && self.bytes >= WIDE {
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, WIDE);
        }
    }

    /// Waits a moment if the last pieces came fast and there is no more for now. The keeper's word cuts it short.
    fn let_gather(&mut self, length: usize, keeper: &UnixStream) {
        if length < PIECE && self.last.elapsed() < GATHERING {
            let moment = Timespec { tv_sec: 0, tv_nsec: GATHERING.subsec_nanos().into() };
            let _ = poll(&mut [PollFd::new(keeper, PollFlags::IN)], Some(&moment));
        }
        self.last = Instant::now();
    }
}

/// What can be read: for each pipe, and of the keeper.
struct ReadyPipes {
    pipes: Vec<bool>,
    report: bool,
}

/// What was read, and room for more. A large piece is handed over as it lies there; a small one would hold too much.
fn taken(room: &mut Vec<u8>) -> Vec<u8> {
    if room.len() >= PIECE / 2 {
        return std::mem::replace(room, Vec::with_capacity(PIECE));
    }
    let piece = room.clone();
    room.clear();
    piece
}

/// Reads what there is into what room there is; `None` when it was nothing after all.
fn read(pipe: impl AsFd, room: &mut Vec<u8>) -> io::Result<Option<usize>> {
    match rustix::io::read(pipe, spare_capacity(room)) {
        Ok(length) => Ok(Some(length)),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn exit_of(status: i32) -> CommandExit {
    if libc::WIFSIGNALED(status) {
        CommandExit::Signal(libc::WTERMSIG(status))
    } else {
        CommandExit::Code(libc::WEXITSTATUS(status))
    }
}
