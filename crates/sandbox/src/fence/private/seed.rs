//! What lies lowest in a private folder: the places for everything that is mounted in it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use crate::fence::toolchains::Toolchains;

/// What lies lowest in one private folder, for whoever the fenced process runs as.
///
/// Mounts find their places in it, so that none has to be made in the layer of the call, where it would stay.
#[derive(Hash)]
pub(super) struct Seed<'a> {
    places: Vec<(&'a Path, MountTarget)>,
    gitconfig: Option<&'a str>,
    owner: Option<(u32, u32)>,
}

/// What has to be there for a mount.
#[derive(Hash)]
enum MountTarget {
    Folder,
    File,
    /// A link, which is the same inside.
    Link(PathBuf),
}

impl<'a> Seed<'a> {
    /// The seed of the private folder `at`; `None` if nothing is mounted there.
    pub(super) fn of(
        at: &'a Path,
        tools: &'a Toolchains,
        workspace: &'a Path,
        owner: Option<(u32, u32)>,
    ) -> Option<Seed<'a>> {
        let caches = tools.caches.iter().map(|cache| cache.at.as_path());
        let others = [tools.home.as_path(), workspace];
        let mounted = tools.readable.iter().map(PathBuf::as_path).chain(caches).chain(others);
        let inside = mounted.filter(|path| *path != at).filter_map(|path| Some((path, path.strip_prefix(at).ok()?)));
        let places: Vec<_> = inside.filter_map(|(path, inside)| Some((inside, place_of(path)?))).collect();
        let gitconfig = tools.gitconfig.as_deref().filter(|_| at == tools.home);
        (!places.is_empty() || gitconfig.is_some()).then_some(Seed { places, gitconfig, owner })
    }

    /// A name that only an equal seed has.
    pub(super) fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// Makes it as a new folder.
    pub(super) fn make(&self, folder: &Path) -> io::Result<()> {
        self.make_folder(folder)?;
        for (inside, place) in &self.places {
            self.make_place(folder, inside, place)?;
        }
        match self.gitconfig {
            Some(content) => self.make_file(&folder.join(".gitconfig"), content),
            None => Ok(()),
        }
    }

    fn make_place(&self, folder: &Path, inside: &Path, place: &MountTarget) -> io::Result<()> {
        let mut above = folder.to_owned();
        for name in inside.parent().unwrap_or(Path::new("")) {
            above.push(name);
            self.make_folder(&above)?;
        }
        let path = folder.join(inside);
        match place {
            MountTarget::Folder => self.make_folder(&path),
            MountTarget::File if path.exists() => Ok(()),
            MountTarget::File => self.make_file(&path, ""),
            MountTarget::Link(target) => there(symlink(target, path)),
        }
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Ok(()) => self.give(path, 0o755),
            made => there(made),
        }
    }

    fn make_file(&self, path: &Path, content: &str) -> io::Result<()> {
        fs::write(path, content)?;
        self.give(path, 0o644)
    }

    /// Lets the fenced process read it, which may be somebody else than we are.
    fn give(&self, path: &Path, mode: u32) -> io::Result<()> {
        if let Some((uid, gid)) = self.owner {
            lchown(path, Some(uid), Some(gid))?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }
}

fn place_of(path: &Path) -> Option<MountTarget> {
    let kind = path.symlink_metadata().ok()?;
    if kind.is_symlink() {
        return Some(MountTarget::Link(fs::read_link(path).ok()?));
    }
    Some(if kind.is_dir() { MountTarget::Folder } else { MountTarget::File })
}

/// What is there already need not be made.
fn there(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
