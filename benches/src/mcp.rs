//! Calls over standard input and output, beside other MCP servers and beside a program that only says its lines back.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{Measured, median, program::program};

const LAPS: usize = 400;
/// How many requests are under way at once where many are.
const AT_ONCE: usize = 64;

/// Says every line back; the bench itself, started again.
pub(crate) fn echo() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        output.write_all(line?.as_bytes())?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

/// What a server is asked, in its own words.
struct Peer {
    name: &'static str,
    command: Vec<String>,
    read: (&'static str, &'static str),
    /// What `edit_file` is given.
    edit: fn(&str, usize) -> Value,
}

/// Reads, edits and lists of each server, and how long it takes to be there.
pub(crate) fn measure() -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("work");
    fs::create_dir(&work)?;
    let mut table = Vec::new();
    let bare = bare_echo()?;
    table.push(Measured::new("a line said back by a bare program", format!("p50 {bare:.0?}"), "", true));
    for peer in peers(&folder.path().join("data"), &work)? {
        if which(&peer.command[0]).is_none() {
            table.push(Measured::new(peer.name, "absent", "", true));
            continue;
        }
        table.extend(peer.measure(&work)?);
    }
    Ok(table)
}

fn peers(data: &Path, work: &Path) -> Result<Vec<Peer>> {
    let folder = work.display().to_string();
    let haft = program()?.display().to_string();
    let own = vec!["/usr/bin/env", &format!("HAFT_DATA_DIR={}", data.display()), &haft, "mcp", "--auto-approve", "all"]
        .into_iter()
        .chain(["--workspace", &folder])
        .map(str::to_owned)
        .collect();
    let named = |program: &str, flags: &[&str]| {
        let words = [program].into_iter().chain(flags.iter().copied()).chain([folder.as_str()]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    Ok(vec![
        Peer {
            name: "haft",
            command: own,
            read: ("read_file", "path"),
            edit: |path, lap| {
                let (old, new) = (format!("line {lap} "), format!("line {} ", lap + 1));
                json!({ "path": path, "old": old, "new": new })
            },
        },
        Peer {
            name: "rust-mcp-filesystem",
            command: named("rust-mcp-filesystem", &["--allow-write"]),
            read: ("read_text_file", "path"),
            edit: edit_of_the_reference,
        },
        Peer {
            name: "server-filesystem",
            command: named("mcp-server-filesystem", &[]),
            read: ("read_text_file", "path"),
            edit: edit_of_the_reference,
        },
    ])
}

fn edit_of_the_reference(path: &str, lap: usize) -> Value {
    let (old, new) = (format!("line {lap} "), format!("line {} ", lap + 1));
    json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] })
}

impl Peer {
    fn measure(&self, work: &Path) -> Result<Vec<Measured>> {
        let path = work.join("a.txt").display().to_string();
        let start = median((0..5).map(|_| Ok(Session::start(&self.command)?.1)).collect::<Result<_>>()?);
        fs::write(&path, format!("line 0 {}\n", "x".repeat(4080)))?;
        let mut session = Session::start(&self.command)?.0;
        let read = json!({ self.read.1: path });
        let reads = laps(|_| session.call(self.read.0, &read))?;
        let many = session.many(self.read.0, &read)?;
        let lists = laps(|_| session.call("list_directory", &json!({ "path": work.display().to_string() })))?;
        let edits = laps(|lap| session.call("edit_file", &(self.edit)(&path, lap)))?;
        let memory = session.memory()?;
        Ok(vec![Measured::new(
            self.name,
            format!(
                "read {reads:.0?}, {many:.0}/s at once, list {lists:.0?}, edit {edits:.0?}, start {start:.0?}, {memory:.0} MiB"
            ),
            "",
            true,
        )])
    }
}

fn laps(mut call: impl FnMut(usize) -> Result<Duration>) -> Result<Duration> {
    Ok(median((0..LAPS).map(&mut call).collect::<Result<_>>()?))
}

/// A server that was greeted.
struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    number: usize,
}

impl Session {
    /// The session, and how long it took until the first answer.
    fn start(command: &[String]) -> Result<(Self, Duration)> {
        let begun = Instant::now();
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut session = Self { child, stdin, stdout, number: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        session.send("initialize", &hello)?;
        session.answer()?;
        let took = begun.elapsed();
        session.stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok((session, took))
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<()> {
        self.number += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params });
        Ok(self.stdin.write_all(format!("{request}\n").as_bytes())?)
    }

    /// The next answer; what is told meanwhile is passed over.
    fn answer(&mut self) -> Result<Value> {
        loop {
            let mut line = String::new();
            ensure!(self.stdout.read_line(&mut line)? > 0, "the server has gone");
            let answer: Value = serde_json::from_str(&line)?;
            if answer.get("id").is_some() && answer.get("method").is_none() {
                return Ok(answer);
            }
        }
    }

    fn call(&mut self, tool: &str, input: &Value) -> Result<Duration> {
        let begun = Instant::now();
        self.send("tools/call", &json!({ "name": tool, "arguments": input }))?;
        let answer = self.answer()?;
        let took = begun.elapsed();
        ensure!(answer["result"]["isError"] != true && answer.get("error").is_none(), "{tool}: {answer}");
        Ok(took)
    }

    /// Calls a second when many are under way.
    fn many(&mut self, tool: &str, input: &Value) -> Result<f64> {
        let begun = Instant::now();
        for _ in 0..LAPS / AT_ONCE {
            for _ in 0..AT_ONCE {
                self.send("tools/call", &json!({ "name": tool, "arguments": input }))?;
            }
            for _ in 0..AT_ONCE {
                self.answer()?;
            }
        }
        Ok((LAPS / AT_ONCE * AT_ONCE) as f64 / begun.elapsed().as_secs_f64())
    }

    /// How much memory it holds, in MiB.
    fn memory(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It is only in the way now.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn bare_echo() -> Result<Duration> {
    let mut child =
        Command::new(std::env::current_exe()?).arg("echo").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let mut stdout = BufReader::new(child.stdout.take().context("no standard output")?);
    let mut line = String::new();
    let taken = laps(|_| {
        let begun = Instant::now();
        stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}\n")?;
        line.clear();
        stdout.read_line(&mut line)?;
        Ok(begun.elapsed())
    });
    drop(stdin);
    child.wait()?;
    taken
}

fn which(program: &str) -> Option<()> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|found| found.exists()).map(drop)
}
