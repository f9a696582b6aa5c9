//! What git obeys although its path does not say so: the hooks and settings of a repository by another name, and what
//! settings or links make a hook.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::draft::Draft;
use super::flags::ChangeFlag;
use super::git_config::hook_folders;
use super::layer::real_paths;
use super::plan::{Item, NestedEntry};
use super::show::LONGEST_SIDE;
use crate::git_folder::DOOR;
use crate::root::Root;
use crate::sensitive::fold;
use crate::stamp::{EntryKind, FileStamp};
use crate::workspace_path::{WorkspacePath, read_shown_name};

/// What makes a folder a repository, whatever it is called.
const REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];
const HOOKS: &str = "hooks";
const SETTINGS: &[&str] = &["config", "config.worktree"];
const ELSEWHERE: &str = "commondir";

/// Something that comes into the workspace.
struct IncomingEntry {
    /// The item that it is, or lies beneath.
    item: WorkspacePath,
    /// Which of the entries beneath that item it is.
    entry: Option<usize>,
    place: WorkspacePath,
    stamp: FileStamp,
    /// It was moved, with whatever lies in it.
    whole: bool,
}

/// What is known of the folders that were looked at.
struct RepositoryFacts<'a> {
    root: &'a Root,
    /// What comes and makes a folder a repository.
    parts: HashSet<PathBuf>,
    repositories: HashMap<PathBuf, bool>,
    hooks: HashMap<PathBuf, Vec<PathBuf>>,
}

impl Draft {
    /// Flags it.
    pub(super) fn flag_what_git_obeys(&mut self) {
        let coming = self.coming();
        if coming.is_empty() {
            return;
        }
        let is_part = |coming: &&IncomingEntry| {
            coming.place.name().is_some_and(|name| REPOSITORY.iter().any(|part| *part == name))
        };
        let parts = coming.iter().filter(is_part).map(|coming| coming.place.as_path().to_owned()).collect();
        let root = Arc::clone(&self.root);
        let mut known = RepositoryFacts { root: &root, parts, repositories: HashMap::new(), hooks: HashMap::new() };
        for coming in &coming {
            let Some(flag) = known.flag(coming) else { continue };
            let Some(item) = self.items.get_mut(&coming.item) else { continue };
            let sketch = match coming.entry.and_then(|entry| item.brings.get_mut(entry)) {
                Some(beneath) => beneath.sketch.get_or_insert_default(),
                None => &mut item.sketch,
            };
            if !sketch.flags.contains(&flag) {
                sketch.flags.push(flag);
                sketch.flags.sort_unstable();
            }
        }
    }

    /// Everything that comes and may be obeyed by its name, or because it can be run.
    fn coming(&self) -> Vec<IncomingEntry> {
        let mut all = Vec::new();
        for (place, item) in &self.items {
            let comes = item.moved.as_ref().map(|moved| moved.seen).or(item.staged).map(|seen| seen.stamp);
            let turned = item.mode.and_then(|mode| item.before.map(|before| with_mode(before.stamp, mode)));
            let whole = item.moved.is_some();
            let counts = |stamp: &FileStamp| whole || may_count(place.name().unwrap_or_default(), stamp);
            if let Some(stamp) = turned.or(comes).filter(counts) {
                all.push(IncomingEntry { item: place.clone(), entry: None, place: place.clone(), stamp, whole });
            }
            beneath(place, item, &mut all);
        }
        all
    }
}

fn beneath(place: &WorkspacePath, item: &Item, all: &mut Vec<IncomingEntry>) {
    let counts = |entry: &NestedEntry| may_count(&read_shown_name(&entry.name), &entry.stamp);
    if !item.brings.iter().any(counts) {
        return;
    }
    for (at, path) in real_paths(&item.brings).into_iter().enumerate() {
        let entry = &item.brings[at];
        if counts(entry) {
            let (item, place) = (place.clone(), place.join(&path));
            all.push(IncomingEntry { item, entry: Some(at), place, stamp: entry.stamp, whole: false });
        }
    }
}

/// Whether something may be obeyed: it can be run or leads elsewhere, or has a name that git knows.
fn may_count(name: &OsStr, stamp: &FileStamp) -> bool {
    match stamp.kind() {
        EntryKind::Link => true,
        EntryKind::File if stamp.mode & 0o111 != 0 => true,
        EntryKind::File | EntryKind::Directory => {
            let name = fold(name);
            SETTINGS.contains(&name.as_ref())
                || matches!(name.as_ref(), HOOKS | ELSEWHERE | "head" | "objects" | "refs")
        }
        EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => false,
    }
}

fn with_mode(stamp: FileStamp, mode: u32) -> FileStamp {
    FileStamp { mode: stamp.mode & !0o7777 | mode, ..stamp }
}

