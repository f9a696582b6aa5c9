//! The git folder of a workspace that lies outside of it: that of a linked worktree, or of a submodule of something larger.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::{self, Links};
use crate::error::PathError;
use crate::medium;
use crate::root::Root;
use crate::stamp::{EntryIdentity, look, look_behind};

/// What stands for it in the workspace, which has only a pointer there.
pub(crate) const DOOR: &str = ".git";

/// An open git folder outside. What lies in it has the paths that it would have if it lay in the workspace.
#[derive(Debug)]
pub(crate) struct OutsideGitFolder {
    folder: OwnedFd,
    path: PathBuf,
    /// Where in it lies what belongs to this workspace alone; empty where everything does.
    own: PathBuf,
    seen: EntryIdentity,
}

impl Root {
    /// The same workspace with its git folder, where that lies outside: `.git/config` is then the one there. `own` is
    /// the folder in it that belongs to this workspace alone.
    pub fn with_git_folder(&self, shared: &Path, own: &Path) -> Result<Root, PathError> {
        let shown = DOOR;
        let failed = |errno| PathError::from_errno(&shown, errno);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, shared, flags, Mode::empty()).map_err(failed)?;
        let path = beneath::whereabouts(&folder).map_err(failed)?;
        let own = own.strip_prefix(&path).map_err(|_| PathError::Outside { path: shown.to_owned() })?.to_owned();
        let seen = look(&folder).map_err(failed)?;
        let is_near = medium::is_near(&folder);
        let mut root = self.again().map_err(failed)?;
        root.add_git_folder(OutsideGitFolder { folder, path, own, seen }, is_near);
        Ok(root)
    }

    /// The folder that something is opened beneath, and its path there. `.git` itself is the pointer in the workspace
    /// for whoever wants an entry, and what that leads to for whoever wants a folder.
    fn located<'a>(&'a self, path: &'a Path, flags: OFlags) -> (BorrowedFd<'a>, &'a Path) {
        match (self.git_folder(), path.strip_prefix(DOOR)) {
            (Some(git), Ok(within)) if !within.as_os_str().is_empty() => (git.handle(), within),
            (Some(git), Ok(_)) if flags.contains(OFlags::DIRECTORY) => (git.handle(), Path::new(".")),
            (Some(_) | None, Ok(_) | Err(_)) => (self.handle(), path),
        }
    }

    /// Opens a path of the workspace, wherever it lies.
    pub(crate) fn open_beneath(&self, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
        let (dir, path) = self.located(path, flags);
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        beneath::open(dir, path, flags, links)
    }

    /// Opens a folder of the workspace for naming entries in it; a link on the way is an error.
    pub(crate) fn open_folder_beneath(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.open_beneath(path, OFlags::PATH | OFlags::DIRECTORY, Links::Refuse)
    }

    /// Where a repository keeps what belongs to the files here alone, by the path of its git folder.
    pub fn own_git_folder(&self, git: &Path) -> PathBuf {
        match self.git_folder() {
            Some(outside) if git == Path::new(DOOR) => git.join(&outside.own),
            Some(_) | None => git.to_owned(),
        }
    }

    /// The folders that nobody else may change during a turn.
    pub(crate) fn folders(&self) -> Vec<EntryIdentity> {
        std::iter::once(*self.seen()).chain(self.git_folder().map(|git| git.seen)).collect()
    }
}

impl OutsideGitFolder {
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Its own path, links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where in it lies what belongs to the workspace alone.
    pub(crate) fn own(&self) -> &Path {
        &self.own
    }

    pub(crate) fn seen(&self) -> &EntryIdentity {
        &self.seen
    }

    /// Whether its path still leads to it.
    pub(crate) fn is_still_there(&self) -> bool {
        look_behind(&self.path).is_ok_and(|now| now.is(&self.seen) && now.shares_mount(&self.seen))
    }
}
