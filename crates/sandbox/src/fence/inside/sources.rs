//! Everything of the outside that a job sees, opened before the outside is left.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::identity::{Identity, RootAsNobody};
use super::mounts::{self, Access, MountDepth};
use crate::fence::job::{FenceJob, LayeredFolder, SYSTEM, WorkspaceView};
use crate::fence::wire::{AtStep, StepFailure};
use crate::sealed_file::sealed_file;

/// The devices that every process has.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Something that is put at a path inside.
pub(super) struct Placement {
    pub(super) at: PathBuf,
    pub(super) what: MountSource,
}

/// What is put there.
pub(super) enum MountSource {
    /// A link, as it is outside.
    Link(PathBuf),
    /// An empty folder in memory, with this mode.
    Private(&'static str),
    /// A file or folder of the outside.
    Bound { tree: OwnedFd, is_folder: bool },
    /// A layer over folders of the outside, the uppermost of them first.
    Layer { layer: OpenLayer, beneath: Vec<OwnedFd> },
}

/// An open folder with the two folders of an overlay in it.
pub(super) struct OpenLayer {
    pub(super) tree: OwnedFd,
    pub(super) upper: OwnedFd,
    pub(super) work: OwnedFd,
}

/// Everything that a job sees, what lies above first.
pub(super) struct Sources {
    pub(super) devices: Vec<(&'static str, OwnedFd)>,
    pub(super) placed: Vec<Placement>,
}

/// Opens things for whom they are shown to.
struct Opener {
    identity: Identity,
    /// Set where owners have to be shown as somebody else.
    ids: Option<RootAsNobody>,
}

impl Sources {
    /// Opens everything. It must be called with the rights to see it, and to copy mounts.
    pub(super) fn open(job: &FenceJob, identity: Identity) -> Result<Sources, StepFailure> {
        let ids = match identity {
            Identity::Same(..) | Identity::Owner(..) => None,
            Identity::Nobody => Some(RootAsNobody::new().at(|| "show root's files as nobody's".to_owned())?),
        };
        let opener = Opener { identity, ids };
        let mut placed = Vec::new();
        for path in SYSTEM.iter().map(Path::new).chain(job.readable.iter().map(PathBuf::as_path)) {
            readable(path, &mut placed)?;
        }
        if job.network
            && let Ok(names) = Path::new("/etc/resolv.conf").canonicalize()
            && !covered(&placed, &names)
        {
            readable(&names, &mut placed)?;
        }
        opener.workspace(job, &mut placed)?;
        for layered in &job.layered {
            placed.push(opener.layered(layered)?);
        }
        for path in &job.writable {
            placed.push(opener.folder(path, Access::Write)?);
        }
        add_private(job, &mut placed);
        placed.sort_by_key(|one| one.at.components().count());
        Ok(Sources { devices: devices()?, placed })
    }
}

impl Opener {
    fn workspace(&self, job: &FenceJob, placed: &mut Vec<Placement>) -> Result<(), StepFailure> {
        let at = job.workspace.clone();
        placed.push(match &job.view {
            WorkspaceView::ReadOnly => self.folder(&at, Access::Read)?,
            WorkspaceView::Direct => self.folder(&at, Access::Write)?,
            WorkspaceView::Aside { layer } => {
                let (beneath, layer) = (vec![at.clone()], layer.clone());
                self.layered(&LayeredFolder { at, beneath, layer, own_work: None })?
            }
        });
        Ok(())
    }

    /// A folder of the outside, as it is.
    fn folder(&self, path: &Path, access: Access) -> Result<Placement, StepFailure> {
        let tree = self.open(path, access, MountDepth::Whole)?;
        Ok(Placement { at: path.to_owned(), what: MountSource::Bound { tree, is_folder: true } })
    }

    fn layered(&self, layered: &LayeredFolder) -> Result<Placement, StepFailure> {
        let tree = self.open(&layered.layer, Access::Write, MountDepth::Alone)?;
        let half = |name: &str| self.half(&tree, name).at(|| format!("open {}/{name}", layered.layer.display()));
        let work = layered.own_work.as_ref().map_or_else(|| "work".to_owned(), |own| format!("work/{own}"));
        let layer = OpenLayer { upper: half("upper")?, work: half(&work)?, tree };
        for path in &layered.beneath {
            refuse_mounts_inside(path)?;
        }
        let beneath = layered.beneath.iter().map(|path| self.open(path, Access::Read, MountDepth::Alone));
        let beneath = beneath.collect::<Result<_, _>>()?;
        Ok(Placement { at: layered.at.clone(), what: MountSource::Layer { layer, beneath } })
    }

