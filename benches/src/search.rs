//! Search: `grep` and `glob` as whole processes beside `rg` and `fd`, and a listing in process.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use haft_runtime::{AutoApprove, CallRequest, End};
use serde_json::{Value, json};

use crate::{
    Measured,
    line::house_in,
    program::{command, peak_memory, program},
    quiet_median,
};

/// Files of the generated tree; 800 MB on most disks, kept beside the build.
const FILES: usize = 200_000;
const FILES_IN_A_FOLDER: usize = 100;
const LAPS: usize = 9;
/// A search may take so much longer than its peer, and so much memory in KiB.
const SLOWER: f64 = 1.15;
const MEMORY: u64 = 64 << 10;

/// One search, ours and theirs.
struct SearchComparison {
    what: &'static str,
    folder: PathBuf,
    tool: &'static str,
    input: Value,
    peer: &'static [&'static str],
}

/// The tools beside their peers on many small files and on the sources of our dependencies, and 1,000 entries of a folder.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let tree = tree()?;
    let mut races = vec![
        SearchComparison {
            what: "grep, 200,000 files, beside rg",
            folder: tree.clone(),
            tool: "grep",
            input: json!({ "pattern": "needle" }),
            peer: &["rg", "--no-require-git", "-j2", "--sort", "none", "-n", "needle", "."],
        },
        SearchComparison {
            what: "glob, 200,000 files, beside fd",
            folder: tree,
            tool: "glob",
            input: json!({ "pattern": "*.rs" }),
            peer: &["fdfind", "-j2", "-t", "f", "-t", "l", "-g", "*.rs", "."],
        },
    ];
    let sources = std::env::home_dir().map(|home| home.join(".cargo/registry/src")).filter(|sources| sources.is_dir());
    if let Some(sources) = sources {
        races.push(SearchComparison {
            what: "grep, sources of the crates here, beside rg",
            folder: sources.clone(),
            tool: "grep",
            input: json!({ "pattern": "fn \\w+_with_timeout" }),
            peer: &["rg", "--no-require-git", "-j2", "--sort", "none", "-n", "fn \\w+_with_timeout", "."],
        });
        races.push(SearchComparison {
            what: "glob, sources of the crates here, beside fd",
            folder: sources,
            tool: "glob",
            input: json!({ "pattern": "*.rs", "respectIgnore": false }),
            peer: &["fdfind", "-j2", "-I", "-t", "f", "-t", "l", "-g", "*.rs", "."],
        });
    }
    let data = tempfile::tempdir()?;
    let mut table = races.iter().map(|race| race.run(data.path())).collect::<Result<Vec<_>>>()?;
    let (listing, by_hand) = listing().await?;
    table.push(Measured::new(
        "list_directory, 1,000 entries, in process",
        format!("quiet p50 {} µs (names and sizes by hand {})", listing.as_micros(), by_hand.as_micros()),
        "p50 < 1 ms",
        listing < Duration::from_millis(1),
    ));
    Ok(table)
}

impl SearchComparison {
    /// Laps of both in turn, so that whatever else the machine does meets both; the best of each counts.
    fn run(&self, data: &Path) -> Result<Measured> {
        let goal = "< 1.15 x, < 64 MiB";
        let (first, found) = self.ours(data)?;
        let Ok(peers) = self.peer().output() else {
            let missing = format!("{first:.0?}; `{}` is absent: apt-get install ripgrep fd-find", self.peer[0]);
            return Ok(Measured::new(self.what, missing, goal, false));
        };
        let expected = peers.stdout.iter().filter(|byte| **byte == b'\n').count();
        ensure!(found == expected, "{}: {found} results, but {expected} by `{}`", self.what, self.peer[0]);
        let (mut ours, mut theirs) = (first, Duration::MAX);
        for _ in 0..LAPS {
            let begin = Instant::now();
            self.peer().stdout(Stdio::null()).status()?;
            theirs = theirs.min(begin.elapsed());
            ours = ours.min(self.ours(data)?.0);
        }
        let (peak, _) = peak_memory(self.call(data)?)?;
        let slower = ours.as_secs_f64() / theirs.as_secs_f64();
        let measured = format!("{ours:.0?} ({theirs:.0?}), {slower:.2} x, {:.0} MiB private", peak as f64 / 1024.0);
        Ok(Measured::new(self.what, measured, goal, slower < SLOWER && peak < MEMORY))
    }

