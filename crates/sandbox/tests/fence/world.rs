//! A workspace for fenced commands, and everybody whom they may run as.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use haft_sandbox::fence::{
    Bound, CommandStream, Fence, FenceError, FenceJob, FenceLimits, FileTime, ProcessEnd, Rung, WorkspaceView,
};
use serde::Deserialize;

/// Somebody without rights, for the half of the tests that must not be root.
const ORDINARY: u32 = 54_321;

/// Who starts the fence, and whose the workspace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Root, in a workspace of root's.
    Root,
    /// Root, in a workspace of somebody else's.
    RootForOther,
    /// An ordinary user in an own workspace.
    Ordinary,
}

impl Who {
    /// Everybody that these tests can be: without root's rights only the last.
    pub(crate) fn all() -> &'static [Who] {
        if rustix::process::geteuid().is_root() {
            &[Who::Root, Who::RootForOther, Who::Ordinary]
        } else {
            &[Who::Ordinary]
        }
    }

    /// Everybody that a rung is for.
    pub(crate) fn at(rung: Rung) -> impl Iterator<Item = Who> {
        let alone = rung == Rung::Landlock;
        Who::all().iter().copied().filter(move |who| !alone || *who != Who::Root)
    }
}

/// A workspace and what lies around it, all of it open to everybody as far as files go.
pub(crate) struct World {
    pub(crate) who: Who,
    pub(crate) workspace: PathBuf,
    /// A folder outside that everybody may write.
    pub(crate) outside: PathBuf,
    helper: PathBuf,
    folder: tempfile::TempDir,
}

/// How a fenced command ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) stdout: String,
    #[expect(dead_code, reason = "it is there to be seen when a test fails")]
    stderr: String,
    pub(crate) exit: String,
    pub(crate) bound: Option<Bound>,
    pub(crate) began: Option<FileTime>,
}

impl World {
    pub(crate) fn new(who: Who) -> World {
        let folder = tempfile::Builder::new().prefix("fence").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let helper = folder.path().join("helper");
        copy_program(&example(), &helper);
        let world = World {
            who,
            workspace: folder.path().join("workspace"),
            outside: folder.path().join("outside"),
            helper,
            folder,
        };
        fs::create_dir(&world.workspace).unwrap();
        fs::create_dir(&world.outside).unwrap();
        fs::set_permissions(&world.outside, fs::Permissions::from_mode(0o777)).unwrap();
        world.give(&world.workspace);
        world
    }

    /// Gives a file or folder to whom the workspace is.
    pub(crate) fn give(&self, path: &Path) {
        if rustix::process::geteuid().is_root() && self.who != Who::Root {
            chown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
        }
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.workspace.join(name);
        let mut above: Vec<_> = path.ancestors().skip(1).take_while(|one| !one.exists()).collect();
        above.reverse();
        for folder in above {
            fs::create_dir(folder).unwrap();
            self.give(folder);
        }
        fs::write(&path, content).unwrap();
        self.give(&path);
        path
    }

    /// A folder beside the workspace.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).unwrap();
        self.give(&path);
        path
    }

    /// A new layer beside the workspace.
    pub(crate) fn layer(&self, name: &str) -> PathBuf {
        let layer = self.beside(name);
        self.beside(&format!("{name}/upper"));
        self.beside(&format!("{name}/work"));
        layer
    }

    /// A job for a shell script that writes into the workspace.
    pub(crate) fn job(&self, script: &str) -> FenceJob {
        FenceJob {
            command: ["bash", "-c", script].map(str::to_owned).to_vec(),
            folder: self.workspace.clone(),
            environment: [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/home/fenced"), ("LANG", "C.UTF-8")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            stdin: Vec::new(),
            workspace: self.workspace.clone(),
            view: WorkspaceView::Direct,
            layered: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            masks: Vec::new(),
            network: false,
            limits: FenceLimits::default(),
            rung: Rung::Namespaces,
        }
    }

    pub(crate) fn helper(&self) -> &Path {
        &self.helper
    }

    pub(crate) fn fence(&self) -> Fence {
        Fence::new(&self.helper)
    }

    /// Runs a job as the one who starts fences here.
    pub(crate) fn run(&self, job: &FenceJob) -> Answer {
        run_by(self.asker("job"), job)
    }

    /// The same for a job that others of its workspace reach.
    pub(crate) fn run_reachable(&self, job: &FenceJob) -> Answer {
        run_by(self.asker("reachable-job"), job)
    }

    /// A process of the one who starts fences here, which reads a job, runs it in this way and says how it ended.
    #[expect(clippy::disallowed_methods, reason = "somebody has to ask for the fence")]
    pub(crate) fn asker(&self, way: &str) -> Child {
        let mut asker = Command::new(&self.helper);
        asker.arg(way).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if rustix::process::geteuid().is_root() && self.who == Who::Ordinary {
            asker.uid(ORDINARY).gid(ORDINARY);
        }
        asker.spawn().unwrap()
    }
}

/// Has somebody run a job, and hears how it ended.
fn run_by(mut asker: Child, job: &FenceJob) -> Answer {
    asker.stdin.take().unwrap().write_all(&serde_json::to_vec(job).unwrap()).unwrap();
    let output = asker.wait_with_output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer:?} {:?}", String::from_utf8_lossy(&output.stderr)))
}

/// Copies a program that is to be run. Another process does it: were the copy written here, a process that another test
/// starts at this moment could hold it open for a while, and what is being written cannot be run.
#[expect(clippy::disallowed_methods, reason = "a test makes a program to run")]
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

/// Runs a job in this very process.
pub(crate) fn run_here(world: &World, job: &FenceJob) -> Result<(ProcessEnd, String, String), FenceError> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = world.fence().start(job)?.wait(&mut |stream, piece| match stream {
        CommandStream::Stdout => stdout.extend_from_slice(piece),
        CommandStream::Stderr => stderr.extend_from_slice(piece),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((ended, text(&stdout), text(&stderr)))
}

/// Waits until something holds, for at most this long.
pub(crate) fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < limit {
        if holds() {
            return true;
        }
        std::thread::yield_now();
    }
    holds()
}

/// The ids of all processes with this text in their arguments.
pub(crate) fn alive(mark: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_mark = |pid: &i32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    pids.filter(has_mark).collect()
}

/// The example that builds the fence, which cargo has built beside the tests.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples/fence");
    assert!(path.exists(), "{} is missing: build it with `cargo build --example fence`", path.display());
    path
}
