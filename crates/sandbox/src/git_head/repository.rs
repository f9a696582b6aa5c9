//! Which repository a folder belongs to, where that keeps its things, and what is checked out there.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

use super::is_plain;
use super::objects::{ObjectName, Objects, read_plain};
use crate::beneath::{self, Links};
use crate::root::Root;
use crate::stamp::{EntryIdentity, EntryKind, look, look_at};
use crate::workspace_path::WorkspacePath;

/// More than any file of git's that points to another place.
const LONGEST_POINTER: u64 = 64 << 10;
/// How much is read of the branches that git has packed into one file, and of settings.
const LONGEST_LIST: u64 = 16 << 20;
/// More names than lead from one to the other.
const LONGEST_WAY: usize = 5;

/// A repository as seen from a workspace.
pub(super) struct GitRepository {
    /// The folder of the workspace with its files; above it when the workspace is only a part of them.
    files: RepositoryFiles,
    /// Where `HEAD` is.
    own: OwnedFd,
    /// Where branches and objects are.
    shared: OwnedFd,
    objects: Objects,
}

/// Where the files of a repository lie.
enum RepositoryFiles {
    /// In this folder of the workspace.
    In(WorkspacePath),
    /// Above the workspace, whose path in the repository this is.
    Above(PathBuf),
}

/// The open folders of a repository.
struct GitFolders {
    own: OwnedFd,
    shared: OwnedFd,
}

impl GitRepository {
    /// The nearest repository that a real folder of the workspace belongs to. One that is there and is not understood
    /// hides those above it.
    pub(super) fn around(root: &Root, folder: &WorkspacePath) -> Option<GitRepository> {
        for place in std::iter::successors(Some(folder.clone()), WorkspacePath::parent) {
            let dir = beneath::open_folder(root.handle(), place.for_kernel(), Links::Refuse).ok()?;
            if let Some(door) = look_at(&dir, ".git").ok()? {
                let path = root.path().join(place.as_path());
                let folders = GitFolders::behind(root, &dir, (&path, &door))?;
                return GitRepository::new(RepositoryFiles::In(place), folders);
            }
        }
        let above = root.path().ancestors().skip(1).find(|path| path.join(".git").symlink_metadata().is_ok())?;
        let dir = open_outside(above)?;
        let door = look_at(&dir, ".git").ok()??;
        // Whoever owns a folder above could otherwise put a repository of theirs around other people's work.
        let folders = GitFolders::behind(root, &dir, (above, &door)).filter(|_| is_trusted(root, &door))?;
        let within = root.path().strip_prefix(above).ok()?.to_owned();
        GitRepository::new(RepositoryFiles::Above(within), folders)
    }

    fn new(files: RepositoryFiles, GitFolders { own, shared }: GitFolders) -> Option<GitRepository> {
        let objects = beneath::open(&shared, Path::new("objects"), OFlags::PATH | OFlags::DIRECTORY, Links::Refuse);
        Some(GitRepository { files, own, shared, objects: Objects::new(objects.ok()?) })
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// A place of the workspace as this repository names it.
    pub(super) fn path_of(&self, place: &WorkspacePath) -> Option<PathBuf> {
        match &self.files {
            RepositoryFiles::In(folder) => Some(place.as_path().strip_prefix(folder.as_path()).ok()?.to_owned()),
            RepositoryFiles::Above(within) => Some(within.join(place.as_path())),
        }
    }

    /// The commit that is checked out.
    pub(super) fn head(&self) -> Option<ObjectName> {
        let mut text = read_text(&self.own, Path::new("HEAD"), LONGEST_POINTER)?;
        for _ in 0..LONGEST_WAY {
            let Some(name) = text.trim_end().strip_prefix("ref:").map(str::trim) else {
                return ObjectName::from_hex(text.trim_end());
            };
            let path = Path::new(name);
            if !path.starts_with("refs") || !is_plain(path) {
                return None;
            }
            text = match read_text(&self.shared, path, LONGEST_POINTER) {
                Some(text) => text,
                None => self.packed(name)?,
            };
        }
        None
    }

    fn packed(&self, name: &str) -> Option<String> {
        let packed = read_text(&self.shared, Path::new("packed-refs"), LONGEST_LIST)?;
        packed
            .lines()
            .find_map(|line| line.split_once(' ').filter(|(_, found)| *found == name))
            .map(|(hash, _)| hash.to_owned())
    }
}

impl GitFolders {
    /// What the `.git` of a folder leads to.
    fn behind(root: &Root, dir: &OwnedFd, (path, door): (&Path, &EntryIdentity)) -> Option<GitFolders> {
        match door.kind() {
            EntryKind::Directory => {
                let own = beneath::open_folder(dir, Path::new(".git"), Links::Refuse).ok()?;
                // Only a linked worktree shares, and that has no folder `.git`.
                let is_alone = look_at(&own, "commondir").ok()?.is_none();
                let shared = rustix::io::dup(&own).ok()?;
                is_alone.then_some(GitFolders { own, shared })
            }
            EntryKind::File => {
                let text = read_plain(dir, Path::new(".git"), LONGEST_POINTER)?;
                let to = path.join(OsStr::from_bytes(text.strip_prefix(b"gitdir:")?.trim_ascii()));
                GitFolders::linked(root, path, &to.canonicalize().ok()?)
            }
            EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => None,
        }
    }

