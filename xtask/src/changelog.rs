//! `CHANGELOG.md`, put together from the files in `changes/`: a section a day, the newest first.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};

const HEAD: &str = "# Changelog\n\nPut together from `changes/` by `cargo xtask changelog`, the newest day first.\n";
/// How long a date is, as in `2026-11-18`.
const DATE: usize = 10;

/// Writes the file.
pub(crate) fn write(root: &Path) -> Result<()> {
    let mut days: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let folder = root.join("changes");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((day, _)) = name.split_at_checked(DATE).filter(|(_, rest)| rest.starts_with('-')) else {
            bail!("changes/{name} does not begin with a date, as in 2026-11-18-what.md");
        };
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read changes/{name}"))?;
        // One sentence, on however many lines it stands.
        let sentence = text.split_whitespace().collect::<Vec<_>>().join(" ");
        days.entry(day.to_owned()).or_default().push(format!("- {sentence}\n"));
    }
    let days = days.iter().rev().map(|(day, changes)| format!("\n## {day}\n\n{}", changes.concat()));
    fs::write(root.join("CHANGELOG.md"), format!("{HEAD}{}", days.collect::<String>()))
        .context("cannot write CHANGELOG.md")
}