    /// One of the two folders of a layer, as the property of whom it is for.
    fn half(&self, tree: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let half = rustix::fs::openat(tree, name, flags, Mode::empty())?;
        if let Identity::Owner(uid, gid) = self.identity {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            rustix::fs::chownat(&half, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
        }
        Ok(half)
    }

    fn open(&self, path: &Path, access: Access, depth: MountDepth) -> Result<OwnedFd, StepFailure> {
        let tree = mounts::clone_tree(path, depth).at(|| format!("open {}", path.display()))?;
        mounts::restrict(&tree, access, MountDepth::Whole)
            .at(|| format!("restrict the mounts of {}", path.display()))?;
        if let Some(ids) = &self.ids {
            mounts::map_owners(&tree, ids.as_fd())
                .at(|| format!("show root's files as nobody's in {}", path.display()))?;
        }
        Ok(tree)
    }
}

/// What is mounted inside a folder would be missing under a layer over it.
fn refuse_mounts_inside(folder: &Path) -> Result<(), StepFailure> {
    let mounts = std::fs::read("/proc/self/mountinfo").at(|| "list the mounts".to_owned())?;
    let inside = [&as_listed(folder), b"/".as_slice()].concat();
    let places = mounts.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let Some(place) = places.into_iter().find(|place| place.starts_with(&inside)) else { return Ok(()) };
    let step = format!("lay a layer over {}", folder.display());
    let why = format!("{} is mounted inside it, which no layer can show", String::from_utf8_lossy(place));
    Err(StepFailure::refused(&step, &why))
}

/// A path as the list of mounts writes it.
fn as_listed(path: &Path) -> Vec<u8> {
    let mut listed = Vec::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => listed.extend(format!("\\{byte:03o}").bytes()),
            _ => listed.push(*byte),
        }
    }
    listed
}

/// Adds what may be read, if it exists and can be; of a link, also what it leads to.
fn readable(path: &Path, placed: &mut Vec<Placement>) -> Result<(), StepFailure> {
    let Ok(kind) = path.symlink_metadata() else { return Ok(()) };
    if kind.is_symlink() {
        let target = std::fs::read_link(path).at(|| format!("read the link {}", path.display()))?;
        placed.push(Placement { at: path.to_owned(), what: MountSource::Link(target) });
        return match path.canonicalize() {
            Ok(real) if !covered(placed, &real) => readable(&real, placed),
            Ok(_) | Err(_) => Ok(()),
        };
    }
    let tree = match mounts::clone_tree(path, MountDepth::Whole) {
        Ok(tree) => tree,
        Err(Errno::ACCESS | Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno).at(|| format!("open {}", path.display())),
    };
    mounts::restrict(&tree, Access::Read, MountDepth::Whole)
        .at(|| format!("restrict the mounts of {}", path.display()))?;
    placed.push(Placement { at: path.to_owned(), what: MountSource::Bound { tree, is_folder: kind.is_dir() } });
    Ok(())
}

/// Whether a path is inside something of the outside that is there already.
fn covered(placed: &[Placement], path: &Path) -> bool {
    placed.iter().any(|one| match one.what {
        MountSource::Link(_) => false,
        MountSource::Private(_) | MountSource::Bound { .. } | MountSource::Layer { .. } => path.starts_with(&one.at),
    })
}

/// Adds the folders that every process has for itself, unless the job brings them.
fn add_private(job: &FenceJob, placed: &mut Vec<Placement>) {
    let home = job.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
    let home = home.filter(|home| home.is_absolute()).map(|home| (home, "700"));
    for (at, mode) in [(Path::new("/tmp"), "1777"), (Path::new("/var/tmp"), "1777")].into_iter().chain(home) {
        if !covered(placed, at) {
            placed.push(Placement { at: at.to_owned(), what: MountSource::Private(mode) });
        }
    }
}

fn devices() -> Result<Vec<(&'static str, OwnedFd)>, StepFailure> {
    let open = |name: &'static str| {
        let path = Path::new("/dev").join(name);
        let device = mounts::clone_tree(&path, MountDepth::Alone).at(|| format!("open {}", path.display()))?;
        mounts::restrict(&device, Access::Device, MountDepth::Alone).at(|| format!("restrict {}", path.display()))?;
        Ok((name, device))
    };
    DEVICES.into_iter().map(open).collect()
}

/// What the command reads from its standard input: nobody can change it, and no other process ends it.
pub(super) fn input(bytes: &[u8]) -> io::Result<OwnedFd> {
    if bytes.is_empty() {
        return Ok(rustix::fs::openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
    }
    Ok(sealed_file("stdin", bytes)?.into())
}
