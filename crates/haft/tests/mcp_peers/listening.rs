//! The program over HTTP. It does not outlive the test.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStderr, Stdio},
};

use crate::support::Fixture;

/// What lets a client in.
pub(crate) const TOKEN: &str = "a-token-of-the-test";

pub(crate) struct Listening {
    child: Child,
    pub(crate) url: String,
    /// Closed, it could say nothing more.
    _said: BufReader<ChildStderr>,
}

impl Listening {
    pub(crate) fn start(fixture: &Fixture) -> Self {
        let mut command = fixture.haft(&["mcp", "--http", "127.0.0.1:0"]);
        command.env("HAFT_MCP_TOKEN", TOKEN).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        let url = first.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        Self { child, url, _said: said }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
