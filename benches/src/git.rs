//! Git: the tools that look, in process, beside the git that they run.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use haft::house::House;
use haft_runtime::{AutoApprove, CallRequest, End};
use serde_json::{Value, json};

use crate::{Measured, line::house_in, median};

const FILES: usize = 5_000;
const COMMITS: usize = 1_000;
const LAPS: usize = 41;
/// A look may take so much longer than git alone.
const SLOWER: f64 = 1.2;

/// One look, ours and git's own.
struct GitComparison {
    what: &'static str,
    tool: &'static str,
    input: Value,
    peer: &'static [&'static str],
}

/// Status and diff of many files, a long history.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let house = house_in(folder.path()).await?;
    let repository = folder.path().canonicalize()?.join("work");
    lay_out(&repository)?;
    let races = [
        GitComparison {
            what: "git_status, 5,000 files, 50 changed",
            tool: "git_status",
            input: json!({}),
            peer: &["status", "--porcelain=v2", "--branch"],
        },
        GitComparison {
            what: "git_diff, 5,000 files, 50 changed",
            tool: "git_diff",
            input: json!({}),
            peer: &["diff"],
        },
        GitComparison {
            what: "git_log, 1,000 commits",
            tool: "git_log",
            input: json!({ "limit": COMMITS }),
            peer: &["log", "-n", "1000", "--format=medium"],
        },
        GitComparison { what: "git_branch", tool: "git_branch", input: json!({}), peer: &["branch", "-vv"] },
    ];
    // Calls come from tasks of the runtime, as they do in a server.
    let raced = tokio::spawn(async move {
        let mut table = Vec::new();
        for race in races {
            table.push(race.run(&house, &repository).await?);
        }
        let _ = house.close().await;
        Ok(table)
    });
    raced.await?
}

impl GitComparison {
    /// Laps of both in turn, so that whatever else the machine does meets both.
    async fn run(&self, house: &House, repository: &Path) -> Result<Measured> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for lap in 0..LAPS {
            theirs.push(timed(|| git(repository, self.peer))?);
            // A history that was given once is given again at once, so each lap asks for one of another length.
            let mut input = self.input.clone();
            if self.tool == "git_log" {
                input["limit"] = (COMMITS - lap).into();
            }
            let mut request = CallRequest::new(house.caller.clone(), self.tool, input);
            request.auto_approve = AutoApprove::Everything;
            let begun = Instant::now();
            let outcome = house.pipeline.call(request).await;
            ours.push(begun.elapsed());
            ensure!(matches!(outcome.end, End::Success { .. }), "{}: {outcome:?}", self.tool);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        let found = format!("{ratio:.2} x (p50 {ours:.1?}, git {theirs:.1?})");
        Ok(Measured::new(self.what, found, "< 1.2 x", ratio < SLOWER))
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn lay_out(repository: &Path) -> Result<()> {
    git(repository, &["init", "-q", "-b", "main"])?;
    for (key, value) in [("user.name", "Anna"), ("user.email", "anna@example.org"), ("gc.auto", "0")] {
        git(repository, &["config", key, value])?;
    }
    for number in 0..FILES {
        let folder = repository.join(format!("d{}", number / 100));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("f{number}.txt")), format!("{number}\nsome\nlines\n"))?;
    }
    git(repository, &["add", "."])?;
    git(repository, &["commit", "-q", "-m", "All"])?;
    for number in 1..COMMITS {
        git(repository, &["commit", "-q", "--allow-empty", "-m", &format!("Commit {number}\n\nWith a body.")])?;
    }
    git(repository, &["repack", "-q", "-a", "-d"])?;
    for number in (0..FILES).step_by(100) {
        fs::write(repository.join(format!("d{}/f{number}.txt", number / 100)), "changed\nsome\nlines\n")?;
    }
    Ok(())
}

fn git(repository: &Path, arguments: &[&str]) -> Result<()> {
    let mut git = Command::new("git");
    let ended = git.current_dir(repository).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(ended.success(), "git {arguments:?} failed");
    Ok(())
}
