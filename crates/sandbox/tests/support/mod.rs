//! A workspace with its data folder, and a full picture of a tree.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_sandbox::changes::{
    ChangeDirection, Changes, ChangesError, Draft, Expected, FileChange, FileChangeKind, Selection,
};
use haft_sandbox::{Root, WorkspacePath};

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

    pub fn place(&self, name: &str) -> WorkspacePath {
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

    /// Makes folders within folders, deeper than any path can say.
    pub fn deep(&self, name: &str, depth: usize) {
        let mut folder: OwnedFd = fs::File::open(self.root.path()).unwrap().into();
        for _ in 0..depth {
            rustix::fs::mkdirat(&folder, name, rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
            folder = rustix::fs::openat(&folder, name, flags, rustix::fs::Mode::empty()).unwrap();
        }
    }

    /// Removes what no temporary folder can clean up.
    pub fn remove_deep(&self, name: &str) {
        let mut draft = self.draft("remove deep");
        draft.delete(&self.place(name), true).unwrap();
        commit(&mut draft.seal().unwrap());
        haft_sandbox::changes::remove(&self.dir("remove deep")).unwrap();
    }
}

pub fn commit(changes: &mut Changes) -> Vec<FileChange> {
    changes.turn(ChangeDirection::Commit, Selection::All).unwrap()
}

pub fn undo(changes: &mut Changes) -> Vec<FileChange> {
    changes.turn(ChangeDirection::Undo, Selection::All).unwrap()
}

pub fn conflict(result: Result<Vec<FileChange>, ChangesError>) -> Vec<String> {
    match result {
        Err(ChangesError::Conflict { paths }) => paths.into_iter().map(|(path, _)| path).collect(),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

pub fn kinds(list: &[FileChange]) -> Vec<(&str, FileChangeKind)> {
    list.iter().map(|change| (change.path.as_str(), change.kind)).collect()
}

/// A filesystem of its own at a folder, as long as this lives; only the owner of the machine can make one.
pub struct Mounted(PathBuf);

impl Mounted {
    pub fn tmpfs(at: &Path, options: &str) -> Option<Mounted> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        fs::create_dir_all(at).unwrap();
        let data = std::ffi::CString::new(options).unwrap();
        rustix::mount::mount("tmpfs", at, "tmpfs", rustix::mount::MountFlags::empty(), data.as_c_str()).unwrap();
        Some(Mounted(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
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
