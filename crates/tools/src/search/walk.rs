//! A walk through a tree by several threads. Everything is opened beneath the handle of the workspace and no link is
//! followed, so a name that is swapped meanwhile leads nowhere.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    panic::resume_unwind,
    path::Path,
    sync::Arc,
    thread::{available_parallelism, scope},
};

use haft_sandbox::{EntryKind, Folder, PathError, Root, WorkspacePath};

use super::{
    names::NameList,
    pace::Pace,
    pattern::GlobPattern,
    queue::WorkerQueue,
    rules::{IgnoreRules, has, is_hidden},
};

/// More threads than this find nothing sooner.
const THREADS: usize = 8;
/// So many names of a folder are looked at before the rest is read.
const NAMES_AT_ONCE: usize = 4096;
/// When so much waits, folders are closed before those inside are gone into.
const OPEN_AT_ONCE: usize = 100;

/// What is walked through, and by which rules.
pub(crate) struct Walk<'a> {
    pub(crate) root: &'a Root,
    pub(crate) pace: &'a Pace,
    /// Only files that it means are visited; all of them without one.
    pub(crate) pattern: Option<&'a GlobPattern>,
    pub(crate) include_hidden: bool,
    pub(crate) respect_ignore: bool,
}

/// What a thread does with the files that it comes by.
pub(crate) trait Visitor: Send {
    /// How many files a thread takes from a folder; others may take the rest.
    const AT_ONCE: usize;

    /// Hears of a folder before its names are read.
    fn enter(&mut self, _folder: &Folder) {}

    fn visit(&mut self, spot: &WalkEntry<'_>);
}

/// A file or a link on the way.
pub(crate) struct WalkEntry<'a> {
    pub(crate) root: &'a Root,
    pub(crate) folder: &'a Folder,
    pub(crate) name: &'a OsStr,
    /// Relative to the workspace.
    pub(crate) path: &'a Path,
    pub(crate) kind: EntryKind,
}

/// Folders that were not gone into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SkippedFolders {
    /// Because of their name.
    pub(super) sensitive: u64,
    /// Because the system did not let us, or the path is too long.
    pub(super) unreadable: u64,
}

enum WalkTask {
    Start(Folder),
    Folder {
        above: ParentFolder,
        name: Box<OsStr>,
        rules: Option<Arc<IgnoreRules>>,
    },
    /// The names that were not read yet.
    Rest {
        folder: Arc<Folder>,
        rules: Option<Arc<IgnoreRules>>,
    },
    Files {
        folder: Arc<Folder>,
        names: NameList,
    },
}

/// The folder that holds a folder to go into.
#[derive(Clone)]
enum ParentFolder {
    /// As long as little waits it stays open: that is the shortest way down, above all in a deep tree.
    Open(Arc<Folder>),
    Closed(Arc<WorkspacePath>),
}

impl Walk<'_> {
    /// Goes through everything beneath a folder; every thread has a visitor of its own.
    pub(crate) fn through<V: Visitor>(
        &self,
        start: Folder,
        visitor: impl Fn() -> V + Sync,
    ) -> (Vec<V>, SkippedFolders) {
        let within = start.place().as_path().as_os_str().len();
        let queue = WorkerQueue::new(WalkTask::Start(start));
        let threads = available_parallelism().map_or(1, usize::from).min(THREADS);
        let ended: Vec<Worker<'_, V>> = scope(|scope| {
            let start_one = || scope.spawn(|| Worker::new(self, &queue, within, visitor()).work());
            let workers: Vec<_> = (0..threads).map(|_| start_one()).collect();
            while !queue.is_over_within(self.pace.next_beat()) {
                self.pace.beat();
            }
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let mut passed_by = SkippedFolders::default();
        for worker in &ended {
            passed_by.sensitive += worker.passed_by.sensitive;
            passed_by.unreadable += worker.passed_by.unreadable;
        }
        (ended.into_iter().map(|worker| worker.visitor).collect(), passed_by)
    }
}

/// One thread of a walk.
struct Worker<'w, V> {
    walk: &'w Walk<'w>,
    queue: &'w WorkerQueue<WalkTask>,
    visitor: V,
    passed_by: SkippedFolders,
    /// How much of a path lies above the folder that the walk started in.
    within: usize,
    path: Vec<u8>,
    read: NameList,
    more: Vec<WalkTask>,
}

impl<'w, V: Visitor> Worker<'w, V> {
    fn new(walk: &'w Walk<'w>, queue: &'w WorkerQueue<WalkTask>, within: usize, visitor: V) -> Self {
        let (path, read, more) = (Vec::new(), NameList::default(), Vec::new());
        Self { walk, queue, visitor, passed_by: SkippedFolders::default(), within, path, read, more }
    }

    fn work(mut self) -> Self {
        while let Some(mut task) = self.queue.take() {
            if !self.walk.pace.goes_on() {
                self.queue.give_up();
                break;
            }
            match task.work.take() {
                Some(WalkTask::Start(folder)) => {
                    let rules = if self.walk.respect_ignore {
                        IgnoreRules::above(self.walk.root, folder.place())
                    } else {
                        None
                    };
                    self.begin(folder, rules);
                }
                Some(WalkTask::Folder { above, name, rules }) => self.enter(above, &name, rules),
                Some(WalkTask::Rest { folder, rules }) => {
                    let more = self.read(&folder);
                    self.share_out(&folder, rules.as_ref(), more);
                }
                Some(WalkTask::Files { folder, names }) => self.visit(&folder, &names),
                None => {}
            }
        }
        self
    }