impl RepositoryFacts<'_> {
    fn flag(&mut self, coming: &IncomingEntry) -> Option<ChangeFlag> {
        let (kind, path) = (coming.stamp.kind(), coming.place.as_path());
        let name = fold(path.file_name()?);
        let parent = path.parent()?;
        let is_folder = kind == EntryKind::Directory;
        if SETTINGS.contains(&name.as_ref()) && !is_folder {
            // What could be read was judged by what it says.
            let unseen = kind == EntryKind::Link || coming.stamp.size > LONGEST_SIDE;
            return (unseen && self.is_repository(parent)).then_some(ChangeFlag::GitConfigCommand);
        }
        if name == ELSEWHERE && !is_folder {
            return self.has(&parent.join(REPOSITORY[0])).then_some(ChangeFlag::GitConfigCommand);
        }
        if name == "head" && self.is_repository(parent) && self.waits_for_a_repository(parent) {
            return Some(ChangeFlag::GitHook);
        }
        let can_be_run = kind == EntryKind::Link || (kind == EntryKind::File && coming.stamp.mode & 0o111 != 0);
        let is_hook = (can_be_run && !name.ends_with(".sample")) || (coming.whole && is_folder);
        (is_hook && (self.lies_among_hooks(path) || self.is_made_a_hook(path))).then_some(ChangeFlag::GitHook)
    }

    /// Whether it lies in the folder of hooks of a repository, or is that folder.
    fn lies_among_hooks(&mut self, path: &Path) -> bool {
        let folders: Vec<&Path> =
            path.ancestors().filter(|folder| folder.file_name().map(fold).as_deref() == Some(HOOKS)).collect();
        folders.into_iter().any(|folder| folder.parent().is_some_and(|above| self.is_repository(above)))
    }

    /// Whether the settings of a repository around it, or a link among its hooks, lead to it.
    fn is_made_a_hook(&mut self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|folder| {
            let root = self.root;
            let hooks = self.hooks.entry(folder.to_owned()).or_insert_with(|| hooks_elsewhere(root, folder));
            hooks.iter().any(|hook| path.starts_with(hook) || hook.starts_with(path))
        })
    }

    fn is_repository(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.repositories.get(folder) {
            return *known;
        }
        let is_one = REPOSITORY.iter().all(|part| self.has(&folder.join(part)));
        self.repositories.insert(folder.to_owned(), is_one);
        is_one
    }

    fn has(&self, path: &Path) -> bool {
        self.parts.contains(path) || matches!(self.root.meta(&WorkspacePath::known(path.to_owned())), Ok(Some(_)))
    }

    /// Whether there are hooks or hidden settings already, where nothing but the rest was missing.
    fn waits_for_a_repository(&self, folder: &Path) -> bool {
        let is_link = |name: &str| {
            let meta = self.root.meta(&WorkspacePath::known(folder.join(name)));
            matches!(meta, Ok(Some(meta)) if meta.kind == EntryKind::Link)
        };
        let hooks = names(self.root, &folder.join(HOOKS));
        hooks.iter().any(|name| !name.ends_with(".sample")) || is_link(HOOKS) || is_link(SETTINGS[0])
    }
}

/// Where in the workspace the hooks of the repository in a folder lie, if not where they usually do.
fn hooks_elsewhere(root: &Root, folder: &Path) -> Vec<PathBuf> {
    let git = folder.join(".git");
    let meta = |path: &Path| root.meta(&WorkspacePath::known(path.to_owned())).ok().flatten();
    let is_outside = root.git_folder().is_some() && git == Path::new(DOOR);
    if !is_outside && meta(&git).is_none_or(|meta| meta.kind != EntryKind::Directory) {
        return Vec::new();
    }
    let mut settings = Vec::new();
    if let Ok(open) = root.open_file(&WorkspacePath::known(git.join(SETTINGS[0]))) {
        // What cannot be read names nothing that git would find.
        let _read = open.file.take(LONGEST_SIDE).read_to_end(&mut settings);
    }
    let mut found: Vec<PathBuf> =
        hook_folders(&settings).iter().filter_map(|named| reached(root, folder, Path::new(named))).collect();
    let hooks = git.join(HOOKS);
    let inside = names(root, &hooks).into_iter().map(|name| hooks.join(name));
    for path in inside.chain([hooks.clone()]) {
        let target = path.parent().zip(path.file_name()).and_then(|(parent, name)| {
            root.enter(WorkspacePath::known(parent.to_owned())).ok()?.entry(name).ok()??.target
        });
        found.extend(target.and_then(|target| reached(root, path.parent()?, &target)));
    }
    found
}

/// The names in a folder that can be read.
fn names(root: &Root, folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let Ok(open) = root.enter(WorkspacePath::known(folder.to_owned())) else { return names };
    while matches!(open.read_on(|name, _| names.push(name.to_string_lossy().into_owned())), Ok(true)) {}
    names
}

/// The path in the workspace that words lead to from a folder of it; `None` where that is elsewhere.
fn reached(root: &Root, from: &Path, words: &Path) -> Option<PathBuf> {
    let (mut path, words) = match words.strip_prefix(root.path()) {
        Ok(inside) => (PathBuf::new(), inside),
        Err(_) => (from.to_owned(), words),
    };
    for part in words.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => path.push(name),
            Component::ParentDir => path.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    // The workspace itself is no folder of hooks that anybody means.
    (!path.as_os_str().is_empty()).then_some(path)
}
