//! What ignore files say, as ripgrep reads them: with or without a repository, and only those inside the workspace.

use std::{ffi::OsStr, io::Read, os::unix::ffi::OsStrExt, path::Path, sync::Arc};

use haft_sandbox::{Folder, Root, WorkspacePath};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

/// The names of ignore files, the strongest first.
const NAMES: [&str; 3] = [".rgignore", ".ignore", ".gitignore"];
/// Which of them are git's own, and everything after them.
const OF_GIT: usize = 2;
/// What marks the folder of a repository.
const REPOSITORY: &str = ".git";
/// What git keeps to itself of a repository; weaker than all of them.
const EXCLUDE: &str = ".git/info/exclude";
/// How much of an ignore file is obeyed.
const LARGEST: u64 = 1 << 20;

/// What the ignore files of a folder and of those above it say.
pub(crate) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// One for each of `NAMES`, then git's own.
    own: [Gitignore; NAMES.len() + 1],
    /// Git's rules of the folders above do not reach into a repository.
    repository: bool,
}

/// What is said of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IgnoreVerdict {
    /// Nothing.
    Silent,
    /// It is left out.
    Ignored,
    /// It is not left out.
    Kept,
}

impl IgnoreRules {
    /// What may say something in a folder, by its name there. Git's own file is looked for only beside its mark.
    pub(crate) const FILES: [&str; NAMES.len() + 1] = [NAMES[0], NAMES[1], NAMES[2], EXCLUDE];

    /// The rules in a folder, when those above it are known. `has` tells which names the folder has.
    pub(crate) fn within(
        above: Option<&Arc<IgnoreRules>>,
        root: &Root,
        place: &WorkspacePath,
        has: impl Fn(&OsStr) -> bool,
    ) -> Option<Arc<IgnoreRules>> {
        let there = |name: &str| has(OsStr::new(name));
        let repository = there(REPOSITORY);
        if !repository && !NAMES.iter().any(|name| there(name)) {
            return above.cloned();
        }
        let [rg, plain, git] = NAMES.map(|name| if there(name) { read(root, place, name) } else { Gitignore::empty() });
        let exclude = if repository { read(root, place, EXCLUDE) } else { Gitignore::empty() };
        Some(Arc::new(IgnoreRules { above: above.cloned(), own: [rg, plain, git, exclude], repository }))
    }

    /// The rules of all folders above a folder, from the workspace folder down.
    pub(crate) fn above(root: &Root, place: &WorkspacePath) -> Option<Arc<IgnoreRules>> {
        let mut folders: Vec<WorkspacePath> = std::iter::successors(place.parent(), WorkspacePath::parent).collect();
        folders.reverse();
        folders.iter().fold(None, |rules, folder| {
            let Ok(open) = root.enter(folder.clone()) else { return rules };
            IgnoreRules::within(rules.as_ref(), root, folder, |name| has(&open, name))
        })
    }

    /// Whether a path relative to the workspace is left out; `None` when they say nothing of it. What they keep is shown
    /// even if its name is hidden, as ripgrep does.
    pub(crate) fn leave_out(rules: Option<&IgnoreRules>, path: &Path, is_folder: bool) -> Option<bool> {
        match rules?.verdict(path, is_folder) {
            IgnoreVerdict::Silent => None,
            IgnoreVerdict::Ignored => Some(true),
            IgnoreVerdict::Kept => Some(false),
        }
    }

    /// Whether git would leave a path out, by its own ignore files alone. What lies above a path is not looked at.
    pub(crate) fn ignored_by_git(&self, path: &Path, is_folder: bool) -> bool {
        let folders = std::iter::successors(Some(self), |rules| rules.above.as_deref());
        for rules in folders {
            // The file in the folder is stronger than git's own.
            let said = rules.own[OF_GIT..].iter().map(|file| verdict(&file.matched(path, is_folder)));
            if let Some(said) = said.into_iter().find(|said| *said != IgnoreVerdict::Silent) {
                return said == IgnoreVerdict::Ignored;
            }
            if rules.repository {
                break;
            }
        }
        false
    }

    /// The stronger file wins, then the nearer folder.
    fn verdict(&self, path: &Path, is_folder: bool) -> IgnoreVerdict {
        let mut said = [IgnoreVerdict::Silent; NAMES.len() + 1];
        let mut left_the_repository = false;
        let mut here = Some(self);
        while let Some(rules) = here {
            for (at, file) in rules.own.iter().enumerate() {
                let of_git = at >= OF_GIT;
                if said[at] == IgnoreVerdict::Silent && !(of_git && left_the_repository) {
                    said[at] = verdict(&file.matched(path, is_folder));
                }
            }
            left_the_repository |= rules.repository;
            here = rules.above.as_deref();
        }
        said.into_iter().find(|verdict| *verdict != IgnoreVerdict::Silent).unwrap_or(IgnoreVerdict::Silent)
    }
}

/// Whether an open folder has this name, when its names were not read.
pub(crate) fn has(folder: &Folder, name: &OsStr) -> bool {
    folder.entry(name).is_ok_and(|entry| entry.is_some())
}

/// Whether a name is one that is not shown unless it is asked for.
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

fn verdict<T>(matched: &Match<T>) -> IgnoreVerdict {
    match matched {
        Match::None => IgnoreVerdict::Silent,
        Match::Ignore(_) => IgnoreVerdict::Ignored,
        Match::Whitelist(_) => IgnoreVerdict::Kept,
    }
}

/// A file that cannot be read, and a line that cannot be understood, say nothing.
fn read(root: &Root, folder: &WorkspacePath, name: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder.as_path());
    let mut text = Vec::new();
    if let Ok(open) = root.open_file(&folder.join(name)) {
        let _ = open.file.take(LARGEST).read_to_end(&mut text);
    }
    for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
