//! The diff of a commit that a command has made aside, for whoever says yes to it: every file is named, and only what
//! programs have written is left out.

use std::{collections::BTreeMap, ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use haft_runtime::ChangeList;
use haft_sandbox::{Root, WorkspacePath, show_name};

use super::{
    patch::{FilePatch, Patch, SecretPaths, unquoted},
    repository::Repository,
    run::GitListener,
};

/// Says which commit is checked out, and what it changes: its files, then its patch.
const SHOW: &str = r#"
list=$1 patch=$2 shown=$3
git() { command git --no-pager --no-optional-locks --no-replace-objects -c core.fsmonitor=false "$@"; }
show() {
	git -c core.quotePath=false -c log.showRoot=true show --format= --diff-merges=first-parent --no-color \
		--no-show-signature --no-notes --no-ext-diff --no-textconv --submodule=short "$@"
}
git rev-parse HEAD
show --numstat --no-renames HEAD -- | head -c "$list"
printf '\n\n'
set -f
IFS=' '
show --patch-with-raw --no-abbrev --find-renames --src-prefix=a/ --dst-prefix=b/ HEAD -- $shown | head -c "$patch"
"#;

/// How a line begins that stands for a commit.
const COMMIT: &str = "commit ";

/// What programs write: lists of versions, and what is made from other files. The name decides, and not what the file
/// says of itself or what the repository says of it: whoever writes a commit writes those too.
const GENERATED: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "Pipfile.lock",
    "Podfile.lock",
    "bun.lock",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
];
/// The same by how names end.
const GENERATED_ENDS: &[&str] = &[".min.js", ".min.css", ".js.map", ".css.map", ".pb.go", "_pb2.py"];

/// How much of the list of files and of the patch is read.
const LIST_BYTES: usize = 40_000;
const PATCH_BYTES: usize = 120_000;

/// What of a git folder changes with every commit.
const MOVES: [&str; 2] = ["HEAD", "refs"];

/// The command that looks at the commit which is checked out, if a command in a folder may have made one. `upper` holds
/// what it has written, `git` what it has written to a git folder outside.
pub(crate) fn look_at_commit(upper: &Path, folder: &WorkspacePath, git: Option<&Path>) -> Option<Vec<String>> {
    let inside = folder.as_path().ancestors().map(|above| upper.join(above).join(".git"));
    let may_have = inside.chain(git.map(Path::to_owned)).any(|git| MOVES.iter().any(|name| git.join(name).exists()));
    let [list, patch] = [LIST_BYTES, PATCH_BYTES].map(|limit| limit.to_string());
    may_have.then(|| ["sh", "-ec", SHOW, "git", &list, &patch, &shown_paths()].map(str::to_owned).to_vec())
}

/// Adds what that command said to the line that stands for the commit.
pub(crate) fn tell_commit(changes: &mut ChangeList, said: &str, (root, folder): (&Root, &WorkspacePath)) {
    let Some((hash, rest)) = said.split_once('\n') else { return };
    let is_it = |summary: &str| {
        let name = summary.strip_prefix(COMMIT).and_then(|rest| rest.split(' ').next());
        name.is_some_and(|name| !name.is_empty() && hash.starts_with(name))
    };
    let told = changes.0.iter_mut().find_map(|change| {
        let summary = change.summary.as_mut().filter(|summary| is_it(summary))?;
        Some((summary, &mut change.patch))
    });
    let Some((summary, patch)) = told else { return };
    let Ok(repository) = Repository::around(root, folder) else { return };
    let diff = CommitDiff::read(rest, SecretPaths::in_repository(root, &repository));
    summary.push_str(&match diff.counts.len() {
        0 => " (no files)".to_owned(),
        1 => " (1 file)".to_owned(),
        many if diff.has_more => format!(" (more than {many} files)"),
        many => format!(" ({many} files)"),
    });
    *patch = Some(diff.text());
}

/// The diff of a commit.
#[derive(Debug, Default)]
pub(super) struct CommitDiff {
    patch: Patch,
    /// Whether the patch ends before it is whole.
    is_cut: bool,
    /// The files with how many lines are added and removed.
    counts: BTreeMap<Vec<u8>, (u64, u64)>,
    /// Whether there are more files than these.
    has_more: bool,
}

/// The paths that are shown line by line, as git takes them: all but what is generated.
fn shown_paths() -> String {
    let names = GENERATED.iter().map(|name| format!(":(top,exclude,glob)**/{name}"));
    let ends = GENERATED_ENDS.iter().map(|end| format!(":(top,exclude,glob)**/*{end}"));
    names.chain(ends).collect::<Vec<_>>().join(" ")
}

