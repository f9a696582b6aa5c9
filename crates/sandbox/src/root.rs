//! The folder that every path is opened beneath, and how what was typed becomes a place in it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::{self, Links};
use crate::error::PathError;
use crate::git_folder::OutsideGitFolder;
use crate::medium;
use crate::sensitive::SensitiveNames;
use crate::stamp::{EntryIdentity, EntryKind, look, look_at, look_behind};
use crate::workspace_path::{self, WorkspacePath};

/// A folder that every path is opened beneath.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
    /// The same folder as it was given: people type paths through links to their workspace.
    given: PathBuf,
    seen: EntryIdentity,
    is_near: bool,
    protected: Vec<Protected>,
    names: SensitiveNames,
    /// Set where changes may reach into a git folder that lies outside.
    git: Option<OutsideGitFolder>,
}

/// A folder that nobody may reach into.
#[derive(Clone, Debug)]
struct Protected {
    seen: EntryIdentity,
    beneath: bool,
}

impl Root {
    /// Opens a workspace; `protected` are folders (haft's own data) that are refused wherever they lie beneath it.
    pub fn open(dir: &Path, protected: &[PathBuf]) -> Result<Root, PathError> {
        let shown = dir.display().to_string();
        let failed = |errno| PathError::from_errno(&shown, errno);
        let folder = rustix::fs::openat(CWD, dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed)?;
        let seen = look(&folder).map_err(failed)?;
        let path = beneath::whereabouts(&folder).map_err(failed)?;
        let given = std::path::absolute(dir).unwrap_or_else(|_| path.clone());
        let protected = protected.iter().filter_map(|dir| Protected::find(dir, &path)).collect();
        let is_near = medium::is_near(&folder);
        let names = SensitiveNames::default();
        Ok(Root { folder, path, given, seen, is_near, protected, names, git: None })
    }

    /// The same, with more names that hold secrets, and full paths at and beneath which none does.
    #[must_use]
    pub fn with_names(mut self, hide: &[String], show: &[PathBuf]) -> Root {
        self.names = SensitiveNames::new(hide, show, &self.path);
        self
    }

    /// The same workspace once more.
    pub(crate) fn again(&self) -> Result<Root, Errno> {
        Ok(Root {
            folder: rustix::io::fcntl_dupfd_cloexec(&self.folder, 0)?,
            path: self.path.clone(),
            given: self.given.clone(),
            seen: self.seen,
            is_near: self.is_near,
            protected: self.protected.clone(),
            names: self.names.clone(),
            git: None,
        })
    }

    pub(crate) fn add_git_folder(&mut self, git: OutsideGitFolder, is_near: bool) {
        self.git = Some(git);
        self.is_near &= is_near;
    }

    /// The git folder, if it lies outside and is part of this.
    pub(crate) fn git_folder(&self) -> Option<&OutsideGitFolder> {
        self.git.as_ref()
    }

    /// Which names hold secrets here.
    pub fn names(&self) -> &SensitiveNames {
        &self.names
    }

    /// Whether the workspace lies on a disk or in the memory of this machine, so that looking at a file keeps nobody waiting.
    pub fn is_near(&self) -> bool {
        self.is_near
    }

    /// The workspace's own path, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was typed, relative or absolute inside the workspace, as a normalised place. A name is taken word for word;
    /// where nothing is called that, it may be the text that something there is shown as.
    pub fn place(&self, typed: &str) -> Result<WorkspacePath, PathError> {
        let called = self.place_called(typed)?;
        Ok(if called.meant().is_some() { self.there_or_shown(called) } else { called })
    }

    /// The same, always word for word.
    pub fn place_called(&self, typed: &str) -> Result<WorkspacePath, PathError> {
        workspace_path::check_text(typed)?;
        let path = Path::new(typed);
        if !path.is_absolute() {
            return WorkspacePath::relative(path, typed);
        }
        let outside = || PathError::Outside { path: typed.to_owned() };
        let normal = normalise_absolute(path).ok_or_else(outside)?;
        let inside =
            normal.strip_prefix(&self.path).or_else(|_| normal.strip_prefix(&self.given)).map_err(|_| outside())?;
        WorkspacePath::relative(inside, typed)
    }

