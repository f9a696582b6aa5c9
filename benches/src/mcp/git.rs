//! Looks at a repository over standard input and output, beside the reference server for git.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{LONG_LAPS, Session, laps, ours, tools};
use crate::{Measured, median};

/// How a server did.
struct GitTimes {
    status: Duration,
    diff: Duration,
    log: Duration,
    start: Duration,
    /// MiB after the looks.
    memory: f64,
}

/// Status, diff and history of a small repository, by haft and by `mcp-server-git`.
pub(super) fn measure(folder: &Path) -> Result<Vec<Measured>> {
    let repository = folder.join("repository");
    lay_out(&repository)?;
    let path = json!({ "repo_path": repository.display().to_string() });
    let own = taken(&ours(&folder.join("data"), &repository)?, ["git_status", "git_diff", "git_log"], |more| more)?;
    let haft = own.row("haft, a repository");
    let packages = tools()?.join("python");
    if !packages.join("mcp_server_git").exists() {
        return Ok(vec![haft, Measured::new("mcp-server-git", "absent", "", true)]);
    }
    let packages = format!("PYTHONPATH={}", packages.display());
    let command = ["/usr/bin/env", &packages, "/usr/bin/python3", "-m", "mcp_server_git"].map(str::to_owned);
    let names = ["git_status", "git_diff_unstaged", "git_log"];
    let peer = taken(&command, names, |mut more| {
        more["repo_path"] = path["repo_path"].clone();
        more["max_count"] = more["limit"].take();
        more
    })?;
    Ok(vec![haft, peer.row("mcp-server-git"), beside(&own, &peer, &alone(&repository)?)])
}

/// Status, diff and history by git itself, which both servers run: nobody who does can be quicker.
fn alone(repository: &Path) -> Result<[Duration; 3]> {
    let [status, diff, log] =
        [&["status", "--porcelain=v2", "--branch"] as &[&str], &["diff"], &["log", "-n", "30", "--format=medium"]].map(
            |arguments| {
                laps(LONG_LAPS, |_| {
                    let begun = Instant::now();
                    git(repository, arguments).map(|()| begun.elapsed())
                })
            },
        );
    Ok([status?, diff?, log?])
}

/// Asks one server; `put` says how it wants its arguments.
fn taken(command: &[String], [status, diff, log]: [&str; 3], put: impl Fn(Value) -> Value) -> Result<GitTimes> {
    let start = median((0..5).map(|_| Ok(Session::start(command)?.1)).collect::<Result<_>>()?);
    let mut session = Session::start(command)?.0;
    Ok(GitTimes {
        status: laps(LONG_LAPS, |_| session.call(status, &put(json!({}))))?,
        diff: laps(LONG_LAPS, |_| session.call(diff, &put(json!({}))))?,
        // A history that was given once is given again at once, so each lap asks for one of another length.
        log: laps(LONG_LAPS, |lap| session.call(log, &put(json!({ "limit": lap + 1 }))))?,
        start,
        memory: session.memory()?,
    })
}

fn beside(haft: &GitTimes, peer: &GitTimes, git: &[Duration; 3]) -> Measured {
    let faster = |of: fn(&GitTimes) -> Duration| of(peer).as_secs_f64() / of(haft).as_secs_f64();
    let [status, diff, log] = [faster(|it| it.status), faster(|it| it.diff), faster(|it| it.log)];
    let (start, smaller) = (faster(|it| it.start), peer.memory / haft.memory);
    let theirs = [peer.status, peer.diff, peer.log];
    let [most, of_diff, of_log] = std::array::from_fn(|of| theirs[of].as_secs_f64() / git[of].as_secs_f64());
    let found = format!(
        "faster by {status:.1} x in status, {diff:.1} diff, {log:.1} log (git itself {most:.1}, {of_diff:.1}, \
         {of_log:.1}), {start:.1} start; {smaller:.1} x smaller"
    );
    Measured::new("haft beside mcp-server-git", found, "", true)
}

impl GitTimes {
    fn row(&self, name: &'static str) -> Measured {
        let Self { status, diff, log, start, memory } = self;
        let found = format!("status {status:.1?}, diff {diff:.1?}, log {log:.1?}, start {start:.0?}, {memory:.0} MiB");
        Measured::new(name, found, "", true)
    }
}

/// Some files, some commits, one change.
fn lay_out(repository: &Path) -> Result<()> {
    fs::create_dir_all(repository)?;
    git(repository, &["init", "-q", "-b", "main"])?;
    for (key, value) in [("user.name", "Anna"), ("user.email", "anna@example.org"), ("gc.auto", "0")] {
        git(repository, &["config", key, value])?;
    }
    for number in 0..100 {
        fs::write(repository.join(format!("f{number}.txt")), format!("{number}\nsome\nlines\n"))?;
        git(repository, &["add", "."])?;
        git(repository, &["commit", "-q", "-m", &format!("Commit {number}")])?;
    }
    Ok(fs::write(repository.join("f7.txt"), "7\nother\nlines\n")?)
}

fn git(repository: &Path, arguments: &[&str]) -> Result<()> {
    let mut git = Command::new("git");
    let ended = git.current_dir(repository).args(arguments).stdout(Stdio::null()).status()?;
    ensure!(ended.success(), "git {arguments:?} failed");
    Ok(())
}
