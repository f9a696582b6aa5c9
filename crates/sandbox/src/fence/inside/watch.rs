//! What the processes of a job take together, compared with what they may.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, geteuid, getpid, kill_process, set_child_subreaper, wait};

use crate::fence::job::{Bound, FenceLimits};
use crate::walk::{Visit, walk};

/// How much of the time may be spent on looking: one part of this many.
const SHARE: u32 = 10;
/// How long after one thorough look the next one is due at the earliest.
const THOROUGH: Duration = Duration::from_millis(500);
/// How long everything that descends from us has to die when it is killed.
const DEATH: Duration = Duration::from_secs(5);

/// Watches the processes of a job.
pub(super) struct Watch {
    limits: FenceLimits,
    members: JobMembers,
    /// The folders that layers are written into.
    written: Vec<OwnedFd>,
    /// At the last thorough look.
    nameless: UnnamedBytes,
    thorough_due: Instant,
    last_cost: Duration,
}

/// Which processes belong to the job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobMembers {
    /// All that `/proc` shows, but us.
    All,
    /// All that descend from us.
    Descendants,
}

/// Bytes in open files without a name, which no walk through folders meets.
#[derive(Clone, Copy, Default)]
struct UnnamedBytes {
    /// Whether they are mapped or not.
    in_memory: u64,
    on_disk: u64,
}

/// What lies in the layers.
struct LayerUsage {
    bytes: u64,
    files: u64,
    /// The size of the largest file.
    largest: u64,
}

/// A line of `/proc` about a process.
#[derive(Clone, Copy)]
struct JobProcess {
    pid: Pid,
    parent: i32,
    threads: u64,
    resident: u64,
}

impl JobProcess {
    fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }
}

impl Watch {
    /// Watches all processes of our namespace, and what they write into these folders.
    pub(super) fn namespace(limits: FenceLimits, written: Vec<OwnedFd>) -> Watch {
        Watch::new(limits, JobMembers::All, written)
    }

    /// Watches all processes that descend from us.
    pub(super) fn descendants(limits: FenceLimits) -> Watch {
        Watch::new(limits, JobMembers::Descendants, Vec::new())
    }

    fn new(limits: FenceLimits, members: JobMembers, written: Vec<OwnedFd>) -> Watch {
        let thorough_due = Instant::now() + THOROUGH;
        Watch { limits, members, written, nameless: UnnamedBytes::default(), thorough_due, last_cost: Duration::ZERO }
    }

    /// How long to wait before the next look, so that looking takes only a small share of the time.
    pub(super) fn pause(&self, least: Duration) -> Duration {
        least.max(self.last_cost * SHARE).min(Duration::from_millis(999))
    }

    /// The limit that is hit now.
    pub(super) fn exceeded(&mut self) -> Option<Bound> {
        let began = Instant::now();
        // Who cannot be watched has taken too much already: of what it takes to look, at least.
        let Ok(members) = members(self.members) else { return Some(Bound::Memory) };
        let tasks: u64 = members.iter().map(|member| member.threads).sum();
        if tasks >= self.limits.processes {
            return Some(Bound::Processes);
        }
        let thorough = began >= self.thorough_due;
        if thorough {
            self.nameless = nameless(&members);
        }
        if self.takes_too_much_memory(&members) {
            return Some(Bound::Memory);
        }
        self.last_cost = began.elapsed();
        if !thorough {
            return None;
        }
        let is_full = self.is_too_much(&self.taken_on_disk(self.nameless.on_disk));
        self.thorough_due = Instant::now() + THOROUGH.max(began.elapsed() * SHARE);
        is_full.then_some(Bound::Disk)
    }

    /// The limit that ended a command with this status of `wait(2)`, also where a shell tells it of its child, or that
    /// it may have hit unseen. A code alone proves nothing, as anybody may exit with it.
    pub(super) fn exceeded_at_end(&self, status: i32) -> Option<Bound> {
        // What had no name is gone with the processes that held it.
        let taken = self.taken_on_disk(0);
        let is_own = libc::WIFSIGNALED(status);
        let signal = if is_own { libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) - 128 };
        match signal {
            libc::SIGXCPU | libc::SIGKILL if self.used_its_time() => Some(Bound::Cpu),
            libc::SIGXFSZ if is_own || taken.largest >= self.limits.file_size => Some(Bound::Disk),
            _ if self.is_too_much(&taken) => Some(Bound::Disk),
            _ => None,
        }
    }

    /// Whether what has ended may have used all the processor time of one process.
    fn used_its_time(&self) -> bool {
        let line = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = line.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace();
        let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        // The limit counts whole ticks of the clock, the times of children what was really used: on a busy machine less.
        ticks * 2 >= self.limits.cpu_seconds * rustix::param::clock_ticks_per_second()
    }

    fn takes_too_much_memory(&self, members: &[JobProcess]) -> bool {
        let resident: u64 = members.iter().map(|member| member.resident).sum();
        if resident + self.nameless.in_memory <= self.limits.memory {
            return false;
        }
        // What is shared was counted once for each process; the kernel's own division is exact, but dear.
        let mut own = 0;
        let mut shared = 0;
        for member in members {
            let (all, in_memory_files) = proportional(member);
            own += all - in_memory_files;
            shared += in_memory_files;
        }
        own + shared.max(self.nameless.in_memory) > self.limits.memory
    }

    /// Counts what lies in the layers, until that is too much.
    fn taken_on_disk(&self, nameless: u64) -> LayerUsage {
        let mut taken = LayerUsage { bytes: nameless, files: 0, largest: 0 };
        for folder in &self.written {
            // Whatever goes wrong is a tree that changes while it is counted; the next look sees more.
            let _ = walk(folder.as_fd(), OsStr::new("."), |visit| {
                if let Visit::Entry(step) = visit {
                    let size = step.seen.meta().size;
                    taken.bytes += size;
                    taken.files += 1;
                    taken.largest = taken.largest.max(size);
                }
                if self.is_too_much(&taken) { Err(Errno::DQUOT) } else { Ok(()) }
            });
        }
        taken
    }

    fn is_too_much(&self, taken: &LayerUsage) -> bool {
        taken.bytes > self.limits.written_bytes || taken.files > self.limits.written_files
    }
}

