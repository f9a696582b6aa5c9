//! The TypeScript SDK against this program: its own tests, built by `tsc` and run by `node`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, or says why it has nothing to do"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

/// A test that takes longer than this many milliseconds hangs.
const LONGEST_TEST: &str = "--test-timeout=240000";

fn sdk() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdk/typescript")
}

#[expect(clippy::disallowed_methods, reason = "the compiler is where scripts/setup has put it")]
fn compiler() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    cache.unwrap_or_default().join("haft/tools/bin/tsc")
}

#[expect(clippy::disallowed_methods, reason = "the compiler and node are run as people run them")]
fn command(program: impl AsRef<Path>) -> Command {
    Command::new(program.as_ref())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Builds `src` and `test` into a folder of its own; `None` where that cannot be done here.
fn built() -> Option<TempDir> {
    for program in [compiler(), PathBuf::from("node")] {
        if command(&program).arg("--version").output().is_err() {
            println!("skipped: {} is missing: run scripts/setup tests", program.display());
            return None;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fs::copy(sdk().join("package.json"), folder.path().join("package.json")).unwrap();
    let made =
        command(compiler()).args(["-p", "test", "--outDir"]).arg(folder.path()).current_dir(sdk()).output().unwrap();
    assert!(made.status.success(), "{}", text(&made));
    Some(folder)
}

/// The tests that were built, by name.
fn tests_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("test")).unwrap().map(|file| file.unwrap().path());
    let mut tests: Vec<_> = files.filter(|file| file.to_string_lossy().ends_with(".test.js")).collect();
    tests.sort();
    tests
}

#[test]
fn the_typescript_sdk_works_with_this_program() {
    let Some(folder) = built() else { return };
    let tests = tests_in(folder.path());
    assert!(tests.len() >= 4, "{tests:?}");
    let ran = command("node")
        .args(["--test", LONGEST_TEST])
        .args(tests)
        .env("HAFT_PROGRAM", env!("CARGO_BIN_EXE_haft"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran));
}

#[test]
fn what_is_published_needs_nothing_else() {
    let package: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(sdk().join("package.json")).unwrap()).unwrap();
    assert_eq!(package["dependencies"], serde_json::Value::Null);
    for file in fs::read_dir(sdk().join("src")).unwrap().map(|file| file.unwrap().path()) {
        let source = fs::read_to_string(&file).unwrap();
        let mut imports = source.lines().filter_map(|line| line.split_once("from \"")).map(|(_, from)| from);
        assert!(imports.all(|from| from.starts_with("./")), "{} imports from outside", file.display());
    }
}
