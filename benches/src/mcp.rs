//! Calls over standard input and output, beside other MCP servers and beside a program that only says its lines back.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

mod git;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{Measured, median, memory, program::program, quiet_median};

const LAPS: usize = 400;
/// The same for what takes some peers long.
const LONG_LAPS: usize = 60;
/// How often each server is started to be measured in each kind of call.
const SESSIONS: usize = 5;
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
    read: &'static str,
    /// Finds the files of a pattern.
    search: &'static str,
    /// What `edit_file` is given.
    edit: fn(&str, usize) -> Value,
}

/// How a server did.
struct McpTimes {
    /// A call of the tool that has least to do: reading a file with nothing in it.
    empty: Duration,
    read: Duration,
    at_once: f64,
    list: Duration,
    edit: Duration,
    search: Duration,
    start: Duration,
    /// MiB after the reads.
    memory: f64,
}

/// Reads, edits, lists and searches of each server, and how long it takes to be there.
pub(crate) fn measure() -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("work");
    lay_out(&work)?;
    let [own, rust, node] = peers(&folder.path().join("data"), &work)?;
    let mut table = vec![own.beside_a_bare_line(&work)?];
    let haft = own.measure(&work)?;
    table.push(haft.row(own.name));
    let mut quickest_edit = None;
    for (peer, compare) in [(rust, beside_rust as fn(&McpTimes, &McpTimes) -> Measured), (node, beside_node)] {
        if !Path::new(&peer.command[0]).exists() {
            table.push(Measured::new(peer.name, "absent", "", true));
            continue;
        }
        let taken = peer.measure(&work)?;
        table.push(taken.row(peer.name));
        table.push(compare(&haft, &taken));
        quickest_edit = quickest_edit.into_iter().chain([taken.edit]).min();
    }
    table.extend(quickest_edit.map(|theirs| beside_quickest(haft.edit, theirs)));
    table.extend(git::measure(folder.path())?);
    Ok(table)
}

/// A folder with some files to find among others.
fn lay_out(work: &Path) -> Result<()> {
    for folder in 0..20 {
        let folder = work.join(format!("part{folder}"));
        fs::create_dir_all(&folder)?;
        for file in 0..50 {
            let kind = if file % 10 == 0 { "rs" } else { "txt" };
            fs::write(folder.join(format!("f{file}.{kind}")), "some text\n")?;
        }
    }
    Ok(fs::write(work.join("empty.txt"), "")?)
}

/// An edit beside the same by whichever peer is quickest.
fn beside_quickest(ours: Duration, theirs: Duration) -> Measured {
    let share = ours.as_secs_f64() / theirs.as_secs_f64();
    let found = format!("{ours:.0?}, quickest peer {theirs:.0?} ({share:.2} x)");
    Measured::new("an edit beside the quickest peer", found, "<= 1 x", share <= 1.0)
}

fn beside_rust(haft: &McpTimes, peer: &McpTimes) -> Measured {
    let times = [haft.read, haft.edit, haft.list, haft.search].map(|took| took.as_secs_f64());
    let theirs = [peer.read, peer.edit, peer.list, peer.search].map(|took| took.as_secs_f64());
    let [read, edit, list, search] = std::array::from_fn(|of| theirs[of] / times[of]);
    let held = [read, list, search].iter().all(|times| *times > 1.0);
    let found = format!("faster by {read:.1} x in reads, {edit:.1} edits, {list:.1} lists, {search:.1} searches");
    Measured::new("haft beside rust-mcp-filesystem", found, "> 1 x but edits", held)
}

fn beside_node(haft: &McpTimes, peer: &McpTimes) -> Measured {
    let faster = |theirs: Duration, ours: Duration| theirs.as_secs_f64() / ours.as_secs_f64();
    let (read, edit) = (faster(peer.read, haft.read), faster(peer.edit, haft.edit));
    let (search, start) = (faster(peer.search, haft.search), faster(peer.start, haft.start));
    let smaller = peer.memory / haft.memory;
    let found = format!(
        "faster by {read:.1} x in reads, {edit:.1} edits, {search:.1} searches, {start:.1} start; {smaller:.1} x smaller"
    );
    Measured::new("haft beside server-filesystem", found, "", true)
}

fn peers(data: &Path, work: &Path) -> Result<[Peer; 3]> {
    let folder = work.display().to_string();
    let programs = tools()?.join("bin");
    let named = |program: &str, flags: &[&str]| {
        let program = programs.join(program).display().to_string();
        let words = [program.as_str()].into_iter().chain(flags.iter().copied()).chain([folder.as_str()]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let (read, search) = ("read_text_file", "search_files");
    Ok([
        Peer {
            name: "haft",
            command: ours(data, work)?,
            read: "read_file",
            search: "glob",
            edit: |path, lap| {
                let (old, new) = (format!("line {lap} "), format!("line {} ", lap + 1));
                json!({ "path": path, "old": old, "new": new })
            },
        },
        Peer {
            name: "rust-mcp-filesystem",
            command: named("rust-mcp-filesystem", &["--allow-write"]),
            read,
            search,
            edit: edit_of_the_reference,
        },
        Peer {
            name: "server-filesystem",
            command: named("mcp-server-filesystem", &[]),
            read,
            search,
            edit: edit_of_the_reference,
        },
    ])
}

/// How haft is served in a folder.
fn ours(data: &Path, work: &Path) -> Result<Vec<String>> {
    let (data, haft, folder) = (format!("HAFT_DATA_DIR={}", data.display()), program()?, work.display().to_string());
    let haft = haft.display().to_string();
    let words = ["/usr/bin/env", &data, &haft, "mcp", "--auto-approve", "all", "--workspace", &folder];
    Ok(words.map(str::to_owned).to_vec())
}

/// Where `scripts/setup peers` puts what it installs.
fn tools() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Ok(cache.context("there is no `HOME`")?.join("haft/tools"))
}

fn edit_of_the_reference(path: &str, lap: usize) -> Value {
    let (old, new) = (format!("line {lap} "), format!("line {} ", lap + 1));
    json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] })
}

