//! The man pages in `docs/man` are made from the command line itself; `make docs` writes them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory};
use haft::cli::Cli;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man")
}

/// A page for haft and one for each of its commands, with theirs.
fn pages() -> BTreeMap<String, String> {
    let mut haft = Cli::command().disable_help_flag(true);
    haft.build();
    let mut pages = BTreeMap::new();
    add_page(&haft, "haft", &mut pages);
    pages
}

fn add_page(command: &Command, name: &str, pages: &mut BTreeMap<String, String>) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        add_page(sub, &format!("{name}-{}", sub.get_name()), pages);
    }
    // No date: a page changes with what it says.
    let man = clap_mangen::Man::new(command.clone().name(name.to_owned())).date("");
    let mut text = Vec::new();
    man.render(&mut text).unwrap();
    pages.insert(format!("{name}.1"), String::from_utf8(text).unwrap());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "whoever runs the test says that the pages are to be written")]
fn the_man_pages_say_what_the_help_says() {
    let pages = pages();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let _ = fs::remove_dir_all(folder());
        fs::create_dir_all(folder()).unwrap();
        pages.iter().for_each(|(name, text)| fs::write(folder().join(name), text).unwrap());
    }
    let kept: Vec<String> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for (name, text) in &pages {
        let there = fs::read_to_string(folder().join(name)).unwrap_or_default();
        assert!(there == *text, "docs/man/{name} is not up to date; run `make docs`");
    }
    assert!(
        kept.iter().all(|name| pages.contains_key(name)),
        "docs/man has pages of commands that are gone; run `make docs`"
    );
}
