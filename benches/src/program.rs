//! The whole program: how long one call takes, how large it is, how much memory a window of a huge file needs.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::{Measured, median, memory::private};

const RUNS: usize = 40;
const HUGE: u64 = 2 << 30;

/// `haft call` of a trivial tool, the size of the binary, and the end of a 2 GiB file.
pub(crate) fn measure() -> Result<Vec<Measured>> {
    let haft = program()?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("a.txt"), "hello\n")?;
    let call = || command(&haft, folder.path(), &["call", "read_file", "--path", "a.txt", "--json"]);
    let whole = timed(call)?;
    let python = timed(|| {
        let mut python = Command::new("python3");
        python.args(["-c", "pass"]);
        python
    });
    let node = timed(|| {
        let mut node = Command::new("node");
        node.args(["-e", ""]);
        node
    });
    let peer = |found: Result<Duration>| found.map_or_else(|_| "absent".to_owned(), |lap| format!("{lap:.1?}"));
    let size = fs::metadata(&haft)?.len() as f64 / 1e6;
    let (peak, took) = end_of_a_huge_file(&haft, folder.path())?;
    Ok(vec![
        Measured::new(
            "haft call read_file, whole process",
            format!("p50 {whole:.1?} (python3 {}, node {})", peer(python), peer(node)),
            "p50 < 25 ms",
            whole < Duration::from_millis(25),
        ),
        Measured::new("release binary", format!("{size:.1} MB"), "< 60 MB", size < 60.0),
        Measured::new(
            "100 lines at the end of a 2 GiB file",
            format!("{:.1} MiB private, {took:.1?}", peak as f64 / 1024.0),
            "< 32 MiB",
            peak < 32 << 10,
        ),
    ])
}

/// The program that was built beside this one.
pub(crate) fn program() -> Result<PathBuf> {
    let haft = std::env::current_exe()?.with_file_name("haft");
    ensure!(haft.exists(), "build the program first: cargo build --release -p haft");
    Ok(haft)
}

/// The program in a folder, with its data there too.
pub(crate) fn command(haft: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(haft);
    command.args(arguments).current_dir(folder).env("HAFT_DATA_DIR", folder.join("data")).stdin(Stdio::null());
    command
}

fn timed(command: impl Fn() -> Command) -> Result<Duration> {
    let mut laps = Vec::new();
    for _ in 0..RUNS {
        let begin = Instant::now();
        let ended = command().stdout(Stdio::null()).status()?;
        laps.push(begin.elapsed());
        ensure!(ended.success(), "it failed");
    }
    Ok(median(laps))
}

/// The most private memory in KiB, and how long it took.
fn end_of_a_huge_file(haft: &Path, folder: &Path) -> Result<(u64, Duration)> {
    let lines = write_huge(&folder.join("huge.txt"))?;
    let offset = (lines - 99).to_string();
    let arguments = ["call", "read_file", "--path", "huge.txt", "--offset", &offset, "--limit", "100", "--json"];
    peak_memory(command(haft, folder, &arguments))
}

/// The most private memory in KiB, seen from outside while the program works, and how long it took.
pub(crate) fn peak_memory(mut command: Command) -> Result<(u64, Duration)> {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let mut peak = 0;
    let ended = loop {
        peak = peak.max(private(child.id()).unwrap_or(0));
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    ensure!(ended.success() && peak > 0, "the program failed");
    Ok((peak, begin.elapsed()))
}

fn write_huge(path: &Path) -> Result<u64> {
    let line = format!("{}\n", "some text that fills a line ".repeat(4));
    let mut file = BufWriter::with_capacity(1 << 20, fs::File::create(path).context("no room for a 2 GiB file")?);
    let lines = HUGE / line.len() as u64;
    for _ in 0..lines {
        file.write_all(line.as_bytes())?;
    }
    file.flush()?;
    Ok(lines)
}
