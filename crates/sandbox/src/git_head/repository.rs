//! What is checked out in the repository that a folder belongs to.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::is_plain;
use super::objects::{ObjectName, Objects, read_plain};
use crate::beneath::{self, Links};
use crate::git_repository::GitRepository;
use crate::root::Root;
use crate::workspace_path::WorkspacePath;

/// More than any file of git's that points to another place.
const LONGEST_POINTER: u64 = 64 << 10;
/// How much is read of the branches that git has packed into one file.
const LONGEST_LIST: u64 = 16 << 20;
/// More names than lead from one to the other.
const LONGEST_WAY: usize = 5;

/// A repository whose word counts, and its objects.
pub(super) struct HeadRepository {
    repository: GitRepository,
    /// The workspace's own path.
    workspace: PathBuf,
    objects: Objects,
}

impl HeadRepository {
    /// The nearest repository that a real folder of the workspace belongs to.
    pub(super) fn around(root: &Root, folder: &WorkspacePath) -> Option<HeadRepository> {
        let repository = GitRepository::of_files(root, folder)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let objects = beneath::open(repository.shared_handle(), Path::new("objects"), flags, Links::Refuse);
        Some(HeadRepository { repository, workspace: root.path().to_owned(), objects: Objects::new(objects.ok()?) })
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// A place of the workspace as this repository names it.
    pub(super) fn path_of(&self, place: &WorkspacePath) -> Option<PathBuf> {
        let path = self.workspace.join(place.as_path());
        path.strip_prefix(self.repository.folder()).ok().map(Path::to_owned)
    }

    /// The commit that is checked out.
    pub(super) fn head(&self) -> Option<ObjectName> {
        let mut text = read_text(self.repository.own_handle(), Path::new("HEAD"), LONGEST_POINTER)?;
        for _ in 0..LONGEST_WAY {
            let Some(name) = text.trim_end().strip_prefix("ref:").map(str::trim) else {
                return ObjectName::from_hex(text.trim_end());
            };
            let path = Path::new(name);
            if !path.starts_with("refs") || !is_plain(path) {
                return None;
            }
            text = match read_text(self.repository.shared_handle(), path, LONGEST_POINTER) {
                Some(text) => text,
                None => self.packed(name)?,
            };
        }
        None
    }

    fn packed(&self, name: &str) -> Option<String> {
        let packed = read_text(self.repository.shared_handle(), Path::new("packed-refs"), LONGEST_LIST)?;
        packed
            .lines()
            .find_map(|line| line.split_once(' ').filter(|(_, found)| *found == name))
            .map(|(hash, _)| hash.to_owned())
    }
}

fn read_text(folder: BorrowedFd<'_>, path: &Path, longest: u64) -> Option<String> {
    String::from_utf8(read_plain(folder, path, longest)?).ok()
}
