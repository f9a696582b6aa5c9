//! What calls wrote into their private folders, kept and thrown away: real overlays, and keeping that is killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "the tests start what runs over the layers")]
#![expect(unsafe_code, reason = "a process that is killed in the middle is a fork of the test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use haft_sandbox::fence::{LayeredFolder, Private, ToolCache, Toolchains, keep, throw_away};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use proptest::prelude::*;

const NOBODY: u32 = 65534;

/// Every path with its kind and mode, and its content or target.
type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Takes a picture of everything beneath a folder, as the root of a user namespace sees it.
fn picture(folder: &Path) -> Picture {
    let copy = tempfile::tempdir().unwrap();
    let out = copy.path().join("out");
    in_namespace(&format!("cp -a . {}", out.display()), folder);
    let mut picture = Picture::new();
    let mut folders = vec![out.clone()];
    while let Some(next) = folders.pop() {
        if next != out {
            let mode = fs::symlink_metadata(&next).unwrap().mode();
            picture.insert(next.strip_prefix(&out).unwrap().to_owned(), (mode, Vec::new()));
        }
        // Some folders cannot be read even by their owner.
        fs::set_permissions(&next, fs::Permissions::from_mode(0o700)).unwrap();
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_dir() {
                folders.push(path);
                continue;
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_file() {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            picture.insert(path.strip_prefix(&out).unwrap().to_owned(), (meta.mode(), content));
        }
    }
    picture
}

/// A workspace with its data, the user's home folder and one cache in it.
struct World {
    private: Private,
    tools: Toolchains,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let home = path.join("home");
        fs::create_dir_all(home.join("cache")).unwrap();
        fs::create_dir(path.join("workspace")).unwrap();
        let tools = Toolchains {
            caches: vec![ToolCache { name: "cache", at: home.join("cache") }],
            home,
            readable: vec![],
            hidden: vec![],
            environment: vec![],
            gitconfig: None,
            found: vec![],
            left_out: vec![],
        };
        let private = Private::open(&path.join("data"), &path.join("workspace")).unwrap();
        World { private, tools, path, _folder: folder }
    }

    fn dir(&self, call: &str) -> PathBuf {
        self.path.join("data/changes").join(call).join("private")
    }

    fn layers(&self, call: &str) -> Layers {
        Layers(self.private.layers(&self.dir(call), &self.tools).unwrap())
    }

    /// One call: a script in the home folder and one in the cache. It is not decided yet.
    fn call(&self, call: &str, in_home: &str, in_cache: &str) {
        let layers = self.layers(call);
        layers.run("home", in_home);
        layers.run("cache", in_cache);
    }

    fn kept(&self, call: &str, in_home: &str, in_cache: &str) {
        self.call(call, in_home, in_cache);
        keep(&self.dir(call)).unwrap();
        assert!(!self.dir(call).exists());
    }

    /// What the next call would see of a folder.
    fn seen(&self, name: &str) -> Picture {
        let out = tempfile::tempdir_in(&self.path).unwrap();
        self.layers("look").run(name, &format!("cp -a . {}", out.path().display()));
        throw_away(&self.dir("look")).unwrap();
        let mut seen = picture(out.path());
        // The place of the cache is there, as the places of all mounts are.
        seen.remove(Path::new(if name == "home" { "cache" } else { "" }));
        in_namespace(&format!("chmod -R u+rwx {}", out.path().display()), Path::new("/"));
        seen
    }

    fn own(&self) -> PathBuf {
        self.path.join("home/cache")
    }

    /// The folder of the workspace in haft's data.
    fn gathered(&self) -> PathBuf {
        let mut folders = fs::read_dir(self.path.join("data/private")).unwrap();
        folders.next().unwrap().unwrap().path()
    }
}

struct Layers(Vec<LayeredFolder>);

impl Layers {
    fn get(&self, name: &str) -> &LayeredFolder {
        self.0.iter().find(|layered| layered.layer.ends_with(name)).unwrap()
    }

