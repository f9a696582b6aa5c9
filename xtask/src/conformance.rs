//! The official MCP conformance suite against our own server, our own authorization server, and our client of servers with
//! a login.

mod authorization;

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo;

/// The revisions of the protocol whose requirements are held.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];
/// Where the suite's lock and what it is known to miss are.
const SUITE: &str = "scripts/peers/conformance";
const PAGE: &str = "docs/conformance.md";
/// What the names of scenarios of a login begin with.
const LOGIN: &str = "auth/";

/// Runs what each revision requires, and passes on what the suite says.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let programs = tools()?.join("conformance/node_modules/.bin");
    let suite = programs.join("conformance");
    ensure!(suite.exists(), "the suite is not installed; run `scripts/setup tests`");
    let built = cargo(root)
        .args([
            "build",
            "--quiet",
            "--locked",
            "-p",
            "haft",
            "--example",
            "conformance",
            "--example",
            "conformance_client",
        ])
        .status()
        .context("cannot start cargo")?;
    ensure!(built.success(), "the programs of the suite cannot be built");
    let built =
        cargo(root).args(["build", "--quiet", "--locked", "-p", "haft"]).status().context("cannot start cargo")?;
    ensure!(built.success(), "haft cannot be built");
    let path = env::join_paths([programs].into_iter().chain(env::split_paths(&path_variable())))?;
    let mut all_hold = logins_hold(root, &suite, &path)?;
    for revision in REVISIONS {
        let known = root.join(SUITE).join(format!("{revision}.yaml"));
        explained(&known, &root.join(PAGE))?;
        let mut served = ConformanceServer::start(root)?;
        println!("== {revision} at {}", served.url);
        let ended = Command::new(&suite)
            .args(["server", "--url", &served.url, "--requirements", revision, "--expected-failures"])
            .arg(&known)
            .env("PATH", &path)
            .status()
            .context("cannot start the suite")?;
        served.end()?;
        all_hold &= ended.success();
        all_hold &=
            authorization::run(&target(root).join("debug/haft"), Command::new(&suite).env("PATH", &path), revision)?;
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every scenario of a login that a revision has, against our own client.
fn logins_hold(root: &Path, suite: &Path, path: &OsStr) -> Result<bool> {
    let listed = Command::new(suite).arg("list").env("PATH", path).output().context("cannot start the suite")?;
    let listed = String::from_utf8(listed.stdout)?;
    let mut all_hold = true;
    for revision in REVISIONS {
        let scenarios: Vec<&str> = listed.lines().filter_map(|line| login_scenario(line, revision)).collect();
        ensure!(!scenarios.is_empty(), "the suite lists no `{LOGIN}` scenario of {revision}");
        println!("== {revision}: {} scenarios of a login", scenarios.len());
        for scenario in scenarios {
            let ran = Command::new(suite)
                .args(["client", "--scenario", scenario, "--spec-version", revision, "--command"])
                .arg(example(root, "conformance_client"))
                .env("PATH", path)
                .output()
                .context("cannot start the suite")?;
            println!("{} {scenario}", if ran.status.success() { "passed" } else { "FAILED" });
            if !ran.status.success() {
                println!("{}", String::from_utf8_lossy(&ran.stderr));
                all_hold = false;
            }
        }
    }
    Ok(all_hold)
}

/// The scenario on a line of the suite's list, if it is about a login and belongs to a revision.
fn login_scenario<'a>(line: &'a str, revision: &str) -> Option<&'a str> {
    let (name, revisions) = line.trim().strip_prefix("- ")?.split_once(' ')?;
    (name.starts_with(LOGIN) && revisions.contains(revision)).then_some(name)
}

/// Where a program for the suite was built.
fn example(root: &Path, name: &str) -> PathBuf {
    target(root).join("debug/examples").join(name)
}

/// Whatever is left out is named on a page, where the reason stands.
fn explained(known: &Path, page: &Path) -> Result<()> {
    let (known, page) = (fs::read_to_string(known)?, fs::read_to_string(page)?);
    for left_out in known.lines().filter_map(|line| line.trim().strip_prefix("- ")) {
        ensure!(page.contains(&format!("`{left_out}`")), "{PAGE} does not say why `{left_out}` is left out");
    }
    Ok(())
}

/// The server with the suite's tools. It ends with its input.
struct ConformanceServer {
    child: Child,
    url: String,
}

impl ConformanceServer {
    fn start(root: &Path) -> Result<Self> {
        let mut child = Command::new(example(root, "conformance"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the server of the suite")?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut url)?;
        }
        match url.trim() {
            "" => bail!("the server of the suite has ended before it served"),
            url => Ok(Self { url: url.to_owned(), child }),
        }
    }

    fn end(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        ensure!(self.child.wait()?.success(), "the server of the suite has failed");
        Ok(())
    }
}

impl Drop for ConformanceServer {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Where programs are built.
fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Where `scripts/setup` puts what tests need.
fn tools() -> Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set")?.join("haft/tools"))
}

fn path_variable() -> std::ffi::OsString {
    env::var_os("PATH").unwrap_or_default()
}
