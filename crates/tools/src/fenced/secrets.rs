//! Names in the workspace that hold secrets.

use std::collections::{HashMap, VecDeque};

use haft_sandbox::{EntryKind, FileStamp, Root, WorkspacePath};

use super::derived::DerivedPaths;

/// How many entries are read for one command, which must start at once in a tree of any size. What was read for an
/// earlier one and has not changed since costs nothing, so that command by command a larger tree is looked through.
const LOOKED_AT: usize = 20_000;
/// How many folders are remembered: for each command it is asked whether they have changed.
const REMEMBERED: usize = 10_000;
/// Folders that hold other people's files, and many of them.
const PASSED_BY: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "vendor", "__pycache__"];

/// What was seen in the folders of a workspace, each as long as its stamp is the same.
#[derive(Debug)]
pub(super) struct Secrets(FolderSecrets);

impl Default for Secrets {
    fn default() -> Self {
        Self(FolderSecrets::nothing_of(WorkspacePath::root()))
    }
}

/// What matters of the names in a folder.
#[derive(Debug)]
struct FolderSecrets {
    place: WorkspacePath,
    /// `None` where the names must be read, be it for the first time or again.
    stamp: Option<FileStamp>,
    /// What has a sensitive name.
    secrets: Vec<WorkspacePath>,
    /// The folders to look into.
    folders: Vec<FolderSecrets>,
    /// Whether git ignored the folder when it was read.
    is_ignored: bool,
}

impl FolderSecrets {
    fn nothing_of(place: WorkspacePath) -> Self {
        Self { place, stamp: None, secrets: Vec::new(), folders: Vec::new(), is_ignored: false }
    }

    /// Whether the folder still has the names that were read.
    fn is_true(&self, root: &Root) -> bool {
        self.stamp.is_some_and(|stamp| root.folder_stamp(&self.place) == Some(stamp))
    }
}

impl Secrets {
    /// The entries with sensitive names, as far as a quick look finds them.
    pub(super) fn find(&mut self, root: &Root) -> Vec<WorkspacePath> {
        let mut look = SecretSearch { root, remembered: 0, found: Vec::new(), ahead: FolderQueue::default() };
        look.go_through(&mut self.0, false);
        look.read_what_is_unknown();
        look.found
    }
}

/// One look through a workspace. It goes along what was seen before, without a search or a copy: in a large tree there
/// are many folders to ask after, and hardly one of them has changed.
struct SecretSearch<'a> {
    root: &'a Root,
    /// How many folders are known to be as they were read.
    remembered: usize,
    found: Vec<WorkspacePath>,
    ahead: FolderQueue<'a>,
}

/// The folders that are still to be read, those near the top first. What git ignores comes last: commands fill it
/// unasked, and could otherwise use up the look before it is done.
#[derive(Default)]
struct FolderQueue<'a> {
    folders: VecDeque<&'a mut FolderSecrets>,
    ignored: VecDeque<&'a mut FolderSecrets>,
}

impl<'a> SecretSearch<'a> {
    /// Goes through a folder and those in it as far as they are remembered, and notes the others.
    fn go_through(&mut self, top: &'a mut FolderSecrets, is_ignored: bool) {
        let mut folders = vec![(top, is_ignored)];
        while let Some((folder, is_above_ignored)) = folders.pop() {
            if folder.is_true(self.root) {
                self.remembered += 1;
                self.found.extend_from_slice(&folder.secrets);
                let is_ignored = folder.is_ignored;
                folders.extend(folder.folders.iter_mut().map(|inner| (inner, is_ignored)));
            } else if is_above_ignored {
                self.ahead.ignored.push_back(folder);
            } else {
                self.ahead.folders.push_back(folder);
            }
        }
    }

    fn read_what_is_unknown(&mut self) {
        let mut left = LOOKED_AT;
        let mut rules = DerivedPaths::new(self.root);
        while left > 0
            && let Some((folder, is_above_ignored)) = self.ahead.next()
        {
            folder.is_ignored = is_above_ignored || rules.is_named(&folder.place, true);
            if folder.is_ignored && !is_above_ignored {
                self.ahead.ignored.push_back(folder);
                continue;
            }
            self.read(folder, &mut left);
        }
    }

