//! Which repository a folder of the workspace belongs to, and where that keeps its things.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

use crate::beneath::{self, Links};
use crate::git_folder::DOOR;
use crate::git_head::read_plain;
use crate::root::Root;
use crate::stamp::{EntryIdentity, EntryKind, look, look_at};
use crate::workspace_path::WorkspacePath;

/// More than any file of git's that points to another place.
const LONGEST_POINTER: u64 = 64 << 10;
/// More than any settings have.
const LONGEST_SETTINGS: u64 = 16 << 20;

/// A repository as seen from a workspace.
#[derive(Debug)]
pub struct GitRepository {
    folder: PathBuf,
    kind: RepositoryKind,
    own: OpenGitFolder,
    shared: OpenGitFolder,
    is_trusted: bool,
}

/// How a repository lies to a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryKind {
    /// All of it lies inside.
    Inside,
    /// The files lie inside, the rest elsewhere: a linked worktree, or a submodule of something larger.
    Linked,
    /// The workspace is a part of something larger.
    Around,
    /// It has no files of its own.
    Bare,
}

/// Why a path is in no repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRepository {
    /// There is none.
    Nowhere,
    /// There is one that cannot be used.
    Broken {
        /// The `.git` that leads to it.
        door: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// A folder of a repository, open, and its real path.
#[derive(Debug)]
struct OpenGitFolder {
    handle: OwnedFd,
    path: PathBuf,
}

/// What a `.git` leads to.
struct Behind {
    own: OpenGitFolder,
    shared: OpenGitFolder,
    /// Nothing about it is odd: no link leads to it, and it lies inside or says itself that it belongs to the folder.
    is_plain: bool,
}

impl GitRepository {
    /// The nearest repository that holds a real place.
    pub fn around(root: &Root, place: &WorkspacePath) -> Result<GitRepository, NoRepository> {
        for place in std::iter::successors(Some(place.clone()), WorkspacePath::parent) {
            let Ok(dir) = beneath::open_folder(root.handle(), place.for_kernel(), Links::Refuse) else { continue };
            let path = root.path().join(place.as_path());
            if has_door(&dir) {
                return GitRepository::with_files((root, &dir), path, RepositoryKind::Inside);
            }
            if is_bare(&dir) {
                return GitRepository::bare(dir, path).ok_or(NoRepository::Nowhere);
            }
        }
        GitRepository::above(root)
    }

    /// The nearest repository with files that a real folder belongs to, if what it says can be believed. One that is
    /// there and is not understood hides those above it.
    pub(crate) fn of_files(root: &Root, folder: &WorkspacePath) -> Option<GitRepository> {
        for place in std::iter::successors(Some(folder.clone()), WorkspacePath::parent) {
            let dir = beneath::open_folder(root.handle(), place.for_kernel(), Links::Refuse).ok()?;
            if look_at(&dir, DOOR).ok()?.is_some() {
                let path = root.path().join(place.as_path());
                let found = GitRepository::with_files((root, &dir), path, RepositoryKind::Inside);
                return found.ok().filter(|repository| repository.is_trusted);
            }
        }
        GitRepository::above(root).ok().filter(|repository| repository.is_trusted)
    }

    fn above(root: &Root) -> Result<GitRepository, NoRepository> {
        let path = root.path().ancestors().skip(1).find(|path| path.join(DOOR).symlink_metadata().is_ok());
        let path = path.ok_or(NoRepository::Nowhere)?;
        let dir = open_outside(path).ok_or(NoRepository::Nowhere)?;
        GitRepository::with_files((root, &dir), path.to_owned(), RepositoryKind::Around)
    }

    fn bare(dir: OwnedFd, path: PathBuf) -> Option<GitRepository> {
        let own = OpenGitFolder { handle: rustix::io::fcntl_dupfd_cloexec(&dir, 0).ok()?, path: path.clone() };
        let shared = OpenGitFolder { handle: dir, path: path.clone() };
        Some(GitRepository { folder: path, kind: RepositoryKind::Bare, own, shared, is_trusted: false })
    }

    fn with_files(
        (root, dir): (&Root, &OwnedFd),
        folder: PathBuf,
        kind: RepositoryKind,
    ) -> Result<GitRepository, NoRepository> {
        let broken = |why| NoRepository::Broken { door: folder.join(DOOR), why };
        let door = look_at(dir, DOOR).ok().flatten().ok_or_else(|| broken("its `.git` leads nowhere"))?;
        let Behind { own, shared, is_plain } = Behind::find((root, dir), &folder, (&door, kind)).map_err(broken)?;
        // Whoever owns a folder above could otherwise put a repository of theirs around other people's work.
        let is_ours = |seen: &EntryIdentity| is_trusted(root, seen);
        let inside = own.path.starts_with(root.path());
        let owners = inside || (is_ours(&door) && look(&own.handle).is_ok_and(|own| is_ours(&own)));
        let kind = if kind == RepositoryKind::Inside && !inside { RepositoryKind::Linked } else { kind };
        Ok(GitRepository { folder, kind, own, shared, is_trusted: is_plain && owners })
    }

    /// The folder with the files; of a bare repository, the repository itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How it lies to the workspace.
    pub fn kind(&self) -> RepositoryKind {
        self.kind
    }

    /// Where it keeps what belongs to these files alone: `HEAD`, the index.
    pub fn own(&self) -> &Path {
        &self.own.path
    }

    /// Where it keeps everything else.
    pub fn shared(&self) -> &Path {
        &self.shared.path
    }

    pub(crate) fn own_handle(&self) -> BorrowedFd<'_> {
        self.own.handle.as_fd()
    }

    pub(crate) fn shared_handle(&self) -> BorrowedFd<'_> {
        self.shared.handle.as_fd()
    }
}

