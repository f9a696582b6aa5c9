//! Mounts that are made first and put into place later.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// How what is mounted may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// It is a device, which nothing else that is mounted can be.
    Device,
}

/// Whether the mounts in a folder come with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MountDepth {
    Whole,
    Alone,
}

/// A copy of the mount that holds `path`, beginning there.
pub(super) fn clone_tree(path: &Path, depth: MountDepth) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_NO_AUTOMOUNT;
    match depth {
        MountDepth::Whole => open_tree(CWD, path, flags | OpenTreeFlags::AT_RECURSIVE),
        MountDepth::Alone => open_tree(CWD, path, flags),
    }
}

/// A copy of the mount that holds an open file or folder, beginning there.
pub(super) fn clone_of(file: impl AsFd, depth: MountDepth) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    match depth {
        MountDepth::Whole => open_tree(file, "", flags | OpenTreeFlags::AT_RECURSIVE),
        MountDepth::Alone => open_tree(file, "", flags),
    }
}

/// Makes a tree of mounts private to us, without set-uid programs, and to be used only as it says.
pub(super) fn restrict(tree: impl AsFd, access: Access, depth: MountDepth) -> Result<(), Errno> {
    let attributes = match access {
        Access::Read => libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV,
        Access::Write => libc::MOUNT_ATTR_NODEV,
        Access::Device => libc::MOUNT_ATTR_NOEXEC,
    };
    set_attributes(
        tree.as_fd(),
        depth,
        libc::mount_attr {
            attr_set: libc::MOUNT_ATTR_NOSUID | attributes,
            attr_clr: 0,
            propagation: libc::MS_PRIVATE,
            userns_fd: 0,
        },
    )
}

/// Shows the owners of a mount as the user namespace `ids` maps them.
pub(super) fn map_owners(tree: impl AsFd, ids: BorrowedFd<'_>) -> Result<(), Errno> {
    let userns_fd = u64::try_from(ids.as_raw_fd()).map_err(|_| Errno::BADF)?;
    set_attributes(
        tree.as_fd(),
        MountDepth::Alone,
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_IDMAP, attr_clr: 0, propagation: 0, userns_fd },
    )
}

/// A new filesystem of its own.
pub(super) fn make(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> Result<OwnedFd, Errno> {
    let filesystem = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(&filesystem, *key)?;
        } else {
            fsconfig_set_string(&filesystem, *key, *value)?;
        }
    }
    fsconfig_create(&filesystem)?;
    fsmount(&filesystem, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Puts a mount where the open file or folder `at` is.
pub(super) fn attach(mount: impl AsFd, at: impl AsFd) -> Result<(), Errno> {
    move_mount(mount, "", at, "", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH)
}

/// Puts a mount over what has this name in a folder.
pub(super) fn attach_in(mount: impl AsFd, folder: impl AsFd, name: &Path) -> Result<(), Errno> {
    move_mount(mount, "", folder, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

#[expect(unsafe_code, reason = "neither the standard library nor rustix has mount_setattr")]
fn set_attributes(tree: BorrowedFd<'_>, depth: MountDepth, attributes: libc::mount_attr) -> Result<(), Errno> {
    let recursive = match depth {
        MountDepth::Whole => libc::AT_RECURSIVE,
        MountDepth::Alone => 0,
    };
    // SAFETY: the path is a string with its end, and the kernel only reads `attributes`, whose size it is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(super::fork::last_errno()) }
}
