//! Forking a process that has a single thread, and what else needs the system's own interface.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// Room for the stack of a process that is in our memory; what it does not touch takes none.
const STACK: usize = 1 << 20;

/// Which of the two processes this is after a fork.
pub(super) enum ForkSide {
    /// The one that forked, and the id of the new one.
    Parent(Pid),
    /// The new one.
    Child,
}

/// Forks. Invariant: only processes with a single thread call this, so the child may do whatever it likes.
#[expect(unsafe_code, reason = "neither the standard library nor rustix forks")]
pub(super) fn fork() -> Result<ForkSide, Errno> {
    // SAFETY: the process has a single thread, so no lock is held by one that does not exist in the child.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(last_errno());
    }
    Ok(Pid::from_raw(pid).map_or(ForkSide::Child, ForkSide::Parent))
}

/// Starts a process in our memory, in which we stand still until it has become another program or has ended. Copying
/// that memory, only for it to be left at once, would take longer than all that the process does in it.
#[expect(unsafe_code, reason = "neither the standard library nor rustix clones")]
pub(super) fn start_in_our_memory(mut become_program: impl FnMut()) -> Result<Pid, Errno> {
    let mut become_program: &mut dyn FnMut() = &mut become_program;
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let what = ptr::from_mut(&mut become_program).cast();
    // SAFETY: the stack and what is run outlive the process's time in our memory, in which nobody else runs: we have a
    // single thread, which the kernel stops for so long.
    let pid = unsafe { libc::clone(run, stack.as_mut_ptr_range().end.cast(), flags, what) };
    Pid::from_raw(pid.max(0)).ok_or_else(last_errno)
}

#[expect(unsafe_code, reason = "the system hands over what is to be run as a bare pointer")]
extern "C" fn run(what: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start_in_our_memory` hands over a reference that lives as long as this process is in its memory.
    unsafe { (*what.cast::<&mut dyn FnMut()>())() };
    exit_now(127)
}

/// Starts a process that has namespaces of its own and does nothing but wait until the other end of the pipe closes. It
/// shares our memory: copying that would take longer than all else that it is for.
#[expect(unsafe_code, reason = "neither the standard library nor rustix clones")]
pub(super) fn stand_in(namespaces: UnshareFlags, (stay, go): (OwnedFd, BorrowedFd<'_>)) -> Result<Pid, Errno> {
    let ends = Box::leak(Box::new((stay.as_raw_fd(), go.as_raw_fd())));
    let stack = Box::leak(vec![0_u128; 1024].into_boxed_slice()).as_mut_ptr_range();
    let flags = libc::CLONE_VM | libc::SIGCHLD | namespaces.bits().cast_signed();
    // SAFETY: the stack and what the process is given are its own and never freed, and it touches nothing else of ours.
    let pid = unsafe { libc::clone(wait_for_end, stack.end.cast(), flags, ptr::from_mut(ends).cast()) };
    Pid::from_raw(pid.max(0)).ok_or_else(last_errno)
}

#[expect(unsafe_code, reason = "what shares the memory of another process may use nothing but system calls")]
extern "C" fn wait_for_end(ends: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `stand_in` hands over its two descriptors, which this process has of its own.
    unsafe {
        let (stay, go) = *ends.cast::<(RawFd, RawFd)>();
        libc::close(go);
        libc::read(stay, [0_u8].as_mut_ptr().cast(), 1);
        libc::_exit(0)
    }
}

/// Ends this process at once, without anything that its parent has left to do at its end.
#[expect(unsafe_code, reason = "the standard library has no exit without exit handlers")]
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: the process ends here.
    unsafe { libc::_exit(code) }
}

/// Makes every signal do what it does to a new process. Whoever runs in the background of a script ignores some, and
/// so would all that it starts.
#[expect(unsafe_code, reason = "neither the standard library nor rustix sets what a signal does")]
pub(super) fn heed_signals() {
    for signal in 1..32 {
        // SAFETY: nothing in this process handles a signal, and the two that nobody may set stay as they are.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
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
