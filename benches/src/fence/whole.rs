//! The whole program: a build that writes much, beside the same without a fence, and a command that says much.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{ratio, timed};
use crate::{
    Measured,
    program::{command, peak_memory, program},
};

/// Packages of the workspace that is built, and what the build of each writes beside its own output.
const PACKAGES: usize = 8;
const OUTPUTS: usize = 240;
const OUTPUT_BYTES: usize = 260_000;
const BUILDS: usize = 3;
const BUILD: &str = "cargo build --offline --quiet";
/// A gigabyte of lines.
const TALK: &str = "yes 'some text that fills a line of output' | head -c 1000000000";

/// A build from nothing, the one after it, and a gigabyte of output.
pub(super) fn measure() -> Result<Vec<Measured>> {
    let haft = program()?;
    let mut table = builds(&haft)?;
    let folder = tempfile::tempdir()?;
    let (mut ours, mut bare, mut held) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..2 {
        let arguments = ["call", "shell_exec", "--command", TALK];
        let (peak, took) = peak_memory(command(&haft, folder.path(), &arguments))?;
        (ours, held) = (ours.min(took), held.max(peak));
        let talk = format!("{TALK} | cat > /dev/null");
        bare = bare.min(timed(peer("bash", folder.path()).args(["-c", &talk]))?);
    }
    let (silent, _) = peak_memory(command(&haft, folder.path(), &["call", "shell_exec", "--command", "true"]))?;
    let (share, held, silent) = (ratio(ours, bare), held as f64 / 1024.0, silent as f64 / 1024.0);
    table.push(Measured::new(
        "1 GB of output through haft call",
        format!("{ours:.2?}, bare {bare:.2?} ({share:.2} ×), {held:.1} MiB private (silent {silent:.1})"),
        "≤ 1.5 ×, < 16 MiB",
        share <= 1.5 && held < 16.0,
    ));
    Ok(table)
}

fn builds(haft: &Path) -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("work");
    write_packages(&work)?;
    let (mut ours, mut bare, mut fresh) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..BUILDS {
        clean(&work)?;
        bare = bare.min(timed(peer("bash", &work).args(["-c", BUILD]))?);
        clean(&work)?;
        ours = ours.min(call(haft, folder.path(), BUILD)?.0);
        let (again, said) = call(haft, folder.path(), "cargo build --offline --verbose")?;
        ensure!(said.contains("Fresh") && !said.contains("Compiling"), "something was built again:\n{said}");
        fresh = fresh.min(again);
    }
    let share = ratio(ours, bare);
    Ok(vec![
        Measured::new(
            "cargo build: 2,000 files, 500 MB",
            format!("{ours:.2?}, bare {bare:.2?} ({share:.2} ×)"),
            "≤ 1.2 × bare",
            share <= 1.2,
        ),
        Measured::new("the next build", format!("{fresh:.2?}, all fresh"), "all fresh", true),
    ])
}

/// One command by the whole program, at default settings: how long it took and what it said.
fn call(haft: &Path, folder: &Path, line: &str) -> Result<(Duration, String)> {
    let begin = Instant::now();
    let mut command = command(haft, &folder.join("work"), &["call", "shell_exec", "--command", line, "--json"]);
    let ran = command.env("HAFT_DATA_DIR", folder.join("data")).output()?;
    let took = begin.elapsed();
    let outcome: Value = serde_json::from_slice(&ran.stdout).context("the outcome")?;
    let said = &outcome["result"]["structured"];
    ensure!(said["exitCode"] == 0, "`{line}`: {outcome:#}");
    Ok((took, format!("{}{}", said["stdout"], said["stderr"])))
}

fn clean(work: &Path) -> Result<()> {
    let target = work.join("target");
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    Ok(())
}

/// Packages that stand on one another; the script of each writes many files, as generators and compilers do.
fn write_packages(work: &Path) -> Result<()> {
    let members: Vec<String> = (0..PACKAGES).map(|number| format!("\"p{number}\"")).collect();
    fs::create_dir(work)?;
    fs::write(work.join("Cargo.toml"), format!("[workspace]\nresolver = \"2\"\nmembers = [{}]\n", members.join(", ")))?;
    fs::write(work.join(".gitignore"), "target/\n")?;
    for number in 0..PACKAGES {
        let package = work.join(format!("p{number}"));
        fs::create_dir_all(package.join("src"))?;
        let below = match number {
            0 => String::new(),
            _ => format!("[dependencies]\np{0} = {{ path = \"../p{0}\" }}\n", number - 1),
        };
        let head = format!("[package]\nname = \"p{number}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        fs::write(package.join("Cargo.toml"), format!("{head}{below}"))?;
        fs::write(package.join("src/lib.rs"), format!("pub fn number() -> usize {{ {number} }}\n"))?;
        fs::write(
            package.join("build.rs"),
            SCRIPT.replace("OUTPUTS", &OUTPUTS.to_string()).replace("BYTES", &OUTPUT_BYTES.to_string()),
        )?;
    }
    timed(peer("git", work).args(["init", "-q"]))?;
    timed(peer("cargo", work).args(["generate-lockfile", "--offline", "-q"]))?;
    timed(peer("git", work).args(["add", "-A"]))?;
    Ok(())
}

/// A program without a fence. It builds into its own folder, wherever the benches themselves were built to.
fn peer(program: &str, work: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(work).env_remove("CARGO_TARGET_DIR");
    command
}

const SCRIPT: &str = r#"fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    for number in 0..OUTPUTS {
        std::fs::write(out.join(format!("made{number}")), vec![number as u8; BYTES]).unwrap();
    }
}
"#;
