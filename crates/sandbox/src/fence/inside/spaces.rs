//! The namespaces of a fenced process.

use std::fs;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socket_with};
use rustix::thread::UnshareFlags;

use super::fork::unshare;
use crate::fence::wire::{AtStep, StepFailure};

/// Enters namespaces of our own; the next child is the first process in them. Only the own user and group exist there.
pub(super) fn enter((uid, gid): (u32, u32), network: bool) -> Result<(), StepFailure> {
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if !network {
        flags |= UnshareFlags::NEWNET;
    }
    unshare(flags).at(|| "make namespaces".to_owned())?;
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
