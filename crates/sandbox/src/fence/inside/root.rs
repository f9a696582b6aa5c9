//! The root folder that a fenced process sees, built of what was opened before.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};

use super::mounts::{self, Access, MountDepth};
use super::sources::{MountSource, OpenLayer, Placement, Sources};
use super::{mask_layer, masks, names};
use crate::fence::job::{FenceJob, WorkspaceView};
use crate::fence::wire::{AtStep, StepFailure};

/// Where the new root is built before it becomes the root; whatever is there is open already.
const SITE: &str = "/usr";
/// For what nobody may run as another user, nor use as a device.
const PLAIN: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// A root folder that is being built.
pub(super) struct FenceRoot {
    top: OwnedFd,
    /// The mounts that are only the job's, in which a place for another can be made without a trace.
    ours: Vec<u64>,
    /// How many bytes each folder in memory may hold.
    private_size: u64,
}

/// Builds the root and moves into it. Returns the folders into which the layers are written.
pub(super) fn build(job: &FenceJob, sources: Sources) -> Result<Vec<OwnedFd>, StepFailure> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .at(|| "keep mounts to ourselves".to_owned())?;
    let mut root = FenceRoot::new(job.limits.memory / 4)?;
    let mut written = Vec::new();
    for Placement { at, mut what } in sources.placed {
        if let MountSource::Layer { beneath, .. } = &mut what
            && at == job.workspace
            && !job.masks.is_empty()
            && let Some(workspace) = beneath.first()
        {
            let masks = mask_layer::make(&job.masks, workspace)?;
            beneath.insert(0, masks);
        }
        let placed = root.place(&at, what, &mut written).map_err(|failure| at_path(failure, &at))?;
        if let Some(layer) = placed
            && at != job.workspace
        {
            root.own(&layer)?;
        }
    }
    root.devices(sources.devices)?;
    root.processes()?;
    names::apply(&root, job)?;
    if job.view == WorkspaceView::ReadOnly || job.view == WorkspaceView::Direct {
        root.private(Path::new(masks::SHOWN), "755")?;
    }
    masks::apply(&root, job)?;
    root.enter()?;
    Ok(written)
}

