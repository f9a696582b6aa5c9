//! The official MCP conformance suite against our own server, and against our own authorization server.

mod authorization;

use std::{
    env, fs,
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

/// Runs what each revision requires, and passes on what the suite says.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let programs = tools()?.join("conformance/node_modules/.bin");
    let suite = programs.join("conformance");
    ensure!(suite.exists(), "the suite is not installed; run `scripts/setup tests`");
    let built = cargo(root)
        .args(["build", "--quiet", "--locked", "-p", "haft", "--example", "conformance"])
        .status()
        .context("cannot start cargo")?;
    ensure!(built.success(), "the server of the suite cannot be built");
    let built =
        cargo(root).args(["build", "--quiet", "--locked", "-p", "haft"]).status().context("cannot start cargo")?;
    ensure!(built.success(), "haft cannot be built");
    let path = env::join_paths([programs].into_iter().chain(env::split_paths(&path_variable())))?;
    let mut all_hold = true;
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
        let mut child = Command::new(target(root).join("debug/examples/conformance"))
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
