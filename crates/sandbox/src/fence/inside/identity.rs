//! Whom fenced processes run as: never root.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Pid, Uid, WaitOptions, getegid, geteuid, set_dumpable_behavior, waitpid};
use rustix::thread::UnshareFlags;

use super::fork::stand_in;

/// Nobody's: outside of what systems give to users, services and containers.
pub(in crate::fence) const UNUSED: u32 = 1_879_100_000;

/// Whom a fenced process runs as, and what has to be done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// As whoever started haft.
    Same(u32, u32),
    /// haft is root: as the owner of the workspace.
    Owner(u32, u32),
    /// haft is root, and so is the owner of the workspace: as nobody, who sees root's files there as its own.
    Nobody,
}

impl Identity {
    pub(super) fn of(workspace: &Path) -> io::Result<Identity> {
        if !geteuid().is_root() {
            return Ok(Identity::Same(geteuid().as_raw(), getegid().as_raw()));
        }
        let owner = std::fs::metadata(workspace)?;
        Ok(match (owner.uid(), owner.gid()) {
            (0, _) => Identity::Nobody,
            (uid, 0) => Identity::Owner(uid, uid),
            (uid, gid) => Identity::Owner(uid, gid),
        })
    }

    pub(super) fn ids(self) -> (u32, u32) {
        match self {
            Identity::Same(uid, gid) | Identity::Owner(uid, gid) => (uid, gid),
            Identity::Nobody => (UNUSED, UNUSED),
        }
    }

    /// Becomes whom it says, for good.
    pub(super) fn assume(self) -> Result<(), Errno> {
        let (uid, gid) = match self {
            Identity::Same(..) => return Ok(()),
            Identity::Owner(..) | Identity::Nobody => self.ids(),
        };
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        // A process that changed its user may not write its own files in /proc, where the maps are, until it says so.
        set_dumpable_behavior(DumpableBehavior::Dumpable)
    }
}

/// The user and group that a fenced process of this workspace runs as. What it makes belongs to them on the disk,
/// except where both haft and the workspace's owner are root: then it belongs to root.
pub fn runs_as(workspace: &Path) -> io::Result<(u32, u32)> {
    Ok(Identity::of(workspace)?.ids())
}

/// The user and group whose files, on the disk, a fenced process of this workspace can change over a layer: whoever
/// else they belong to does not exist inside.
pub fn changes_files_of(workspace: &Path) -> io::Result<(u32, u32)> {
    Ok(match Identity::of(workspace)? {
        Identity::Same(uid, gid) | Identity::Owner(uid, gid) => (uid, gid),
        Identity::Nobody => (0, 0),
    })
}

/// Whether only namespaces let a process of this workspace run as somebody else than root.
pub fn needs_namespaces(workspace: &Path) -> bool {
    !matches!(Identity::of(workspace), Ok(Identity::Same(..) | Identity::Owner(..)))
}

/// A user namespace that shows root's files as nobody's, for mounts.
pub(super) struct RootAsNobody {
    namespace: OwnedFd,
    /// A namespace is made by a process that is in it. This one ends as soon as the namespace is open.
    member: Pid,
}

impl RootAsNobody {
    pub(super) fn new() -> io::Result<RootAsNobody> {
        let (stay, go) = io::pipe()?;
        let member = stand_in(UnshareFlags::NEWUSER, (stay.into(), go.as_fd()))?;
        let file = |name: &str| format!("/proc/{}/{name}", member.as_raw_nonzero());
        std::fs::write(file("uid_map"), format!("0 {UNUSED} 1"))?;
        std::fs::write(file("gid_map"), format!("0 {UNUSED} 1"))?;
        Ok(RootAsNobody { namespace: File::open(file("ns/user"))?.into(), member })
    }
}

impl AsFd for RootAsNobody {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

impl Drop for RootAsNobody {
    /// As long as somebody shares our memory, we cannot leave for namespaces of our own.
    fn drop(&mut self) {
        while matches!(waitpid(Some(self.member), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}
