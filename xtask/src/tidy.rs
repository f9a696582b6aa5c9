//! The rules of the house that a compiler cannot check.

mod source;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use source::SourceFile;

/// A crate, which of ours it may use, and which outside crates it alone may know, or one that asks and one that answers.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    owns: &'static [&'static str],
}

const ROOMS: &[Room] = &[
    Room { name: "runtime", may_use: &[], owns: &["jsonschema"] },
    Room {
        name: "sandbox",
        may_use: &[],
        owns: &["brotli-decompressor", "hyper", "landlock", "rustls", "seccompiler", "similar", "url"],
    },
    Room {
        name: "tools",
        may_use: &["haft-runtime", "haft-sandbox"],
        owns: &[
            "ignore",
            "grep-matcher",
            "grep-regex",
            "grep-searcher",
            "html5ever",
            "tree-sitter",
            "tree-sitter-bash",
        ],
    },
    Room { name: "mcp", may_use: &["haft-runtime", "haft-sandbox"], owns: &["rmcp", "sse-stream"] },
    Room { name: "store", may_use: &["haft-runtime"], owns: &["rusqlite", "tokio-postgres", "tokio-postgres-rustls"] },
    Room {
        name: "platform",
        may_use: &["haft-runtime", "haft-sandbox", "haft-store"],
        owns: &["argon2", "lettre", "ring"],
    },
    Room {
        name: "server",
        may_use: &["haft-runtime", "haft-platform", "haft-mcp"],
        owns: &["axum", "governor", "hyper"],
    },
    Room {
        name: "haft",
        may_use: &[
            "haft-runtime",
            "haft-sandbox",
            "haft-tools",
            "haft-mcp",
            "haft-platform",
            "haft-server",
            "haft-store",
        ],
        owns: &["clap", "clap_complete", "anstream", "toml", "tracing-subscriber"],
    },
];
/// Only the program and the chores may lose what kind of error it was.
const ANYHOW: &[&str] = &["haft", "xtask", "benches"];
const FORBIDDEN_NAMES: &[&str] = &["core", "common", "util", "utils", "helper", "helpers", "base", "misc"];

/// Names that many files may have for their own: each is clear where it is used.
const LOCAL_TYPES: &[&str] = &["Input", "Output", "Args", "Error"];
/// What opens, closes or describes the whole store. Every other public method says first whose data it is about.
const OF_THE_STORE: &[&str] = &["open", "close", "leave", "owner", "now", "health"];

/// The only files that know which house it is.
const HOUSES: &[&str] = &["src/house.rs", "src/solo.rs", "src/gateway.rs", "src/rooms.rs"];
/// Who may make a scope, or the right to work beyond one: identity, the house, and whatever reads records. An answer that
/// no guard was asked about is for tests alone.
const SCOPE_MAKERS: &[(&str, &[&str])] = &[
    ("Scope::of_house(", &["crates/haft/src/solo.rs", "crates/haft/src/gateway.rs"]),
    ("Scope::local(", &["crates/haft/src/solo.rs"]),
    ("Scope::of_record(", &["crates/store/src/columns.rs", "crates/haft/src/remote/views.rs"]),
    ("HouseWide::of_house(", &["crates/haft/src/solo.rs", "crates/haft/src/gateway.rs"]),
    ("PermittedAnswer::unchecked(", &[]),
];

/// Everything that breaks a rule, one sentence each.
pub(crate) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match ROOMS.iter().find(|room| room.name == name) {
            Some(room) => manifest_faults(room, &folder, &mut faults)?,
            None => faults.push(format!("crates/{name} is no room of the house; ARCHITECTURE.md names them")),
        }
    }
    let mut types = BTreeMap::new();
    for file in rust_files(root)? {
        file_faults(root, &file, (&mut types, &mut faults))?;
    }
    faults.extend(types.into_iter().filter(|(_, files)| files.len() > 1).map(twice));
    error_page_faults(root, &mut faults)?;
    Ok(faults)
}

fn manifest_faults(room: &Room, folder: &Path, faults: &mut Vec<String>) -> Result<()> {
    let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml"))?.parse()?;
    let names = |section: &str| -> Vec<String> {
        let table = manifest.get(section).and_then(toml::Value::as_table);
        table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
    };
    for used in names("dependencies") {
        if used.starts_with("haft-") && !room.may_use.contains(&used.as_str()) {
            faults.push(format!("{} must not use {used}: never sideways, never up", room.name));
        }
        let owners: Vec<&str> =
            ROOMS.iter().filter(|owner| owner.owns.contains(&used.as_str())).map(|owner| owner.name).collect();
        if !owners.is_empty() && !owners.contains(&room.name) {
            faults.push(format!("only {} may know {used}, not {}", owners.join(" and "), room.name));
        }
        if used == "anyhow" && !ANYHOW.contains(&room.name) {
            faults.push(format!("{} must say what kind of error it has, not anyhow", room.name));
        }
    }
    if manifest.get("lints").is_none() {
        faults.push(format!("{} does not take the workspace's lints", room.name));
    }
    Ok(())
}