    /// Runs a script over a layer as a fenced process would.
    fn run(&self, name: &str, script: &str) {
        let LayeredFolder { beneath, layer, .. } = self.get(name);
        let (upper, work) = (layer.join("upper"), layer.join("work"));
        if beneath.is_empty() {
            return in_namespace(script, &upper);
        }
        let lower: Vec<&str> = beneath.iter().map(|path| path.to_str().unwrap()).collect();
        let options = format!(
            "lowerdir={},upperdir={},workdir={},userxattr,redirect_dir=nofollow,index=off,metacopy=off,xino=off,volatile",
            lower.join(":"),
            upper.display(),
            work.display()
        );
        let at = tempfile::tempdir().unwrap();
        let mounted =
            format!("mount -t overlay overlay -o {options} {0} && cd {0} && {{ {script}\n}}", at.path().display());
        in_namespace(&mounted, Path::new("/"));
    }
}

/// Runs a script as the root of a user namespace of its own, where it may mount.
fn in_namespace(script: &str, folder: &Path) {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

fn names(picture: &Picture) -> Vec<&str> {
    picture.keys().map(|path| path.to_str().unwrap()).collect()
}

/// Every kind of change there is; `own` makes what lies beneath.
const OWN: &str = "mkdir -p a/deep b c d; echo 1 > a/deep/x; echo 1 > a/y; echo 1 > b/x; echo 1 > c/x; echo 1 > d/x;
    echo 1 > edited; echo 1 > deleted; echo 1 > becomes-folder; mkdir becomes-file; echo 1 > becomes-file/x;
    mkdir -m 555 sealed; ln -s a link; echo 1 > 'odd
name'";
const FIRST: &str = "echo 2 > edited; rm deleted 'odd
name'; rm becomes-folder; mkdir becomes-folder; echo 2 > becomes-folder/x; rm -r becomes-file; echo 2 > becomes-file;
    rm -r a; mkdir a; echo 2 > a/z; rm -r b; chmod 700 c; rm link; ln -s b link; mkfifo pipe;
    mkdir -p new/deep; echo 2 > new/deep/x; mkdir -m 555 ro; chmod 755 d; echo 2 > d/y; echo 2 > sealed/x";
const SECOND: &str = "rm -r a; echo 3 > deleted; mkdir b; echo 3 > b/y; rm -r becomes-folder; echo 3 > becomes-folder;
    rm becomes-file; mkdir becomes-file; echo 3 > becomes-file/y; rm -r new/deep; mkdir new/deep; echo 3 > new/deep/y;
    chmod 000 c; rm pipe; chmod 755 ro; echo 3 > ro/x; rm d/x; echo 3 > d/z; chmod 500 d; mv edited moved";

#[test]
fn what_was_kept_is_what_a_plain_run_leaves() {
    let world = World::new();
    let plain = world.path.join("plain");
    fs::create_dir(&plain).unwrap();
    for folder in [&plain, &world.own()] {
        in_namespace(OWN, folder);
    }
    let own = picture(&world.own());
    for (call, script) in [("1", FIRST), ("2", SECOND)] {
        world.kept(call, "true", script);
        in_namespace(script, &plain);
        let seen = world.seen("cache");
        assert_eq!(seen, picture(&plain), "after call {call}");
    }
    assert_eq!(picture(&world.own()), own, "the user's own cache is not touched");
}

#[test]
fn the_home_folder_and_tmp_last_from_call_to_call() {
    let world = World::new();
    world.kept("1", "mkdir -p .config/x; echo 1 > .config/x/settings; echo 1 > note", "true");
    world.kept("2", "echo 2 > .config/x/more; rm note", "true");
    assert_eq!(names(&world.seen("home")), [".config", ".config/x", ".config/x/more", ".config/x/settings"]);
    let mut left = vec![];
    for entry in fs::read_dir(world.gathered()).unwrap() {
        for layer in fs::read_dir(entry.unwrap().path()).into_iter().flatten() {
            left.extend(picture(&layer.unwrap().path()).into_keys());
        }
    }
    assert!(!left.iter().any(|path| path.ends_with("note")), "what is deleted leaves no trace: {left:?}");
}

#[test]
fn what_was_thrown_away_leaves_nothing() {
    let world = World::new();
    fs::write(world.own().join("x"), "1").unwrap();
    world.call("1", "echo 2 > note", "echo 2 > x; mkdir -m 000 closed; mkdir -m 555 -p ro; rm -f y");
    throw_away(&world.dir("1")).unwrap();
    throw_away(&world.dir("1")).unwrap();
    assert!(!world.dir("1").exists());
    assert_eq!(world.seen("home"), Picture::new());
    assert_eq!(world.seen("cache"), picture(&world.own()));
    let left: Vec<_> = fs::read_dir(world.gathered()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["seeds"], "nothing was gathered");
}

#[test]
fn a_tree_that_no_path_can_name_is_kept_and_thrown_away() {
    let world = World::new();
    let deep = "perl -e 'for (1..6000) { mkdir q(d); chdir q(d) or die }'";
    world.kept("1", deep, "true");
    // The same again, so that folders meet folders all the way down.
    let upper = world.layers("2").get("home").layer.join("upper");
    in_namespace("perl -e 'for (1..6000) { mkdir q(d); chdir q(d) or die } mkdir q(last) or die'", &upper);
    keep(&world.dir("2")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let gathered = world.gathered().join(boot.trim()).join("home");
    in_namespace("perl -e 'chdir q(d) or die for 1..6000; rmdir q(last) or die'", &gathered);
    throw_away(&world.gathered()).unwrap();
}

#[test]
fn another_boot_or_a_day_of_rest_begins_anew_and_caches_stay() {
    let world = World::new();
    world.kept("1", "echo 1 > note", "echo 1 > built");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let session = world.gathered().join(&boot);
    let rest = |hours: u64| {
        let then = SystemTime::now() - Duration::from_secs(hours * 3600);
        fs::File::open(&session).unwrap().set_modified(then).unwrap();
    };
    rest(23);
    assert_eq!(names(&world.seen("home")), ["note"]);
    assert!(fs::metadata(&session).unwrap().modified().unwrap().elapsed().unwrap() < Duration::from_secs(600));
    rest(25);
    assert_eq!(names(&world.seen("home")), Vec::<&str>::new());
    world.kept("2", "echo 2 > other", "true");
    assert_eq!(names(&world.seen("home")), ["other"]);
    // What an earlier boot has left is as good as gone.
    world.call("3", "echo 3 > third", "echo 3 > third");
    fs::rename(&session, world.gathered().join("earlier")).unwrap();
    let record = world.dir("3").join("private.json");
    fs::write(&record, fs::read_to_string(&record).unwrap().replace(&boot, "earlier")).unwrap();
    keep(&world.dir("3")).unwrap();
    assert_eq!(names(&world.seen("home")), Vec::<&str>::new());
    assert_eq!(names(&world.seen("cache")), ["built", "third"]);
    world.kept("4", "echo 4 > fourth", "true");
    let mut left: Vec<_> = fs::read_dir(world.gathered()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    let mut expected = ["caches", "lock", "seeds", "workspace", boot.as_str()];
    expected.sort_unstable();
    assert_eq!(left, expected);
    assert_eq!(fs::read_link(world.gathered().join("workspace")).unwrap(), world.path.join("workspace"));
}

#[test]
fn deletions_that_are_marked_by_attributes_count_too() {
    let world = World::new();
    in_namespace("mkdir d; echo 1 > d/gone; echo 1 > d/stays; : > d/empty", &world.own());
    let layers = world.layers("1");
    let upper = layers.get("cache").layer.join("upper/d");
    fs::create_dir(&upper).unwrap();
    fs::write(upper.join("gone"), "").unwrap();
    fs::write(upper.join("empty"), "").unwrap();
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    set(&upper, "user.overlay.opaque", b"x");
    set(&upper.join("gone"), "user.overlay.whiteout", b"");
    // Something must be there to be merged with.
    world.kept("0", "true", "echo 2 > d/stays; echo 2 > d/gone");
    keep(&world.dir("1")).unwrap();
    assert_eq!(names(&world.seen("cache")), ["d", "d/empty", "d/stays"]);
}

#[test]
fn layers_are_made_for_what_is_not_the_workspace() {
    let world = World::new();
    let places = |workspace: &Path, call: &str| -> Vec<PathBuf> {
        let private = Private::open(&world.path.join("data"), workspace).unwrap();
        let layers = private.layers(&world.dir(call), &world.tools).unwrap();
        layers.into_iter().map(|layered| layered.at).collect()
    };
    let (tmp, home) = (["/tmp", "/var/tmp"].map(PathBuf::from), world.tools.home.clone());
    let all = [tmp.as_slice(), &[home.clone(), world.own()]].concat();
    assert_eq!(places(&world.path.join("workspace"), "1"), all);
    assert_eq!(places(&home, "2"), [tmp.as_slice(), &[world.own()]].concat(), "the workspace is the home folder");
    assert_eq!(places(&world.own(), "3"), [tmp.as_slice(), &[home]].concat(), "the workspace is a cache");
    assert_eq!(places(Path::new("/"), "4"), [world.own()], "the workspace is everything");
}

/// A call that was killed in the middle of being kept is kept whole by the next.
#[test]
fn keeping_may_be_killed_after_any_system_call() {
    let world = World::new();
    in_namespace(OWN, &world.own());
    world.kept("1", "mkdir -p a/b; echo 1 > a/b/x; echo 1 > y; mkdir z; echo 1 > z/z", FIRST);
    world.call("2", "rm -r a; echo 2 > a; rm y; mkdir y; echo 2 > y/y; echo 2 > z/y", SECOND);
    let copy = |from: &str, to: &str| {
        in_namespace(&format!("rm -rf {to}; cp -a {from} {to}"), &world.path);
    };
    copy("data", "before");
    keep(&world.dir("2")).unwrap();
    let seen = || [world.seen("cache"), world.seen("home")].map(without_what_closes_folders);
    let expected = seen();
    let mut calls = 0;
    loop {
        copy("before", "data");
        let finished = kill_after(calls, || keep(&world.dir("2")).unwrap());
        keep(&world.dir("2")).unwrap();
        assert!(!world.dir("2").exists());
        assert_eq!(seen(), expected, "killed after {calls} system calls");
        if finished {
            break;
        }
        // Looking at it takes a while: not after each call, but after some of every kind.
        calls += 29;
    }
    assert!(calls > 50, "only {calls} system calls were seen");
}

/// A folder that kept its owner out may let the owner in.
fn without_what_closes_folders(mut picture: Picture) -> Picture {
    for (mode, _) in picture.values_mut() {
        *mode |= if *mode & libc::S_IFMT == libc::S_IFDIR { 0o700 } else { 0 };
    }
    picture
}

/// Does something in a process of its own that is killed after so many system calls; says whether it was done before.
fn kill_after(calls: usize, work: impl FnOnce()) -> bool {
    let child = forked(|| {
        ptrace::traceme().unwrap();
        raise(Signal::SIGSTOP).unwrap();
        work();
    });
    assert!(matches!(waitpid(child, None).unwrap(), WaitStatus::Stopped(..)));
    // Each system call stops it twice.
    for _ in 0..calls * 2 {
        ptrace::syscall(child, None).unwrap();
        if let WaitStatus::Exited(_, code) = waitpid(child, None).unwrap() {
            assert_eq!(code, 0);
            return true;
        }
    }
    kill(child, Signal::SIGKILL).unwrap();
    assert!(matches!(waitpid(child, None).unwrap(), WaitStatus::Signaled(..)));
    false
}

/// Does something in a process of its own.
fn forked(work: impl FnOnce()) -> Pid {
    // SAFETY: the child runs on alone with what the test has made, and ends without coming back.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
            // SAFETY: it ends the process at once, which is what a fork must do.
            unsafe { libc::_exit(i32::from(!done)) }
        }
    }
}

#[test]
fn several_processes_keep_at_once() {
    let world = World::new();
    in_namespace(OWN, &world.own());
    for round in 0..3 {
        let calls: Vec<String> = (0..6).map(|call| format!("{round}-{call}")).collect();
        for call in &calls {
            let shared = format!("mkdir -p shared/{call}; echo {call} > shared/{call}/x");
            world.call(call, &shared, &format!("{shared}; echo {call} > d/{call}"));
        }
        // Each is kept by two processes.
        let children: Vec<Pid> =
            calls.iter().chain(&calls).map(|call| forked(|| keep(&world.dir(call)).unwrap())).collect();
        for child in children {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
        }
        let seen = (world.seen("cache"), world.seen("home"));
        for call in &calls {
            assert_eq!(seen.0[&PathBuf::from(format!("shared/{call}/x"))].1, format!("{call}\n").into_bytes());
            assert_eq!(seen.1[&PathBuf::from(format!("shared/{call}/x"))].1, format!("{call}\n").into_bytes());
            assert!(seen.0.contains_key(&PathBuf::from(format!("d/{call}"))));
            assert!(!world.dir(call).exists());
        }
    }
}

/// One step of a script on a handful of names.
#[derive(Clone, Debug)]
enum Step {
    Write(String, u32),
    Folder(String),
    Delete(String),
    Move(String, String),
    Mode(String, u32),
    Link(String),
}

impl Step {
    fn script(&self) -> String {
        let line = match self {
            Step::Write(path, value) => format!("echo {value} > {path}"),
            Step::Folder(path) => format!("mkdir -p {path}"),
            Step::Delete(path) => format!("rm -rf {path}"),
            Step::Move(from, to) => format!("test -e {from} && rm -rf {to} && mv -T {from} {to}"),
            Step::Mode(path, mode) => format!("test ! -L {path} && chmod {mode:o} {path}"),
            Step::Link(path) => format!("ln -s nowhere {path}"),
        };
        format!("{{ {line}; }} 2> /dev/null;")
    }
}

fn a_path() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof!["a", "b"], 1..4).prop_map(|parts| parts.join("/"))
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (a_path(), 0..9u32).prop_map(|(path, value)| Step::Write(path, value)),
        3 => a_path().prop_map(Step::Folder),
        2 => a_path().prop_map(Step::Delete),
        1 => (a_path(), a_path()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => (a_path(), prop_oneof![Just(0o700), Just(0o555), Just(0)]).prop_map(|(path, mode)| Step::Mode(path, mode)),
        1 => a_path().prop_map(Step::Link),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_one_after_the_other_leave_what_plain_runs_leave(
        calls in proptest::collection::vec(proptest::collection::vec(a_step(), 1..8), 2..5),
    ) {
        let world = World::new();
        let plain = world.path.join("plain");
        fs::create_dir(&plain).unwrap();
        for (index, steps) in calls.iter().enumerate() {
            let script: String = steps.iter().map(Step::script).chain(["true".to_owned()]).collect();
            in_namespace(&script, &plain);
            if index == 0 {
                in_namespace(&script, &world.own());
            } else {
                world.kept("call", "true", &script);
            }
        }
        prop_assert_eq!(world.seen("cache"), picture(&plain));
    }
}

#[test]
fn what_goes_from_a_closed_folder_stays_gone() {
    let world = World::new();
    let plain = world.path.join("plain");
    fs::create_dir(&plain).unwrap();
    let scripts = ["mkdir -p a/a/a; chmod 0 a", "rm -rf a/a/a", "rm -rf a/a"];
    in_namespace(scripts[0], &plain);
    in_namespace(scripts[0], &world.own());
    for script in &scripts[1..] {
        in_namespace(script, &plain);
        world.kept("call", "true", script);
        assert_eq!(world.seen("cache"), picture(&plain), "{script}");
    }
}

/// The same tests once more as somebody who may not do everything; who is not root has just done so.
/// Copies a program that is to be run. Another process does it: were the copy written here, a process that another test
/// starts at this moment could hold it open for a while, and what is being written cannot be run.
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

#[test]
fn all_of_it_works_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("tests");
    copy_program(&std::env::current_exe().unwrap(), &program);
    let mut command = Command::new(&program);
    command.current_dir("/").env("TMPDIR", "/tmp").args(["--skip", "an_ordinary_user"]).uid(NOBODY).gid(NOBODY);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("test result: ok"), "{told}");
}
