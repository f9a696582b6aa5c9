//! Values as they are written in files, variables and flags.

use std::{
    path::{Component, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use haft_runtime::{AutoApprove, Isolation};
use haft_store::Durability;

/// `none`, `safe` or `all`.
pub fn mode(text: &str) -> Result<AutoApprove> {
    Ok(match text {
        "none" => AutoApprove::Nothing,
        "safe" => AutoApprove::Reads,
        "all" => AutoApprove::Everything,
        other => bail!("`{other}` is not a mode: none, safe or all"),
    })
}

/// `90s`, `10m`, `24h`, `7d`, or plain seconds.
pub fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .with_context(|| format!("`{text}` is not a length of time; write it like `90s`, `10m`, `24h` or `7d`"))?;
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        other => bail!("`{other}` is not a unit of time: ms, s, m, h or d"),
    };
    // A century is as good as for ever, and cannot overflow anything.
    Ok(Duration::from_secs_f64((number * unit).min(100.0 * 365.0 * 86400.0)))
}

/// `800KB`, `500MB`, `2GB`, or plain bytes.
pub(super) fn size(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .with_context(|| format!("`{text}` is not a size; write it like `500MB` or `2GB`"))?;
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KIB" => f64::from(1 << 10),
        "MIB" => f64::from(1 << 20),
        "GIB" => f64::from(1 << 30),
        other => bail!("`{other}` is not a unit of size: B, KB, MB, GB, TB, KiB, MiB or GiB"),
    };
    Ok((number * unit) as u64)
}

/// The address of a database. What it says besides is for the server to refuse.
pub(super) fn database(text: &str) -> Result<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    // The value itself is not quoted: it may hold a password.
    if !(text.starts_with("postgres://") || text.starts_with("postgresql://")) {
        bail!("that is not the address of a PostgreSQL database: write postgres://user:password@host:5432/name");
    }
    Ok(Some(text.to_owned()))
}

pub(super) fn sync(text: &str) -> Result<Durability> {
    Ok(match text {
        "normal" => Durability::Normal,
        "full" => Durability::Full,
        other => bail!("`{other}` is not a kind of sync: normal or full"),
    })
}

/// `true` or `false`.
pub(super) fn switch(text: &str) -> Result<bool> {
    text.parse().ok().with_context(|| format!("`{text}` is not a switch: true or false"))
}

/// A rung of the fence.
pub(super) fn rung(text: &str) -> Result<Isolation> {
    let found = Isolation::ALL.iter().find(|rung| rung.word() == text);
    found.copied().with_context(|| format!("`{text}` is not a rung: none, limits, landlock or namespaces"))
}

/// A number that is more than nothing.
pub(super) fn number(text: &str) -> Result<u64> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.with_context(|| format!("`{text}` is not a number of at least 1"))
}

/// Folders by their full paths.
pub(super) fn folders(text: &str) -> Result<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = texts(text)?.into_iter().map(PathBuf::from).collect();
    for path in &paths {
        let shown = path.display();
        if !path.is_absolute() {
            bail!("`{shown}` depends on the current folder; give the full path");
        }
        if path.components().any(|part| part == Component::ParentDir) {
            bail!("`{shown}` has `..` in it; give the path that it means");
        }
        if path.components().count() == 1 {
            bail!("`{shown}` is everything; name the folders that are needed");
        }
    }
    Ok(paths)
}

/// Names of files and folders, wherever they lie.
pub(super) fn names(text: &str) -> Result<Vec<String>> {
    let names = texts(text)?;
    match names.iter().find(|name| name.is_empty() || name.contains('/')) {
        Some(path) => bail!("`{path}` must be a name, not a path: it is hidden wherever it lies"),
        None => Ok(names),
    }
}

pub(super) fn texts(text: &str) -> Result<Vec<String>> {
    let array: toml::Value = text.parse().context("it is not an array of text")?;
    array.try_into().context("it is not an array of text")
}

/// A program and its arguments: a TOML array, or words without any quoting. No shell reads it.
pub(super) fn argv(text: &str) -> Result<Vec<String>> {
    let argv: Vec<String> =
        if text.starts_with('[') { texts(text)? } else { text.split_whitespace().map(str::to_owned).collect() };
    // A path relative to the current folder would start whatever a workspace has put there.
    if let Some(program) = argv.first()
        && program.contains('/')
        && !program.starts_with('/')
    {
        bail!("`{program}` depends on the current folder; give the program's full path, or its name alone");
    }
    Ok(argv)
}

/// A value as `take` reads it: text without its quotes.
pub(super) fn written(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The tables whose keys are names that the user chooses.
const NAMED: &[&str] = &["auth.oidc", "lsp.servers", "mcp.servers"];

/// Every value with its dotted key.
pub(super) fn flattened(table: &toml::Table, prefix: &str) -> Vec<(String, toml::Value)> {
    let mut flat = Vec::new();
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value.as_table() {
            // An empty section may be a misspelled one, so it counts as a key.
            Some(inner) if !inner.is_empty() && !NAMED.contains(&key.as_str()) => flat.extend(flattened(inner, &key)),
            Some(_) | None => flat.push((key, value.clone())),
        }
    }
    flat
}
