//! A workspace with its data folder, and a full picture of a tree.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_sandbox::changes::{Changes, Draft, Expected};
use haft_sandbox::{Place, Root};

/// A workspace and a data folder, each in a temporary folder.
pub struct World {
    pub root: Arc<Root>,
    pub data: PathBuf,
    _folders: Vec<tempfile::TempDir>,
}

impl World {
    /// Both on the same filesystem.
    pub fn new() -> World {
        let temp = std::env::temp_dir();
        World::across(&temp, &temp)
    }

    /// Both in memory where that is possible, for tests with very many files.
    pub fn in_memory() -> World {
        let folder = two_filesystems().map_or_else(std::env::temp_dir, |(_, shared)| shared);
        World::across(&folder, &folder)
    }

    /// The workspace in one folder, the data in another.
    pub fn across(workspace: &Path, data: &Path) -> World {
        let workspace = tempfile::tempdir_in(workspace).unwrap();
        let data = tempfile::tempdir_in(data).unwrap();
        let root = Arc::new(Root::open(workspace.path(), &[]).unwrap());
        World { root, data: data.path().to_owned(), _folders: vec![workspace, data] }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn file(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn place(&self, name: &str) -> Place {
        self.root.place(name).unwrap()
    }

    pub fn dir(&self, call: &str) -> PathBuf {
        self.data.join("changes").join(call)
    }

    pub fn draft(&self, call: &str) -> Draft {
        Draft::new(&self.root, &self.dir(call)).unwrap()
    }

    /// Sealed changes that write one file.
    pub fn written(&self, call: &str, name: &str, content: &str) -> Changes {
        let mut draft = self.draft(call);
        draft.write(&self.place(name), content.as_bytes(), Expected::Anything).unwrap();
        draft.seal().unwrap()
    }

    pub fn picture(&self) -> Picture {
        picture(self.root.path())
    }
}

/// Every path with its mode and its content or target.
pub type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Takes a picture of everything beneath a folder.
pub fn picture(folder: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap_or_default()
            };
            picture.insert(path.strip_prefix(folder).unwrap().to_owned(), (meta.mode(), content));
        }
    }
    picture
}

/// Two folders on different filesystems, if this machine has them.
pub fn two_filesystems() -> Option<(PathBuf, PathBuf)> {
    let (temp, shared) = (std::env::temp_dir(), PathBuf::from("/dev/shm"));
    let differs = fs::metadata(&shared).ok()?.dev() != fs::metadata(&temp).ok()?.dev();
    let writable = tempfile::tempdir_in(&shared).is_ok();
    (differs && writable).then_some((temp, shared))
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}
