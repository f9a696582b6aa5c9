//! The filter of system calls: an allow list.

use seccompiler::sock_filter;

use super::syscalls::{FCHMODAT2, LAST, allowed};
use crate::fence::job::{FenceJob, Rung, WorkspaceView};
use crate::fence::wire::StepFailure;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
/// Where the numbers of the x32 interface begin.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Every flag by which a process would get a namespace; the last is for `unshare` only.
const NAMESPACES: u32 = 0x7E02_0000;
const TIME_NAMESPACE: u32 = 0x80;
/// What makes a program run as its owner.
const SET_ID: u32 = 0o6000;

/// Which number `setpriority` and `ioprio_set` are given: that of one process, and not of a group or user.
const PRIORITY_OF_PROCESS: u32 = 0;
const IO_PRIORITY_OF_PROCESS: u32 = 1;

/// Puts the filter on this process and all that it will start.
pub(super) fn restrict(job: &FenceJob) -> Result<(), StepFailure> {
    seccompiler::apply_filter(&filter(job))
        .map_err(|error| StepFailure::refused("restrict system calls", &error.to_string()))
}

/// What a system call is answered with.
#[derive(Clone, Copy)]
enum SyscallAction {
    Allow,
    Error(i32),
}

const NO: SyscallAction = SyscallAction::Error(libc::EPERM);
const UNKNOWN: SyscallAction = SyscallAction::Error(libc::ENOSYS);
const NO_SPACE: SyscallAction = SyscallAction::Error(libc::ENOSPC);
const NO_FAMILY: SyscallAction = SyscallAction::Error(libc::EAFNOSUPPORT);

/// The largest System V segment.
const LARGEST_SEGMENT: u32 = 64 << 10;

fn filter(job: &FenceJob) -> Vec<sock_filter> {
    let mut filter = vec![load(4), jump(EQUAL, ARCHITECTURE, 1, 0), answer(NO), load(0)];
    #[cfg(target_arch = "x86_64")]
    filter.extend([jump(AT_LEAST, X32, 0, 1), answer(UNKNOWN)]);
    for (call, body) in cases(job) {
        // No body is near the 255 instructions that a jump can skip.
        filter.push(jump(EQUAL, number(call), 0, u8::try_from(body.len()).unwrap_or(u8::MAX)));
        filter.extend(body);
    }
    for (first, last) in runs(&allowed()) {
        filter.extend([jump(ABOVE, last, 3, 0), jump(AT_LEAST, first, 0, 1), answer(SyscallAction::Allow), answer(NO)]);
    }
    // Programs try what is new and fall back if the kernel does not know it.
    filter.extend([jump(ABOVE, LAST, 0, 1), answer(UNKNOWN), answer(NO)]);
    filter
}

/// The system calls whose arguments matter, each with what decides.
fn cases(job: &FenceJob) -> Vec<(i64, Vec<sock_filter>)> {
    let mut cases = vec![
        (libc::SYS_clone, refuse_bits(0, NAMESPACES)),
        // Its flags lie in memory, where no filter sees them.
        (libc::SYS_clone3, vec![answer(UNKNOWN)]),
        (libc::SYS_unshare, refuse_bits(0, NAMESPACES | TIME_NAMESPACE)),
        (libc::SYS_socket, sockets(job)),
        (libc::SYS_socketpair, only(0, &[libc::AF_UNIX as u32], NO_FAMILY)),
        (libc::SYS_personality, only(0, &[0, 8, 0x2_0000, 0x2_0008, u32::MAX], NO)),
        (libc::SYS_shmget, small_segments()),
        (libc::SYS_ioctl, all_but(1, &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32])),
    ];
    cases.extend(keeper_cases(job.rung));
    if job.view == WorkspaceView::Direct || !job.writable.is_empty() {
        cases.extend(set_id_cases());
    }
    cases
}

/// A System V segment belongs to nobody: whoever counts the memory of processes does not see one that was let go of. The
/// kernel allows 4,096 of them; what still uses them, such as a database that marks its folder, needs a few bytes.
fn small_segments() -> Vec<sock_filter> {
    let mut body = vec![load(16 + 8 + 4), jump(EQUAL, 0, 1, 0), answer(NO_SPACE)];
    body.extend([load_argument(1), jump(ABOVE, LARGEST_SEGMENT, 0, 1), answer(NO_SPACE), answer(SyscallAction::Allow)]);
    body
}

/// Which sockets there are. Without namespaces those of this machine would lead to whoever listens there by name, which
/// Landlock does not hinder.
fn sockets(job: &FenceJob) -> Vec<sock_filter> {
    let families: &[i32] = match (job.rung, job.network) {
        (Rung::Namespaces, _) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6],
        (Rung::Landlock, true) => &[libc::AF_INET, libc::AF_INET6],
        (Rung::Landlock, false) => return vec![answer(NO_FAMILY)],
    };
    let mut body = vec![load_argument(0)];
    for family in families {
        body.extend([jump(EQUAL, *family as u32, 0, 1), answer(SyscallAction::Allow)]);
    }
    body.extend([jump(EQUAL, libc::AF_NETLINK as u32, 1, 0), answer(NO_FAMILY)]);
    body.extend(only(2, &[libc::NETLINK_ROUTE as u32], NO_FAMILY));
    body
}

