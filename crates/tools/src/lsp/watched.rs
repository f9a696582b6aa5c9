//! The files of the workspace that a server looks at by itself, and what has become of them.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, SystemTime},
};

use haft_runtime::{ToolCtx, ToolError};
use haft_sandbox::{EntryKind, Place, Root, Stamp};

use super::servers::LanguageServer;
use crate::{
    aside::Stop,
    refusal::Trying,
    search::{Pace, Spot, Visitor, Walk},
};

/// With more files of its kind than this, only open documents are compared: a look at them all would take longer than
/// the question.
const MOST: usize = 20_000;
/// A stamp this young may be given again to other content: clocks of filesystems are coarse.
const YOUNG: Duration = Duration::from_millis(20);

/// What files were when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// `None` when there were too many.
    files: Option<HashMap<PathBuf, Mark>>,
}

/// What one file was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    stamp: Stamp,
    is_settled: bool,
}

/// What has become of a file. The numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl Mark {
    /// `before` is a moment before the file was looked at.
    pub(super) fn new(stamp: Stamp, before: SystemTime) -> Self {
        let since = before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(YOUNG);
        let changed = Duration::new(u64::try_from(stamp.ctime.0).unwrap_or(0), stamp.ctime.1);
        Self { stamp, is_settled: changed < since }
    }

    /// Whether the file surely has the same content as then.
    pub(super) fn is_still(&self, stamp: &Stamp) -> bool {
        self.is_settled && self.stamp == *stamp
    }
}

impl Snapshot {
    /// Looks at every file that may matter to the server, as far as ignore files let them be seen.
    pub(super) fn take(
        root: &Root,
        server: &LanguageServer,
        (ctx, stop): (&ToolCtx, &Stop),
    ) -> Result<Self, ToolError> {
        let pace = Pace::new(ctx.clone(), stop.clone());
        let start = root.open_folder(&Place::root()).trying("look at the workspace")?;
        let walk = Walk { root, pace: &pace, pattern: None, include_hidden: false, respect_ignore: true };
        let (seen, before) = (AtomicUsize::new(0), SystemTime::now());
        let visitor = || Marking { server, seen: &seen, before, files: HashMap::new() };
        let (found, _) = walk.through(start, visitor);
        let is_whole = !pace.ran_out()? && seen.load(Ordering::Relaxed) <= MOST;
        let files = found.into_iter().flat_map(|marking| marking.files).collect();
        Ok(Self { files: is_whole.then_some(files) })
    }

    /// Whether all files are compared, and not only open documents.
    pub(super) fn is_whole(&self) -> bool {
        self.files.is_some()
    }

    /// What has become of the files since an earlier look.
    pub(super) fn since<'a>(&'a self, earlier: &'a Snapshot) -> Vec<(&'a Path, Became)> {
        let (Some(now), Some(then)) = (&self.files, &earlier.files) else { return Vec::new() };
        let here = now.iter().filter_map(|(path, mark)| match then.get(path) {
            None => Some((path.as_path(), Became::Created)),
            Some(old) if old.is_still(&mark.stamp) => None,
            Some(_) => Some((path.as_path(), Became::Changed)),
        });
        let gone = then.keys().filter(|path| !now.contains_key(*path)).map(|path| (path.as_path(), Became::Deleted));
        let mut all: Vec<_> = here.chain(gone).collect();
        all.sort_by_key(|(path, _)| *path);
        all
    }
}

/// The files that one thread comes by.
struct Marking<'a> {
    server: &'a LanguageServer,
    seen: &'a AtomicUsize,
    before: SystemTime,
    files: HashMap<PathBuf, Mark>,
}

impl Visitor for Marking<'_> {
    const AT_ONCE: usize = 256;

    fn visit(&mut self, spot: &Spot<'_>) {
        let is_one = spot.kind == EntryKind::File && self.server.looks_at(spot.path);
        if !is_one || self.seen.fetch_add(1, Ordering::Relaxed) >= MOST {
            return;
        }
        if let Ok(Some(entry)) = spot.folder.entry(spot.name) {
            self.files.insert(spot.path.to_owned(), Mark::new(entry.meta.stamp, self.before));
        }
    }
}
