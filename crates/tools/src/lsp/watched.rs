//! The files of the workspace that a server looks at by itself, and what has become of them.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, SystemTime},
};

use haft_runtime::{ToolCtx, ToolError};
use haft_sandbox::{EntryKind, FileStamp, Folder, Root, WorkspacePath};

use super::{documents::within, servers::LanguageServer};
use crate::{
    blocking::StopFlag,
    refusal::Trying,
    search::{IgnoreRules, Pace, Visitor, Walk, WalkEntry, has},
};

/// With more files of its kind than this, only open documents are compared: a look at them all would take longer than
/// the question.
const MOST: usize = 20_000;
/// A stamp this young may be given again to other content: clocks of filesystems are coarse.
const YOUNG: Duration = Duration::from_millis(20);

/// What files were when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// The folders that were gone through; `None` when there were too many files.
    folders: Option<HashMap<PathBuf, WatchedFolder>>,
}

/// What a folder was, and what in it matters.
#[derive(Debug)]
struct WatchedFolder {
    /// The folder itself, which changes when a name comes or goes; `None` when nothing could be told of it.
    own: Option<WatchedFile>,
    /// The files that say what is left out; `None` for one that may come without a change of the folder.
    rules: Vec<(&'static str, Option<WatchedFile>)>,
    files: HashMap<OsString, WatchedFile>,
}

/// What one file was.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchedFile {
    stamp: FileStamp,
    is_settled: bool,
}

/// What has become of a file. The numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchEvent {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl WatchedFile {
    /// `before` is a moment before the file was looked at.
    pub(super) fn new(stamp: FileStamp, before: SystemTime) -> Self {
        let since = before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(YOUNG);
        let changed = Duration::new(u64::try_from(stamp.ctime.0).unwrap_or(0), stamp.ctime.1);
        Self { stamp, is_settled: changed < since }
    }

    /// Whether the file surely has the same content as then.
    pub(super) fn is_still(&self, stamp: &FileStamp) -> bool {
        self.is_settled && self.stamp == *stamp
    }
}

impl Snapshot {
    /// Looks at every file that may matter to the server, as far as ignore files let them be seen.
    pub(super) fn take(
        root: &Root,
        server: &LanguageServer,
        (ctx, stop): (&ToolCtx, &StopFlag),
    ) -> Result<Self, ToolError> {
        let pace = Pace::new(ctx.clone(), stop.clone());
        let start = root.open_folder(&WorkspacePath::root()).trying("look at the workspace")?;
        let walk = Walk { root, pace: &pace, pattern: None, include_hidden: false, respect_ignore: true };
        let (count, before) = (AtomicUsize::new(0), SystemTime::now());
        let visitor = || WatchScan { root, server, count: &count, before, folders: Vec::new(), files: Vec::new() };
        let (found, _) = walk.through(start, visitor);
        if pace.ran_out()? || count.load(Ordering::Relaxed) > MOST {
            return Ok(Self { folders: None });
        }
        let mut folders = HashMap::new();
        let mut files = Vec::new();
        for marking in found {
            folders.extend(marking.folders);
            files.extend(marking.files);
        }
        for (path, marks) in files {
            if let Some(seen) = folders.get_mut(&path) {
                seen.files.extend(marks);
            }
        }
        Ok(Self { folders: Some(folders) })
    }

    /// Whether all files are compared, and not only open documents.
    pub(super) fn is_whole(&self) -> bool {
        self.folders.is_some()
    }

    /// Whether surely nothing has become of any file. A name comes and goes only in a folder that changes by it, so a
    /// look at what was there tells it, without going through everything again.
    pub(super) fn holds_still(&self, root: &Root) -> bool {
        self.folders.as_ref().is_some_and(|folders| folders.iter().all(|(path, seen)| seen.holds_still(root, path)))
    }

