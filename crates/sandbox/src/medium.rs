//! What kind of filesystem something lies on.

use std::os::fd::AsFd;

pub(crate) const EXT: u64 = 0xEF53;
pub(crate) const XFS: u64 = 0x5846_5342;
pub(crate) const BTRFS: u64 = 0x9123_683E;
pub(crate) const F2FS: u64 = 0xF2F5_2010;
pub(crate) const TMPFS: u64 = 0x0102_1994;
const OVERLAYFS: u64 = 0x794C_7630;
const ZFS: u64 = 0x2FC1_2FC1;
const BCACHEFS: u64 = 0xCA45_1A4E;

/// Whether an open file or folder lies on a disk or in the memory of this machine. Other filesystems ask a network or a
/// program, which may never answer.
pub(crate) fn is_near(file: impl AsFd) -> bool {
    is_one_of(file, &[EXT, XFS, BTRFS, F2FS, TMPFS, OVERLAYFS, ZFS, BCACHEFS])
}

/// Whether an open file or folder lies on a filesystem of one of these kinds.
pub(crate) fn is_one_of(file: impl AsFd, kinds: &[u64]) -> bool {
    let kind = rustix::fs::fstatfs(file).ok().and_then(|found| u64::try_from(found.f_type).ok());
    kind.is_some_and(|kind| kinds.contains(&kind))
}
