//! Ends a turn after every single system call: afterwards the tree is all old or all new.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "the test starts the example that it traces")]
#![expect(clippy::zombie_processes, reason = "the tracer waits for its children itself")]

mod support;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_sandbox::changes::{ChangeDirection, Changes, ChangesError, Selection, recover, remove};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, Uid};
use support::{Picture, picture, set_mode, two_filesystems};

/// An ordinary user that exists nowhere.
const NOBODY: u32 = 65534;
/// More system calls than any turn makes.
const ENDLESS: usize = 100_000;

/// Where the workspace and the data lie, and as whom the turn runs.
#[derive(Clone)]
struct Place {
    workspaces: PathBuf,
    data: PathBuf,
    user: Option<u32>,
}

/// One run of the example in fresh folders.
struct Run {
    workspace: PathBuf,
    dir: PathBuf,
    _folders: [tempfile::TempDir; 2],
}

#[test]
fn a_commit_is_whole_or_absent() {
    end_everywhere("commit", ChangeDirection::Commit, &here(None));
}

#[test]
fn an_undo_is_whole_or_absent() {
    end_everywhere("undo", ChangeDirection::Undo, &here(None));
}

#[test]
fn a_commit_in_a_linked_worktree_is_whole_or_absent() {
    end_everywhere("linked-commit", ChangeDirection::Commit, &here(None));
    if let Some((workspaces, data)) = two_filesystems() {
        end_where_it_matters("linked-commit", ChangeDirection::Commit, &Place { workspaces, data, user: None });
    }
}

#[test]
fn an_undo_in_a_linked_worktree_is_whole_or_absent() {
    end_everywhere("linked-undo", ChangeDirection::Undo, &here(None));
    if let Some((data, workspaces)) = two_filesystems() {
        end_where_it_matters("linked-undo", ChangeDirection::Undo, &Place { workspaces, data, user: None });
    }
}

#[test]
fn a_commit_to_another_filesystem_is_whole_or_absent() {
    if let Some((workspaces, data)) = two_filesystems() {
        end_where_it_matters("commit", ChangeDirection::Commit, &Place { workspaces, data, user: None });
    }
}

#[test]
fn an_undo_on_another_filesystem_is_whole_or_absent() {
    if let Some((data, workspaces)) = two_filesystems() {
        end_where_it_matters("undo", ChangeDirection::Undo, &Place { workspaces, data, user: None });
    }
}

#[test]
fn an_ordinary_user_s_commit_is_whole_or_absent() {
    if Uid::effective().is_root() {
        end_everywhere("commit", ChangeDirection::Commit, &here(Some(NOBODY)));
    }
}

#[test]
fn an_ordinary_user_s_undo_is_whole_or_absent() {
    if Uid::effective().is_root() {
        end_everywhere("undo", ChangeDirection::Undo, &here(Some(NOBODY)));
    }
}

#[test]
fn an_edit_from_its_plan_on_is_whole_or_absent() {
    let (example, place) = (example(), here(None));
    let whole = Whole::new(&example, "edit", &place);
    for calls in 1..ENDLESS {
        let run = Run::new(&place);
        let child = run.start(&example, "edit", &place);
        let ended = let_run(child, calls, || {});
        run.check_begun(&whole, calls);
        if !ended {
            return;
        }
    }
}

fn here(user: Option<u32>) -> Place {
    // In memory if possible: what is tested is the order of the calls, not the disk.
    let folder = two_filesystems().map_or_else(std::env::temp_dir, |(_, shared)| shared);
    Place { workspaces: folder.clone(), data: folder, user }
}

/// Ends the turn after every system call.
fn end_everywhere(what: &str, direction: ChangeDirection, place: &Place) {
    let example = example();
    let whole = Whole::new(&example, what, place);
    for calls in 1..ENDLESS {
        if !end_after(calls, &example, (what, direction, place), &whole) {
            return;
        }
    }
}

/// Ends the turn after every system call that has changed anything on the disk: after the others the disk is as it
/// was after the one before, and everything else dies with the process.
fn end_where_it_matters(what: &str, direction: ChangeDirection, place: &Place) {
    let example = example();
    let whole = Whole::new(&example, what, place);
    assert!(whole.changing.len() > 50, "hardly anything was changed");
    for &calls in &whole.changing {
        end_after(calls, &example, (what, direction, place), &whole);
    }
}

fn end_after(
    calls: usize,
    example: &Path,
    (what, direction, place): (&str, ChangeDirection, &Place),
    whole: &Whole,
) -> bool {
    let run = Run::new(place);
    let child = run.start(example, what, place);
    let ended = let_run(child, calls, || {});
    // Now and then the recovery is ended, too.
    if calls.is_multiple_of(7) {
        let child = run.start(example, "recover", place);
        let_run(child, 5 + calls * 13 % 200, || {});
    }
    run.check(direction, (&whole.before, &whole.after), calls);
    ended
}

/// A turn that was not disturbed.
struct Whole {
    before: Picture,
    after: Picture,
    /// After which system calls the disk was not as before them.
    changing: Vec<usize>,
}