    /// What has become of the files since an earlier look.
    pub(super) fn since(&self, earlier: &Snapshot) -> Vec<(PathBuf, WatchEvent)> {
        let (Some(now), Some(then)) = (&self.folders, &earlier.folders) else { return Vec::new() };
        let mut all = Vec::new();
        for (folder, seen) in now {
            let before = then.get(folder).map(|seen| &seen.files);
            all.extend(seen.files.iter().filter_map(|(name, mark)| match before.and_then(|files| files.get(name)) {
                None => Some((folder.join(name), WatchEvent::Created)),
                Some(old) if old.is_still(&mark.stamp) => None,
                Some(_) => Some((folder.join(name), WatchEvent::Changed)),
            }));
        }
        for (folder, seen) in then {
            let after = now.get(folder).map(|seen| &seen.files);
            let gone = seen.files.keys().filter(|name| !after.is_some_and(|files| files.contains_key(*name)));
            all.extend(gone.map(|name| (folder.join(name), WatchEvent::Deleted)));
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }
}

impl WatchedFolder {
    fn new(root: &Root, folder: &Folder, before: SystemTime) -> Self {
        let own = folder.entry(OsStr::new(".")).ok().flatten().map(|entry| WatchedFile::new(entry.meta.stamp, before));
        let mut rules = Vec::new();
        for name in IgnoreRules::FILES {
            let mark = look(root, folder, name).map(|stamp| WatchedFile::new(stamp, before));
            let comes_unseen = || name.split_once('/').is_some_and(|(above, _)| has(folder, OsStr::new(above)));
            if mark.is_some() || comes_unseen() {
                rules.push((name, mark));
            }
        }
        Self { own, rules, files: HashMap::new() }
    }

    fn holds_still(&self, root: &Root, path: &Path) -> bool {
        let (Ok(folder), Some(own)) = (root.enter(within(path)), self.own) else { return false };
        let now = |name: &OsStr| folder.entry(name).ok().flatten().map(|entry| entry.meta.stamp);
        let is_still = |mark: &WatchedFile, stamp: Option<FileStamp>| stamp.is_some_and(|stamp| mark.is_still(&stamp));
        is_still(&own, now(OsStr::new(".")))
            && self.files.iter().all(|(name, mark)| is_still(mark, now(name)))
            && self.rules.iter().all(|(name, mark)| match (mark, look(root, &folder, name)) {
                (None, None) => true,
                // What is said where a link leads may change without it.
                (Some(mark), Some(stamp)) => stamp.kind() == EntryKind::File && mark.is_still(&stamp),
                (None, Some(_)) | (Some(_), None) => false,
            })
    }
}

/// What is at a path in a folder.
fn look(root: &Root, folder: &Folder, path: &str) -> Option<FileStamp> {
    match path.contains('/') {
        true => root.meta(&folder.place().join(path)).ok().flatten().map(|meta| meta.stamp),
        false => folder.entry(OsStr::new(path)).ok().flatten().map(|entry| entry.meta.stamp),
    }
}

/// The folders and files that one thread comes by.
struct WatchScan<'a> {
    root: &'a Root,
    server: &'a LanguageServer,
    count: &'a AtomicUsize,
    before: SystemTime,
    folders: Vec<(PathBuf, WatchedFolder)>,
    /// By the folder that they are in, which another thread may have come by.
    files: Vec<(PathBuf, Vec<(OsString, WatchedFile)>)>,
}

impl Visitor for WatchScan<'_> {
    const AT_ONCE: usize = 256;

    fn enter(&mut self, folder: &Folder) {
        self.folders.push((folder.place().as_path().to_owned(), WatchedFolder::new(self.root, folder, self.before)));
    }

    fn visit(&mut self, spot: &WalkEntry<'_>) {
        let is_one = spot.kind == EntryKind::File && self.server.looks_at(spot.path);
        if !is_one || self.count.fetch_add(1, Ordering::Relaxed) >= MOST {
            return;
        }
        let Ok(Some(entry)) = spot.folder.entry(spot.name) else { return };
        let folder = spot.folder.place().as_path();
        if self.files.last().is_none_or(|(last, _)| last != folder) {
            self.files.push((folder.to_owned(), Vec::new()));
        }
        if let Some((_, marks)) = self.files.last_mut() {
            marks.push((spot.name.to_owned(), WatchedFile::new(entry.meta.stamp, self.before)));
        }
    }
}
