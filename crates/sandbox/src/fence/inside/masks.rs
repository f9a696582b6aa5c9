//! What a fenced process does not see although it lies in what it sees.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access as Right, FileType, Mode};
use rustix::io::Errno;

use super::mounts::{self, Access, MountDepth};
use super::root::FenceRoot;
use crate::fence::job::{FenceJob, Mask, MaskContent, STEERING, WorkspaceView};
use crate::fence::wire::{AtStep, StepFailure};

/// Secrets of the system. Most are closed to everybody but root anyhow; a group may open them.
pub(super) const SECRETS: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/security/opasswd",
    "/etc/krb5.keytab",
];
/// What `/proc` tells or does that is not about the processes inside.
const KERNEL: [&str; 14] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/config.gz",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/vmallocinfo",
];
/// Where what is shown in the place of secrets lies, if the workspace itself is seen and no layer over it.
pub(super) const SHOWN: &str = "/run/hidden/shown";

/// Masks what is hidden, and closes what a process that writes into the workspace may only read there.
pub(super) fn apply(root: &FenceRoot, job: &FenceJob) -> Result<(), StepFailure> {
    if job.view == WorkspaceView::Direct {
        for path in STEERING {
            protect(root, &job.workspace.join(path))?;
        }
    }
    let masks = Masks::new(root)?;
    for path in SECRETS.iter().chain(&KERNEL).map(Path::new) {
        masks.hide_if_readable(path)?;
    }
    hide_host_keys(&masks)?;
    for path in &job.hidden {
        masks.hide_for(path, &job.workspace)?;
    }
    match job.view {
        WorkspaceView::ReadOnly | WorkspaceView::Direct => {
            job.masks.iter().enumerate().try_for_each(|(number, mask)| masks.cover(number, mask, &job.workspace))
        }
        // A layer hides what has to be hidden.
        WorkspaceView::Aside { .. } => Ok(()),
    }
}

/// Makes something read-only. `.git` itself, as a folder, stays writable, but cannot be moved away any more.
fn protect(root: &FenceRoot, path: &Path) -> Result<(), StepFailure> {
    let Ok(place) = root.open_itself(path) else { return Ok(()) };
    let step = || format!("make {} read-only", path.display());
    let kind = kind_of(&place).at(step)?;
    if kind == FileType::Symlink {
        return Ok(());
    }
    let stays = path.ends_with(".git") && kind == FileType::Directory;
    let tree = mounts::clone_of(&place, MountDepth::Whole).at(step)?;
    mounts::restrict(&tree, if stays { Access::Write } else { Access::Read }, MountDepth::Whole).at(step)?;
    mounts::attach(tree, place).at(step)
}

/// Puts nothing over something: an empty file or folder that nobody may open.
struct Masks<'a> {
    root: &'a FenceRoot,
    /// Mounts of an empty folder and an empty file, to be copied.
    folder: OwnedFd,
    file: OwnedFd,
}

impl Masks<'_> {
    fn new(root: &FenceRoot) -> Result<Masks<'_>, StepFailure> {
        let (folder, file) = (root.folder(Path::new("/run/hidden/folder"))?, root.file(Path::new("/run/hidden/file"))?);
        let closed = |nothing: OwnedFd| close(nothing).at(|| "make something empty to hide things with".to_owned());
        Ok(Masks { root, folder: closed(folder)?, file: closed(file)? })
    }

    /// Hides what the job hides. A link is as hidden as what it leads to, if that lies in the workspace.
    fn hide_for(&self, path: &Path, workspace: &Path) -> Result<(), StepFailure> {
        let Ok(mut place) = self.root.open_itself(path) else { return Ok(()) };
        let step = || format!("hide {}", path.display());
        if kind_of(&place).at(step)? == FileType::Symlink {
            let Ok(target) = self.root.open(path) else { return Ok(()) };
            if !self.root.path_of(&target).is_some_and(|target| target.starts_with(workspace)) {
                return Ok(());
            }
            place = target;
        }
        self.hide(&place).at(step)
    }

    /// Puts what is shown over a place of the workspace. What a link leads to has a mask of its own.
    fn cover(&self, number: usize, mask: &Mask, workspace: &Path) -> Result<(), StepFailure> {
        let path = workspace.join(mask.place.as_path());
        let Ok(place) = self.root.open_itself(&path) else { return Ok(()) };
        let step = || format!("hide {}", path.display());
        let kind = kind_of(&place).at(step)?;
        match &mask.content {
            _ if kind == FileType::Symlink => Ok(()),
            MaskContent::Head { bytes, mode, .. } if kind == FileType::RegularFile => {
                let shown = self.root.file(&Path::new(SHOWN).join(number.to_string()))?;
                std::fs::write(by_number(&shown), bytes).at(step)?;
                rustix::fs::chmod(by_number(&shown), Mode::from_raw_mode(*mode)).at(step)?;
                let shown = mounts::clone_of(shown, MountDepth::Alone).at(step)?;
                mounts::restrict(&shown, Access::Read, MountDepth::Alone).at(step)?;
                mounts::attach(shown, place).at(step)
            }
            MaskContent::Head { .. } | MaskContent::Nothing => self.hide(&place).at(step),
        }
    }

    fn hide_if_readable(&self, path: &Path) -> Result<(), StepFailure> {
        let Ok(place) = self.root.open_itself(path) else { return Ok(()) };
        match rustix::fs::access(by_number(&place), Right::READ_OK) {
            Err(Errno::ACCESS | Errno::NOENT) => Ok(()),
            // Whatever else is said, it may be readable.
            Ok(()) | Err(_) => self.hide(&place).at(|| format!("hide {}", path.display())),
        }
    }

    fn hide(&self, place: &OwnedFd) -> Result<(), Errno> {
        let nothing = if kind_of(place)? == FileType::Directory { &self.folder } else { &self.file };
        mounts::attach(mounts::clone_of(nothing, MountDepth::Alone)?, place)
    }
}

/// Closes something empty to everybody, as a read-only mount. It is mounted over itself, as only what is in its place can
/// be copied by every kernel.
fn close(nothing: OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::fs::chmod(by_number(&nothing), Mode::empty())?;
    let mount = mounts::clone_of(&nothing, MountDepth::Alone)?;
    mounts::restrict(&mount, Access::Read, MountDepth::Alone)?;
    mounts::attach(&mount, nothing)?;
    Ok(mount)
}

/// Hides the private keys of this machine.
fn hide_host_keys(masks: &Masks<'_>) -> Result<(), StepFailure> {
    let Ok(entries) = std::fs::read_dir("/etc/ssh") else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("ssh_host_") && !name.to_string_lossy().ends_with(".pub") {
            masks.hide_if_readable(&entry.path())?;
        }
    }
    Ok(())
}

/// A path that leads to an open file or folder, and not to what was put over it since.
fn by_number(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn kind_of(file: &OwnedFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}
