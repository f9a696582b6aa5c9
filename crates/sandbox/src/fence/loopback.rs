//! A network for the commands of one workspace, in which they reach one another and nobody else.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::FenceError;
use super::keeper::Keeper;
use super::wire::{self, HelperOrder, StepFailure};

/// How long making one may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A network with nothing but the loopback interface. It is two open descriptors and no process, so there is nobody to
/// attack: it is there until the last one who holds it and the last command in it are gone.
#[derive(Debug)]
pub(super) struct LoopbackNetwork {
    /// The user namespace that the network belongs to: only from within it may a process enter the network.
    owner: OwnedFd,
    network: OwnedFd,
}

impl LoopbackNetwork {
    /// Has `program` make one, which belongs to whom the commands of the workspace run as.
    pub(super) fn make(program: &Path, workspace: &Path) -> Result<LoopbackNetwork, FenceError> {
        let keeper = Keeper::start(program, Stdio::null())?;
        let socket = &**keeper.lifeline();
        wire::send(socket, &HelperOrder::MakeLoopback { workspace: workspace.to_owned() })
            .map_err(FenceError::Order)?;
        let told = socket.set_read_timeout(Some(LIMIT)).and_then(|()| wire::receive::<Result<(), StepFailure>>(socket));
        let received = match told {
            Ok(Err(StepFailure { step, why })) => return Err(FenceError::Unavailable { step, why }),
            Ok(Ok(())) => LoopbackNetwork::receive(socket),
            Err(error) => Err(error),
        };
        received.map_err(|error| FenceError::Unavailable {
            step: "make a loopback network for background commands".to_owned(),
            why: error.to_string(),
        })
    }

    /// The network that this process is in.
    pub(super) fn of_this_process() -> io::Result<LoopbackNetwork> {
        let open = |name: &str| File::open(format!("/proc/self/ns/{name}")).map(OwnedFd::from);
        Ok(LoopbackNetwork { owner: open("user")?, network: open("net")? })
    }

    /// Moves this process, which has a single thread, into the network. What it may do there as its owner it loses when
    /// it takes a user namespace of its own. Invariant: after an error it must not run anything.
    pub(super) fn join(self) -> Result<(), Errno> {
        move_into_link_name_space(self.owner.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(self.network.as_fd(), Some(LinkNameSpaceType::Network))
    }

    /// Sends it along with a byte.
    pub(super) fn send(&self, to: &UnixStream) -> io::Result<()> {
        let descriptors = [self.owner.as_fd(), self.network.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        message.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::io::retry_on_intr(|| sendmsg(to, &[IoSlice::new(&[0])], &mut message, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    /// Receives it.
    pub(super) fn receive(from: &UnixStream) -> io::Result<LoopbackNetwork> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        rustix::io::retry_on_intr(|| {
            recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)
        })?;
        let mut descriptors = Vec::with_capacity(2);
        for part in message.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                descriptors.extend(received);
            }
        }
        let mut received = descriptors.into_iter();
        match (received.next(), received.next()) {
            (Some(owner), Some(network)) => Ok(LoopbackNetwork { owner, network }),
            (_, _) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the network was not handed over")),
        }
    }
}
