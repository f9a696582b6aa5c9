//! Calls over standard input and output, beside other MCP servers and beside a program that only says its lines back.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

mod git;
mod least;
mod session;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
pub(crate) use least::{echo, writes};
use serde_json::{Value, json};
use session::Session;

use crate::{Measured, median, program::program};

const LAPS: usize = 1000;
/// The same for what takes some peers long.
const LONG_LAPS: usize = 200;
/// How many reads are made one by one and then many at once.
const READS: usize = 5000;
const AT_ONCE: usize = 32;
const WRITES: usize = 2000;
const WRITERS: usize = 64;
/// Where the program stands in a command that is held to some processors.
const PROGRAM: usize = 3;

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

/// Many laps of one kind of call.
struct Laps(Vec<Duration>);

/// How a server did.
struct McpTimes {
    /// A call of the tool that has least to do: reading a file with nothing in it.
    empty: Laps,
    read: Laps,
    list: Laps,
    edit: Laps,
    search: Laps,
    start: Duration,
    /// Reads a second: one after the other, and with many under way.
    one_by_one: f64,
    at_once: f64,
    /// MiB before the reads and after them.
    memory: [f64; 2],
}

/// Reads, edits, lists and searches of each server, and how long it takes to be there. The client has one processor and
/// the server the other, as where both work; every figure is the plain median of all laps, or their 99th part.
pub(crate) fn measure() -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("work");
    lay_out(&work)?;
    // Asked before this program is held to one of them.
    let last = std::thread::available_parallelism()?.get() - 1;
    let [own, peers @ ..] = peers(&folder.path().join("data"), &work, last)?;
    stay_on("0")?;
    let haft = own.measure(&work)?;
    let mut table = vec![haft.row(own.name), haft.beside_a_bare_line(last)?, haft.in_flight(), haft.small()];
    let mut present = Vec::new();
    for peer in peers {
        if !Path::new(&peer.command[PROGRAM]).exists() {
            table.push(Measured::new(peer.name, "absent", "", true));
            continue;
        }
        let taken = peer.measure(&work)?;
        table.push(taken.row(peer.name));
        present.push(taken);
    }
    table.extend(beside_the_best(&haft, &present));
    table.push(durable_writes(&own, folder.path(), &work, last)?);
    stay_on(&format!("0-{last}"))?;
    table.extend(git::measure(folder.path())?);
    Ok(table)
}

/// A folder with some files to find among others, and one with very many.
fn lay_out(work: &Path) -> Result<()> {
    for folder in 0..20 {
        let folder = work.join(format!("part{folder}"));
        fs::create_dir_all(&folder)?;
        for file in 0..50 {
            let kind = if file % 10 == 0 { "rs" } else { "txt" };
            fs::write(folder.join(format!("f{file}.{kind}")), "some text\n")?;
        }
    }
    fs::create_dir_all(work.join("many"))?;
    for file in 0..1000 {
        fs::write(work.join(format!("many/file{file}.txt")), "some text\n")?;
    }
    Ok(fs::write(work.join("empty.txt"), "")?)
}

/// What takes haft how many times as long as the quickest of the others.
fn beside_the_best(haft: &McpTimes, peers: &[McpTimes]) -> Vec<Measured> {
    type Pick = fn(&McpTimes) -> &Laps;
    let goals: [(&'static str, Pick, &'static str, f64); 4] = [
        ("a read beside the quickest peer", |it| &it.read, "<= 1.2 x", 1.2),
        ("a list of 1,000 beside the quickest peer", |it| &it.list, "<= 1 x", 1.0),
        ("an edit beside the quickest peer", |it| &it.edit, "<= 1 x", 1.0),
        ("a search beside the quickest peer", |it| &it.search, "<= 1 x", 1.0),
    ];
    let row = |(what, of, goal, most): (&'static str, Pick, &'static str, f64)| {
        let (ours, theirs) = (of(haft).median(), peers.iter().map(|peer| of(peer).median()).min()?);
        let share = ours.as_secs_f64() / theirs.as_secs_f64();
        Some(Measured::new(what, format!("{ours:.2?}, theirs {theirs:.2?} ({share:.2} x)"), goal, share <= most))
    };
    goals.into_iter().filter_map(row).collect()
}

/// Files written by many callers at once, beside one after the other and beside the least program that does the same.
fn durable_writes(own: &Peer, folder: &Path, work: &Path, last: usize) -> Result<Measured> {
    let input = |lap: usize| json!({ "path": work.join(format!("w{}.txt", lap % 64)), "content": format!("{lap}\n") });
    let aside = folder.join("least");
    fs::create_dir(&aside)?;
    let this = std::env::current_exe()?.display().to_string();
    let least = apart(&[this, "least".to_owned(), aside.display().to_string()], last);
    let least = Session::start(&least)?.0.many(WRITES, WRITERS, "write_file", &input)?;
    let mut session = Session::start(&own.command)?.0;
    let single = session.many(WRITES, 1, "write_file", &input)?;
    let many = session.many(WRITES, WRITERS, "write_file", &input)?;
    let share = 100.0 * many / least;
    let found = format!("{many:.0}/s (one by one {single:.0}/s), the least program {least:.0}/s: {share:.0} %");
    let held = share >= 50.0 && many > single;
    Ok(Measured::new("64 durable writes in flight", found, ">= 50 %, > one by one", held))
}

