//! A workspace, a data folder and a home of their own, and the built program run in them.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]
#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::{ErrorKind, Read, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

/// The program that was built for these tests.
pub const HAFT: &str = env!("CARGO_BIN_EXE_haft");
/// The name of whoever runs these tests, as the system knows it.
pub fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// No command of these tests takes longer, also on a machine with other work.
pub const LIMIT: Duration = Duration::from_secs(120);
/// What runs without asking.
pub const ALL: &[&str] = &["--auto-approve", "all"];

/// A workspace with a data folder and a home, each a folder of one temporary folder.
pub struct Fixture {
    pub workspace: PathBuf,
    pub data: PathBuf,
    pub home: PathBuf,
    _folders: Vec<tempfile::TempDir>,
}

impl Fixture {
    /// Everything on one file system.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let data = top.join("data");
        Self::of(&top, data, vec![folder])
    }

    /// The data on another file system than the workspace; `None` where there is no other one to write to.
    pub fn across() -> Option<Self> {
        let here = tempfile::tempdir().unwrap();
        let there = tempfile::tempdir_in("/dev/shm").ok()?;
        if here.path().metadata().unwrap().dev() == there.path().metadata().unwrap().dev() {
            return None;
        }
        let top = here.path().canonicalize().unwrap();
        let data = there.path().canonicalize().unwrap().join("data");
        Some(Self::of(&top, data, vec![here, there]))
    }

    fn of(top: &Path, data: PathBuf, folders: Vec<tempfile::TempDir>) -> Self {
        let (workspace, home) = (top.join("workspace"), top.join("home"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&home).unwrap();
        Self { workspace, data, home, _folders: folders }
    }

    /// The program in the workspace, with an environment of its own and nothing on standard input.
    pub fn haft<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.program(HAFT);
        command.args(args);
        command
    }

    /// Any program in the same place.
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.workspace).env_clear();
        command.envs([("NO_COLOR", "1"), ("USER", "somebody-else"), ("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")]);
        command.env("HOME", &self.home).env("HAFT_DATA_DIR", &self.data);
        command.stdin(Stdio::null());
        command
    }

    /// Installs the program for this user, as `make install` does, and gives its path.
    pub fn install_program(&self) -> PathBuf {
        let bin = self.home.join(".local/bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(HAFT, bin.join("haft")).unwrap();
        bin.join("haft")
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Running::start(self.haft(args)).finish()
    }

    /// Runs the program with something on standard input; what it does not read is no fault.
    pub fn run_with_input(&self, args: &[&str], input: Vec<u8>) -> Ran {
        let mut command = self.haft(args);
        command.stdin(Stdio::piped());
        let mut running = Running::start(command);
        let mut stdin = running.stdin();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let ran = running.finish();
        writer.join().unwrap();
        ran
    }

    /// Runs the program, which must succeed, and reads the one document it prints.
    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.json()
    }

    /// One call with an input, as JSON.
    pub fn call(&self, tool: &str, input: &Value, flags: &[&str]) -> (i32, Value) {
        let ran = self.run(&[&["call", tool, &input.to_string(), "--json"], flags].concat());
        (ran.code.unwrap_or(-1), ran.json())
    }

    /// A call that must be handed back as pending; gives its id.
    pub fn pending(&self, tool: &str, input: &Value) -> String {
        let (code, outcome) = self.call(tool, input, &[]);
        assert_eq!((code, &outcome["status"]), (4, &Value::from("pending")), "{outcome}");
        id(&outcome)
    }

    /// One call's whole story.
    pub fn story(&self, call: &str) -> Value {
        self.json(&["log", "show", call])
    }

    /// Waits until a call of a process that was just started waits for an answer, and gives its id.
    pub fn asked(&self, seen: &[&str]) -> String {
        until("a question", || {
            let open = self.json(&["approvals"]);
            let ids = open.as_array().unwrap().iter().map(|question| text(&question["callId"]));
            ids.into_iter().find(|call| !seen.contains(&call.as_str()))
        })
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.workspace.join(path)
    }

    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The text of a file; `None` when nothing is there.
    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    pub fn picture(&self) -> Picture {
        picture(&self.workspace)
    }
}

/// Copies a program that is to be run. Another process does it: were the copy written here, a process that another test
/// starts at this moment could hold it open for a while, and what is being written cannot be run.
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

/// Every path with its mode, its time (of what is no folder) and its content or target.
pub type Picture = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

/// Takes a picture of everything beneath a folder.
pub fn picture(folder: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_file() {
                // What this user may not read is told by its mode and its time.
                match fs::read(&path) {
                    Err(err) if err.kind() == ErrorKind::PermissionDenied => Vec::new(),
                    read => read.unwrap(),
                }
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_owned()
            } else {
                Vec::new()
            };
            if meta.is_dir() {
                folders.push(path.clone());
            }
            // A folder's time moves when something beside is made and removed again, which is no change.
            let time = if meta.is_dir() { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
            picture.insert(path, (meta.permissions().mode(), time.0, time.1, content));
        }
    }
    picture
}