    /// The longest part of a path that is there, by its name or by what that stands for, decides; what is not there yet
    /// is called as it was typed.
    fn there_or_shown(&self, typed: WorkspacePath) -> WorkspacePath {
        let parts = std::iter::once(typed.as_path()).chain(typed.ancestors());
        let found = parts.map(|part| WorkspacePath::known(part.to_owned())).find_map(|called| {
            match self.meta(&called) {
                // Text of ours may be longer than any name.
                Ok(None) | Err(PathError::NotDirectory { .. } | PathError::Malformed { .. }) => {}
                // What cannot be looked at may be there.
                Ok(Some(_)) | Err(_) => return Some(typed.clone()),
            }
            let meant = called.meant().filter(|meant| matches!(self.meta(meant), Ok(Some(_))))?;
            Some(typed.as_path().strip_prefix(called.as_path()).map_or(meant.clone(), |rest| meant.join(rest)))
        });
        found.unwrap_or(typed)
    }

    /// The real place after following links that stay inside; what does not exist yet is kept as it is.
    pub fn resolve(&self, place: &WorkspacePath) -> Result<WorkspacePath, PathError> {
        let resolved = self.resolve_existing(place).map_err(|error| self.or_sensitive(error, place))?;
        self.refuse_sensitive(&resolved, place)?;
        self.refuse_protected(&resolved, place)?;
        Ok(resolved)
    }

    /// The same for what is, or will be, a folder.
    pub(crate) fn resolve_folder(&self, place: &WorkspacePath) -> Result<WorkspacePath, PathError> {
        self.refuse_sensitive_folder(place, place)?;
        let resolved = self.resolve_existing(place)?;
        self.refuse_sensitive_folder(&resolved, place)?;
        self.refuse_protected(&resolved, place)?;
        Ok(resolved)
    }

    /// Of a sensitive name it is not even said what is wrong with it.
    pub(crate) fn or_sensitive(&self, error: PathError, typed: &WorkspacePath) -> PathError {
        match self.names.hold_file(typed.as_path()) {
            true => PathError::Sensitive { path: typed.to_string() },
            false => error,
        }
    }

    /// The real place of an entry that may itself be a link, which is not followed.
    pub fn resolve_entry(&self, place: &WorkspacePath) -> Result<WorkspacePath, PathError> {
        let (Some(parent), Some(name)) = (place.parent(), place.name()) else {
            return Ok(place.clone());
        };
        let above = self.resolve_existing(&parent).map_err(|error| self.or_sensitive(error, place))?;
        let resolved = above.join(name);
        self.refuse_sensitive(&resolved, place)?;
        self.refuse_protected(&resolved, place)?;
        Ok(resolved)
    }

    fn resolve_existing(&self, place: &WorkspacePath) -> Result<WorkspacePath, PathError> {
        match self.open_beneath(place.for_kernel(), OFlags::PATH, Links::Refuse) {
            // Nothing on the way is a link, so the place is already the real one.
            Ok(_) => Ok(place.clone()),
            Err(Errno::LOOP) => match self.follow(place, OFlags::PATH) {
                Err(PathError::NotFound { .. }) => self.resolve_missing(place),
                followed => followed.map(|(_, resolved)| resolved),
            },
            Err(Errno::NOENT) => self.resolve_missing(place),
            Err(errno) => Err(PathError::from_errno(place, errno)),
        }
    }

    /// The real place of something that does not exist: its deepest existing folder is resolved.
    fn resolve_missing(&self, place: &WorkspacePath) -> Result<WorkspacePath, PathError> {
        let (Some(parent), Some(name)) = (place.parent(), place.name()) else {
            return Err(PathError::NotFound { path: place.to_string(), nearest: Vec::new() });
        };
        let (folder, parent) = match self.follow(&parent, OFlags::PATH) {
            Ok(found) => found,
            Err(PathError::NotFound { .. }) => return Ok(self.resolve_missing(&parent)?.join(name)),
            Err(error) => return Err(error),
        };
        match look_at(&folder, Path::new(name)) {
            Ok(None) => Ok(parent.join(name)),
            // Somebody has made it meanwhile.
            Ok(Some(seen)) if seen.kind() != EntryKind::Link => Ok(parent.join(name)),
            // It exists but does not open: a link to nothing, which must not be written through.
            Ok(Some(_)) => Err(PathError::NotFound { path: place.to_string(), nearest: Vec::new() }),
            Err(errno) => Err(PathError::from_errno(place, errno)),
        }
    }

