//! What the commit that is checked out has for a path: the only evidence that a sensitive name may be shown.

mod objects;
mod pack;
mod repository;

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use objects::read_plain;
use objects::{ObjectKind, ObjectName};
use repository::HeadRepository;

use crate::root::Root;
use crate::workspace_path::WorkspacePath;

/// So many trees are kept in mind: paths that are asked for lie near each other.
const TREES: usize = 1000;

/// A file as the commit has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeadFile {
    pub(crate) bytes: Vec<u8>,
}

/// What the commit has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadEntry {
    File(HeadFile),
    /// A link, and what it points to.
    Link(Vec<u8>),
    Folder,
}

/// Reads the commits that are checked out in a workspace's repositories, straight from their files.
///
/// Whoever can write into the workspace may have written what is read here, so nothing of it is believed beyond what it
/// says itself: paths are opened beneath the repository and no link is followed, objects that lie elsewhere do not
/// count, and whatever is not understood counts as absent.
pub(crate) struct HeadReader<'a> {
    root: &'a Root,
    repositories: HashMap<WorkspacePath, Option<CheckedOut>>,
    trees: HashMap<ObjectName, Vec<u8>>,
}

/// A repository with the tree of its commit.
struct CheckedOut {
    repository: HeadRepository,
    tree: ObjectName,
}

impl<'a> HeadReader<'a> {
    pub(crate) fn new(root: &'a Root) -> HeadReader<'a> {
        HeadReader { root, repositories: HashMap::new(), trees: HashMap::new() }
    }

    /// What the commit of the nearest repository has at a real place; `None` when it has nothing, or where it cannot be
    /// told.
    pub(crate) fn entry(&mut self, place: &WorkspacePath) -> Option<HeadEntry> {
        let folder = place.parent()?;
        if !self.repositories.contains_key(&folder) {
            let found = self.checked_out(&folder);
            self.repositories.insert(folder.clone(), found);
        }
        let CheckedOut { repository, tree } = self.repositories.get(&folder)?.as_ref()?;
        let path = repository.path_of(place)?;
        let mut name = tree.clone();
        let mut parts = path.iter().peekable();
        while let Some(part) = parts.next() {
            let tree = match self.trees.get(&name) {
                Some(tree) => tree,
                None => {
                    let read = repository.objects().read(&name, ObjectKind::Tree)?;
                    if self.trees.len() >= TREES {
                        self.trees.clear();
                    }
                    self.trees.entry(name.clone()).or_insert(read)
                }
            };
            let (mode, found) = in_tree(tree, part.as_bytes(), name.length())?;
            match (mode, parts.peek()) {
                (b"40000", Some(_)) => name = found,
                (b"40000", None) => return Some(HeadEntry::Folder),
                (b"100644" | b"100755" | b"100664", None) => {
                    let bytes = repository.objects().read(&found, ObjectKind::Blob)?;
                    return Some(HeadEntry::File(HeadFile { bytes }));
                }
                (b"120000", None) => {
                    return repository.objects().read(&found, ObjectKind::Blob).map(HeadEntry::Link);
                }
                _ => return None,
            }
        }
        None
    }

    fn checked_out(&self, folder: &WorkspacePath) -> Option<CheckedOut> {
        let repository = HeadRepository::around(self.root, folder)?;
        let commit = repository.objects().read(&repository.head()?, ObjectKind::Commit)?;
        let line = commit.split(|byte| *byte == b'\n').next()?;
        let tree = ObjectName::from_hex(std::str::from_utf8(line.strip_prefix(b"tree ")?).ok()?)?;
        Some(CheckedOut { repository, tree })
    }
}

/// The mode and the object of an entry of a tree.
fn in_tree<'t>(tree: &'t [u8], wanted: &[u8], length: usize) -> Option<(&'t [u8], ObjectName)> {
    let mut rest = tree;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (mode, name) = (rest.get(..space)?, rest.get(space + 1..end)?);
        let object = rest.get(end + 1..end + 1 + length)?;
        if name == wanted {
            return Some((mode, ObjectName::from_bytes(object)?));
        }
        rest = rest.get(end + 1 + length..)?;
    }
    None
}

/// Whether a path of git's own leads nowhere else: no `..`, not absolute.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests;
