//! A layer between the workspace and what a process writes, in which secrets are absent or as a commit has them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::mounts::{self, Access, MountDepth};
use crate::beneath::{self, Links};
use crate::fence::job::{Mask, MaskContent};
use crate::fence::wire::{AtStep, StepFailure};
use crate::stamp::{EntryIdentity, look};

/// What is shown is limited before it gets here; this only keeps the filesystem's own costs out of the count.
const OPTIONS: [(&str, &str); 3] = [("mode", "700"), ("size", "256m"), ("nr_inodes", "256k")];

/// Makes the layer over a workspace, which is open.
pub(super) fn make(masks: &[Mask], workspace: &OwnedFd) -> Result<OwnedFd, StepFailure> {
    let build = || -> Result<OwnedFd, Errno> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let top = mounts::make("tmpfs", &OPTIONS, attributes)?;
        let mut layer =
            MaskLayer { workspace, folders: BTreeMap::from([(PathBuf::new(), look(workspace)?)]), top: &top };
        for mask in masks {
            match layer.lay(mask) {
                // Somebody has taken it away, or put a link on the way to it, where no command follows it either.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(errno),
            }
        }
        layer.finish()?;
        mounts::restrict(&top, Access::Read, MountDepth::Alone)?;
        Ok(top)
    };
    build().at(|| "make a layer that hides secrets".to_owned())
}

struct MaskLayer<'a> {
    workspace: &'a OwnedFd,
    top: &'a OwnedFd,
    /// The folders that were made, and what they are in the workspace.
    folders: BTreeMap<PathBuf, EntryIdentity>,
}

impl MaskLayer<'_> {
    fn lay(&mut self, mask: &Mask) -> Result<(), Errno> {
        let path = mask.place.as_path();
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        self.make_folder(parent)?;
        let folder = self.open(parent)?;
        let MaskContent::Head { bytes, mode, modified, .. } = &mask.content else {
            // Anybody may make the device 0:0, by which an overlay tells that there is nothing.
            return rustix::fs::mknodat(&folder, Path::new(name), FileType::CharacterDevice, Mode::empty(), 0);
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, Path::new(name), flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        give(&file, *mode, *modified)
    }

    fn make_folder(&mut self, path: &Path) -> Result<(), Errno> {
        if self.folders.contains_key(path) {
            return Ok(());
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        self.make_folder(parent)?;
        let like = look(beneath::open_folder(self.workspace, path, Links::Refuse)?)?;
        rustix::fs::mkdirat(self.open(parent)?, Path::new(name), Mode::RWXU)?;
        self.folders.insert(path.to_owned(), like);
        Ok(())
    }

    /// Makes the folders look like those of the workspace, the innermost first.
    fn finish(&self) -> Result<(), Errno> {
        for (path, like) in self.folders.iter().rev() {
            give(&self.open(path)?, like.stamp.mode & 0o7777, like.stamp.mtime)?;
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        beneath::open(self.top, path, OFlags::RDONLY | OFlags::DIRECTORY, Links::Refuse)
    }
}

/// Gives something these permissions and this time.
fn give(made: impl AsFd, mode: u32, (seconds, nanoseconds): (i64, u32)) -> Result<(), Errno> {
    rustix::fs::fchmod(&made, Mode::from_raw_mode(mode))?;
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    rustix::fs::futimens(&made, &Timestamps { last_access: time, last_modification: time })
}
