//! What is build output or a cache: ignored by git and not tracked, as both were before a command ran.

use std::{
    collections::{BTreeSet, HashMap},
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::Arc,
};

use haft_sandbox::{Root, WorkspacePath, tracked};

use crate::search::{IgnoreRules, has};

/// Folders that tools keep for themselves, whatever the ignore files say.
const CACHES: &[&str] =
    &["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".parcel-cache", ".turbo"];
/// Names that say nothing about the file's use alone, but do as a pair.
const CACHE_IN: (&str, &str) = ("node_modules", ".cache");
/// Where a repository keeps its things.
const REPOSITORY: &str = ".git";
/// Git's own record of what it has seen; every `git status` may write it.
const INDEX: &str = "index";

/// Judges paths of a workspace that is not touched meanwhile: a command writes into its own layer.
pub(crate) struct DerivedPaths<'a> {
    root: &'a Root,
    rules: HashMap<WorkspacePath, Option<Arc<IgnoreRules>>>,
    /// The repository that each folder belongs to.
    repositories: HashMap<WorkspacePath, Option<WorkspacePath>>,
    tracked: HashMap<WorkspacePath, TrackedFiles>,
}

/// What a repository tracks.
enum TrackedFiles {
    These(BTreeSet<Vec<u8>>),
    /// It cannot be told, so that everything may be.
    Unknown,
}

impl<'a> DerivedPaths<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root, rules: HashMap::new(), repositories: HashMap::new(), tracked: HashMap::new() }
    }

    /// Whether a path is derived. A folder is when everything that could lie in it is.
    pub(crate) fn holds(&mut self, place: &WorkspacePath, is_folder: bool) -> bool {
        let path = place.as_path();
        if path == self.root.own_git_folder(Path::new(REPOSITORY)).join(INDEX) {
            return true;
        }
        if path.iter().any(|part| part == REPOSITORY) {
            return false;
        }
        (is_a_cache(path, is_folder) || self.is_ignored(place, is_folder)) && !self.is_tracked(place, is_folder)
    }

    /// Whatever lies in an ignored folder is ignored, too.
    fn is_ignored(&mut self, place: &WorkspacePath, is_folder: bool) -> bool {
        let mut ways: Vec<WorkspacePath> = std::iter::successors(place.parent(), WorkspacePath::parent).collect();
        ways.pop();
        ways.reverse();
        ways.iter().any(|folder| self.is_named(folder, true)) || self.is_named(place, is_folder)
    }

    /// Whether an ignore file names the path itself; what lies above it is not looked at.
    pub(crate) fn is_named(&mut self, place: &WorkspacePath, is_folder: bool) -> bool {
        let Some(parent) = place.parent() else { return false };
        let rules = self.rules_in(&parent);
        rules.is_some_and(|rules| rules.ignored_by_git(place.as_path(), is_folder))
    }

    fn rules_in(&mut self, folder: &WorkspacePath) -> Option<Arc<IgnoreRules>> {
        if let Some(rules) = self.rules.get(folder) {
            return rules.clone();
        }
        let above = folder.parent().and_then(|above| self.rules_in(&above));
        let rules = match self.root.enter(folder.clone()) {
            Ok(open) => IgnoreRules::within(above.as_ref(), self.root, folder, |name| has(&open, name)),
            // A folder that only the command has made has no rules of its own.
            Err(_) => above,
        };
        self.rules.insert(folder.clone(), rules.clone());
        rules
    }

    fn is_tracked(&mut self, place: &WorkspacePath, is_folder: bool) -> bool {
        let Some(repository) = self.repository_of(place) else { return false };
        let root = self.root;
        let tracked = self.tracked.entry(repository.clone()).or_insert_with(|| read_index(root, &repository));
        let TrackedFiles::These(names) = tracked else { return true };
        let Ok(within) = place.as_path().strip_prefix(repository.as_path()) else { return true };
        let name = within.as_os_str().as_bytes();
        if !is_folder {
            return names.contains(name);
        }
        let beneath = [name, b"/"].concat();
        let first = names.range(beneath.clone()..).next();
        names.contains(name) || first.is_some_and(|first| first.starts_with(&beneath))
    }

    /// The nearest folder above that is a repository.
    fn repository_of(&mut self, place: &WorkspacePath) -> Option<WorkspacePath> {
        let folder = place.parent()?;
        if let Some(known) = self.repositories.get(&folder) {
            return known.clone();
        }
        let is_one = self.root.enter(folder.clone()).is_ok_and(|open| has(&open, REPOSITORY.as_ref()));
        let found = if is_one { Some(folder.clone()) } else { self.repository_of(&folder) };
        self.repositories.insert(folder, found.clone());
        found
    }
}

fn is_a_cache(path: &Path, is_folder: bool) -> bool {
    let parts: Vec<_> = path.iter().collect();
    let folders = if is_folder { &parts[..] } else { &parts[..parts.len().saturating_sub(1)] };
    folders.iter().any(|part| CACHES.iter().any(|cache| part == cache))
        || folders.windows(2).any(|pair| pair[0] == CACHE_IN.0 && pair[1] == CACHE_IN.1)
}

fn read_index(root: &Root, repository: &WorkspacePath) -> TrackedFiles {
    let index = root.own_git_folder(repository.join(REPOSITORY).as_path()).join(INDEX);
    match root.open_file(&WorkspacePath::root().join(index)) {
        Ok(open) => tracked(open.file).map_or(TrackedFiles::Unknown, TrackedFiles::These),
        // A repository in which nothing was ever added.
        Err(haft_sandbox::PathError::NotFound { .. }) => TrackedFiles::These(BTreeSet::new()),
        Err(_) => TrackedFiles::Unknown,
    }
}