    /// Reads the names in a folder. What was seen in the folders that are still there is not read again.
    fn read(&mut self, folder: &'a mut FolderSecrets, left: &mut usize) {
        folder.stamp = None;
        folder.secrets.clear();
        let before = std::mem::take(&mut folder.folders);
        let mut before: HashMap<_, _> = before.into_iter().map(|inner| (inner.place.clone(), inner)).collect();
        let Ok(open) = self.root.enter(folder.place.clone()) else { return };
        let stamp = open.settled_stamp();
        let is_whole = loop {
            let more = open.read_on(|name, kind| {
                *left = left.saturating_sub(1);
                if self.root.names().hold_entry(&folder.place, name, kind) {
                    folder.secrets.push(folder.place.join(name));
                } else if kind == Some(EntryKind::Directory) && !PASSED_BY.iter().any(|other| name == *other) {
                    let place = folder.place.join(name);
                    folder.folders.push(before.remove(&place).unwrap_or_else(|| FolderSecrets::nothing_of(place)));
                }
            });
            match more {
                Ok(true) if *left > 0 => {}
                Ok(more) => break !more,
                Err(_) => break false,
            }
        };
        self.found.extend_from_slice(&folder.secrets);
        if is_whole && self.remembered < REMEMBERED && stamp.is_some() {
            folder.stamp = stamp;
            self.remembered += 1;
        }
        for inner in &mut folder.folders {
            self.go_through(inner, folder.is_ignored);
        }
    }
}

impl<'a> FolderQueue<'a> {
    /// The next folder to read, and whether it is one that git ignores.
    fn next(&mut self) -> Option<(&'a mut FolderSecrets, bool)> {
        let folder = self.folders.pop_front().map(|folder| (folder, false));
        folder.or_else(|| self.ignored.pop_front().map(|folder| (folder, true)))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
        time::{Duration, Instant},
    };

    use super::*;

    /// A workspace in memory, all of whose folders are remembered.
    fn remembered(folders: &[&str]) -> (tempfile::TempDir, Root, Secrets) {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        folders.iter().for_each(|name| fs::create_dir_all(folder.path().join(name)).unwrap());
        let root = Root::open(folder.path(), &[]).unwrap();
        let (mut secrets, begun) = (Secrets::default(), Instant::now());
        // Until the clock has moved on, nobody could tell a later change by its time.
        while !folders.iter().all(|name| is_remembered(&secrets.0, Path::new(name))) {
            assert!(begun.elapsed() < Duration::from_secs(10), "nothing is remembered");
            assert_eq!(find(&mut secrets, &root), Vec::<PathBuf>::new());
        }
        (folder, root, secrets)
    }

    fn find(secrets: &mut Secrets, root: &Root) -> Vec<PathBuf> {
        secrets.find(root).iter().map(|place| root.path().join(place.as_path())).collect()
    }

    fn is_remembered(top: &FolderSecrets, path: &Path) -> bool {
        let is_it = top.stamp.is_some() && top.place.as_path() == path;
        is_it || top.folders.iter().any(|inner| is_remembered(inner, path))
    }

    #[test]
    fn what_has_come_into_remembered_folders_is_found() {
        let (folder, root, mut secrets) = remembered(&["a/b/c/d", "other", "e/f"]);
        let here = root.path().to_owned();
        fs::write(folder.path().join("a/b/c/d/.env"), "").unwrap();
        assert_eq!(find(&mut secrets, &root), [here.join("a/b/c/d/.env")], "written");
        fs::rename(here.join("a/b/c/d/.env"), here.join("e/f/server.key")).unwrap();
        assert_eq!(find(&mut secrets, &root), [here.join("e/f/server.key")], "renamed");
        fs::rename(here.join("e/f"), here.join("a/b/f")).unwrap();
        assert_eq!(find(&mut secrets, &root), [here.join("a/b/f/server.key")], "in a folder that was moved");
        fs::remove_dir(here.join("a/b/c/d")).unwrap();
        fs::rename(here.join("a/b/f"), here.join("a/b/c/d")).unwrap();
        assert_eq!(find(&mut secrets, &root), [here.join("a/b/c/d/server.key")], "in a folder in another's place");
        fs::hard_link(here.join("a/b/c/d/server.key"), here.join("other/id_rsa")).unwrap();
        fs::remove_file(here.join("a/b/c/d/server.key")).unwrap();
        assert_eq!(find(&mut secrets, &root), [here.join("other/id_rsa")], "linked");
    }

