//! `grep` and `glob` find what ripgrep finds, on trees made up to be tricky. `scripts/setup` installs ripgrep.
#![expect(clippy::disallowed_methods, reason = "ripgrep is started to compare with it")]

use std::{fs, os::unix::fs::symlink, process::Command};

use serde_json::{Value, json};

use crate::place::Place;

/// Always the same numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const FOLDERS: &[&str] = &["", "a/", "a/b/", "a/b/c/", ".h/", "build/", "a/build/", "x y/", "a/repo/", "a/repo/in/"];
const NAMES: &[&str] = &["a.txt", "b.log", "keep.log", ".dot", "c.rs", "build", "UPPER.TXT", "[x].md", "tmp~", "ü.txt"];
const RULES: &[&str] = &[
    "*.log",
    "!keep.log",
    "build/",
    "/a",
    "a/b",
    "**/c",
    "*.txt",
    "!a.txt",
    "/build",
    "# no rule",
    "",
    "c/*",
    "!.dot",
    ".h",
    "!.h/",
    "x\\ y/",
    "[x]*",
    "*~",
    "a/**/c.rs",
    "!/a/b/c/",
    "in",
    "\\[x\\].md",
];
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore", ".rgignore", "a/.gitignore", "a/.ignore", "a/b/.gitignore"];

fn contents(numbers: &mut Numbers) -> Vec<u8> {
    let utf16 = |text: &str| [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    match numbers.below(8) {
        0 => b"needle\0 in a binary file\n".to_vec(),
        1 => utf16("first\nthe needle\r\nlast\n"),
        2 => b"latin na\xefve needle\nno\n".to_vec(),
        3 => b"\xef\xbb\xbfneedle after a mark\n".to_vec(),
        4 => b"nothing\n\n\nneedle needle at the end".to_vec(),
        5 => Vec::new(),
        6 => "x\n".repeat(60_000).into_bytes().into_iter().chain(*b"far needle\n").collect(),
        _ => b"one\nneedle\r\ntwo\n".to_vec(),
    }
}

fn made_up(numbers: &mut Numbers) -> Place {
    let place = Place::new();
    for folder in FOLDERS {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    for folder in FOLDERS {
        for _ in 0..numbers.below(6) {
            let name = numbers.one(NAMES);
            if !place.path(&format!("{folder}{name}")).exists() {
                place.put(&format!("{folder}{name}"), contents(numbers));
            }
        }
    }
    for file in IGNORE_FILES {
        if numbers.below(2) == 0 {
            let rules: Vec<&str> = (0..numbers.below(6)).map(|_| numbers.one(RULES)).collect();
            place.put(file, rules.join("\n"));
        }
    }
    if numbers.below(2) == 0 {
        fs::create_dir_all(place.path("a/repo/.git/info")).unwrap();
        place.put("a/repo/.git/info/exclude", numbers.one(RULES));
    }
    let _ = symlink("a", place.path("link"));
    let _ = symlink("a.txt", place.path("link.txt"));
    place
}

/// What ripgrep prints, one line each, in the order of bytes.
fn rg(place: &Place, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--color=never"]);
    let ended = command.args(arguments).arg(".").current_dir(place.path("")).output().unwrap();
    // What is no UTF-8 is Latin-1 here, whose bytes are the first letters of Unicode.
    let text = |line: &[u8]| {
        let chunks = line.utf8_chunks();
        chunks
            .flat_map(|chunk| chunk.valid().chars().chain(chunk.invalid().iter().copied().map(char::from)))
            .collect::<String>()
    };
    let printed = ended.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(text);
    let mut lines: Vec<String> =
        printed.map(|line| line.trim_start_matches("./").trim_end_matches('\r').to_owned()).collect();
    lines.sort();
    lines
}

fn grepped(place: &Place, input: Value) -> Vec<String> {
    let found = place.read("grep", input).unwrap().structured;
    assert_eq!(found["truncated"], false);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let all = found["matches"].as_array().unwrap().iter();
    let mut lines: Vec<String> =
        all.map(|one| ["path", "line", "text"].map(|part| text(&one[part])).join(":")).collect();
    lines.sort();
    lines
}

#[test]
fn the_same_is_found() {
    if Command::new("rg").arg("--version").output().is_err() {
        panic!("ripgrep is not installed; run scripts/setup");
    }
    let mut found = 0;
    for seed in 0..60 {
        let place = made_up(&mut Numbers(seed));
        for (hidden, ignored, flags) in [
            (false, true, &[][..]),
            (true, true, &["--hidden"][..]),
            (false, false, &["--no-ignore"][..]),
            (true, false, &["--hidden", "--no-ignore"][..]),
        ] {
            let options = json!({ "includeHidden": hidden, "respectIgnore": ignored });
            let lines = [flags, &["-n", "--no-heading", "needle"]].concat();
            let mut input = options.clone();
            input["pattern"] = json!("needle");
            input["maxResults"] = json!(10_000);
            let ours = grepped(&place, input);
            assert_eq!(ours, rg(&place, &lines), "seed {seed} {flags:?}");
            found += ours.len();

            let mut input = options;
            input["pattern"] = json!("**");
            let globbed = place.read("glob", input).unwrap().structured;
            let links = ["link", "link.txt"];
            let files: Vec<String> =
                globbed["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap().to_owned()).collect();
            let files: Vec<String> = files.into_iter().filter(|file| !links.contains(&file.as_str())).collect();
            assert_eq!(files, rg(&place, &[flags, &["--files"]].concat()), "seed {seed} {flags:?}");
        }
    }
    assert!(found > 1000, "the trees have {found} matches");
}
