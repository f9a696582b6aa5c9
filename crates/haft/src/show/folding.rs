//! Which changes stand on one line together: build output, a commit, a folder that goes with what is in it.

use std::collections::BTreeSet;

use haft_runtime::{Change, ChangeKind, ChangeList, ChangeState, git_folder};

/// How many folders of build output are named.
const NAMED: usize = 3;

/// One line of a list of changes.
#[derive(Debug, PartialEq)]
pub(crate) enum Folded<'a> {
    /// One change.
    One(&'a Change),
    /// A folder that goes, with what is inside it.
    Gone { folder: &'a Change, inside: usize, size: u64 },
    /// What a summary stands for; the change that has it comes first.
    Together { first: &'a Change, paths: usize },
    /// Build output and caches.
    Derived { first: &'a Change, paths: usize, size: u64, folders: String },
}

impl<'a> Folded<'a> {
    /// The change that the line is named after.
    pub(crate) fn first(&self) -> &'a Change {
        match self {
            Self::One(first)
            | Self::Gone { folder: first, .. }
            | Self::Together { first, .. }
            | Self::Derived { first, .. } => first,
        }
    }

    /// How many changes it stands for.
    pub(crate) fn paths(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Gone { inside, .. } => inside + 1,
            Self::Together { paths, .. } | Self::Derived { paths, .. } => *paths,
        }
    }
}

/// The same changes in fewer lines, build output last. What is flagged is never folded, and what stands on one line has
/// the same state.
pub(crate) fn fold(changes: &ChangeList) -> Vec<Folded<'_>> {
    let mut rows: Vec<Folded<'_>> = Vec::new();
    let mut derived: Vec<&Change> = Vec::new();
    let summaries: Vec<&Change> = changes.0.iter().filter(|change| change.summary.is_some()).collect();
    for change in &changes.0 {
        let stands_for = |first: &&&Change| first.state == change.state && same_git(&first.path, &change.path);
        let plain = change.flags.is_empty();
        if let Some(first) = summaries.iter().find(stands_for).filter(|_| plain) {
            let together = rows.iter_mut().find(|row| row.first().path == first.path);
            match together {
                Some(Folded::Together { paths, .. }) => *paths += 1,
                Some(Folded::One(_) | Folded::Gone { .. } | Folded::Derived { .. }) | None => {
                    rows.push(Folded::Together { first, paths: 1 });
                }
            }
        } else if plain && change.derived {
            derived.push(change);
        } else if !(plain && goes_with_the_last(&mut rows, change)) {
            rows.push(match change.kind {
                ChangeKind::Deleted if plain && change.directory => Folded::Gone { folder: change, inside: 0, size: 0 },
                ChangeKind::Created
                | ChangeKind::Changed
                | ChangeKind::Deleted
                | ChangeKind::Mode
                | ChangeKind::Link
                | ChangeKind::Renamed => Folded::One(change),
            });
        }
    }
    for row in &mut rows {
        if let Folded::Gone { folder, inside: 0, .. } = row {
            *row = Folded::One(folder);
        }
    }
    for state in [ChangeState::Staged, ChangeState::Committed, ChangeState::Discarded, ChangeState::Undone] {
        let alike: Vec<&Change> = derived.iter().copied().filter(|change| change.state == state).collect();
        rows.extend(derived_row(&alike));
    }
    rows
}

/// Changes come in path order, so that what was inside a folder follows it.
fn goes_with_the_last(rows: &mut [Folded<'_>], change: &Change) -> bool {
    let Some(Folded::Gone { folder, inside, size }) = rows.last_mut() else { return false };
    let is_inside = change.path.strip_prefix(&folder.path).is_some_and(|rest| rest.starts_with('/'));
    if !is_inside || change.kind != ChangeKind::Deleted || change.state != folder.state {
        return false;
    }
    *inside += 1;
    *size += change.size;
    true
}

/// Whether two paths lie in the same git folder.
fn same_git(one: &str, other: &str) -> bool {
    git_folder(one).is_some() && git_folder(one) == git_folder(other)
}

fn derived_row<'a>(changes: &[&'a Change]) -> Option<Folded<'a>> {
    let first = changes.first()?;
    let size = changes.iter().filter(|change| change.kind != ChangeKind::Deleted).map(|change| change.size).sum();
    Some(Folded::Derived { first, paths: changes.len(), size, folders: places(changes) })
}

