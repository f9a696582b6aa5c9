//! A person with a workspace, who runs commands through the program: whoever runs the tests, and an ordinary user.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{self, Fixture, Ran, Running, id};

/// An ordinary user that exists nowhere.
pub const NOBODY: u32 = 65534;

/// Somebody with a workspace, a home and a data folder.
pub struct Person {
    pub fixture: Fixture,
    program: PathBuf,
    ordinary: Option<u32>,
    /// Variables of the session, beside those that everybody has.
    pub variables: Vec<(&'static str, OsString)>,
}

impl Person {
    /// Whoever runs the tests.
    pub fn us() -> Self {
        Self::with(Fixture::new())
    }

    /// The same in a place of its own.
    pub fn with(fixture: Fixture) -> Self {
        Self { fixture, program: PathBuf::from(support::HAFT), ordinary: None, variables: Vec::new() }
    }

    /// An ordinary user: another one when root runs the tests.
    pub fn ordinary() -> Self {
        let mut person = Self::us();
        if !rustix::process::geteuid().is_root() {
            return person;
        }
        let top = person.fixture.home.parent().unwrap().to_owned();
        person.program = top.join("haft");
        support::copy_program(support::HAFT.as_ref(), &person.program);
        person.ordinary = Some(NOBODY);
        for folder in [&top, &person.fixture.workspace, &person.fixture.home] {
            chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        person
    }

    /// Both.
    pub fn everyone() -> Vec<Self> {
        match rustix::process::geteuid().is_root() {
            true => vec![Self::us(), Self::ordinary()],
            false => vec![Self::us()],
        }
    }

    /// Any program, as this person in the workspace.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.fixture.program(&program.as_ref().to_string_lossy());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(user) = self.ordinary {
            command.uid(user).gid(user);
        }
        command
    }

    /// The program with these arguments.
    pub fn haft<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.program(&self.program);
        command.args(args);
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Running::start(self.haft(args)).finish()
    }

    /// Runs the program, which must succeed, and reads the document that it prints.
    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.json()
    }

    /// One call.
    pub fn call(&self, tool: &str, input: &Value, flags: &[&str]) -> (i32, Value) {
        let ran = self.run(&[&["call", tool, &input.to_string(), "--json"], flags].concat());
        (ran.code.unwrap_or(-1), ran.json())
    }

    /// One command.
    pub fn shell(&self, command: &str, flags: &[&str]) -> (i32, Value) {
        self.call("shell_exec", &json!({ "command": command }), flags)
    }

    /// A command that must succeed in mode `all`, whatever it changes; gives what it said.
    pub fn does(&self, command: &str) -> String {
        let (code, outcome) = self.shell(command, support::ALL);
        let structured = &outcome["result"]["structured"];
        assert_eq!((code, &structured["exitCode"]), (0, &json!(0)), "{}: {command}: {outcome:#}", self.name());
        said(&outcome["result"])
    }

    /// A command whose changes wait for a yes; gives the call.
    pub fn stages(&self, command: &str, flags: &[&str]) -> String {
        let (code, outcome) = self.shell(command, flags);
        assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{}: {command}: {outcome:#}", self.name());
        id(&outcome)
    }

    /// A command of which only what it says is of interest; it may fail.
    pub fn says(&self, command: &str) -> String {
        let (code, outcome) = self.shell(command, &[]);
        assert_eq!(code, 0, "{}: {command}: {outcome:#}", self.name());
        said(&outcome["result"])
    }

    /// Plain git in the workspace, which must succeed.
    pub fn git(&self, arguments: &[&str]) {
        let mut git = self.program("/usr/bin/git");
        git.args(arguments);
        let ran = Running::start(git).finish();
        assert_eq!(ran.code, Some(0), "git {arguments:?}: {ran:?}");
    }

    /// Puts a file of this person's into the workspace.
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        self.fixture.put(path, content);
        let mut way = self.fixture.path(path);
        while way != self.fixture.workspace {
            self.give(&way);
            way.pop();
        }
    }

    /// Puts a file into the home folder.
    pub fn put_home(&self, path: &str, content: impl AsRef<[u8]>) {
        let mut way = self.fixture.home.join(path);
        fs::create_dir_all(way.parent().unwrap()).unwrap();
        fs::write(&way, content).unwrap();
        while way != self.fixture.home {
            self.give(&way);
            way.pop();
        }
    }

    /// Makes something this person's own.
    pub fn give(&self, path: &Path) {
        if let Some(user) = self.ordinary {
            chown(path, Some(user), Some(user)).unwrap();
        }
    }

    /// Asserts that a new file belongs to whom the workspace belongs to.
    pub fn owns(&self, path: &str) {
        let (file, folder) = (self.fixture.path(path), &self.fixture.workspace);
        let owner = |path: &Path| path.symlink_metadata().map(|meta| (meta.uid(), meta.gid())).unwrap();
        assert_eq!(owner(&file), owner(folder), "{}: {path}", self.name());
    }

    fn name(&self) -> &'static str {
        if self.ordinary.is_some() { "an ordinary user" } else { "whoever runs the tests" }
    }
}

/// What a command said on both streams, in the order in which it came: the text has that before the exit code.
fn said(result: &Value) -> String {
    let of = |stream: &str| result["structured"][stream].as_str().unwrap_or_default();
    match (of("stdout"), of("stderr")) {
        (one, "") | ("", one) => one.to_owned(),
        _ => result["content"].as_str().unwrap().rsplit_once("[exit ").unwrap().0.to_owned(),
    }
}