impl Peer {
    /// The best of several sessions in everything: on which processors a session's two ends came to lie decides as much as
    /// what they do, and stays as it is as long as the session lasts.
    fn measure(&self, work: &Path) -> Result<McpTimes> {
        let start = median((0..5).map(|_| Ok(Session::start(&self.command)?.1)).collect::<Result<_>>()?);
        let first = self.sessions(work, start)?;
        (1..SESSIONS).try_fold(first, |best, _| Ok(best.or(&self.sessions(work, start)?)))
    }

    /// An empty call beside a line that is only said back. Both ends have processors of their own, as they have where a
    /// client works: on one processor nobody has to be woken, and a bare line takes a tenth of the time.
    fn beside_a_bare_line(&self, work: &Path) -> Result<Measured> {
        let nothing = json!({ "path": work.join("empty.txt").display().to_string() });
        let last = std::thread::available_parallelism()?.get() - 1;
        stay_on("0")?;
        let bare = bare_echo(last)?;
        let mut session = Session::start(&apart(&self.command, last))?.0;
        let empty = laps(LAPS, |_| session.call(self.read, &nothing))?;
        stay_on(&format!("0-{last}"))?;
        let ratio = empty.as_secs_f64() / bare.as_secs_f64();
        let found = format!("{ratio:.1} x (quiet p50 {empty:.0?}, the line {bare:.0?})");
        Ok(Measured::new("haft's empty call beside a bare line", found, "< 4 x", ratio < 4.0))
    }

    /// Each kind of call in a session of its own, so that none depends on what was called before it.
    fn sessions(&self, work: &Path, start: Duration) -> Result<McpTimes> {
        let (path, folder) = (work.join("a.txt").display().to_string(), work.display().to_string());
        let nothing = json!({ "path": work.join("empty.txt").display().to_string() });
        let (read, list) = (json!({ "path": path }), json!({ "path": folder }));
        let pattern = json!({ "path": folder, "pattern": "**/*.rs" });
        let alone = |count, tool: &str, input: &dyn Fn(usize) -> Value| {
            fs::write(
                &path,
                format!("line 0 \n{}", "a line as long as lines of text and code usually are\n".repeat(78)),
            )?;
            let mut session = Session::start(&self.command)?.0;
            Ok::<_, anyhow::Error>((laps(count, |lap| session.call(tool, &input(lap)))?, session))
        };
        let (reads, mut session) = alone(LAPS, self.read, &|_| read.clone())?;
        Ok(McpTimes {
            empty: alone(LAPS, self.read, &|_| nothing.clone())?.0,
            read: reads,
            memory: session.memory()?,
            at_once: session.many(self.read, &read)?,
            list: alone(LAPS, "list_directory", &|_| list.clone())?.0,
            edit: alone(LAPS, "edit_file", &|lap| (self.edit)(&path, lap))?.0,
            search: alone(LONG_LAPS, self.search, &|_| pattern.clone())?.0,
            start,
        })
    }
}

impl McpTimes {
    /// The better of both in everything.
    fn or(&self, other: &Self) -> Self {
        Self {
            empty: self.empty.min(other.empty),
            read: self.read.min(other.read),
            at_once: self.at_once.max(other.at_once),
            list: self.list.min(other.list),
            edit: self.edit.min(other.edit),
            search: self.search.min(other.search),
            start: self.start.min(other.start),
            memory: self.memory.min(other.memory),
        }
    }

    fn row(&self, name: &'static str) -> Measured {
        let Self { empty, read, at_once, list, edit, search, start, memory } = self;
        let found = format!(
            "empty {empty:.0?}, read {read:.0?}, {at_once:.0}/s at once, list {list:.0?}, search {search:.0?}, \
             edit {edit:.0?}, start {start:.0?}, {memory:.0} MiB"
        );
        Measured::new(name, found, "", true)
    }
}

fn laps(count: usize, mut call: impl FnMut(usize) -> Result<Duration>) -> Result<Duration> {
    Ok(quiet_median(&(0..count).map(&mut call).collect::<Result<Vec<_>>>()?))
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

    /// How much memory it holds for itself, in MiB.
    fn memory(&self) -> Result<f64> {
        let kib = memory::private(self.child.id()).context("the server is gone")?;
        Ok(kib as f64 / 1024.0)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It is only in the way now.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn bare_echo(last: usize) -> Result<Duration> {
    let echo = apart(&[std::env::current_exe()?.display().to_string(), "echo".to_owned()], last);
    let mut child = Command::new(&echo[0]).args(&echo[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let mut stdout = BufReader::new(child.stdout.take().context("no standard output")?);
    let mut line = String::new();
    let taken = laps(LAPS, |_| {
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

/// Holds this program to some processors.
fn stay_on(processors: &str) -> Result<()> {
    let own = std::process::id().to_string();
    let held = Command::new("taskset").args(["-cp", processors, &own]).stdout(Stdio::null()).status()?;
    ensure!(held.success(), "cannot stay on processor {processors}");
    Ok(())
}

/// A command that is held to all processors but the first, as far as there are others up to the last.
fn apart(command: &[String], last: usize) -> Vec<String> {
    let held = ["taskset".to_owned(), "-c".to_owned(), format!("{}-{last}", last.min(1))];
    held.into_iter().chain(command.iter().cloned()).collect()
}