    /// Opens a place, following links that stay inside, and says where it really is.
    pub(crate) fn open_resolved(
        &self,
        place: &WorkspacePath,
        flags: OFlags,
    ) -> Result<(OwnedFd, WorkspacePath), PathError> {
        match self.open_beneath(place.for_kernel(), flags, Links::Refuse) {
            Ok(fd) => Ok((fd, place.clone())),
            Err(Errno::LOOP) => self.follow(place, flags),
            Err(errno) => Err(PathError::from_errno(place, errno)),
        }
    }

    fn follow(&self, place: &WorkspacePath, flags: OFlags) -> Result<(OwnedFd, WorkspacePath), PathError> {
        let failed = |errno| PathError::from_errno(place, errno);
        let fd = self.open_beneath(place.for_kernel(), flags, Links::Follow).map_err(failed)?;
        let real = beneath::whereabouts(&fd).map_err(failed)?;
        let relative = match real.strip_prefix(&self.path) {
            Ok(relative) => relative.to_owned(),
            // The workspace itself may have been renamed since it was opened.
            Err(_) => {
                let root = beneath::whereabouts(&self.folder).map_err(failed)?;
                let relative = real.strip_prefix(root).map_err(|_| PathError::Outside { path: place.to_string() })?;
                relative.to_owned()
            }
        };
        Ok((fd, WorkspacePath::known(relative)))
    }

    /// Opens a folder by its real place; a link on the way is an error.
    pub(crate) fn open_real_folder(&self, place: &WorkspacePath) -> Result<OwnedFd, PathError> {
        self.open_folder_beneath(place.for_kernel()).map_err(|errno| PathError::from_errno(place, errno))
    }

    /// The handle of the workspace folder.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// What the workspace folder was when it was opened.
    pub(crate) fn seen(&self) -> &EntryIdentity {
        &self.seen
    }

    /// Whether a path leads to this very folder, on the mount that it was opened on.
    pub(crate) fn is_still_at(&self, path: &Path) -> bool {
        let is_here = look_behind(path).is_ok_and(|now| now.is(&self.seen) && now.shares_mount(&self.seen));
        is_here && self.git.as_ref().is_none_or(OutsideGitFolder::is_still_there)
    }

    /// Refuses a real place in or at a protected folder.
    pub(crate) fn refuse_protected(&self, resolved: &WorkspacePath, typed: &WorkspacePath) -> Result<(), PathError> {
        if !self.protected.iter().any(|protected| protected.beneath) {
            return Ok(());
        }
        self.refuse_protected_folders(resolved, typed)
    }

    /// The same for what lies on another mount, where a protected folder may appear by a bind mount.
    pub(crate) fn refuse_protected_at(
        &self,
        seen: &EntryIdentity,
        resolved: &WorkspacePath,
        typed: &WorkspacePath,
    ) -> Result<(), PathError> {
        if self.protected.is_empty() || seen.shares_mount(&self.seen) {
            return self.refuse_protected(resolved, typed);
        }
        self.refuse_protected_folders(resolved, typed)
    }

    fn refuse_protected_folders(&self, resolved: &WorkspacePath, typed: &WorkspacePath) -> Result<(), PathError> {
        for ancestor in std::iter::once(resolved.as_path()).chain(resolved.ancestors()) {
            let found = if ancestor.as_os_str().is_empty() { None } else { look_at(&self.folder, ancestor).ok() };
            if found.flatten().is_some_and(|seen| self.is_protected(&seen)) {
                return Err(PathError::Sensitive { path: typed.to_string() });
            }
        }
        Ok(())
    }

    /// Whether this is one of the protected folders.
    pub(crate) fn is_protected(&self, seen: &EntryIdentity) -> bool {
        seen.kind() == EntryKind::Directory && self.protected.iter().any(|protected| protected.seen.is(seen))
    }
}

impl Protected {
    /// A folder that does not exist needs no protection.
    fn find(dir: &Path, root: &Path) -> Option<Protected> {
        let folder = rustix::fs::openat(CWD, dir, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let beneath = beneath::whereabouts(&folder).is_ok_and(|path| path.starts_with(root));
        Some(Protected { seen: look(&folder).ok()?, beneath })
    }
}

fn normalise_absolute(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => normal.push(name),
            // Going above the filesystem's root is never inside a workspace.
            Component::ParentDir if normal.as_os_str() == "/" => return None,
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}
