//! The keeper of a fence: the process outside that builds it and waits for it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::fork::{self, ForkSide, exit_now, fork};
use super::identity::Identity;
use super::init::{self, Inside};
use super::sources::{self, Sources};
use super::spaces::{self, NetworkSpace};
use super::watch;
use crate::fence::job::{FenceJob, Rung, WorkspaceView};
use crate::fence::loopback::LoopbackNetwork;
use crate::fence::start::HELPER;
use crate::fence::wire::{self, AtStep, FenceReport, FenceRequest, HelperOrder, Input, LoopbackReach, StepFailure};

/// Called first thing in `main`, before there is any thread: if the first argument is [`HELPER`], the process becomes
/// the keeper of a fence and never returns from here.
pub fn become_helper_if_asked() {
    if std::env::args_os().nth(1).is_none_or(|first| first != HELPER) {
        return;
    }
    let Ok(socket) = take_socket() else { exit_now(2) };
    if let Err(failure) = keep(&socket) {
        let _ = wire::send(&socket, &FenceReport::Failed(failure));
    }
    exit_now(0)
}

/// Takes the socket from the standard input, so that no process inside gets it there.
fn take_socket() -> io::Result<UnixStream> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(sources::input(&[])?)?;
    Ok(socket.into())
}

fn keep(socket: &UnixStream) -> Result<(), StepFailure> {
    fork::close_on_exec().at(|| "close what was inherited".to_owned())?;
    // Keys that are typed in the terminal of whoever asked are for them to hear, and not for us.
    let _ = rustix::process::setsid();
    match wire::receive(socket).at(|| "read the job".to_owned())? {
        HelperOrder::Run(order) => run(socket, *order),
        HelperOrder::MakeLoopback { workspace } => {
            make_loopback(socket, &workspace);
            Ok(())
        }
    }
}

/// Makes a network for the commands of a workspace and hands it over. Whoever asked is gone if that fails.
fn make_loopback(socket: &UnixStream, workspace: &Path) {
    let made = Identity::of(workspace).at(|| format!("look at {}", workspace.display())).and_then(|identity| {
        identity.assume().at(|| "become another user".to_owned())?;
        spaces::make_loopback(identity.ids())
    });
    let (told, network) = match made {
        Ok(network) => (Ok(()), Some(network)),
        Err(failure) => (Err(failure), None),
    };
    let _ = wire::send(socket, &told).and_then(|()| network.map_or(Ok(()), |network| network.send(socket)));
}

fn run(socket: &UnixStream, mut order: FenceRequest) -> Result<(), StepFailure> {
    let network = match (order.loopback, order.job.network) {
        (LoopbackReach::Workspace, _) => LoopbackNetwork::receive(socket).map(NetworkSpace::Shared),
        (LoopbackReach::Itself, false) => Ok(NetworkSpace::Own),
        (LoopbackReach::Itself, true) => Ok(NetworkSpace::Machine),
    };
    let network = network.at(|| "receive the network".to_owned())?;
    let given = wire::receive_bytes(socket).at(|| "read the standard input".to_owned())?;
    wire::receive_masks(socket, &mut order.job.masks).at(|| "read what is shown instead of secrets".to_owned())?;
    let input = match order.input {
        Input::Given => sources::input(&given),
        Input::Conversation => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(io::Error::from),
    };
    let input = input.at(|| "open the standard input".to_owned())?;
    let job = &order.job;
    let identity = Identity::of(&job.workspace).at(|| format!("look at {}", job.workspace.display()))?;
    let inside = match job.rung {
        Rung::Namespaces => Inside::Namespaces(enter(job, identity, network)?),
        Rung::Landlock => {
            stay_outside(job, identity)?;
            Inside::Landlock
        }
    };
    start_first(socket, &order, input, inside)
}

/// Opens what the job sees and leaves for namespaces of our own.
fn enter(job: &FenceJob, identity: Identity, network: NetworkSpace) -> Result<Sources, StepFailure> {
    match identity {
        Identity::Same(..) => {
            spaces::enter(identity.ids(), network)?;
            Sources::open(job, identity)
        }
        // Only root can see all of it, and only in the namespaces that root is root of.
        Identity::Owner(..) | Identity::Nobody => {
            let sources = Sources::open(job, identity)?;
            identity.assume().at(|| "become another user".to_owned())?;
            spaces::enter(identity.ids(), network)?;
            Ok(sources)
        }
    }
}

/// Checks that the job can be fenced without namespaces.
fn stay_outside(job: &FenceJob, identity: Identity) -> Result<(), StepFailure> {
    if matches!(job.view, WorkspaceView::Aside { .. }) || !job.layered.is_empty() {
        return Err(StepFailure::refused("lay a layer over a folder", "Landlock alone has no layers, namespaces have"));
    }
    if identity == Identity::Nobody {
        let why = "root owns the workspace, and what is fenced by Landlock alone never runs as root";
        return Err(StepFailure::refused("become another user", why));
    }
    identity.assume().at(|| "become another user".to_owned())?;
    // If the first process is killed, what it leaves comes to us.
    watch::adopt_orphans().at(|| "adopt orphans".to_owned())
}

/// Forks the first process and waits until it and everything that it started has ended.
fn start_first(socket: &UnixStream, order: &FenceRequest, input: OwnedFd, inside: Inside) -> Result<(), StepFailure> {
    let (lives, held) = io::pipe().at(|| "make a pipe".to_owned())?;
    let sweep = matches!(inside, Inside::Landlock);
    match fork().at(|| "start the first process".to_owned())? {
        ForkSide::Child => {
            drop(held);
            init::run(socket, order, input, inside, &lives.into())
        }
        ForkSide::Parent(first) => {
            // Whatever was opened for the job is held by the first process alone.
            drop((input, inside));
            release_output();
            wait_for(first);
            drop(held);
            if sweep {
                watch::end_descendants();
            }
            Ok(())
        }
    }
}

/// Lets go of the two outputs, which end when the last process inside has let go of them.
pub(super) fn release_output() {
    if let Ok(nothing) = sources::input(&[]) {
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
}

fn wait_for(first: Pid) {
    while matches!(waitpid(Some(first), WaitOptions::empty()), Err(Errno::INTR)) {}
}
