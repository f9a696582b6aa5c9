//! Makes everything in a layer ours to move, and gives it the permissions and the owner that it shall have.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, Uid};
use rustix::io::Errno;

use crate::stamp::{EntryIdentity, EntryKind, look_at};
use crate::transfer::EntryRef;
use crate::walk::glance;

/// What was changed about folders, and is to be about owners.
pub(super) struct LayerPermissions {
    /// The permissions of folders that had to be opened up, by inode.
    closed: HashMap<u64, u32>,
    owners: Option<Owners>,
}

/// As whom the command ran, and whose the workspace is.
struct Owners {
    command: (u32, u32),
    workspace: (u32, u32),
}

impl LayerPermissions {
    /// Opens up every folder of a layer that cannot be entered or changed by whoever owns it.
    pub(super) fn open_up(
        layer: BorrowedFd<'_>,
        upper: &OsStr,
        workspace: &EntryIdentity,
    ) -> Result<LayerPermissions, Errno> {
        let top = look_at(layer, upper)?.ok_or(Errno::NOENT)?;
        let mut closed = HashMap::new();
        let mut open = |spot: EntryRef<'_>, seen: &EntryIdentity| {
            let mode = seen.stamp.mode & 0o7777;
            if mode & 0o700 == 0o700 {
                return Ok(());
            }
            closed.insert(seen.stamp.ino, mode);
            set_mode(spot, mode | 0o700)
        };
        open(EntryRef { dir: layer, name: upper }, &top)?;
        glance(layer, upper, |glimpse| match glimpse.folder {
            Some(seen) => open(EntryRef { dir: glimpse.dir, name: glimpse.name }, seen),
            None => Ok(()),
        })?;
        // Only root can run a command as somebody else, and give away what that one has made.
        let foreign = rustix::process::geteuid().is_root() && top.owner != workspace.owner;
        let owners = foreign.then_some(Owners { command: top.owner, workspace: workspace.owner });
        Ok(LayerPermissions { closed, owners })
    }

    /// The permission bits that the command has left.
    pub(super) fn mode(&self, seen: &EntryIdentity) -> u32 {
        self.closed.get(&seen.stamp.ino).copied().unwrap_or(seen.stamp.mode & 0o7777)
    }

    /// Gives a folder back the permissions that it had before it was opened up.
    pub(super) fn close(&self, spot: EntryRef<'_>, seen: &EntryIdentity) -> Result<(), Errno> {
        match self.closed.get(&seen.stamp.ino) {
            Some(&mode) => set_mode(spot, mode),
            None => Ok(()),
        }
    }

    /// Gives an entry to whom the one belongs that it stands for, or to the owner of the workspace.
    pub(super) fn give(
        &self,
        spot: EntryRef<'_>,
        seen: &EntryIdentity,
        like: Option<&EntryIdentity>,
    ) -> Result<(), Errno> {
        let Some(owners) = &self.owners else { return Ok(()) };
        let (user, group) = like.map_or_else(|| owners.after(seen.owner), |like| like.owner);
        if seen.owner == (user, group) {
            return Ok(());
        }
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        rustix::fs::chownat(spot.dir, Path::new(spot.name), user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        // A new owner takes the set-uid bit away.
        if seen.kind() != EntryKind::Link && seen.stamp.mode & 0o6000 != 0 {
            set_mode(spot, seen.stamp.mode & 0o7777)?;
        }
        Ok(())
    }
}

impl Owners {
    fn after(&self, (user, group): (u32, u32)) -> (u32, u32) {
        let user = if user == self.command.0 { self.workspace.0 } else { user };
        let group = if group == self.command.1 { self.workspace.1 } else { group };
        (user, group)
    }
}

/// Changes the permissions of an entry of our own folder, which is not a link.
pub(super) fn set_mode(spot: EntryRef<'_>, mode: u32) -> Result<(), Errno> {
    rustix::fs::chmodat(spot.dir, Path::new(spot.name), Mode::from_raw_mode(mode), AtFlags::empty())
}
