//! A PostgreSQL of one test, which may end it, start it again and fill it up. Whoever ends takes it along.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

/// A server of its own, by `scripts/with-postgres`; it goes away with this.
pub(crate) struct Cluster {
    pub(crate) url: String,
    folder: PathBuf,
    child: Child,
    /// Its end is the end of the server.
    input: Option<ChildStdin>,
}

impl Cluster {
    /// `None` where the tests of PostgreSQL are not wanted.
    pub(crate) fn start(connections: u32) -> Option<Self> {
        if std::env::var_os("TEST_POSTGRES").is_none() {
            println!("skipped: only PostgreSQL serves several nodes");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/with-postgres");
        let mut child = Command::new(script)
            .args(["sh", "-c", "echo $TEST_POSTGRES; cat"])
            .env("TEST_POSTGRES_CONNECTIONS", connections.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        let host = url.split(['@', '/']).find(|part| part.contains("%2F")).unwrap();
        let folder = PathBuf::from(host.replace("%2F", "/"));
        let input = child.stdin.take();
        Some(Self { folder, url, child, input })
    }

    /// Ends the server as a failure of its machine would.
    pub(crate) fn stop(&self) {
        self.control(&["--mode", "immediate", "stop"]);
    }

    /// Starts it again as it was.
    pub(crate) fn restart(&self) {
        self.control(&["restart"]);
    }

    fn control(&self, words: &[&str]) {
        let programs = std::fs::read_dir("/usr/lib/postgresql").unwrap().flatten().map(|version| version.path());
        let program = programs.map(|version| version.join("bin/pg_ctl")).filter(|program| program.exists()).max();
        let program = program.unwrap().to_str().unwrap().to_owned();
        let data = self.folder.join("data");
        let args = [&["--pgdata", data.to_str().unwrap(), "--silent", "--wait"], words].concat();
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&data).unwrap());
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", &owner.to_string(), "--clear-groups", &program]);
            command
        } else {
            Command::new(&program)
        };
        let log = std::fs::OpenOptions::new().append(true).open(self.folder.join("log")).ok();
        let log = log.map_or_else(Stdio::null, Stdio::from);
        let done = command.args(args).current_dir("/").stdout(log).stderr(Stdio::null()).status().unwrap();
        assert!(done.success(), "pg_ctl {words:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().ok();
    }
}
