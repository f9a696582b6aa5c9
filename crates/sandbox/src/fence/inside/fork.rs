//! Forking a process that has a single thread, and what else needs the system's own interface.

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// Which of the two processes this is after a fork.
pub(super) enum Forked {
    /// The one that forked, and the id of the new one.
    Parent(Pid),
    /// The new one.
    Child,
}

/// Forks. Invariant: only processes with a single thread call this, so the child may do whatever it likes.
#[expect(unsafe_code, reason = "neither the standard library nor rustix forks")]
pub(super) fn fork() -> Result<Forked, Errno> {
    // SAFETY: the process has a single thread, so no lock is held by one that does not exist in the child.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(last_errno());
    }
    Ok(Pid::from_raw(pid).map_or(Forked::Child, Forked::Parent))
}

/// Forks a process that has namespaces of its own from the beginning, and may do nothing but read and end.
#[expect(unsafe_code, reason = "neither the standard library nor rustix clones")]
pub(super) fn fork_into(namespaces: UnshareFlags) -> Result<Forked, Errno> {
    let flags = libc::c_long::from(namespaces.bits()) | libc::c_long::from(libc::SIGCHLD);
    // SAFETY: without a stack of its own the child goes on here with a copy of all memory, as after a fork. What the
    // system's library knows of its processes it knows of the parent, so the child must not ask it.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match i32::try_from(pid) {
        Ok(pid) if pid >= 0 => Ok(Pid::from_raw(pid).map_or(Forked::Child, Forked::Parent)),
        Ok(_) | Err(_) => Err(last_errno()),
    }
}

/// Ends this process at once, without anything that its parent has left to do at its end.
#[expect(unsafe_code, reason = "the standard library has no exit without exit handlers")]
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: the process ends here.
    unsafe { libc::_exit(code) }
}

/// Leaves namespaces for new ones.
#[expect(unsafe_code, reason = "rustix cannot know that no thread of the process relies on what is left")]
pub(super) fn unshare(what: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: no descriptors are unshared, and the process has a single thread.
    unsafe { rustix::thread::unshare_unsafe(what) }
}

/// Lets no descriptor but the first three pass to the command, wherever it comes from.
#[expect(unsafe_code, reason = "neither the standard library nor rustix has close_range")]
pub(super) fn close_on_exec() -> Result<(), Errno> {
    // SAFETY: no descriptor is closed here, only marked.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// What the last system call said.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