/// The topmost folders that hold all of them.
fn places(changes: &[&Change]) -> String {
    let place = |change: &&Change| match (change.directory, change.path.rsplit_once('/')) {
        (true, _) => format!("{}/", change.path),
        (false, Some((folder, _))) => format!("{folder}/"),
        (false, None) => change.path.clone(),
    };
    let mut top: Vec<String> = Vec::new();
    // In order, a folder comes before what is in it.
    for place in changes.iter().map(place).collect::<BTreeSet<_>>() {
        if !top.last().is_some_and(|last| last.ends_with('/') && place.starts_with(last.as_str())) {
            top.push(place);
        }
    }
    let named = top.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match top.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use haft_runtime::{Change, ChangeKind, ChangeList, ChangeState, Flag};

    use super::{Folded, fold};

    fn change(path: &str, kind: ChangeKind) -> Change {
        Change { size: 10, ..Change::staged(path, kind) }
    }

    fn told(changes: Vec<Change>) -> Vec<String> {
        let words = |row: &Folded<'_>| match row {
            Folded::One(change) => change.path.clone(),
            Folded::Gone { folder, inside, size } => format!("{} gone with {inside}, {size}", folder.path),
            Folded::Together { first, paths } => format!("{} {paths}", first.summary.clone().unwrap_or_default()),
            Folded::Derived { paths, size, folders, .. } => format!("{paths} derived {folders} {size}"),
        };
        let changes = ChangeList(changes);
        let rows = fold(&changes);
        assert_eq!(rows.iter().map(Folded::paths).sum::<usize>(), changes.0.len(), "each stands on one line");
        rows.iter().map(words).collect()
    }

    #[test]
    fn build_output_is_one_line_but_for_what_is_flagged() {
        let derived = |path: &str| Change { derived: true, ..change(path, ChangeKind::Created) };
        let folder = Change { directory: true, size: 0, ..derived("a/target") };
        let flagged = Change { flags: vec![Flag::LinkOutside], ..derived("a/target/out") };
        let changes =
            vec![folder, derived("a/target/b/c"), flagged, derived("x.log"), change("z", ChangeKind::Changed)];
        assert_eq!(told(changes), ["a/target/out", "z", "3 derived a/target/, x.log 20"]);
        let many = ["b/1", "c/1", "d/1", "e/1", "e/2"].map(derived).to_vec();
        assert_eq!(told(many), ["5 derived b/, c/, d/ and 1 more 50"]);
    }

    #[test]
    fn a_commit_is_one_line_for_each_git_folder() {
        let summed =
            |path: &str, words: &str| Change { summary: Some(words.to_owned()), ..change(path, ChangeKind::Changed) };
        let hook = Change { flags: vec![Flag::GitHook], ..change(".git/hooks/x", ChangeKind::Created) };
        let changes = vec![
            summed(".git/COMMIT_EDITMSG", "commit 1 on main"),
            hook,
            Change { derived: true, ..change(".git/index", ChangeKind::Changed) },
            change(".gitignore", ChangeKind::Changed),
            summed("sub/.git/HEAD", "commit 2 on main"),
            change("sub/.git/index", ChangeKind::Changed),
        ];
        assert_eq!(told(changes), ["commit 1 on main 2", ".git/hooks/x", ".gitignore", "commit 2 on main 2"]);
    }

    #[test]
    fn a_folder_goes_with_what_is_in_it_and_has_the_same_state() {
        let gone = |path: &str| change(path, ChangeKind::Deleted);
        let folder = |path: &str| Change { directory: true, size: 0, ..gone(path) };
        let committed = Change { state: ChangeState::Committed, ..gone("a/c") };
        let changes = vec![folder("a"), gone("a/b"), committed, gone("ab"), folder("e"), folder("f"), folder("f/g")];
        assert_eq!(told(changes), ["a gone with 1, 10", "a/c", "ab", "e", "f gone with 1, 0"]);
    }
}