/// How the program ended and what it said.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn new(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Self {
        let lossy = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let ran = Self { code: status.code(), signal: status.signal(), stdout: lossy(stdout), stderr: lossy(stderr) };
        // A refusal is never a crash.
        assert!(!ran.stderr.contains("panicked") && !ran.stdout.contains("panicked"), "{ran:?}");
        assert!(!matches!(ran.code, Some(101 | 134 | 139)), "{ran:?}");
        ran
    }

    /// The one document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|err| panic!("not one JSON document ({err}): {self:?}"))
    }

    /// Everything it said.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Starts it. A copy of the program that was just made is busy for as long as a child that another test has just forked
/// still holds the file open for writing, which ends when that child execs.
fn spawn(command: &mut Command) -> Child {
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        match command.spawn() {
            Err(err) if err.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < patience => {
                std::thread::yield_now();
            }
            spawned => return spawned.unwrap(),
        }
    }
}

/// The program while it runs. It does not outlive the test.
pub struct Running {
    child: Child,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    heard: Option<Vec<u8>>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command);
        let stdout = heard(child.stdout.take().unwrap());
        let stderr = heard(child.stderr.take().unwrap());
        Self { child, stdout, stderr, heard: None }
    }

    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Waits for the end of its output, at most so long, and says whether it came.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        if self.heard.is_none() {
            self.heard = self.stdout.recv_timeout(limit).ok();
        }
        self.heard.is_some()
    }

    /// `kill -9`, and what it had said by then.
    pub fn kill(mut self) -> Ran {
        let _ = self.child.kill();
        self.finish()
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Ran {
        let ended = self.ends_within(LIMIT);
        assert!(ended, "the program has not ended after {LIMIT:?}");
        let stderr = self.stderr.recv_timeout(LIMIT).unwrap();
        let status = self.child.wait().unwrap();
        Ran::new(status, &self.heard.take().unwrap_or_default(), &stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe to its end on a thread of its own.
fn heard(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (all, heard) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = all.send(bytes);
    });
    heard
}

/// The program at a terminal of 80 columns, where it can be typed to. It does not outlive the test.
pub struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
}

impl Terminal {
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(OsStr::new(name.to_str().unwrap())).unwrap();
        command.stdin(open()).stdout(open()).stderr(open());
        let child = spawn(&mut command);
        let keys = File::from(master);
        let (said, screen) = channel();
        let mut reader = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                let _ = said.send(bytes[..count].to_vec());
            }
        });
        Self { child, keys, screen }
    }

    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads on until the words are there, and gives what was read.
    pub fn read_until(&mut self, words: &str) -> String {
        let mut said = Vec::new();
        loop {
            let next = self.screen.recv_timeout(LIMIT);
            said.extend(next.unwrap_or_else(|err| panic!("{err} after {}", String::from_utf8_lossy(&said))));
            let text = String::from_utf8_lossy(&said);
            if text.contains(words) {
                return text.into_owned();
            }
        }
    }

    /// Waits for its end.
    pub fn exit_code(mut self) -> Option<i32> {
        until("end of the program", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Programs that wait at a gate; all start when it opens.
pub struct Gate {
    entrance: std::io::PipeReader,
    bar: std::io::PipeWriter,
    waiting: Vec<Running>,
}

impl Gate {
    pub fn new() -> Self {
        let (entrance, bar) = std::io::pipe().unwrap();
        Self { entrance, bar, waiting: Vec::new() }
    }

    /// One more.
    pub fn add(&mut self, fixture: &Fixture, args: &[&str]) {
        let mut command = fixture.program("/bin/sh");
        command.args(["-c", "read -r _; exec \"$@\"", "sh", HAFT]).args(args);
        command.stdin(self.entrance.try_clone().unwrap());
        self.waiting.push(Running::start(command));
    }

    /// Lets all of them run, and waits for all.
    pub fn open(self) -> Vec<Ran> {
        drop(self.bar);
        self.waiting.into_iter().map(Running::finish).collect()
    }
}

/// Looks again until something is there; looking takes its own time.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        if let Some(found) = look() {
            return found;
        }
        std::thread::yield_now();
    }
    panic!("there was no {what} within {LIMIT:?}");
}

/// The id in an envelope.
pub fn id(outcome: &Value) -> String {
    text(&outcome["tool_call_id"])
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}")).to_owned()
}

/// The kinds of the events of a story, in order.
pub fn events(story: &Value) -> Vec<String> {
    story["events"].as_array().unwrap().iter().map(|event| text(&event["data"]["event"])).collect()
}