fn members(which: JobMembers) -> io::Result<Vec<JobProcess>> {
    let us = getpid();
    let mut all = processes()?;
    all.retain(|member| member.pid != us);
    if which == JobMembers::Descendants {
        let mut family = HashSet::from([us.as_raw_nonzero().get()]);
        // A child may be listed before its parent, so it takes as many rounds as there are generations.
        loop {
            let before = family.len();
            let children: Vec<_> = all.iter().filter(|one| family.contains(&one.parent)).map(JobProcess::id).collect();
            family.extend(children);
            if family.len() == before {
                break;
            }
        }
        all.retain(|member| family.contains(&member.id()));
    }
    Ok(all)
}

fn processes() -> io::Result<Vec<JobProcess>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            found.extend(look(pid)?);
        }
    }
    Ok(found)
}

/// Looks at a process; `None` when it is gone.
fn look(pid: Pid) -> io::Result<Option<JobProcess>> {
    let line = match fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(line) => line,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(parse(pid, &line))
}

fn parse(pid: Pid, line: &str) -> Option<JobProcess> {
    // The name may hold anything, but the last parenthesis is its end.
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let threads = fields.get(17)?.parse().ok()?;
    let pages: u64 = fields.get(21)?.parse().unwrap_or(0);
    Some(JobProcess { pid, parent, threads, resident: pages * rustix::param::page_size() as u64 })
}

/// The memory of a process with its share of what is shared, and how much of that is in files in memory. If that cannot
/// be told, it has all that is resident.
fn proportional(member: &JobProcess) -> (u64, u64) {
    let Ok(text) = fs::read_to_string(format!("/proc/{}/smaps_rollup", member.pid.as_raw_nonzero())) else {
        return (member.resident, 0);
    };
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    let all = field("Pss:");
    (all, field("Pss_Shmem:").min(all))
}

/// Looks at the files without a name that processes hold open, each once.
fn nameless(members: &[JobProcess]) -> UnnamedBytes {
    let mut seen = HashSet::new();
    let mut found = UnnamedBytes::default();
    for member in members {
        let Ok(files) = fs::read_dir(format!("/proc/{}/fd", member.pid.as_raw_nonzero())) else { continue };
        for file in files.flatten() {
            let Ok(name) = fs::read_link(file.path()) else { continue };
            let name = name.as_os_str().as_encoded_bytes();
            let bytes = if name.starts_with(b"/memfd:") {
                &mut found.in_memory
            } else if name.ends_with(b" (deleted)") {
                &mut found.on_disk
            } else {
                continue;
            };
            if let Ok(meta) = fs::metadata(file.path())
                && seen.insert((meta.dev(), meta.ino()))
            {
                *bytes += meta.blocks() * 512;
            }
        }
    }
    found
}

/// How many tasks of our user there are now, of whatever job.
pub(super) fn tasks_of_user() -> u64 {
    let user = geteuid().as_raw();
    let is_ours = |member: &JobProcess| {
        fs::metadata(format!("/proc/{}", member.pid.as_raw_nonzero())).is_ok_and(|meta| meta.uid() == user)
    };
    processes().unwrap_or_default().iter().filter(|member| is_ours(member)).map(|member| member.threads).sum()
}

/// Lets whatever loses its parent become our child, however it was started.
pub(super) fn adopt_orphans() -> Result<(), Errno> {
    set_child_subreaper(Some(getpid()))
}

/// Kills everything that descends from us until nothing is left.
pub(super) fn end_descendants() {
    let began = Instant::now();
    while began.elapsed() < DEATH {
        let Ok(left) = members(JobMembers::Descendants) else { continue };
        for member in &left {
            let _ = kill_process(member.pid, Signal::KILL);
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if left.is_empty() {
            return;
        }
    }
}