impl Whole {
    fn new(example: &Path, what: &str, place: &Place) -> Whole {
        let run = Run::new(place);
        let child = run.start(example, what, place);
        let before = picture(&run.workspace);
        let (mut calls, mut last, mut changing) = (0, 0, Vec::new());
        let ended = let_run(child, ENDLESS, || {
            calls += 1;
            let now = fingerprint(&[&run.workspace, run.dir.ancestors().nth(2).unwrap()]);
            if std::mem::replace(&mut last, now) != now {
                changing.push(calls);
            }
        });
        assert!(!ended, "the turn makes too many system calls");
        let after = picture(&run.workspace);
        assert_ne!(before, after);
        println!("{what}: {calls} system calls, {} of them change the disk", changing.len());
        Whole { before, after, changing }
    }
}

/// Stands for everything that a recovery could see.
fn fingerprint(folders: &[&Path]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let meta = fs::symlink_metadata(&path).unwrap();
            let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
            (&path, meta.ino(), meta.mode(), meta.size(), times).hash(&mut hasher);
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    hasher.finish()
}

impl Run {
    fn new(place: &Place) -> Run {
        let workspace = tempfile::tempdir_in(&place.workspaces).unwrap();
        let data = tempfile::tempdir_in(&place.data).unwrap();
        for folder in [&workspace, &data] {
            set_mode(folder.path(), 0o755);
            chown(folder.path(), place.user, place.user).unwrap();
        }
        let dir = data.path().join("changes/call");
        Run { workspace: workspace.path().to_owned(), dir, _folders: [workspace, data] }
    }

    /// Starts the example and waits until it stops right before the turn.
    fn start(&self, example: &Path, what: &str, place: &Place) -> Pid {
        let user = place.user.map_or("-".to_owned(), |user| user.to_string());
        let child = Command::new(example)
            .args(["crash", what])
            .args([&self.workspace, &self.dir])
            .arg(user)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let child = Pid::from_raw(i32::try_from(child.id()).unwrap());
        assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Stopped(child, Signal::SIGSTOP));
        ptrace::setoptions(child, ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_EXITKILL).unwrap();
        child
    }

    /// Recovers; the tree must be one of the two, and a turn that was put back must be possible again.
    fn check(&self, direction: ChangeDirection, (before, after): (&Picture, &Picture), calls: usize) {
        let recovered = recover(&self.dir).unwrap_or_else(|error| panic!("after {calls} calls: {error}"));
        assert!(recovered.conflicted.is_empty(), "after {calls} calls: {recovered:?}");
        let now = picture(&self.workspace);
        assert!(now == *before || now == *after, "after {calls} calls: {}", difference(&now, before, after));
        let turned = Changes::open(&self.dir).unwrap().turn(direction, Selection::All);
        match turned {
            Ok(_) => assert_eq!(now, *before, "after {calls} calls"),
            Err(ChangesError::WrongState { .. }) => assert_eq!(now, *after, "after {calls} calls"),
            Err(error) => panic!("after {calls} calls: {error}"),
        }
        let now = picture(&self.workspace);
        assert!(now == *after, "turned again after {calls} calls: {}", difference(&now, before, after));
    }
}

impl Run {
    /// A set that was never sealed is nothing to anybody; any other is whole.
    fn check_begun(&self, whole: &Whole, calls: usize) {
        match Changes::open(&self.dir) {
            Ok(_) => {
                self.check(ChangeDirection::Commit, (&whole.before, &whole.after), calls);
                Changes::open(&self.dir).unwrap().turn(ChangeDirection::Undo, Selection::All).unwrap();
            }
            Err(ChangesError::Gone) => remove(&self.dir).unwrap(),
            Err(error) => panic!("after {calls} calls: {error}"),
        }
        assert_eq!(picture(&self.workspace), whole.before, "after {calls} calls");
        remove(&self.dir).unwrap();
        let left = self.dir.parent().and_then(|changes| fs::read_dir(changes).ok()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "after {calls} calls");
    }
}

/// Lets a stopped child make this many system calls and ends it; says whether it had to be ended.
fn let_run(child: Pid, calls: usize, mut after_each: impl FnMut()) -> bool {
    let mut stops = 0;
    loop {
        ptrace::syscall(child, None).unwrap();
        let status = waitpid(child, None).unwrap();
        if status == WaitStatus::Exited(child, 0) {
            return false;
        }
        assert_eq!(status, WaitStatus::PtraceSyscall(child));
        stops += 1;
        // Every call stops twice: when it begins and when it has ended.
        if stops % 2 == 0 {
            after_each();
        }
        if stops == calls * 2 {
            ptrace::kill(child).unwrap();
            while !matches!(waitpid(child, None).unwrap(), WaitStatus::Signaled(..) | WaitStatus::Exited(..)) {}
            return true;
        }
    }
}

fn difference(now: &Picture, before: &Picture, after: &Picture) -> String {
    let unlike = |other: &Picture| -> Vec<PathBuf> {
        let all = now.keys().chain(other.keys());
        all.filter(|path| now.get(*path) != other.get(*path)).cloned().collect()
    };
    format!("unlike before: {:?}; unlike after: {:?}", unlike(before), unlike(after))
}

/// The example, built anew: a run of only this file would otherwise trace an old one.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.ancestors().nth(2).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "haft-sandbox", "--example", "changes"]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success(), "the example could not be built");
    folder.join("examples/changes")
}