fn peers(data: &Path, work: &Path, last: usize) -> Result<[Peer; 3]> {
    let folder = work.display().to_string();
    let programs = tools()?.join("bin");
    let named = |program: &str, flags: &[&str]| {
        let program = programs.join(program).display().to_string();
        let words = [program.as_str()].into_iter().chain(flags.iter().copied()).chain([folder.as_str()]);
        apart(&words.map(str::to_owned).collect::<Vec<_>>(), last)
    };
    let (read, search) = ("read_text_file", "search_files");
    Ok([
        Peer {
            name: "haft",
            command: apart(&ours(data, work)?, last),
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
pub(crate) fn tools() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Ok(cache.context("there is no `HOME`")?.join("haft/tools"))
}

fn edit_of_the_reference(path: &str, lap: usize) -> Value {
    let (old, new) = (format!("line {lap} "), format!("line {} ", lap + 1));
    json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] })
}

impl Peer {
    /// Each kind of call in a session of its own, so that none depends on what was called before it.
    fn measure(&self, work: &Path) -> Result<McpTimes> {
        let start = median((0..5).map(|_| Ok(Session::start(&self.command)?.1)).collect::<Result<_>>()?);
        let (path, folder) = (work.join("a.txt").display().to_string(), work.display().to_string());
        let nothing = json!({ "path": work.join("empty.txt").display().to_string() });
        let many = json!({ "path": work.join("many").display().to_string() });
        let read = json!({ "path": path });
        let pattern = json!({ "path": folder, "pattern": "**/*.rs" });
        let alone = |count, tool: &str, input: &dyn Fn(usize) -> Value| {
            fs::write(
                &path,
                format!("line 0 \n{}", "a line as long as lines of text and code usually are\n".repeat(78)),
            )?;
            let mut session = Session::start(&self.command)?.0;
            Laps::of(count, |lap| session.call(tool, &input(lap)))
        };
        let reads = alone(LAPS, self.read, &|_| read.clone())?;
        let mut session = Session::start(&self.command)?.0;
        let idle = session.memory()?;
        let one_by_one = session.many(READS, 1, self.read, &|_| read.clone())?;
        let at_once = session.many(READS, AT_ONCE, self.read, &|_| read.clone())?;
        Ok(McpTimes {
            empty: alone(LAPS, self.read, &|_| nothing.clone())?,
            read: reads,
            one_by_one,
            at_once,
            memory: [idle, session.memory()?],
            list: alone(LONG_LAPS, "list_directory", &|_| many.clone())?,
            edit: alone(LAPS, "edit_file", &|lap| (self.edit)(&path, lap))?,
            search: alone(LONG_LAPS, self.search, &|_| pattern.clone())?,
            start,
        })
    }
}

impl Laps {
    fn of(count: usize, mut call: impl FnMut(usize) -> Result<Duration>) -> Result<Self> {
        Ok(Self((0..count).map(&mut call).collect::<Result<_>>()?))
    }

    fn median(&self) -> Duration {
        median(self.0.clone())
    }

    /// What 99 of a hundred laps stay below.
    fn p99(&self) -> Duration {
        let mut laps = self.0.clone();
        laps.sort();
        laps.get(laps.len() * 99 / 100).copied().unwrap_or_default()
    }
}

impl McpTimes {
    fn row(&self, name: &'static str) -> Measured {
        let Self { empty, read, list, edit, search, start, .. } = self;
        let [empty, read, list, edit, search] =
            [empty, read, list, edit, search].map(|laps| format!("{:.1?}/{:.1?}", laps.median(), laps.p99()));
        let found = format!(
            "p50/p99: empty {empty}, read {read}, list {list}, edit {edit}, search {search}; start {start:.0?}"
        );
        Measured::new(name, found, "", true)
    }

    /// An empty call beside a line that is only said back.
    fn beside_a_bare_line(&self, last: usize) -> Result<Measured> {
        let (bare, empty) = (bare_echo(last)?, self.empty.median());
        let (ratio, p99) = (empty.as_secs_f64() / bare.as_secs_f64(), self.empty.p99());
        let found = format!("{ratio:.1} x (p50 {empty:.0?}, the line {bare:.0?}), p99 {p99:.0?}");
        let held = ratio < 4.0 && p99 <= Duration::from_millis(1);
        Ok(Measured::new("haft's empty call beside a bare line", found, "< 4 x, p99 <= 1 ms", held))
    }

    fn in_flight(&self) -> Measured {
        let found = format!("{:.0}/s, one by one {:.0}/s", self.at_once, self.one_by_one);
        Measured::new("32 reads in flight", found, "> one by one", self.at_once > self.one_by_one)
    }

    fn small(&self) -> Measured {
        let [idle, after] = self.memory;
        let found = format!("{idle:.1} MiB idle, {after:.1} MiB after {} reads", 2 * READS);
        Measured::new("memory of haft mcp", found, "<= 12 MiB", idle.max(after) <= 12.0)
    }
}

fn laps(count: usize, call: impl FnMut(usize) -> Result<Duration>) -> Result<Duration> {
    Ok(Laps::of(count, call)?.median())
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
pub(crate) fn stay_on(processors: &str) -> Result<()> {
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
