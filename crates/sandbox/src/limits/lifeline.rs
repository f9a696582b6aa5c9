//! A program's standard input as its lifeline: when haft is gone, the kernel ends the program's process group.

use std::{
    io,
    net::Shutdown,
    os::fd::{AsRawFd, OwnedFd},
    os::unix::net::UnixStream,
};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Pid;

/// Fcntl's words for the signal that tells of a change, which the C library does not name everywhere.
const SET_SIGNAL: libc::c_int = 10;

/// Both ends of a lifeline. The program holds a copy of `theirs` as its standard input, which has nothing to read.
pub(super) struct Lifeline {
    /// Whoever holds it keeps the program alive.
    ours: UnixStream,
    theirs: UnixStream,
}

impl Lifeline {
    pub(super) fn new() -> io::Result<Lifeline> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.shutdown(Shutdown::Write)?;
        Ok(Lifeline { ours, theirs })
    }

    /// What the program is given as its standard input.
    pub(super) fn standard_input(&self) -> io::Result<OwnedFd> {
        Ok(self.theirs.try_clone()?.into())
    }

    /// Ties the process group to the line, and gives the end that keeps it alive.
    ///
    /// The kernel sends a signal to the owner of a socket when the other end goes away, in whatever way that happens.
    /// No code runs between fork and exec for it, so that starting a program costs the same however large haft is.
    pub(super) fn tie(self, group: Pid) -> io::Result<UnixStream> {
        control(&self.theirs, SET_SIGNAL, libc::SIGKILL)?;
        control(&self.theirs, libc::F_SETOWN, -group.as_raw_nonzero().get())?;
        fcntl_setfl(&self.theirs, OFlags::RDWR | OFlags::from_bits_retain(libc::O_ASYNC.cast_unsigned()))?;
        Ok(self.ours)
    }
}

#[expect(unsafe_code, reason = "there is no safe function for whom a socket tells of its end")]
fn control(socket: &UnixStream, command: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: both commands take a number, and the descriptor is open as long as the socket is borrowed.
    match unsafe { libc::fcntl(socket.as_raw_fd(), command, value) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
