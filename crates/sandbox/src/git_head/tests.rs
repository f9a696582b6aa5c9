//! What counts as evidence, and all that does not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

/// A folder with a repository in `w`, in which `a.pem` and `sub/b.key` are committed.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(format: &str) -> World {
        let world = World { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(world.path("w")).unwrap();
        world.git("w", &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
        world.put("w/a.pem", "one\n");
        world.put("w/sub/b.key", "two\n");
        world.commit("w");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn put(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "git makes what is read")]
    fn git(&self, within: &str, arguments: &[&str]) {
        let settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
        let mut git = Command::new("git");
        git.args(settings).args(arguments).current_dir(self.path(within)).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let ended = git.output().unwrap();
        assert!(ended.status.success(), "{arguments:?}: {ended:?}");
    }

    fn commit(&self, within: &str) {
        self.git(within, &["add", "-A"]);
        self.git(within, &["commit", "-qm", "x"]);
    }

    /// What the commit has, seen from a workspace.
    fn entry(&self, workspace: &str, place: &str) -> Option<String> {
        let root = Root::open(&self.path(workspace), &[]).unwrap();
        match HeadReader::new(&root).entry(&root.place_called(place).unwrap())? {
            HeadEntry::File(file) => Some(String::from_utf8(file.bytes).unwrap()),
            HeadEntry::Link(target) => Some(format!("-> {}", String::from_utf8(target).unwrap())),
            HeadEntry::Folder => Some("/".to_owned()),
        }
    }

    fn has(&self, workspace: &str, place: &str, content: &str) {
        assert_eq!(self.entry(workspace, place).as_deref(), Some(content), "{place} in {workspace}");
    }

    fn has_not(&self, workspace: &str, place: &str) {
        assert_eq!(self.entry(workspace, place), None, "{place} in {workspace}");
    }
}

#[test]
fn objects_are_found_by_themselves_and_in_packs_of_either_hash() {
    for format in ["sha1", "sha256"] {
        let world = World::new(format);
        let mut long: String = (0..4000).map(|line| format!("line {line}\n")).collect();
        for round in 0..5 {
            long.push_str(&format!("round {round}\n"));
            world.put("w/long.pem", &long);
            world.commit("w");
        }
        symlink("a.pem", world.path("w/link.pem")).unwrap();
        world.commit("w");
        for packed in [false, true] {
            if packed {
                // Differences from others, named by their place or by their hash, and branches in one file.
                world.git("w", &["repack", "-qadf", "--depth=50", "--window=50"]);
                world.git("w", &["pack-refs", "--all"]);
            }
            world.has("w", "a.pem", "one\n");
            world.has("w", "sub/b.key", "two\n");
            world.has("w", "long.pem", &long);
            world.has("w", "link.pem", "-> a.pem");
            world.has("w", "sub", "/");
            for none in ["b.key", "sub/a.pem", "a.pem/x", "long.pe"] {
                world.has_not("w", none);
            }
        }
        world.git("w", &["checkout", "-q", "--detach"]);
        world.has("w", "a.pem", "one\n");
        // A pack that is cut off or spoilt anywhere is no evidence, and does no harm.
        let packs = fs::read_dir(world.path("w/.git/objects/pack")).unwrap().flatten().map(|entry| entry.path());
        for pack in packs.filter(|path| path.extension().is_some_and(|end| end == "pack" || end == "idx")) {
            let whole = fs::read(&pack).unwrap();
            fs::remove_file(&pack).unwrap();
            for cut in (0..whole.len()).step_by(whole.len() / 40 + 1) {
                let mut spoilt = whole.clone();
                spoilt[cut] ^= 0xff;
                for bytes in [&whole[..cut], &spoilt] {
                    fs::write(&pack, bytes).unwrap();
                    let _ = world.entry("w", "long.pem");
                }
            }
            fs::remove_file(&pack).unwrap();
            fs::write(&pack, whole).unwrap();
        }
        world.has("w", "long.pem", &long);
    }
}

#[test]
fn only_the_commit_counts() {
    let world = World::new("sha1");
    world.put("w/c.pem", "added\n");
    world.git("w", &["add", "c.pem"]);
    world.git("w", &["stash", "-q"]);
    world.has_not("w", "c.pem");
    world.git("w", &["checkout", "-qb", "other"]);
    world.put("w/a.pem", "changed\n");
    world.commit("w");
    world.has("w", "a.pem", "changed\n");
    world.git("w", &["checkout", "-q", "main"]);
    world.has("w", "a.pem", "one\n");
    world.put("w/.git/HEAD", "ref: refs/heads/none\n");
    world.has_not("w", "a.pem");
    for head in ["ref: ../../x", "ref: HEAD", "ref: refs/../HEAD", "", "123", "ref: /etc/passwd"] {
        world.put("w/.git/HEAD", head);
        world.has_not("w", "a.pem");
    }
}