impl FenceRoot {
    fn new(private_size: u64) -> Result<FenceRoot, StepFailure> {
        let options = [("mode", "755"), ("size", "1m"), ("nr_inodes", "16k")];
        let top = mounts::make("tmpfs", &options, PLAIN).at(|| "make a root folder".to_owned())?;
        let site = rustix::fs::openat(CWD, SITE, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        site.and_then(|site| mounts::attach(&top, site)).at(|| "mount a root folder".to_owned())?;
        let mut root = FenceRoot { top, ours: Vec::new(), private_size };
        root.own(&root.open(Path::new("/")).at(|| "open the root folder".to_owned())?)?;
        Ok(root)
    }

    /// Opens a path inside. Links lead to what they lead to inside.
    pub(super) fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.top, path, flags, Mode::empty(), resolve)
    }

    /// Opens a path inside that is not a link.
    pub(super) fn open_itself(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.top, path, flags, Mode::empty(), resolve)
    }

    /// Where something that was opened inside is, as a path inside.
    pub(super) fn path_of(&self, file: &OwnedFd) -> Option<PathBuf> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        path.strip_prefix(SITE).ok().map(|path| Path::new("/").join(path))
    }

    /// Puts something into place. Returns the mount, if it is a layer.
    fn place(
        &mut self,
        at: &Path,
        what: MountSource,
        written: &mut Vec<OwnedFd>,
    ) -> Result<Option<OwnedFd>, StepFailure> {
        match what {
            MountSource::Link(target) => self.link(at, &target).at(|| "make a link".to_owned())?,
            MountSource::Private(mode) => self.private(at, mode)?,
            MountSource::Bound { tree, is_folder } => {
                let room = if is_folder { self.folder(at)? } else { self.file(at)? };
                mounts::attach(tree, room).at(|| "mount it".to_owned())?;
            }
            MountSource::Layer { layer, beneath } => {
                let mount = self.layer(at, &layer, &beneath)?;
                written.push(layer.upper);
                return Ok(Some(mount));
            }
        }
        Ok(None)
    }

    /// Mounts a layer over what lies beneath. All of it is mounted at the same place, so that only the overlay is seen:
    /// the kernel takes layers only from mounts of our own namespace.
    fn layer(&self, at: &Path, layer: &OpenLayer, beneath: &[OwnedFd]) -> Result<OwnedFd, StepFailure> {
        let attach = |tree: &OwnedFd| {
            self.folder(at).and_then(|room| mounts::attach(tree, room).at(|| "mount a layer".to_owned()))
        };
        attach(&layer.tree)?;
        if beneath.is_empty() {
            let upper = mounts::clone_of(&layer.upper, MountDepth::Alone).at(|| "open the layer".to_owned())?;
            attach(&upper)?;
            return Ok(upper);
        }
        for folder in beneath {
            attach(folder)?;
        }
        let by_number = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
        let lower = beneath.iter().map(by_number).collect::<Vec<_>>().join(":");
        let (upper, work) = (by_number(&layer.upper), by_number(&layer.work));
        let options = [
            ("lowerdir", lower.as_str()),
            ("upperdir", &upper),
            ("workdir", &work),
            ("userxattr", ""),
            ("redirect_dir", "nofollow"),
            ("index", "off"),
            ("metacopy", "off"),
            ("xino", "off"),
            ("volatile", ""),
        ];
        // A layer that was used before is marked as never written to the disk, which is no harm while the machine runs.
        let _ = rustix::fs::unlinkat(&layer.work, "work/incompat/volatile/dirty", AtFlags::empty());
        let _ = rustix::fs::unlinkat(&layer.work, "work/incompat/volatile", AtFlags::REMOVEDIR);
        let overlay = mounts::make("overlay", &options, PLAIN).at(|| "make an overlay".to_owned())?;
        // The kernel makes them so that not even their owner may remove them afterwards.
        for folder in ["work", "work/incompat", "work/incompat/volatile"] {
            let _ = rustix::fs::chmodat(&layer.work, folder, Mode::RWXU, AtFlags::empty());
        }
        attach(&overlay)?;
        Ok(overlay)
    }

    /// Mounts an empty folder in memory.
    fn private(&mut self, at: &Path, mode: &str) -> Result<(), StepFailure> {
        let size = self.private_size.to_string();
        let options = [("mode", mode), ("size", &size), ("nr_inodes", "256k")];
        let made = mounts::make("tmpfs", &options, PLAIN).at(|| "make a folder in memory".to_owned())?;
        let room = self.folder(at)?;
        mounts::attach(&made, room).at(|| "mount a folder in memory".to_owned())?;
        self.own(&made)
    }

    fn devices(&mut self, devices: Vec<(&'static str, OwnedFd)>) -> Result<(), StepFailure> {
        let folder = self.folder(Path::new("/dev"))?;
        self.must_be_ours(&folder).at(|| "make /dev".to_owned())?;
        for (name, device) in devices {
            make_file(&folder, Path::new(name))
                .and_then(|()| mounts::attach_in(device, &folder, Path::new(name)))
                .at(|| format!("mount /dev/{name}"))?;
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            make_link(&folder, Path::new(name), Path::new(target)).at(|| format!("make the link /dev/{name}"))?;
        }
        self.private(Path::new("/dev/shm"), "1777")?;
        let no_programs = PLAIN.difference(MountAttrFlags::MOUNT_ATTR_NODEV) | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let terminals = mounts::make("devpts", &[("ptmxmode", "0666"), ("mode", "620")], no_programs);
        let room = self.folder(Path::new("/dev/pts"))?;
        terminals.and_then(|terminals| mounts::attach(terminals, room)).at(|| "mount /dev/pts".to_owned())
    }

    fn processes(&mut self) -> Result<(), StepFailure> {
        let attributes = PLAIN | MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let processes = mounts::make("proc", &[], attributes).at(|| "make /proc".to_owned())?;
        let room = self.folder(Path::new("/proc"))?;
        mounts::attach(processes, room).at(|| "mount /proc".to_owned())
    }

    /// Makes the new root the only one.
    fn enter(self) -> Result<(), StepFailure> {
        rustix::process::fchdir(&self.top).at(|| "enter the root folder".to_owned())?;
        rustix::process::pivot_root(".", ".").at(|| "change the root folder".to_owned())?;
        unmount(".", UnmountFlags::DETACH).at(|| "leave the old root folder".to_owned())?;
        rustix::process::chdir("/").at(|| "enter the root folder".to_owned())?;
        mounts::restrict(&self.top, Access::Read, MountDepth::Alone).at(|| "make the root folder read-only".to_owned())
    }

    /// Remembers that a mount is the job's alone.
    fn own(&mut self, mount: &OwnedFd) -> Result<(), StepFailure> {
        self.ours.push(mount_of(mount).at(|| "look at a mount".to_owned())?);
        Ok(())
    }

    fn link(&self, at: &Path, target: &Path) -> Result<(), Errno> {
        let (Some(folder), Some(name)) = (at.parent(), at.file_name()) else { return Ok(()) };
        make_link(&self.make_folder(folder)?, Path::new(name), target)
    }

    /// The folder at a path, which is made if it can be without a trace.
    pub(super) fn folder(&self, at: &Path) -> Result<OwnedFd, StepFailure> {
        self.make_folder(at).at(|| "find a place to mount it".to_owned())
    }

    /// The file at a path, which is made if it can be without a trace.
    pub(super) fn file(&self, at: &Path) -> Result<OwnedFd, StepFailure> {
        let made = self.open(at).or_else(|_| {
            let (Some(folder), Some(name)) = (at.parent(), at.file_name()) else { return Err(Errno::ISDIR) };
            let folder = self.make_folder(folder)?;
            self.must_be_ours(&folder)?;
            make_file(&folder, Path::new(name))?;
            self.open(at)
        });
        made.at(|| "find a place to mount it".to_owned())
    }

    fn make_folder(&self, at: &Path) -> Result<OwnedFd, Errno> {
        match self.open(at) {
            Err(Errno::NOENT) => {}
            Ok(folder) => return Ok(folder),
            Err(errno) => return Err(errno),
        }
        let (Some(above), Some(name)) = (at.parent(), at.file_name()) else { return Err(Errno::NOENT) };
        let above = self.make_folder(above)?;
        self.must_be_ours(&above)?;
        rustix::fs::mkdirat(above, Path::new(name), Mode::from_raw_mode(0o755))?;
        self.open(at)
    }

    /// Whatever is made in a folder of the outside would stay there.
    fn must_be_ours(&self, folder: &OwnedFd) -> Result<(), Errno> {
        if self.ours.contains(&mount_of(folder)?) { Ok(()) } else { Err(Errno::NOENT) }
    }
}

/// Makes an empty file, unless there is something.
fn make_file(folder: &OwnedFd, name: &Path) -> Result<(), Errno> {
    match rustix::fs::mknodat(folder, name, FileType::RegularFile, Mode::from_raw_mode(0o444), 0) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

/// Makes a link, unless there is something.
fn make_link(folder: &OwnedFd, name: &Path, target: &Path) -> Result<(), Errno> {
    match rustix::fs::symlinkat(target, folder, name) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

/// The mount that an open file is on.
fn mount_of(file: &OwnedFd) -> Result<u64, Errno> {
    Ok(rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// Says for which path a step failed.
fn at_path(failure: StepFailure, at: &Path) -> StepFailure {
    StepFailure { step: format!("{} at {}", failure.step, at.display()), ..failure }
}