    fn peer(&self) -> Command {
        let mut peer = Command::new(self.peer[0]);
        peer.args(&self.peer[1..]).current_dir(&self.folder).stdin(Stdio::null());
        peer
    }

    fn call(&self, data: &Path) -> Result<Command> {
        let input = self.input.to_string();
        let mut call = command(&program()?, &self.folder, &["call", self.tool, &input, "--json", "--workspace", "."]);
        call.env("HAFT_DATA_DIR", data);
        Ok(call)
    }

    /// How long one whole process took, and how many results there are.
    fn ours(&self, data: &Path) -> Result<(Duration, usize)> {
        let begin = Instant::now();
        let ended = self.call(data)?.stderr(Stdio::inherit()).output()?;
        let took = begin.elapsed();
        let outcome: Value = serde_json::from_slice(&ended.stdout)?;
        let count = outcome["result"]["structured"]["count"].as_u64();
        Ok((took, count.with_context(|| outcome.to_string())?.try_into()?))
    }
}

/// The generated tree; made once and used again.
fn tree() -> Result<PathBuf> {
    let tree = program()?.with_file_name("search-tree");
    let whole = tree.join(".whole");
    if whole.exists() {
        return Ok(tree);
    }
    for file in 0..FILES {
        let folder = file / FILES_IN_A_FOLDER;
        let folder = tree.join(format!("p{:02}/m{}/s{}", folder / 100, folder / 10 % 10, folder % 10));
        if file % FILES_IN_A_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        let ending = if file % 4 == 0 { "md" } else { "rs" };
        fs::write(folder.join(format!("f{:03}.{ending}", file % FILES_IN_A_FOLDER)), text(file))?;
    }
    fs::write(tree.join(".ignore"), "*.log\ntarget/\n")?;
    fs::write(whole, "")?;
    Ok(tree)
}

fn text(file: usize) -> String {
    let lines = (0..12).map(|line| format!("let item_{file}_{line} = call({line}, {});\n", file * line));
    let needle = if file.is_multiple_of(500) { "// needle in a haystack\n" } else { "" };
    lines.collect::<String>() + needle
}

async fn listing() -> Result<(Duration, Duration)> {
    let folder = tempfile::tempdir()?;
    let house = house_in(folder.path()).await?;
    for file in 0..999 {
        fs::write(folder.path().join(format!("work/file{file:04}.txt")), "text\n")?;
    }
    let by_hand = (0..400).map(|_| sizes_by_hand(&folder.path().join("work"))).collect::<Result<Vec<_>>>()?;
    let taken = tokio::spawn(async move {
        let mut laps = Vec::new();
        for _ in 0..400 {
            let mut request = CallRequest::new(house.caller.clone(), "list_directory", json!({}));
            request.auto_approve = AutoApprove::Everything;
            let begin = Instant::now();
            let outcome = house.pipeline.call(request).await;
            laps.push(begin.elapsed());
            ensure!(matches!(outcome.end, End::Success { .. }), "{outcome:?}");
        }
        let _ = house.close().await;
        Ok::<_, anyhow::Error>(quiet_median(&laps))
    });
    Ok((taken.await??, quiet_median(&by_hand)))
}

/// What a listing asks of the system, with nothing around it.
fn sizes_by_hand(folder: &Path) -> Result<Duration> {
    let begin = Instant::now();
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        size += entry?.metadata()?.len();
    }
    ensure!(size > 0, "the files are gone");
    Ok(begin.elapsed())
}
