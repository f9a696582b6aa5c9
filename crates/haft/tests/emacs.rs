//! The Emacs front end: it compiles without a warning, its documentation is in order, and it answers the questions of a real
//! server. Skipped where there is no Emacs 28 or later.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

use std::{path::Path, process::Command};

/// What the linter's function ends with where there is no linter.
const NO_LINTER: i32 = 77;

/// An Emacs that runs a function and ends; `None` where there is none that is new enough.
#[expect(clippy::disallowed_methods, reason = "Emacs is started as people start it")]
fn emacs(start: &[&str]) -> Option<Command> {
    let version = Command::new("emacs").args(["-Q", "--batch", "--eval", "(princ emacs-major-version)"]).output().ok();
    let version = version.and_then(|told| String::from_utf8(told.stdout).ok()?.trim().parse::<u32>().ok());
    if version.is_none_or(|version| version < 28) {
        println!("skipped: Emacs 28 or later is not installed");
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../emacs").canonicalize().unwrap();
    let mut command = Command::new("emacs");
    command.args(start).arg("--batch").arg("-L").arg(&folder).current_dir(folder);
    Some(command)
}

/// Runs it, and returns its exit code and everything that it said.
fn ran(mut command: Command) -> (i32, String) {
    let done = command.output().unwrap();
    let said = [done.stdout, done.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    (done.status.code().unwrap_or(-1), said)
}

fn style(start: &[&str], function: &str) -> Option<(i32, String)> {
    let mut command = emacs(start)?;
    command.args(["-l", "haft-style", "-f", function]);
    Some(ran(command))
}

#[test]
fn it_compiles_without_a_warning() {
    let Some((code, said)) = style(&["-Q"], "haft-style-compile") else { return };
    assert_eq!(code, 0, "{said}");
}

#[test]
fn its_documentation_is_in_order() {
    let Some((code, said)) = style(&["-Q"], "haft-style-checkdoc") else { return };
    assert_eq!(code, 0, "{said}");
}

#[test]
fn the_linter_of_packages_finds_nothing() {
    // The linter is a package of the system.
    match style(&["-q", "--no-site-file"], "haft-style-lint") {
        Some((NO_LINTER, _)) => println!("skipped: package-lint is not installed"),
        Some((code, said)) => assert_eq!(code, 0, "{said}"),
        None => {}
    }
}

#[test]
fn it_answers_a_real_server() {
    let Some(mut command) = emacs(&["-Q"]) else { return };
    command.env("HAFT_PROGRAM", env!("CARGO_BIN_EXE_haft"));
    command.args(["-l", "haft-tests", "-f", "ert-run-tests-batch-and-exit"]);
    let (code, said) = ran(command);
    assert_eq!(code, 0, "{said}");
}
