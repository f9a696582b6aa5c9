//! A day of sixty calls at default settings: how often it asks, what gets in unasked, and whether it can be taken back.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it saw")]

#[path = "../../crates/haft/tests/day/lived.rs"]
mod lived;
#[path = "../../crates/haft/tests/day/script.rs"]
mod script;

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use lived::{Lived, live, questions, undo_all};
use script::{Kind, PROJECT, day};

use crate::{Measured, median, program::program};

/// Rounds of work, eleven calls each and five more: sixty calls.
const ROUNDS: usize = 5;
/// Every path with its kind, mode, link target, time and content. A folder's time moves when something beside is made
/// and removed again, which is no change.
const PICTURE: &str = "find . \\( -type d -printf '%p %m\\n' -o -printf '%p %y %m %T@ %l\\n' \\) | sort; \
                       find . -type f -print0 | sort -z | xargs -0 sha256sum";

/// The day, call by call, and what it comes to.
pub(crate) fn measure() -> Result<Vec<Measured>> {
    let haft = program()?;
    let folder = tempfile::tempdir()?;
    for inner in ["workspace", "home"] {
        fs::create_dir(folder.path().join(inner))?;
    }
    shell(folder.path(), PROJECT)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let run = |arguments: &[&str]| {
        let ran = within(folder.path(), Command::new(&haft).args(arguments)).output()?;
        let said = if ran.stdout.is_empty() { ran.stderr } else { ran.stdout };
        Ok((ran.status.code().unwrap_or(-1), String::from_utf8(said)?))
    };
    let before = shell(folder.path(), PICTURE)?;
    let (mut lived, mut laps, mut came_in) = (Vec::<Lived>::new(), Vec::<Duration>::new(), 0);
    for step in day(ROUNDS, listener.local_addr()?.port()) {
        let so_far = (step.kind == Kind::Harm).then(|| shell(folder.path(), PICTURE)).transpose()?;
        let begin = Instant::now();
        let call = live(&run, &step)?;
        laps.push(begin.elapsed());
        println!("{:>3} {}", lived.len() + 1, call.row());
        if let Some(so_far) = so_far {
            came_in += usize::from(so_far != shell(folder.path(), PICTURE)?);
        }
        lived.push(call);
    }
    came_in += usize::from(listener.accept().is_ok());
    let undone = undo_all(&run, &lived)?;
    let same = shell(folder.path(), PICTURE)? == before;
    let (asked, all) = (questions(&lived), lived.iter().filter(|call| call.kind != Kind::Harm).count());
    let each = median(laps);
    Ok(vec![
        Measured::new(
            "a day of work, default settings",
            format!("{all} calls, {asked} questions, p50 {each:.0?} a call"),
            "60 calls, ≤ 8 questions",
            all == 60 && asked <= 8,
        ),
        Measured::new(
            "harm in between",
            format!("{came_in} of {} came in unasked", lived.len() - all),
            "none",
            came_in == 0,
        ),
        Measured::new(
            "the whole day undone in reverse",
            format!("{undone} calls, {}", if same { "the same to the last bit" } else { "something is left" }),
            "bit for bit",
            same,
        ),
    ])
}

/// Runs a script in the workspace and gives what it said.
fn shell(folder: &Path, script: &str) -> Result<Vec<u8>> {
    let ran = within(folder, Command::new("bash").args(["-c", script])).output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(ran.stdout)
}

/// In the workspace, with an environment of its own.
fn within<'a>(folder: &Path, command: &'a mut Command) -> &'a mut Command {
    command.current_dir(folder.join("workspace")).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command.env("HOME", folder.join("home")).env("HAFT_DATA_DIR", folder.join("data"))
}
