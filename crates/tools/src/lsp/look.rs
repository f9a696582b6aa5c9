//! Whether a workspace has files of a language, told by a short look.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsStr,
    path::Path,
};

/// How many names are looked at before the search is given up.
const MOST_NAMES: usize = 5_000;
/// Folders that hold what others have written, or what was built.
const PASSED_BY: &[&str] = &["node_modules", "target", "vendor", "venv", "build", "dist"];

/// Whether a folder has a file with one of these endings, nearest first. Hidden folders and links are passed by. A folder
/// with too many names may have one.
pub(crate) fn has_files(folder: &Path, endings: &BTreeSet<String>) -> bool {
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut looked = 0;
    while let Some(folder) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            looked += 1;
            if looked > MOST_NAMES {
                return true;
            }
            let name = entry.file_name();
            let is_passed_by = |name: &str| name.starts_with('.') || PASSED_BY.contains(&name);
            let Some(name) = name.to_str().filter(|name| !is_passed_by(name)) else { continue };
            let Ok(kind) = entry.file_type() else { continue };
            let ending = Path::new(name).extension().and_then(OsStr::to_str);
            if kind.is_file() && ending.is_some_and(|ending| endings.contains(ending)) {
                return true;
            }
            if kind.is_dir() {
                folders.push_back(entry.path());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_at_any_depth_but_not_in_what_was_built() {
        let folder = tempfile::tempdir().unwrap();
        let endings = BTreeSet::from(["rs".to_owned()]);
        let put = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        put("notes.txt");
        put("target/debug/build.rs");
        put(".hidden/a.rs");
        assert!(!has_files(folder.path(), &endings));
        put("deep/er/a.rs");
        assert!(has_files(folder.path(), &endings));
    }
}