    fn enter(&mut self, above: ParentFolder, name: &OsStr, rules: Option<Arc<IgnoreRules>>) {
        let entered = match above {
            ParentFolder::Open(folder) => folder.enter(self.walk.root, name),
            ParentFolder::Closed(place) => self.walk.root.enter(place.join(name)),
        };
        match entered {
            Ok(folder) => self.begin(folder, rules),
            // It is gone, or something else is there now.
            Err(PathError::NotFound { .. } | PathError::NotDirectory { .. } | PathError::TooManyLinks { .. }) => {}
            Err(PathError::Sensitive { .. }) => self.passed_by.sensitive += 1,
            Err(
                PathError::Outside { .. }
                | PathError::Malformed { .. }
                | PathError::IsDirectory { .. }
                | PathError::NotRegular { .. }
                | PathError::Denied { .. }
                | PathError::ReadOnly { .. }
                | PathError::Full { .. }
                | PathError::Io { .. },
            ) => self.passed_by.unreadable += 1,
        }
    }

    fn begin(&mut self, folder: Folder, above: Option<Arc<IgnoreRules>>) {
        self.visitor.enter(&folder);
        let more = self.read(&folder);
        let mut rules = above;
        if self.walk.respect_ignore {
            let (above, read) = (rules.take(), &self.read);
            // Where the names are not all known yet, ignore files may be among the others.
            let there = |name: &OsStr| if more { has(&folder, name) } else { read.has(name) };
            rules = IgnoreRules::within(above.as_ref(), self.walk.root, folder.place(), there);
        }
        self.share_out(&Arc::new(folder), rules.as_ref(), more);
    }

    /// Reads names until there are many, and whether there may be more.
    fn read(&mut self, folder: &Folder) -> bool {
        self.read.clear();
        while self.read.len() < NAMES_AT_ONCE {
            match folder.read_on(|name, kind| self.read.add(name, kind)) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_) => {
                    self.passed_by.unreadable += 1;
                    return false;
                }
            }
        }
        true
    }

    /// Visits some of the files and leaves the folders and the other files to whoever is free.
    fn share_out(&mut self, folder: &Arc<Folder>, rules: Option<&Arc<IgnoreRules>>, more: bool) {
        if more {
            self.more.push(WalkTask::Rest { folder: Arc::clone(folder), rules: rules.cloned() });
        }
        let few_wait = self.queue.waiting() < OPEN_AT_ONCE;
        let closed = || ParentFolder::Closed(Arc::new(folder.place().clone()));
        let above = if few_wait { ParentFolder::Open(Arc::clone(folder)) } else { closed() };
        let base = self.set_base(folder);
        let mut files = NameList::default();
        // Files are put behind the folders and so come first: what waits holds its folder open.
        let mut batches = Vec::new();
        let read = std::mem::take(&mut self.read);
        for (name, kind) in read.iter() {
            let Some(kind) = kind.or_else(|| folder.entry(name).ok().flatten().map(|entry| entry.meta.kind)) else {
                continue;
            };
            self.path.truncate(base);
            self.path.extend_from_slice(name.as_bytes());
            let left_out = IgnoreRules::leave_out(rules.map(AsRef::as_ref), self.path(), kind == EntryKind::Directory);
            if left_out.unwrap_or(!self.walk.include_hidden && is_hidden(name)) {
                continue;
            }
            match kind {
                EntryKind::Directory => {
                    self.more.push(WalkTask::Folder {
                        above: above.clone(),
                        name: Box::from(name),
                        rules: rules.cloned(),
                    });
                }
                EntryKind::File | EntryKind::Link if self.is_meant(name) => files.add(name, Some(kind)),
                EntryKind::File | EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {}
            }
            if files.len() == V::AT_ONCE {
                batches.push(WalkTask::Files { folder: Arc::clone(folder), names: std::mem::take(&mut files) });
            }
        }
        self.read = read;
        self.more.append(&mut batches);
        self.queue.add(&mut self.more);
        self.visit(folder, &files);
    }

    fn is_meant(&self, name: &OsStr) -> bool {
        let below = if self.within == 0 { 0 } else { self.within + 1 };
        let path = Path::new(OsStr::from_bytes(&self.path[below..]));
        self.walk.pattern.is_none_or(|pattern| pattern.means(path, name))
    }

    fn visit(&mut self, folder: &Folder, names: &NameList) {
        let base = self.set_base(folder);
        self.walk.pace.count(names.len());
        for (name, kind) in names.iter() {
            if !self.walk.pace.goes_on() {
                return;
            }
            self.path.truncate(base);
            self.path.extend_from_slice(name.as_bytes());
            let path = Path::new(OsStr::from_bytes(&self.path));
            let kind = kind.unwrap_or(EntryKind::File);
            self.visitor.visit(&WalkEntry { root: self.walk.root, folder, name, path, kind });
        }
    }

    /// Begins the paths of a folder's entries; gives how long that beginning is.
    fn set_base(&mut self, folder: &Folder) -> usize {
        self.path.clear();
        self.path.extend_from_slice(folder.place().as_path().as_os_str().as_bytes());
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.len()
    }

    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }
}
