//! A `haft serve` on a data folder of its own, and requests to it over plain HTTP.
#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and starts the program itself"
)]

pub(crate) mod event_stream;
pub(crate) mod mail_server;
pub(crate) mod person;

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A running server; it is killed when the test is over.
pub(crate) struct Gateway {
    pub(crate) url: String,
    /// The first line that it printed.
    pub(crate) first: Value,
    folder: Option<TempDir>,
    child: Child,
    lines: BufReader<ChildStdout>,
    /// What it was started with, which others on the same data need too.
    variables: Vec<(String, String)>,
}

/// How long something may take that is waited for.
const SOON: Duration = Duration::from_secs(40);

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Gateway {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// With these settings of its user.
    pub(crate) fn start_with(settings: &str) -> Self {
        Self::launch(new_folder(settings), &[], &[])
    }

    /// The same with more variables, which every command has that uses its data.
    pub(crate) fn start_among(settings: &str, variables: &[(&str, &str)]) -> Self {
        Self::launch(new_folder(settings), &[], variables)
    }

    /// With more flags and variables.
    pub(crate) fn start_as(flags: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::launch(new_folder(""), flags, variables)
    }

    /// Another one on the same data, after this one was killed.
    pub(crate) fn start_again(mut self, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        self.kill();
        Self::launch(self.folder.take().unwrap(), flags, variables)
    }

    /// On the data of a folder that somebody else has filled.
    pub(crate) fn start_in(folder: TempDir, variables: &[(&str, &str)]) -> Self {
        Self::launch(folder, &[], variables)
    }

    fn launch(folder: TempDir, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let log = std::fs::OpenOptions::new().append(true).create(true).open(folder.path().join("log")).unwrap();
        let mut child = haft(&folder, &[&["serve", "--listen", "127.0.0.1:0", "--json"], flags].concat())
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let (mut lines, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        lines.read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap();
        let url = first["url"].as_str().unwrap().to_owned();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { url, first, folder: Some(folder), child, lines, variables }
    }

    fn folder(&self) -> &TempDir {
        self.folder.as_ref().unwrap()
    }

    /// A folder that a tenant can be given.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder().path().join("ws").canonicalize().unwrap()
    }

    /// Where its data lies.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder().path().join("data")
    }

    /// What it answers, head and all, to somebody whom it does not know.
    pub(crate) fn text(&self, path: &str) -> String {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// What it has written to its log until now.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder().path().join("log")).unwrap()
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The port of a server whose address is another one than people use.
    pub(crate) fn listening_port(&self) -> u16 {
        let process = self.process();
        let own: Vec<String> = std::fs::read_dir(format!("/proc/{process}/fd"))
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()?.to_str().map(str::to_owned))
            .filter_map(|link| link.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned))
            .collect();
        let table = std::fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
        let listens = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut ports = listens.filter(|row| row[3] == "0A" && own.iter().any(|inode| inode == row[9]));
        u16::from_str_radix(ports.next().unwrap()[1].rsplit(':').next().unwrap(), 16).unwrap()
    }

    /// Ends it as the system would, without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let process = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).unwrap();
    }

    /// Its exit code, and the lines that it has printed after the first.
    pub(crate) fn ended(&mut self) -> (Option<i32>, Vec<String>) {
        let status = until(|| self.child.try_wait().unwrap());
        let lines = BufRead::lines(&mut self.lines).map_while(Result::ok).collect();
        (status.code(), lines)
    }

    /// The program with the same data.
    pub(crate) fn haft(&self, args: &[&str]) -> Command {
        let mut command = haft(self.folder(), args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn admin(&self, args: &[&str]) -> Value {
        self.admin_with(args, &[])
    }

    /// The same with more words at the end.
    pub(crate) fn admin_with(&self, args: &[&str], last: &[&str]) -> Value {
        let done = self.haft(&[&["admin"], args, &["--json"], last].concat()).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    /// How many acts of a kind the audit log of a tenant has.
    pub(crate) fn acts(&self, tenant: &str, action: &str) -> usize {
        let log = self.haft(&["admin", "audit", "--json", "--tenant", tenant, "--action", action]).output().unwrap();
        assert!(log.status.success(), "{}", String::from_utf8_lossy(&log.stderr));
        log.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
    }

    /// A new key of a tenant.
    pub(crate) fn key(&self, name: &str, tenant: &str, scopes: &str) -> String {
        let made = self.admin(&["key", "add", name, "--tenant", tenant, "--scopes", scopes]);
        made["key"].as_str().unwrap().to_owned()
    }

    /// The same for one workspace.
    pub(crate) fn key_in(&self, name: &str, tenant: &str, scopes: &str, workspace: &str) -> String {
        let args = ["key", "add", name, "--tenant", tenant, "--scopes", scopes, "--workspace", workspace];
        self.admin(&args)["key"].as_str().unwrap().to_owned()
    }

    pub(crate) fn get(&self, path: &str, key: Option<&str>) -> Answer {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        self.request("GET", path, None, &headers)
    }

    pub(crate) fn post(&self, path: &str, body: &Value, key: Option<&str>) -> Answer {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        self.request("POST", path, Some(body), &headers)
    }

    /// One request on a connection of its own.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> Answer {
        self.try_request(method, path, body, headers).unwrap()
    }

    /// The same to a server that may be gone before it answers.
    pub(crate) fn try_request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        self.send((method, path), ("application/json", &body.map(ToString::to_string).unwrap_or_default()), headers)
    }

    /// What a browser sends when a form is submitted.
    pub(crate) fn submit(&self, path: &str, form: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(("POST", path), ("application/x-www-form-urlencoded", form), headers).unwrap()
    }

    fn send(
        &self,
        (method, path): (&str, &str),
        (kind, body): (&str, &str),
        headers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        let address = self.url.trim_start_matches("http://");
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text.push_str(&format!("Host: {address}\r\n"));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()));
        }
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(format!("{text}\r\n{body}").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        if answer.is_empty() {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(read(&String::from_utf8_lossy(&answer)))
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder for data, settings and a workspace.
pub(crate) fn new_folder(settings: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("ws")).unwrap();
    std::fs::create_dir_all(folder.path().join("config/haft")).unwrap();
    std::fs::write(folder.path().join("config/haft/haft.toml"), settings).unwrap();
    folder
}

/// What is there sooner or later.
pub(crate) fn until<T>(look: impl FnMut() -> Option<T>) -> T {
    within(SOON, look).unwrap()
}

/// What is there within a time, if it is.
pub(crate) fn within<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + time;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        // What is waited for needs the machine, too.
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// The program on the data of a folder, as somebody without a screen runs it.
pub(crate) fn haft(folder: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command.args(args).current_dir(folder.path()).stdin(Stdio::null());
    command.env("HAFT_DATA_DIR", folder.path().join("data")).env("HOME", folder.path());
    command.env("XDG_CONFIG_HOME", folder.path().join("config")).env("NO_COLOR", "1");
    command.env_remove("BROWSER").env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

/// Passes every connection on to another address.
pub(crate) fn pass_on(from: TcpListener, to: &str) {
    let to = to.to_owned();
    std::thread::spawn(move || {
        for near in from.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(&to).unwrap();
            for (mut source, mut sink) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                std::thread::spawn(move || {
                    io::copy(&mut source, &mut sink).ok();
                    sink.shutdown(std::net::Shutdown::Write).ok();
                });
            }
        }
    });
}

/// Runs a command that reads this from its standard input.
pub(crate) fn with_stdin(mut command: Command, text: &str) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// The Python that has the MCP clients of `scripts/setup tests`.
pub(crate) fn clients_python() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let python = cache.join("haft/tools/clients/bin/python");
    assert!(python.exists(), "{} is missing; `scripts/setup tests` installs it", python.display());
    python
}

/// One request to any server of the test.
pub(crate) fn fetch(method: &str, address: &str, cookie: &str, body: &str) -> Answer {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut text = format!("{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    if !cookie.is_empty() {
        text.push_str(&format!("Cookie: {cookie}\r\n"));
    }
    if method == "POST" {
        let kind = if body.starts_with('{') { "application/json" } else { "application/x-www-form-urlencoded" };
        text.push_str(&format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()));
    }
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    read(&String::from_utf8_lossy(&answer))
}

fn read(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    Answer {
        status: status.unwrap_or_default(),
        headers: lines.filter_map(header).collect(),
        // What is no JSON is a page.
        body: serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())),
    }
}