#[test]
fn a_hash_alone_shows_nothing() {
    let world = World::new("sha1");
    world.put("w/secret.pem", "unknown to whoever knows its hash\n");
    // The tree of a commit may name an object that is nowhere.
    world.git("w", &["add", "secret.pem"]);
    world.git("w", &["commit", "-qm", "x"]);
    world.has("w", "secret.pem", "unknown to whoever knows its hash\n");
    let objects = world.path("w/.git/objects");
    for fan in fs::read_dir(objects).unwrap().flatten().filter(|fan| fan.file_name().len() == 2) {
        for object in fs::read_dir(fan.path()).unwrap().flatten().map(|object| object.path()) {
            let bytes = fs::read(&object).unwrap();
            fs::remove_file(&object).unwrap();
            let without = world.entry("w", "secret.pem");
            // Neither does an object of that name with another content, or one that leads to the file itself.
            symlink(world.path("w/secret.pem"), &object).unwrap();
            let linked = world.entry("w", "secret.pem");
            fs::remove_file(&object).unwrap();
            fs::hard_link(world.path("w/secret.pem"), &object).unwrap();
            let hard = world.entry("w", "secret.pem");
            fs::remove_file(&object).unwrap();
            fs::write(&object, bytes).unwrap();
            assert!(without == linked && linked == hard, "{}", object.display());
        }
    }
}

#[test]
fn the_nearest_repository_decides_and_no_other() {
    let world = World::new("sha1");
    world.put("w/inner/a.pem", "outer\n");
    world.commit("w");
    world.has("w", "inner/a.pem", "outer\n");
    world.git("w/inner", &["init", "-q"]);
    world.has_not("w", "inner/a.pem");
    world.commit("w/inner");
    world.has("w", "inner/a.pem", "outer\n");
    fs::remove_dir_all(world.path("w/inner/.git")).unwrap();
    // What is not understood hides what lies above.
    for door in ["", "gitdir: nowhere", "gitdir: ../.git", "garbage"] {
        world.put("w/inner/.git", door);
        let expected = (door == "gitdir: ../.git").then(|| "one\n".to_owned());
        assert_eq!(world.entry("w", "inner/a.pem"), expected, "{door}");
    }
    fs::remove_file(world.path("w/inner/.git")).unwrap();
    symlink("../.git", world.path("w/inner/.git")).unwrap();
    world.has_not("w", "inner/a.pem");
}

#[test]
fn a_workspace_may_be_a_part_of_a_repository() {
    let world = World::new("sha1");
    world.has("w/sub", "b.key", "two\n");
    world.has_not("w/sub", "a.pem");
}

#[test]
fn linked_worktrees_and_submodules_are_followed_if_they_point_back() {
    let world = World::new("sha1");
    world.git("w", &["worktree", "add", "-q", "../linked", "-b", "side"]);
    world.git("w", &["worktree", "add", "-q", "inside", "-b", "inner"]);
    world.put("linked/a.pem", "on the side\n");
    world.commit("linked");
    world.has("linked", "a.pem", "on the side\n");
    world.has("w", "a.pem", "one\n");
    world.has("w", "inside/a.pem", "one\n");
    world.git("w", &["submodule", "add", "-q", &world.path("linked").to_string_lossy(), "module"]);
    world.has("w", "module/a.pem", "on the side\n");
    world.has("w/module", "a.pem", "on the side\n");
    // A folder that says so itself is not believed.
    world.put("stranger/a.pem", "mine\n");
    for to in ["../w/.git", "../w/.git/worktrees/linked", "../w/.git/modules/module"] {
        world.put("stranger/.git", &format!("gitdir: {to}\n"));
        world.has_not("stranger", "a.pem");
    }
    // Nor is one inside the workspace that shares with a repository outside.
    world.put("stranger/.git", "gitdir: made\n");
    world.put("stranger/made/HEAD", "ref: refs/heads/main\n");
    world.put("stranger/made/commondir", &world.path("w/.git").to_string_lossy());
    world.has_not("stranger", "a.pem");
    fs::remove_file(world.path("stranger/.git")).unwrap();
    fs::rename(world.path("stranger/made"), world.path("stranger/.git")).unwrap();
    world.has_not("stranger", "a.pem");
}

#[test]
fn what_lies_elsewhere_is_no_evidence() {
    let world = World::new("sha1");
    world.git(".", &["clone", "-q", "--shared", "w", "shared"]);
    world.has_not("shared", "a.pem");
    for part in ["objects", "refs", "HEAD"] {
        let (git, aside) = (world.path("w/.git").join(part), world.path("aside"));
        fs::rename(&git, &aside).unwrap();
        symlink(&aside, &git).unwrap();
        world.has_not("w", "a.pem");
        fs::remove_file(&git).unwrap();
        fs::rename(&aside, &git).unwrap();
    }
    world.has("w", "a.pem", "one\n");
    assert!(Path::new(&world.path("w/.git")).exists());
}
