//! Every command block of the README and of `docs/` is run, page by page, as a newcomer would type it.
//!
//! A page is one bash session in an empty home folder, with the built program installed. Nothing on a page needs the network. Every
//! command must succeed, unless its line says `exit N`. `tc_…` and `g_…` stand for the id of the newest call and grant.
//! `sh no-run` marks a block that cannot run here: it installs something, or connects a client.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use support::{Fixture, Ran, Running};

/// More than these would mean that the pages are not tried any more.
const MOST_BLOCKS_NOT_RUN: usize = 8;
/// What a page finds defined. A command that fails is written down with the line of the page that it stands on.
const PRELUDE: &str = r#"
newest() { haft "$1" --json | grep -o "\"$2_[0-9a-f]\{32\}" | head -1 | tr -d '"'; }
exec 9>>"$HOME/.failed"
set -E
trap 'code=$?; [ "${BASH_SUBSHELL}" = 0 ] && echo "$LINENO $code" >&9' ERR
"#;

/// One fenced block: the line it begins on, what it is tagged as, its lines.
struct Block<'a> {
    first: usize,
    tag: &'a str,
    lines: Vec<&'a str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(tag)) => open = Some(Block { first: at + 1, tag, lines: Vec::new() }),
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.lines.push(line),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// The commands of a page, each on the line where it stands in the page.
fn script(page: &str) -> String {
    let mut lines = vec![String::new(); page.lines().count()];
    for block in blocks(page).iter().filter(|block| ["", "sh"].contains(&block.tag)) {
        for (at, line) in block.lines.iter().enumerate() {
            lines[block.first + at] = line.replace("tc_…", "$(newest log tc)").replace("g_…", "$(newest grants g)");
        }
    }
    lines.join("\n") + "\n"
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The README and every page of `docs/`, by their paths. Decisions tell of the past and have no commands to try.
fn pages() -> BTreeMap<String, String> {
    let root = root();
    let mut paths = vec![root.join("README.md")];
    for folder in ["docs", "docs/errors"] {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

fn run(page: &str) -> (Ran, Vec<(usize, i32)>) {
    let fixture = Fixture::new();
    let (prelude, commands) = (fixture.home.join(".prelude"), fixture.home.join(".page"));
    fs::write(&prelude, PRELUDE).unwrap();
    fs::write(&commands, script(page) + "echo the end of the page\n").unwrap();
    let mut command = fixture.program("bash");
    command.arg(&commands);
    let program = fixture.install_program();
    let programs = program.parent().unwrap().display();
    command.env("PATH", format!("{programs}:/usr/bin:/bin")).env("BASH_ENV", &prelude);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "You").env(format!("GIT_{who}_EMAIL"), "you@example.org");
    }
    command.env_remove("HAFT_DATA_DIR").current_dir(&fixture.home);
    let ran = Running::start(command).finish();
    assert!(ran.stdout.ends_with("the end of the page\n"), "it broke off: {ran:?}");
    let failed = fs::read_to_string(fixture.home.join(".failed")).unwrap_or_default();
    let failed = failed.lines().map(|line| {
        let (line, code) = line.split_once(' ').unwrap();
        (line.parse().unwrap(), code.parse().unwrap())
    });
    (ran, failed.collect())
}

#[test]
fn every_command_block_runs() {
    for (name, page) in pages() {
        let commands = script(&page);
        if commands.trim().is_empty() {
            continue;
        }
        let (ran, failed) = run(&page);
        let said: Vec<(usize, i32)> = (1..)
            .zip(commands.lines())
            .filter_map(|(at, line)| {
                let code = line.split_once("exit ")?.1;
                let code: String = code.chars().take_while(char::is_ascii_digit).collect();
                Some((at, code.parse().ok()?))
            })
            .collect();
        assert_eq!(failed, said, "{name}: lines with their exit codes; it printed\n{}\n{}", ran.stdout, ran.stderr);
        println!("{name}: {} commands", commands.lines().filter(|line| !line.is_empty()).count());
    }
}

#[test]
fn an_error_reads_in_the_docs_as_the_program_prints_it() {
    for (name, page) in pages().iter().filter(|(name, _)| name.contains("errors/")) {
        let code = Path::new(name).file_stem().unwrap().to_str().unwrap();
        for block in blocks(page).iter().filter(|block| ["console", "text"].contains(&block.tag)) {
            let bare = block.lines.iter().find(|line| line.starts_with(&format!("{code} ")));
            assert_eq!(bare, None, "{name}:{}: write `error[{code}]: …`", block.first);
        }
    }
}

#[test]
fn every_block_says_what_it_is_and_few_are_not_run() {
    let known = ["", "sh", "sh no-run", "console", "text", "json", "toml", "rust", "elisp"];
    let mut not_run = 0;
    for (name, page) in pages() {
        for block in blocks(&page) {
            assert!(known.contains(&block.tag), "{name}:{}: `{}` is none of {known:?}", block.first, block.tag);
            not_run += usize::from(block.tag == "sh no-run");
        }
    }
    assert!(not_run <= MOST_BLOCKS_NOT_RUN, "{not_run} blocks are not run");
}

#[test]
fn the_tour_of_the_readme_has_eight_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let tour = readme.split_once("## Tour").unwrap().1.split_once("\n## ").unwrap().0;
    let commands = blocks(tour).into_iter().flat_map(|block| block.lines).filter(|line| line.starts_with("haft "));
    assert_eq!(commands.count(), 8);
    assert!(readme.find("## Connect your agent").unwrap() < readme.find("## Tour").unwrap());
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    for (name, page) in pages() {
        let folder = root().join(&name).parent().unwrap().to_owned();
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap();
            let is_here = !target.is_empty() && !target.contains("://");
            assert!(!is_here || folder.join(target).exists(), "{name}: there is no `{target}`");
        }
    }
}
