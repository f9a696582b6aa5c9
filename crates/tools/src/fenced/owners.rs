//! Files that a command could not change because they are somebody's whom its fence does not know.

use std::collections::VecDeque;

use haft_sandbox::{EntryKind, Folder, Root, WorkspacePath, fence};

/// How many entries are looked at: this is only looked for when a command has met it.
const LOOKED_AT: usize = 20_000;
/// How many files are named.
const NAMED: usize = 5;
/// What the system says when a file cannot be copied into a layer because its owner has no name there.
const NO_SUCH_OWNER: &str = "alue too large for defined data type";
/// What it says where root's files are shown as somebody else's, and those of others as nobody's.
const DENIED: &str = "ermission denied";

/// The files of others that a command has complained of in what it said, each with what to do about it.
///
/// A layer can only hold files of the one user and group that exist inside the fence. Nothing but the error that the
/// command got tells that it met another one, so what it said is the sign to look for.
pub(super) fn complained_of(root: &Root, said: &str) -> Vec<(String, String)> {
    let has_no_owner = said.contains(NO_SUCH_OWNER);
    if !has_no_owner && !said.contains(DENIED) {
        return Vec::new();
    }
    let Ok(known @ (user, group)) = fence::changes_files_of(root.path()) else { return Vec::new() };
    if !has_no_owner && user != 0 {
        return Vec::new();
    }
    let others = of_others(root, known);
    let is_named = |place: &&WorkspacePath| place.name().is_some_and(|name| names(said, &name.to_string_lossy()));
    let mut named: Vec<&WorkspacePath> = others.iter().filter(is_named).take(NAMED).collect();
    if named.is_empty() && has_no_owner {
        named.extend(others.first());
    }
    let why = format!(
        "belongs to another user or group, so that a command cannot change it aside; `chown {user}:{group}` lets it"
    );
    named.into_iter().map(|place| (place.to_string(), why.clone())).collect()
}

/// What belongs to another user or group, the nearest to the top first, as far as a quick look finds it.
fn of_others(root: &Root, known: (u32, u32)) -> Vec<WorkspacePath> {
    let mut found = Vec::new();
    let mut left = LOOKED_AT;
    let mut folders = VecDeque::from([WorkspacePath::root()]);
    while let Some(folder) = folders.pop_front().and_then(|place| root.enter(place).ok()) {
        let is_others = |name: &_| matches!(folder.owner(name), Ok(Some(owner)) if owner != known);
        let mut look = |folder: &Folder| {
            folder.read_on(|name, kind| {
                left = left.saturating_sub(1);
                let place = folder.place().join(name);
                if is_others(name) {
                    found.push(place.clone());
                }
                if kind == Some(EntryKind::Directory) {
                    folders.push_back(place);
                }
            })
        };
        while matches!(look(&folder), Ok(true)) {}
        if left == 0 {
            break;
        }
    }
    found
}

/// Whether a text has a name as a word of its own.
fn names(said: &str, name: &str) -> bool {
    let is_inner = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    said.match_indices(name).any(|(at, _)| {
        let (before, after) = (&said[..at], &said[at + name.len()..]);
        !before.chars().next_back().is_some_and(is_inner) && !after.chars().next().is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_name_is_told_from_a_part_of_one() {
        for said in
            ["sh: 1: cannot create sub/theirs: Value", "PermissionError: 'theirs'", "theirs/new: no", "(theirs)"]
        {
            assert!(names(said, "theirs"), "{said}");
        }
        for said in ["theirsome", "not-theirs", "theirs2", ".theirs", ""] {
            assert!(!names(said, "theirs"), "{said}");
        }
    }
}