    /// The folders of a linked worktree or a submodule.
    fn linked(root: &Root, path: &Path, real: &Path) -> Option<GitFolders> {
        let own = open_real(root, real)?;
        // Whoever can write into the workspace could name any repository; only that one's own word counts.
        let speaks_for_itself = points_back(&own, real, path) && is_trusted(root, &look(&own).ok()?);
        if !real.starts_with(root.path()) && !speaks_for_itself {
            return None;
        }
        let Some(text) = read_plain(&own, Path::new("commondir"), LONGEST_POINTER) else {
            let shared = rustix::io::dup(&own).ok()?;
            return Some(GitFolders { own, shared });
        };
        let common = real.join(OsStr::from_bytes(text.trim_ascii())).canonicalize().ok()?;
        // It shares with the repository that holds it, and with no other.
        let is_held = real.strip_prefix(common.join("worktrees")).is_ok_and(|name| name.components().count() == 1);
        Some(GitFolders { shared: open_real(root, &common).filter(|_| is_held)?, own })
    }
}

/// Whether a repository outside says itself that a folder belongs to it.
fn points_back(own: &OwnedFd, real: &Path, folder: &Path) -> bool {
    let same = |path: PathBuf| path.canonicalize().is_ok_and(|path| folder.canonicalize().is_ok_and(|it| it == path));
    let door = read_plain(own, Path::new("gitdir"), LONGEST_POINTER);
    let door = door.map(|text| real.join(OsStr::from_bytes(text.trim_ascii())));
    // A linked worktree is listed by the repository; a submodule's settings name the folder.
    if door.is_some_and(|door| {
        door.file_name() == Some(OsStr::new(".git")) && door.parent().is_some_and(|it| same(it.to_owned()))
    }) {
        return true;
    }
    let settings = read_text(own, Path::new("config"), LONGEST_LIST).unwrap_or_default();
    let value = settings.lines().find_map(|line| line.trim().strip_prefix("worktree")?.trim().strip_prefix('='));
    value.is_some_and(|value| same(real.join(value.trim().trim_matches('"'))))
}

/// Opens a folder by its real path; inside the workspace nothing on the way may be a link.
fn open_real(root: &Root, real: &Path) -> Option<OwnedFd> {
    match real.strip_prefix(root.path()) {
        Ok(inside) => beneath::open_folder(root.handle(), inside, Links::Refuse).ok(),
        Err(_) => open_outside(real),
    }
}

fn open_outside(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()
}

/// Whether what lies outside belongs to the workspace's owner, or to whoever we are.
fn is_trusted(root: &Root, seen: &EntryIdentity) -> bool {
    let owner = seen.owner.0;
    owner == root.seen().owner.0 || owner == rustix::process::geteuid().as_raw()
}

fn read_text(folder: &OwnedFd, path: &Path, longest: u64) -> Option<String> {
    String::from_utf8(read_plain(folder, path, longest)?).ok()
}