    #[test]
    fn a_secret_is_found_the_moment_it_is_there() {
        let (folder, root, mut secrets) = remembered(&["a/b"]);
        let secret = folder.path().join("a/b/.env");
        for round in 0..2000 {
            fs::write(&secret, "").unwrap();
            assert_eq!(find(&mut secrets, &root).len(), 1, "round {round}");
            fs::remove_file(&secret).unwrap();
            assert_eq!(find(&mut secrets, &root).len(), 0, "round {round}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test starts itself again, and tells itself so")]
    fn a_secret_that_is_mounted_over_a_remembered_folder_is_found() {
        const INSIDE: &str = "HAFT_TEST_MAY_MOUNT";
        let here = "fenced::secrets::tests::a_secret_that_is_mounted_over_a_remembered_folder_is_found";
        if std::env::var_os(INSIDE).is_none() {
            // Everybody may mount in namespaces of their own.
            let us = std::env::current_exe().unwrap();
            let ran = run("unshare", &["-Urm", us.to_str().unwrap(), "--exact", here], INSIDE);
            return assert!(ran.contains("1 passed"), "{ran}");
        }
        let (folder, root, mut secrets) = remembered(&["a/b"]);
        let over = folder.path().join("a/b");
        run("mount", &["-t", "tmpfs", "none", over.to_str().unwrap()], INSIDE);
        fs::write(over.join(".env"), "").unwrap();
        assert_eq!(find(&mut secrets, &root), [over.join(".env")]);
        run("umount", &[over.to_str().unwrap()], INSIDE);
        assert_eq!(find(&mut secrets, &root), Vec::<PathBuf>::new());
    }

    #[expect(clippy::disallowed_methods, reason = "the programs by which this test mounts")]
    fn run(program: &str, arguments: &[&str], variable: &str) -> String {
        let ran = std::process::Command::new(program).args(arguments).env(variable, "yes").output().unwrap();
        assert!(ran.status.success(), "{program}: {ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }

    #[test]
    fn a_tree_that_is_too_large_for_one_look_is_looked_through_by_several() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        for number in 0..3 {
            let within = folder.path().join(format!("{number}"));
            fs::create_dir(&within).unwrap();
            for file in 0..LOOKED_AT * 2 / 5 {
                fs::write(within.join(format!("{file}")), "").unwrap();
            }
            fs::create_dir(within.join("inner")).unwrap();
            fs::write(within.join("inner/.env"), "").unwrap();
        }
        let root = Root::open(folder.path(), &[]).unwrap();
        let mut secrets = Secrets::default();
        let begun = Instant::now();
        while find(&mut secrets, &root).len() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(20), "some are never found");
        }
    }

    #[test]
    fn secrets_are_found_where_they_usually_lie() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        for name in [".env", "config/server.key", "services/api/.env.local", ".ssh/id_rsa", "src/main.rs"] {
            let file = here.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        fs::write(here.join(".env.example"), "").unwrap();
        let root = Root::open(&here, &[]).unwrap();
        let mut found = find(&mut Secrets::default(), &root);
        found.sort();
        let expected = [".env", ".ssh", "config/server.key", "services/api/.env.local"].map(|name| here.join(name));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_look_at_a_huge_tree_is_short() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..LOOKED_AT + 2000 {
            fs::write(folder.path().join(format!("file{number}")), "").unwrap();
        }
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/.env"), "").unwrap();
        let root = Root::open(folder.path(), &[]).unwrap();
        // Only what it looked at is found; the point is that it ends.
        assert!(find(&mut Secrets::default(), &root).len() <= 1);
    }

    #[test]
    fn what_commands_may_fill_unasked_hides_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        fs::create_dir_all(here.join("services/api")).unwrap();
        fs::write(here.join("services/api/.env"), "").unwrap();
        fs::write(here.join(".gitignore"), "build/\nb*\n").unwrap();
        for number in 0..8 {
            fs::create_dir_all(here.join(format!("b{number}/build"))).unwrap();
            for file in 0..LOOKED_AT / 8 {
                fs::write(here.join(format!("b{number}/{file}")), "").unwrap();
            }
        }
        assert_eq!(find(&mut Secrets::default(), &Root::open(&here, &[]).unwrap()), [here.join("services/api/.env")]);
    }
}
