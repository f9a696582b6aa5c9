//! Secrets in the workspace, which no command may see.

use std::{collections::VecDeque, path::PathBuf};

use haft_sandbox::{EntryKind, Place, Root, is_sensitive_name};

use super::derived::Derived;

/// How many entries are looked at: a command must start at once in a tree of any size. Secrets lie near the top.
const LOOKED_AT: usize = 20_000;
/// Folders that hold other people's files, and many of them.
const PASSED_BY: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "vendor", "__pycache__"];

/// The paths of the entries with sensitive names, the nearest to the top first, as far as a quick look finds them.
/// `more` are names that the user wants hidden beside the usual ones.
///
/// What git ignores comes last: commands fill it unasked, and could otherwise use up the look before it is done.
pub(super) fn secrets(root: &Root, more: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = LOOKED_AT;
    let mut rules = Derived::new(root);
    let mut folders = VecDeque::from([Place::root()]);
    let mut ignored = VecDeque::new();
    while let Some((place, is_ignored)) = next(&mut folders, &mut ignored) {
        let Ok(folder) = root.enter(place.clone()) else { continue };
        loop {
            let more = folder.read_on(|name, kind| {
                left = left.saturating_sub(1);
                let inner = place.join(name);
                if is_sensitive_name(name) || more.iter().any(|other| name == other.as_str()) {
                    found.push(root.path().join(inner.as_path()));
                } else if kind == Some(EntryKind::Directory) && !PASSED_BY.iter().any(|other| name == *other) {
                    let queue = if is_ignored || rules.is_named(&inner, true) { &mut ignored } else { &mut folders };
                    queue.push_back(inner);
                }
            });
            if !matches!(more, Ok(true)) || left == 0 {
                break;
            }
        }
        if left == 0 {
            break;
        }
    }
    found
}

/// The next folder to look at, and whether it is one that git ignores.
fn next(folders: &mut VecDeque<Place>, ignored: &mut VecDeque<Place>) -> Option<(Place, bool)> {
    let folder = folders.pop_front().map(|folder| (folder, false));
    folder.or_else(|| ignored.pop_front().map(|folder| (folder, true)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn secrets_are_found_where_they_usually_lie() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        for name in [".env", "config/server.key", "services/api/.env.local", ".ssh/id_rsa", "src/main.rs"] {
            let file = here.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        fs::write(here.join(".env.example"), "").unwrap();
        let root = Root::open(&here, &[]).unwrap();
        let mut found = secrets(&root, &[]);
        found.sort();
        let expected = [".env", ".ssh", "config/server.key", "services/api/.env.local"].map(|name| here.join(name));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_look_at_a_huge_tree_is_short() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..LOOKED_AT + 2000 {
            fs::write(folder.path().join(format!("file{number}")), "").unwrap();
        }
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/.env"), "").unwrap();
        let root = Root::open(folder.path(), &[]).unwrap();
        // Only what it looked at is found; the point is that it ends.
        assert!(secrets(&root, &[]).len() <= 1);
    }

    #[test]
    fn what_commands_may_fill_unasked_hides_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        fs::create_dir_all(here.join("services/api")).unwrap();
        fs::write(here.join("services/api/.env"), "").unwrap();
        fs::write(here.join(".gitignore"), "build/\nb*\n").unwrap();
        for number in 0..8 {
            fs::create_dir_all(here.join(format!("b{number}/build"))).unwrap();
            for file in 0..LOOKED_AT / 8 {
                fs::write(here.join(format!("b{number}/{file}")), "").unwrap();
            }
        }
        assert_eq!(secrets(&Root::open(&here, &[]).unwrap(), &[]), [here.join("services/api/.env")]);
    }
}
