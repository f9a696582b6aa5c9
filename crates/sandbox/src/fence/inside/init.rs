//! The first process inside: it builds the root, starts the command, watches it, and everything ends with it.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, set_dumpable_behavior,
    set_parent_process_death_signal, wait,
};

use super::fork::{exit_now, start_in_our_memory};
use super::sources::Sources;
use super::watch::{self, Watch};
use super::{command, keeper, root, spaces};
use crate::fence::file_time::FileTime;
use crate::fence::job::{Rung, WorkspaceView};
use crate::fence::wire::{self, AtStep, FenceReport, FenceRequest, LoopbackReach, StepFailure};

/// How often what is taken is compared with what may be.
const LOOK: Duration = Duration::from_millis(50);
/// How long the clock of the filesystems may take to move on.
const TICK: Duration = Duration::from_millis(20);

/// What keeps the processes inside together.
pub(super) enum Inside {
    /// Namespaces of their own, in which this sees the outside.
    Namespaces(Sources),
    /// Only that they descend from us.
    Landlock,
}

/// Runs the command and ends with it. `keeper_lives` ends when the keeper does.
pub(super) fn run(
    socket: &UnixStream,
    order: &FenceRequest,
    input: OwnedFd,
    inside: Inside,
    keeper_lives: &OwnedFd,
) -> ! {
    let last = match begin(socket, order, input, inside, keeper_lives) {
        Ok(RunningCommand { command, pidfd, mut watch }) => {
            let lines = [PollFd::new(&pidfd, PollFlags::IN), line(socket), line(keeper_lives)];
            keep_watch((command, socket), lines, &mut watch)
        }
        Err(failure) => Some(FenceReport::Failed(failure)),
    };
    // Nothing may be left when the end is told; where there is a namespace, the kernel sees to it when we exit.
    if matches!(order.job.rung, Rung::Landlock) {
        watch::end_descendants();
    }
    if let Some(report) = last {
        let _ = wire::send(socket, &report);
    }
    exit_now(0)
}

/// A command that runs.
struct RunningCommand {
    command: Pid,
    pidfd: OwnedFd,
    watch: Watch,
}

/// A line that keeps everything alive until it ends.
fn line(of: &impl std::os::fd::AsFd) -> PollFd<'_> {
    PollFd::new(of, PollFlags::IN | PollFlags::RDHUP)
}

fn begin(
    socket: &UnixStream,
    order: &FenceRequest,
    input: OwnedFd,
    inside: Inside,
    keeper_lives: &OwnedFd,
) -> Result<RunningCommand, StepFailure> {
    let job = &order.job;
    let watch = match inside {
        Inside::Namespaces(sources) => {
            set_parent_process_death_signal(Some(Signal::KILL)).at(|| "follow the keeper".to_owned())?;
            if matches!(poll(&mut [line(keeper_lives)], Some(&Timespec::default())), Ok(1)) {
                exit_now(0);
            }
            let written = root::build(job, sources)?;
            if !job.network && order.loopback == LoopbackReach::Itself {
                spaces::raise_loopback()?;
            }
            Watch::namespace(job.limits.clone(), written)
        }
        Inside::Landlock => {
            watch::adopt_orphans().at(|| "adopt orphans".to_owned())?;
            Watch::descendants(job.limits.clone())
        }
    };
    let began = match job.view {
        WorkspaceView::Aside { .. } | WorkspaceView::Direct => wait_for_tick(order.asked),
        // What it sees cannot be taken for its own doing.
        WorkspaceView::ReadOnly => FileTime::now(),
    };
    wire::send(socket, &FenceReport::Began(began)).at(|| "say that it begins".to_owned())?;
    let command = start_in_our_memory(|| command::become_command(socket, job, &input));
    let command = command.at(|| "start the command".to_owned())?;
    drop(input);
    keeper::release_output();
    // Whoever is inside may be the same user, but this is not theirs to look into.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(|| "close ourselves".to_owned())?;
    let pidfd = pidfd_open(command, PidfdFlags::empty()).at(|| "watch the command".to_owned())?;
    Ok(RunningCommand { command, pidfd, watch })
}

/// Waits until the command has ended, a limit is hit, or a line is cut; then there is nothing to say.
fn keep_watch(
    (command, socket): (Pid, &UnixStream),
    mut lines: [PollFd<'_>; 3],
    watch: &mut Watch,
) -> Option<FenceReport> {
    loop {
        let pause = Timespec { tv_sec: 0, tv_nsec: watch.pause(LOOK).subsec_nanos().into() };
        match poll(&mut lines, Some(&pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let is_cut = !lines[2].revents().is_empty();
        if is_cut || (!lines[1].revents().is_empty() && !hand_on_signals(socket, command)) {
            return None;
        }
        if let Some(status) = reap(command) {
            return Some(FenceReport::Ended { status, bound: watch.exceeded_at_end(status) });
        }
        if let Some(bound) = watch.exceeded() {
            return Some(FenceReport::Ended { status: Signal::KILL.as_raw(), bound: Some(bound) });
        }
    }
}

/// Sends the command the signals that came over the socket, a byte each. `false` when the socket has ended.
fn hand_on_signals(mut socket: &UnixStream, command: Pid) -> bool {
    let mut numbers = [0; 16];
    let Ok(length @ 1..) = socket.read(&mut numbers) else { return false };
    for signal in numbers[..length].iter().filter_map(|number| Signal::from_named_raw(i32::from(*number))) {
        // A command that has not made its group yet, or has ended, is not asked twice.
        let _ = kill_process_group(command, signal);
    }
    true
}

/// Reaps whatever has ended. Returns the status of the command if it is among them.
fn reap(command: Pid) -> Option<i32> {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == command {
            return Some(status.as_raw());
        }
    }
    None
}

/// Waits until whatever was changed before the job was asked for has an earlier time than what is changed now.
fn wait_for_tick(asked: FileTime) -> FileTime {
    let began = Instant::now();
    loop {
        let now = FileTime::now();
        if now > asked || began.elapsed() > TICK {
            return now;
        }
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 250_000 }));
    }
}