/// Whoever keeps the fence is the same user, whom the kernel lets limit and slow down its other processes.
fn keeper_cases(rung: Rung) -> Vec<(i64, Vec<sock_filter>)> {
    let own = |argument: u32| match rung {
        // The keeper's place is known, and threads are named by their numbers.
        Rung::Namespaces => all_but(argument, &[1]),
        Rung::Landlock => only(argument, &[0], NO),
    };
    // First which kind of number it is, of a process or of something larger; then the number.
    let one_process = |kind: u32| {
        let mut body = vec![load_argument(0), jump(EQUAL, kind, 1, 0), answer(NO)];
        body.extend(own(1));
        body
    };
    let mut limits = vec![load(16 + 8 * 2), jump(EQUAL, 0, 0, 3), load(16 + 8 * 2 + 4), jump(EQUAL, 0, 0, 1)];
    limits.push(answer(SyscallAction::Allow));
    limits.extend(only(0, &[0], NO));
    vec![
        (libc::SYS_prlimit64, limits),
        (libc::SYS_setpriority, one_process(PRIORITY_OF_PROCESS)),
        (libc::SYS_ioprio_set, one_process(IO_PRIORITY_OF_PROCESS)),
        (libc::SYS_sched_setaffinity, own(0)),
        (libc::SYS_sched_setscheduler, own(0)),
        (libc::SYS_sched_setparam, own(0)),
        (libc::SYS_sched_setattr, own(0)),
    ]
}

/// Where files are written that stay, none may be made that runs as its owner.
fn set_id_cases() -> Vec<(i64, Vec<sock_filter>)> {
    let cases = vec![
        (libc::SYS_fchmod, refuse_bits(1, SET_ID)),
        (libc::SYS_fchmodat, refuse_bits(2, SET_ID)),
        (FCHMODAT2, refuse_bits(2, SET_ID)),
        (libc::SYS_mknodat, refuse_bits(2, SET_ID)),
        (libc::SYS_openat, refuse_set_id_when_made(2, 3)),
        // Its mode lies in memory, where no filter sees it.
        (libc::SYS_openat2, vec![answer(UNKNOWN)]),
    ];
    #[cfg(target_arch = "x86_64")]
    let cases = [
        cases,
        vec![
            (libc::SYS_chmod, refuse_bits(1, SET_ID)),
            (libc::SYS_mknod, refuse_bits(1, SET_ID)),
            (libc::SYS_creat, refuse_bits(1, SET_ID)),
            (libc::SYS_open, refuse_set_id_when_made(1, 2)),
        ],
    ]
    .concat();
    cases
}

/// Refuses the mode of a file that a call opens, if it makes one.
fn refuse_set_id_when_made(flags: u32, mode: u32) -> Vec<sock_filter> {
    let makes = (libc::O_CREAT | libc::O_TMPFILE) as u32 & !(libc::O_DIRECTORY as u32);
    let mut body = vec![load_argument(flags), jump(ANY_BIT, makes, 1, 0), answer(SyscallAction::Allow)];
    body.extend(refuse_bits(mode, SET_ID));
    body
}

fn refuse_bits(argument: u32, bits: u32) -> Vec<sock_filter> {
    vec![load_argument(argument), jump(ANY_BIT, bits, 0, 1), answer(NO), answer(SyscallAction::Allow)]
}

fn only(argument: u32, values: &[u32], otherwise: SyscallAction) -> Vec<sock_filter> {
    let mut body = vec![load_argument(argument)];
    for value in values {
        body.extend([jump(EQUAL, *value, 0, 1), answer(SyscallAction::Allow)]);
    }
    body.push(answer(otherwise));
    body
}

fn all_but(argument: u32, values: &[u32]) -> Vec<sock_filter> {
    let mut body = vec![load_argument(argument)];
    for value in values {
        body.extend([jump(EQUAL, *value, 0, 1), answer(NO)]);
    }
    body.push(answer(SyscallAction::Allow));
    body
}

/// The numbers as runs of neighbours, in their order.
fn runs(calls: &[i64]) -> Vec<(u32, u32)> {
    let mut numbers: Vec<u32> = calls.iter().map(|call| number(*call)).collect();
    numbers.sort_unstable();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if number <= *last + 1 => *last = number,
            Some(_) | None => runs.push((number, number)),
        }
    }
    runs
}

fn number(call: i64) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

const EQUAL: u16 = 0x15;
const ABOVE: u16 = 0x25;
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;

fn load(offset: u32) -> sock_filter {
    sock_filter { code: 0x20, jt: 0, jf: 0, k: offset }
}

/// Loads the lower half of an argument, which is all that the kernel looks at in the calls here.
fn load_argument(argument: u32) -> sock_filter {
    load(16 + 8 * argument)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn answer(answer: SyscallAction) -> sock_filter {
    let k = match answer {
        SyscallAction::Allow => libc::SECCOMP_RET_ALLOW,
        SyscallAction::Error(errno) => libc::SECCOMP_RET_ERRNO | errno.unsigned_abs(),
    };
    sock_filter { code: 0x06, jt: 0, jf: 0, k }
}