/// Where each type is defined.
type Types = BTreeMap<String, Vec<String>>;

fn twice((name, files): (String, Vec<String>)) -> String {
    format!("`{name}` is the name of several types: {}", files.join(", "))
}

fn file_faults(root: &Path, file: &Path, (types, faults): (&mut Types, &mut Vec<String>)) -> Result<()> {
    let shown = file.strip_prefix(root).unwrap_or(file).display().to_string();
    let text = fs::read_to_string(file).with_context(|| shown.clone())?;
    if !text.starts_with("//!") {
        faults.push(format!("{shown} does not say on its first line what it is"));
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    if FORBIDDEN_NAMES.contains(&stem.as_ref()) {
        faults.push(format!("{shown}: a file is named after the one thing in it, not `{stem}`"));
    }
    scope_faults(&shown, &text, faults);
    if text.contains("ApprovedCall {") && !shown.ends_with("stage/approve.rs") && !shown.starts_with("xtask") {
        faults.push(format!("{shown}: only approve.rs makes an ApprovedCall"));
    }
    let source = SourceFile::of(&text);
    skip_faults(&shown, &text, faults);
    if shown.contains("/src/") && !shown.ends_with("tests.rs") && !shown.contains("/tests/") {
        for name in source.types().into_iter().filter(|name| !LOCAL_TYPES.contains(name)) {
            types.entry(name.to_owned()).or_default().push(shown.clone());
        }
        source_faults(&shown, &source, faults);
    }
    Ok(())
}

/// A scope that is made from the text of a request would let anybody into any tenant. Tests may make what they like.
fn scope_faults(shown: &str, text: &str, faults: &mut Vec<String>) {
    let is_source = shown.starts_with("crates/") && shown.contains("/src/") && !shown.contains("tests");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    for (maker, may) in SCOPE_MAKERS {
        if is_source && code.contains(maker) && !may.contains(&shown) {
            let may = if may.is_empty() { "tests".to_owned() } else { may.join(", ") };
            faults.push(format!("{shown}: `{maker}…)` is only for {may}"));
        }
    }
}

/// What holds for the code of a crate, but not for its tests.
fn source_faults(shown: &str, source: &SourceFile, faults: &mut Vec<String>) {
    if !shown.starts_with("crates/") {
        return;
    }
    let knows_the_house = HOUSES.iter().any(|house| shown.ends_with(house)) || shown == "crates/haft/src/lib.rs";
    let names_a_house = |word: &str| word.to_lowercase().contains("solo") || word.to_lowercase().contains("gateway");
    if let Some(word) = source.words().find(|word| !knows_the_house && names_a_house(word)) {
        faults.push(format!("{shown}: only house.rs and its neighbours know which house it is, not `{word}`"));
    }
    if shown.starts_with("crates/store/") {
        store_faults(shown, &source.code, faults);
    } else if let Some(text) = source.texts.iter().find(|text| is_sql(text)) {
        faults.push(format!("{shown}: every SQL statement is in the store, also `{text}`"));
    }
}

/// Whether a text is a statement, by its first word and the one that must follow.
fn is_sql(text: &str) -> bool {
    let text = text.trim_start().to_lowercase();
    let verbs = [
        ("select ", " from "),
        ("insert into ", ""),
        ("update ", " set "),
        ("delete from ", ""),
        ("create table ", ""),
        ("alter table ", ""),
    ];
    verbs.iter().any(|(verb, next)| text.starts_with(verb) && text.contains(next))
}

/// A public method of the store says first whose data it is about.
fn store_faults(shown: &str, code: &str, faults: &mut Vec<String>) {
    for methods in code.split("\nimpl Store {").skip(1) {
        let methods = methods.split("\n}").next().unwrap_or_default();
        for method in methods.split("\n    pub ").skip(1) {
            let method = method.strip_prefix("async ").unwrap_or(method);
            let Some((name, rest)) = method.strip_prefix("fn ").and_then(|method| method.split_once('(')) else {
                continue;
            };
            let first = rest.trim_start().trim_start_matches("&self").trim_start_matches([',', ' ', '\n']);
            let says_whose = ["scope: &Scope", "caller: &Caller", "house: &HouseWide", "_house: &HouseWide"];
            if !OF_THE_STORE.contains(&name) && !says_whose.iter().any(|whose| first.starts_with(whose)) {
                faults.push(format!("{shown}: `Store::{name}` must take `&Scope`, `&Caller` or `&HouseWide` first"));
            }
        }
    }
}

/// A test that skips itself says why in a line that `make test` counts.
fn skip_faults(shown: &str, text: &str, faults: &mut Vec<String>) {
    let says_otherwise = |line: &&str| line.contains("println!(\"skipped") && !line.contains("println!(\"skipped: ");
    if let Some(line) = text.lines().find(says_otherwise).filter(|_| !shown.starts_with("xtask")) {
        faults.push(format!("{shown}: a test that skips itself prints `skipped: why`, not {}", line.trim()));
    }
}

/// Every error code has a page, and every page a code.
fn error_page_faults(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let source = fs::read_to_string(root.join("crates/runtime/src/error.rs"))?;
    let listed = source.split("pub const ALL").nth(1).and_then(|rest| rest.split("];").next()).unwrap_or_default();
    let codes: Vec<String> = listed
        .split("Self::")
        .skip(1)
        .map(|part| screaming(part.split(',').next().unwrap_or_default().trim()))
        .collect();
    for code in &codes {
        if !root.join(format!("docs/errors/{code}.md")).exists() {
            faults.push(format!("docs/errors/{code}.md is missing"));
        }
    }
    for entry in fs::read_dir(root.join("docs/errors"))? {
        let path = entry?.path();
        let page = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if page != "README" && !codes.contains(&page) {
            faults.push(format!("docs/errors/{page}.md has no code"));
        }
    }
    Ok(())
}

/// `NotADirectory` → `NOT_A_DIRECTORY`.
fn screaming(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_uppercase());
    }
    text
}

fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("xtask"), root.join("benches")];
    while let Some(folder) = folders.pop() {
        if !folder.exists() {
            continue;
        }
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        let faults = super::faults(&crate::root()).unwrap();
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn a_scope_is_made_only_where_it_may_be() {
        let mut faults = Vec::new();
        let makes = "let scope = Scope::local(folder);";
        super::scope_faults("crates/haft/src/commands/call.rs", makes, &mut faults);
        super::scope_faults("crates/mcp/src/server.rs", "HouseWide::of_house(Within::Everything)", &mut faults);
        super::scope_faults("crates/mcp/src/server.rs", "PermittedAnswer::unchecked(yes)", &mut faults);
        assert_eq!(faults.len(), 3, "{faults:#?}");
        super::scope_faults("crates/haft/src/solo.rs", makes, &mut faults);
        super::scope_faults("crates/haft/tests/crash.rs", makes, &mut faults);
        super::scope_faults(
            "crates/store/src/calls.rs",
            &format!("#[cfg(test)]\nmod tests {{ {makes} }}"),
            &mut faults,
        );
        assert_eq!(faults.len(), 3, "{faults:#?}");
    }

    #[test]
    fn only_the_house_names_houses_and_only_the_store_has_statements() {
        let faults = |shown: &str, text: &str| {
            let mut faults = Vec::new();
            super::source_faults(shown, &super::SourceFile::of(text), &mut faults);
            faults.len()
        };
        assert_eq!(faults("crates/runtime/src/call.rs", "if is_gateway { }"), 1);
        assert_eq!(faults("crates/runtime/src/call.rs", "let kind = \"gateway\"; // solo"), 0);
        assert_eq!(faults("crates/haft/src/solo.rs", "fn solo() {}"), 0);
        assert_eq!(faults("crates/haft/src/show.rs", "let sql = \"select a from b\";"), 1);
        assert_eq!(faults("crates/haft/src/show.rs", "let hint = \"select a file\";"), 0);
    }

    #[test]
    fn a_method_of_the_store_says_whose_data_it_is_about() {
        let mut faults = Vec::new();
        let code = "\nimpl Store {\n    pub async fn calls(&self, scope: &Scope) {}\n    pub fn all(\n        &self,\n        \
                    limit: u32,\n    ) {}\n    pub async fn close(&self) {}\n    pub(crate) fn inner(&self) {}\n}";
        super::store_faults("store.rs", code, &mut faults);
        assert_eq!(faults, ["store.rs: `Store::all` must take `&Scope`, `&Caller` or `&HouseWide` first"]);
    }

    #[test]
    fn codes_are_spelled_as_on_the_wire() {
        assert_eq!(super::screaming("NotADirectory"), "NOT_A_DIRECTORY");
    }
}