fn is_generated(path: &[u8]) -> bool {
    let name = Path::new(OsStr::from_bytes(path)).file_name().unwrap_or_default().as_bytes();
    GENERATED.iter().any(|known| name == known.as_bytes())
        || GENERATED_ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
}

impl CommitDiff {
    /// Reads a list of files with their numbers, an empty line, and a patch of those that are not generated.
    fn read(said: &str, secrets: SecretPaths) -> Self {
        let (list, rest) = said.split_once("\n\n").unwrap_or((said, ""));
        let (is_cut, has_more) = (rest.len() >= PATCH_BYTES, list.len() >= LIST_BYTES);
        let mut diff = Self { patch: Patch::without(secrets), is_cut, has_more, ..Self::default() };
        for line in list.lines() {
            let mut parts = line.splitn(3, '\t');
            let mut number = || parts.next().unwrap_or_default().parse().unwrap_or(0);
            let counts = (number(), number());
            if let Some(path) = parts.next() {
                diff.counts.insert(unquoted(path.as_bytes()), counts);
            }
        }
        diff.patch.hear(rest.as_bytes());
        diff
    }

    /// The same of a patch of all files.
    pub(super) fn of(patch: Patch) -> Self {
        let counts = |file: &FilePatch| (file.path.clone(), (file.additions, file.deletions));
        let counts = patch.files.iter().map(counts).collect();
        let has_more = patch.count > patch.files.len();
        Self { counts, is_cut: patch.is_cut(), has_more, patch }
    }

    /// What whoever is asked reads: the files that are not shown line by line, then the lines of the others.
    pub(super) fn text(&self) -> String {
        let mut sections: Vec<(&FilePatch, &str)> = self.patch.sections().collect();
        sections.retain(|(file, _)| !is_generated(&file.path));
        let whole = if self.is_cut { sections.len().saturating_sub(1) } else { sections.len() };
        let is_whole = |path: &Vec<u8>| {
            sections[..whole].iter().any(|(file, _)| file.path == *path || file.from.as_ref() == Some(path))
        };
        let mut text = String::new();
        for (path, (added, removed)) in &self.counts {
            let why = match (is_generated(path), is_whole(path)) {
                (true, _) => "generated",
                (false, true) => continue,
                (false, false) => "too long to be shown here",
            };
            let path = show_name(OsStr::from_bytes(path));
            text.push_str(&format!("{path}: {added} lines added, {removed} removed ({why})\n"));
        }
        if self.has_more {
            text.push_str("and more files than can be listed here\n");
        }
        text.extend((!text.is_empty() && !sections.is_empty()).then_some('\n'));
        text.extend(sections.iter().map(|(_, part)| *part));
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(name: &str, line: &str) -> String {
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-old\n+{line}\n")
    }

    #[test]
    fn what_programs_write_is_one_line_and_stands_first() {
        let list = "1200\t3\tCargo.lock\n1\t1\tsrc/a.rs\n9\t9\tweb/app.min.js\n";
        let raw = ":100644 100644 1 2 M\tsrc/a.rs\n";
        let shown =
            CommitDiff::read(&format!("{list}\n\n{raw}\n{}", patch("src/a.rs", "new")), SecretPaths::default()).text();
        let expected = "Cargo.lock: 1200 lines added, 3 removed (generated)\n\
                        web/app.min.js: 9 lines added, 9 removed (generated)\n\n";
        assert_eq!(shown, expected.to_owned() + patch("src/a.rs", "new").trim_end());
    }

    #[test]
    fn every_file_that_is_not_shown_whole_is_named() {
        let list = "1\t1\ta.rs\n1\t1\tb.rs\n1\t1\tc.rs\n0\t7\told.rs\n";
        let raw = ":1 1 1 2 M\ta.rs\n:1 1 1 2 R90\told.rs\tb.rs\n:1 1 1 2 M\tc.rs\n";
        let long = patch("a.rs", "new") + &patch("b.rs", "new") + &patch("c.rs", &"x".repeat(PATCH_BYTES));
        let shown = CommitDiff::read(&format!("{list}\n\n{raw}\n{long}"), SecretPaths::default()).text();
        assert!(shown.starts_with("c.rs: 1 lines added, 1 removed (too long to be shown here)\n\ndiff --git a/a.rs"));
        assert!(!shown.contains("b.rs: ") && !shown.contains("old.rs: "), "{shown}");
    }
}
