//! What git reads of the user's own settings, so that nothing else of the home folder need be open to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// A larger file is nobody's git settings.
const LARGEST: u64 = 1 << 20;
/// How many files may include one another.
const MOST_FILES: usize = 32;

/// The settings that name a file which git reads to look at a repository.
const NAMES_A_FILE: [&str; 3] = ["path", "excludesfile", "attributesfile"];

/// The user's git settings, and the files that they name.
pub(super) fn settings(home: &Path, variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let config = variables.get("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from).join("git");
    let mut found = BTreeSet::from([config.clone()]);
    let mut open = vec![home.join(".gitconfig"), config.join("config"), PathBuf::from("/etc/gitconfig")];
    while let Some(file) = open.pop() {
        if found.len() < MOST_FILES && found.insert(file.clone()) {
            open.extend(named_in(&file, home));
        }
    }
    found.into_iter().collect()
}

fn named_in(file: &Path, home: &Path) -> Vec<PathBuf> {
    let mut text = Vec::new();
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    if !is_file || File::open(file).and_then(|file| file.take(LARGEST).read_to_end(&mut text)).is_err() {
        return Vec::new();
    }
    let folder = file.parent().unwrap_or(home);
    let lines = String::from_utf8_lossy(&text).into_owned();
    let named = lines.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.rsplit(']').next().unwrap_or(key).trim().to_ascii_lowercase();
        NAMES_A_FILE.contains(&key.as_str()).then(|| value.trim().trim_matches('"').to_owned())
    });
    named
        .filter(|value| !value.is_empty())
        .map(|value| value.strip_prefix("~/").map_or_else(|| folder.join(&value), |beneath| home.join(beneath)))
        .collect()
}
