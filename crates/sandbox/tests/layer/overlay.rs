//! Runs a script over a workspace, in a mount namespace of its own, and takes what it has left.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_sandbox::WorkspacePath;
use haft_sandbox::changes::{Changes, Draft, LayerNotes, PathOrigin};
use rustix::time::{ClockId, clock_gettime};

use crate::support::World;

/// Mounts the layer over the workspace and runs the script there. `$1` is the workspace, `$2` the layer, `$3` the
/// script and `$4`, if given, a file for a list of all that the script could see at its end.
const OVER: &str = r#"
    options=userxattr,redirect_dir=nofollow,index=off,metacopy=off,xino=off,volatile
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work,$options" "$1" || exit 99
    cd "$1" && sh -euc "$3" || exit 98
    test -z "${4-}" || find . -mindepth 1 -printf '%P\t%y %m %l\t%T@\0' > "$4"
"#;

/// Everything is what people care about, unless it lies in `target` or ends in `.o`.
pub(crate) fn sort(place: &WorkspacePath, _kind: haft_sandbox::EntryKind) -> PathOrigin {
    let path = place.as_path();
    let derived = path.starts_with("target") || path.extension().is_some_and(|end| end == "o");
    if derived { PathOrigin::Derived } else { PathOrigin::Source }
}

/// A moment of the filesystem's clock that nothing has happened in yet.
pub(crate) fn now() -> (i64, u32) {
    // Times of files come from the coarse clock or, if somebody has just looked at the file, from the fine one.
    let latest = clock_gettime(ClockId::Realtime);
    loop {
        let tick = clock_gettime(ClockId::RealtimeCoarse);
        if tick > latest {
            return (tick.tv_sec, u32::try_from(tick.tv_nsec).unwrap());
        }
        std::hint::spin_loop();
    }
}

/// What a script has left, and when it began.
pub(crate) struct Run {
    pub(crate) draft: Draft,
    pub(crate) began: (i64, u32),
}

/// Every path with what it is; files with their times.
pub(crate) type Seen = BTreeMap<Vec<u8>, (String, Option<String>)>;

impl Run {
    /// Runs a script over a workspace; it must succeed.
    pub(crate) fn new(world: &World, call: &str, script: &str) -> Run {
        Run::with(world, call, &[script.as_ref()], |_| ())
    }

    /// The same with a list of everything that the script could see at its end.
    pub(crate) fn listing(world: &World, call: &str, script: &str) -> (Run, Seen) {
        let list = world.data.join(format!("{call} list"));
        let run = Run::with(world, call, &[script.as_ref(), list.as_ref()], |_| ());
        (run, parse(&fs::read(list).unwrap()))
    }

    /// The same with something done to the layer first.
    pub(crate) fn with(world: &World, call: &str, script: &[&OsStr], prepare: impl FnOnce(&Path)) -> Run {
        let draft = world.draft(call);
        let layer = draft.layer().unwrap();
        prepare(&layer);
        let began = now();
        run(unshare().args(["sh", "-c", OVER, "sh"]).arg(world.root.path()).arg(&layer).args(script));
        Run { draft, began }
    }

    pub(crate) fn take(mut self) -> (Changes, LayerNotes) {
        let taken = self.draft.take_layer(self.began, &sort).unwrap();
        (self.draft.seal().unwrap(), taken)
    }
}

/// Runs a script over a workspace and seals what it has left; nothing may be left out.
pub(crate) fn over(world: &World, call: &str, script: &str) -> Changes {
    let (changes, taken) = Run::new(world, call, script).take();
    assert_eq!(taken, LayerNotes::default());
    assert!(!world.dir(call).join("layer").exists(), "nothing stays of the layer");
    changes
}

/// The same script on a plain copy of the workspace.
pub(crate) fn on_a_copy(world: &World, script: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir_in(&world.data).unwrap();
    run(Command::new("cp").arg("-a").arg(world.root.path().join(".")).arg(copy.path()));
    run(unshare().args(["sh", "-euc", script]).current_dir(copy.path()));
    copy
}

/// What there is in a folder, as a script sees it.
pub(crate) fn seen_in(folder: &Path) -> Seen {
    let mut seen = Seen::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let (letter, target) = match () {
                () if meta.is_dir() => ("d", PathBuf::new()),
                () if meta.is_symlink() => ("l", fs::read_link(&path).unwrap()),
                () => ("f", PathBuf::new()),
            };
            if meta.is_dir() {
                folders.push(path.clone());
            }
            let what = format!("{letter} {:o} {}", meta.mode() & 0o7777, target.display());
            let time = meta.is_file().then(|| format!("{}.{:09}0", meta.mtime(), meta.mtime_nsec()));
            seen.insert(path.strip_prefix(folder).unwrap().as_os_str().as_bytes().to_owned(), (what, time));
        }
    }
    seen
}

fn parse(list: &[u8]) -> Seen {
    let lines = list.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    let entry = |line: &[u8]| {
        let end = line.iter().rposition(|byte| *byte == b'\t').unwrap();
        let middle = line[..end].iter().rposition(|byte| *byte == b'\t').unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let what = text(&line[middle + 1..end]);
        let time = what.starts_with('f').then(|| text(&line[end + 1..]));
        (line[..middle].to_vec(), (what, time))
    };
    lines.map(entry).collect()
}

/// In a mount namespace; an ordinary user needs a user namespace and its rights for that. There they stay who they are, as
/// in the fence: git takes a file whose owner seems to be another one for changed.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command
}

fn run(command: &mut Command) {
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").env("LC_ALL", "C");
    command.envs([("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")]);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.org");
        command.env(format!("GIT_{who}_DATE"), "1700000000 +0000");
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// Runs a script in the workspace itself, as somebody else would.
pub(crate) fn meanwhile(world: &World, script: &str) {
    run(Command::new("sh").args(["-euc", script]).current_dir(world.root.path()));
}