impl Behind {
    fn find(
        (root, dir): (&Root, &OwnedFd),
        folder: &Path,
        (door, kind): (&EntryIdentity, RepositoryKind),
    ) -> Result<Behind, &'static str> {
        let path = folder.join(DOOR);
        let gone = "its `.git` does not say where the repository is, or that is gone";
        let real = match door.kind() {
            EntryKind::Directory => {
                let handle = beneath::open_folder(dir, Path::new(DOOR), Links::Refuse).map_err(|_| gone)?;
                // Only a linked worktree shares, and that has no folder `.git`.
                let is_plain = matches!(look_at(&handle, "commondir"), Ok(None));
                return Behind::alone(OpenGitFolder { handle, path }, is_plain).ok_or(gone);
            }
            EntryKind::File => pointed_to(dir, folder).ok_or(gone)?,
            EntryKind::Link => {
                let real = path.canonicalize().map_err(|_| "its `.git` leads nowhere")?;
                match real.parent().filter(|_| real.is_file()) {
                    None => real,
                    Some(parent) => {
                        let dir = open_real(root, parent).ok_or(gone)?;
                        pointed_to(&dir, parent).ok_or(gone)?
                    }
                }
            }
            EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => return Err(gone),
        };
        let own = OpenGitFolder { handle: open_real(root, &real).ok_or(gone)?, path: real };
        let inside = own.path.starts_with(root.path());
        let points_back = points_back(&own, folder);
        // Whoever can write into the workspace could name any repository; only that one's own word counts.
        if kind == RepositoryKind::Inside && !inside && !points_back {
            return Err("it leads to a repository outside the workspace that knows nothing of this folder");
        }
        let is_plain = door.kind() == EntryKind::File && (inside || points_back);
        let Some(text) = read_plain(&own.handle, Path::new("commondir"), LONGEST_POINTER) else {
            return Behind::alone(own, is_plain).ok_or(gone);
        };
        // It shares with the repository that holds it, and with no other.
        let shared = own.path.join(OsStr::from_bytes(text.trim_ascii())).canonicalize().ok();
        let shared = shared.filter(|shared| {
            own.path.strip_prefix(shared.join("worktrees")).is_ok_and(|name| name.components().count() == 1)
        });
        match shared.and_then(|path| Some(OpenGitFolder { handle: open_real(root, &path)?, path })) {
            Some(shared) => Ok(Behind { own, shared, is_plain }),
            None if inside => Behind::alone(own, false).ok_or(gone),
            None => Err("its repository shares its things with one that does not hold it"),
        }
    }

    /// A repository that shares nothing.
    fn alone(own: OpenGitFolder, is_plain: bool) -> Option<Behind> {
        let handle = rustix::io::fcntl_dupfd_cloexec(&own.handle, 0).ok()?;
        Some(Behind { shared: OpenGitFolder { handle, path: own.path.clone() }, own, is_plain })
    }
}

fn has_door(dir: &OwnedFd) -> bool {
    matches!(look_at(dir, DOOR), Ok(Some(_)))
}

/// Whether a folder is a repository without files.
fn is_bare(dir: &OwnedFd) -> bool {
    let is = |name: &str, kind| look_at(dir, name).ok().flatten().is_some_and(|seen| seen.kind() == kind);
    is("objects", EntryKind::Directory) && is("refs", EntryKind::Directory) && is("HEAD", EntryKind::File)
}

/// The real folder that the file `.git` of a folder names.
fn pointed_to(dir: &OwnedFd, folder: &Path) -> Option<PathBuf> {
    let text = read_plain(dir, Path::new(DOOR), LONGEST_POINTER)?;
    let to = text.strip_prefix(b"gitdir:")?.trim_ascii();
    (!to.is_empty()).then(|| folder.join(OsStr::from_bytes(to)).canonicalize().ok())?
}

/// Whether a repository says itself that a folder belongs to it.
fn points_back(own: &OpenGitFolder, folder: &Path) -> bool {
    let same = |path: &Path| path.canonicalize().is_ok_and(|path| folder.canonicalize().is_ok_and(|it| it == path));
    let door = read_plain(&own.handle, Path::new("gitdir"), LONGEST_POINTER);
    let door = door.map(|text| own.path.join(OsStr::from_bytes(text.trim_ascii())));
    // A linked worktree is listed by the repository; a submodule's settings name the folder.
    if door.is_some_and(|door| door.file_name() == Some(OsStr::new(DOOR)) && door.parent().is_some_and(same)) {
        return true;
    }
    let settings = read_plain(&own.handle, Path::new("config"), LONGEST_SETTINGS).unwrap_or_default();
    let settings = String::from_utf8_lossy(&settings);
    let value = settings.lines().find_map(|line| line.trim().strip_prefix("worktree")?.trim().strip_prefix('='));
    value.is_some_and(|value| same(&own.path.join(value.trim().trim_matches('"'))))
}

/// Opens a folder by its real path; inside the workspace nothing on the way may be a link.
fn open_real(root: &Root, real: &Path) -> Option<OwnedFd> {
    match real.strip_prefix(root.path()) {
        Ok(inside) if inside.as_os_str().is_empty() => open_outside(real),
        Ok(inside) => beneath::open_folder(root.handle(), inside, Links::Refuse).ok(),
        Err(_) => open_outside(real),
    }
}

fn open_outside(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()
}

/// Whether something belongs to the workspace's owner, or to whoever we are.
fn is_trusted(root: &Root, seen: &EntryIdentity) -> bool {
    let owner = seen.owner.0;
    owner == root.seen().owner.0 || owner == rustix::process::geteuid().as_raw()
}
