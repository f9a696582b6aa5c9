//! The namespaces of a fenced process.

use std::fs;
use std::io;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socket_with};
use rustix::thread::UnshareFlags;

use super::fork::unshare;
use crate::fence::loopback::LoopbackNetwork;
use crate::fence::wire::{AtStep, StepFailure};

/// The network that a fenced process is in.
pub(super) enum NetworkSpace {
    /// The machine's.
    Machine,
    /// One of its own.
    Own,
    /// One that it shares with other commands of its workspace.
    Shared(LoopbackNetwork),
}

/// Enters namespaces of our own; the next child is the first process in them. Only the own user and group exist there.
pub(super) fn enter(ids: (u32, u32), network: NetworkSpace) -> Result<(), StepFailure> {
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    match network {
        NetworkSpace::Machine => {}
        NetworkSpace::Own => flags |= UnshareFlags::NEWNET,
        NetworkSpace::Shared(loopback) => loopback.join().map_err(|errno| {
            StepFailure::refused(
                "join the loopback network of the background commands",
                &format!("{}; start haft anew", io::Error::from(errno)),
            )
        })?,
    }
    unshare(flags).at(|| "make namespaces".to_owned())?;
    map_ids(ids)
}

/// Makes a network with nothing but the loopback interface, and a user namespace that it belongs to.
pub(super) fn make_loopback(ids: (u32, u32)) -> Result<LoopbackNetwork, StepFailure> {
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET).at(|| "make a loopback network".to_owned())?;
    map_ids(ids)?;
    raise_loopback()?;
    LoopbackNetwork::of_this_process().at(|| "open the loopback network".to_owned())
}

/// Lets only the own user and group exist in the user namespace that was just made.
fn map_ids((uid, gid): (u32, u32)) -> Result<(), StepFailure> {
    // Groups cannot be changed inside, which is the condition for mapping one's own without being root.
    for (file, content) in
        [("setgroups", "deny".to_owned()), ("uid_map", format!("{uid} {uid} 1")), ("gid_map", format!("{gid} {gid} 1"))]
    {
        fs::write(format!("/proc/self/{file}"), content).at(|| format!("write /proc/self/{file}"))?;
    }
    Ok(())
}

/// Lets processes inside reach one another over the loopback interface, which is the first one of a new namespace.
pub(super) fn raise_loopback() -> Result<(), StepFailure> {
    const UP: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&1_u16.to_ne_bytes()); // NLM_F_REQUEST
    message.extend_from_slice(&[0; 8]); // sequence, port
    message.extend_from_slice(&[0; 4]); // family, type
    message.extend_from_slice(&1_i32.to_ne_bytes()); // index
    message.extend_from_slice(&UP.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    // The protocol that none is given for is NETLINK_ROUTE.
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .and_then(|socket| rustix::net::send(socket, &message, SendFlags::empty()))
        .at(|| "raise the loopback interface".to_owned())?;
    Ok(())
}
