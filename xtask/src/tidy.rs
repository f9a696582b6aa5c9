//! The rules of the house that a compiler cannot check.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A crate, which of ours it may use, and which outside crates it alone may know.
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
    Room { name: "server", may_use: &["haft-runtime", "haft-mcp"], owns: &["axum"] },
    Room {
        name: "haft",
        may_use: &["haft-runtime", "haft-sandbox", "haft-tools", "haft-mcp", "haft-server", "haft-store"],
        owns: &["clap", "clap_complete", "anstream", "toml", "tracing-subscriber"],
    },
];
/// Only the program and the chores may lose what kind of error it was.
const ANYHOW: &[&str] = &["haft", "xtask", "benches"];
const FORBIDDEN_NAMES: &[&str] = &["core", "common", "util", "utils", "helper", "helpers", "base", "misc"];

/// The only files that know which house it is.
const HOUSES: &[&str] = &["src/house.rs", "src/solo.rs", "src/gateway.rs", "src/rooms.rs"];
/// Who may make a scope, or the right to work beyond one: identity, the house, and whatever reads records. An answer that
/// no guard was asked about is for tests alone.
const SCOPE_MAKERS: &[(&str, &[&str])] = &[
    ("Scope::of_house(", &["crates/haft/src/solo.rs"]),
    ("Scope::local(", &["crates/haft/src/solo.rs"]),
    ("Scope::of_record(", &["crates/store/src/columns.rs"]),
    ("HouseWide::of_house(", &["crates/haft/src/solo.rs"]),
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
    for file in rust_files(root)? {
        file_faults(root, &file, &mut faults)?;
    }
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
        if let Some(owner) = ROOMS.iter().find(|owner| owner.owns.contains(&used.as_str()))
            && owner.name != room.name
        {
            faults.push(format!("only {} may know {used}, not {}", owner.name, room.name));
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

fn file_faults(root: &Path, file: &Path, faults: &mut Vec<String>) -> Result<()> {
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
    let in_runtime_source = shown.starts_with("crates/") && shown.contains("/src/") && !shown.contains("tests");
    if in_runtime_source && !HOUSES.iter().any(|house| shown.ends_with(house)) && text.contains("if gateway") {
        faults.push(format!("{shown}: only house.rs knows which house it is"));
    }
    if text.contains("ApprovedCall {") && !shown.ends_with("stage/approve.rs") && !shown.starts_with("xtask") {
        faults.push(format!("{shown}: only approve.rs makes an ApprovedCall"));
    }
    if in_runtime_source && !shown.starts_with("crates/store") && mentions_sql(&text) {
        faults.push(format!("{shown}: every SQL statement is in the store"));
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

fn mentions_sql(text: &str) -> bool {
    ["insert into ", "select * from ", "delete from ", "create table "].iter().any(|words| text.contains(words))
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
    fn codes_are_spelled_as_on_the_wire() {
        assert_eq!(super::screaming("NotADirectory"), "NOT_A_DIRECTORY");
    }
}
