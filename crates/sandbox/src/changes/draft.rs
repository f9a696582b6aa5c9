//! Changes that are being planned; nothing in the workspace is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::change_log::ChangeLog;
use super::error::ChangesError;
use super::flags::{Subject, flags};
use super::folder::ChangesFolder;
use super::plan::{ChangePlan, CommitDurability, Item, ItemStates, PlannedGitFolder, Sketch};
use super::progress::{ChangesProgress, Meter};
use super::sealed::Changes;
use super::show::{DiffSide, LONGEST_SIDE, RenderedDiff, compare};
use super::stage;
use crate::error::PathError;
use crate::fence::{Mask, MaskContent};
use crate::look::OpenFile;
use crate::root::Root;
use crate::stamp::{EntryIdentity, EntryKind, FileStamp};
use crate::target::WriteTarget;
use crate::workspace_path::{WorkspacePath, show_name};

/// The longest diff that is kept in the plan.
const LONGEST_DIFF: usize = 64 << 10;
/// The most that all kept diffs may take together.
const ALL_DIFFS: usize = 1 << 20;

/// What the caller believes to be at a path before it is written.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Whatever is there.
    Anything,
    /// Nothing may be there.
    Nothing,
    /// Exactly what was read earlier.
    Exactly(FileStamp),
}

/// What a planned write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedWrite {
    /// Whether the file is new.
    pub created: bool,
    /// How long the file was before.
    pub previous_size: Option<u64>,
}

/// A set of changes being planned; dropped without being sealed, it leaves nothing behind.
///
/// The last word about a path wins: writing twice keeps the second content, deleting what was only planned forgets
/// it, writing what is to be deleted replaces it. Writing beneath a path that goes is refused.
#[derive(Debug)]
pub struct Draft {
    pub(super) root: Arc<Root>,
    pub(super) folder: Option<ChangesFolder>,
    pub(super) items: BTreeMap<WorkspacePath, Item>,
    /// Where the planned renames come from.
    pub(super) sources: BTreeSet<WorkspacePath>,
    /// What a command was not shown, and so cannot change.
    pub(super) hidden: BTreeSet<WorkspacePath>,
    /// Folders with programs of the user's, which no command can write.
    pub(super) programs: Vec<PathBuf>,
    pub(super) meter: Meter,
    pub(super) stop: Option<Arc<AtomicBool>>,
    next_slot: usize,
    diffs_left: usize,
}

impl Draft {
    /// Begins a set of changes that is kept in `dir`, which is `<data>/changes/<call>` and must not exist yet.
    pub fn new(root: &Arc<Root>, dir: &Path) -> Result<Draft, ChangesError> {
        Ok(Draft {
            root: Arc::clone(root),
            folder: Some(ChangesFolder::create(dir)?),
            items: BTreeMap::new(),
            sources: BTreeSet::new(),
            hidden: BTreeSet::new(),
            programs: Vec::new(),
            meter: Meter::new(),
            stop: None,
            next_slot: 0,
            diffs_left: ALL_DIFFS,
        })
    }

    /// Tells now and then how far it is, when a lot is to be looked at or copied.
    pub fn telling(mut self, tell: impl FnMut(ChangesProgress) + Send + 'static) -> Draft {
        self.meter.tell(Box::new(tell));
        self
    }

    /// Gives up with [`ChangesError::Stopped`] once the flag is set.
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Draft {
        self.stop = Some(stop);
        self
    }

    /// Says what the command that writes into the layer is not shown: whatever it leaves there is left out.
    pub fn hide(&mut self, masks: &[Mask]) {
        let is_hidden = |mask: &&Mask| !matches!(mask.content, MaskContent::Head { is_same: true, .. });
        self.hidden.extend(masks.iter().filter(is_hidden).map(|mask| mask.place.clone()));
    }

    /// Says where the user's own programs lie, which a new virtual environment may link to.
    pub fn know_programs(&mut self, folders: &[PathBuf]) {
        self.programs = folders.to_vec();
    }

    /// Says what a commit has to survive.
    pub fn surviving(mut self, sync: CommitDurability) -> Draft {
        if let Some(folder) = &mut self.folder {
            folder.sync = sync;
        }
        self
    }

    /// Plans to write a file, making missing parent folders.
    pub fn write(
        &mut self,
        place: &WorkspacePath,
        content: &[u8],
        expected: Expected,
    ) -> Result<PlannedWrite, ChangesError> {
        self.check_stopped()?;
        if place.is_root() {
            return Err(PathError::IsDirectory { path: place.to_string() }.into());
        }
        let target = self.root.target(place)?;
        self.refuse_beneath_planned(&target.place, place)?;
        let planned = self.items.get(&target.place);
        let exists = planned.map_or(target.seen.is_some(), Item::leaves_something);
        check_expected(place, expected, exists, target.seen.as_ref())?;
        let like = file_to_keep(place, planned, &target)?;
        let previous_size = exists.then(|| like.map(|seen| seen.stamp.size)).flatten();
        let before = target.read()?;
        let written = PlannedWrite { created: !exists, previous_size };
        // Writing what is already there changes nothing, so there is nothing to approve.
        if planned.is_none() && target.seen.is_some() && before.as_deref() == Some(content) {
            return Ok(written);
        }
        if target.seen.is_none() {
            self.make_parents(&target.place)?;
        }
        self.write_over(target.place, target.seen, before.as_deref(), (content, like))?;
        Ok(written)
    }

    /// Plans to write a file that was opened and read to its end; what has been changed meanwhile is stale.
    pub fn replace(&mut self, open: &OpenFile, before: &[u8], content: &[u8]) -> Result<(), ChangesError> {
        self.check_stopped()?;
        let now = open.look_again().map_err(|errno| PathError::from_errno(&open.place, errno))?;
        if now.stamp != open.seen.stamp {
            return Err(ChangesError::Stale { path: open.place.to_string() });
        }
        self.refuse_planned(&open.place, &open.place)?;
        if before == content {
            return Ok(());
        }
        let before = Some(before).filter(|before| before.len() as u64 <= LONGEST_SIDE);
        self.write_over(open.place.clone(), Some(now), before, (content, Some(now)))
    }

    /// Stages content for a place, with mode and owner like a file's.
    fn write_over(
        &mut self,
        place: WorkspacePath,
        there: Option<EntryIdentity>,
        before: Option<&[u8]>,
        (content, like): (&[u8], Option<EntryIdentity>),
    ) -> Result<(), ChangesError> {
        let slot = self.slot_for(&place)?;
        let staged = stage::file(self.folder()?, slot, content, like.as_ref())?;
        let sketch = self.sketch_file(&place, (there.is_some(), before), content, &staged);
        self.put(place, Item { slot, ..Item::swap(Some(staged), there, sketch) });
        Ok(())
    }

    /// Plans to make a folder and its missing parents; says whether there was anything to make.
    pub fn make_dirs(&mut self, place: &WorkspacePath) -> Result<bool, ChangesError> {
        self.check_stopped()?;
        let resolved = self.root.resolve_folder(place)?;
        self.refuse_beneath_planned(&resolved, place)?;
        self.make_folders(&resolved)
    }

    /// Plans to change the permission bits of a file or folder; says whether there was anything to change.
    pub fn set_mode(&mut self, place: &WorkspacePath, mode: u32) -> Result<bool, ChangesError> {
        self.check_stopped()?;
        if place.is_root() {
            return Err(ChangesError::RootItself);
        }
        let resolved = self.root.resolve(place)?;
        let mode = mode & 0o7777;
        if let Some(slot) = self.items.get(&resolved).filter(|item| item.staged.is_some()).map(|item| item.slot) {
            let staged = stage::mode(self.folder()?, slot, mode)?;
            if let Some(item) = self.items.get_mut(&resolved) {
                item.staged = Some(staged);
                item.sketch.flags = flags(&mode_subject(&resolved, staged.kind(), mode));
            }
            return Ok(true);
        }
        self.refuse_beneath_planned(&resolved, place)?;
        let before = self.root.look_real(&resolved)?;
        let gone = self.items.get(&resolved).is_some_and(|item| !item.leaves_something());
        let Some(before) = before.filter(|_| !gone) else {
            let nearest = self.root.nearest(place);
            return Err(PathError::NotFound { path: place.to_string(), nearest }.into());
        };
        if !matches!(before.kind(), EntryKind::File | EntryKind::Directory) {
            return Err(PathError::NotRegular { path: place.to_string(), what: before.kind().described() }.into());
        }
        if before.stamp.mode & 0o7777 == mode {
            self.items.remove(&resolved);
            return Ok(false);
        }
        let sketch = Sketch { flags: flags(&mode_subject(&resolved, before.kind(), mode)), ..Sketch::default() };
        let slot = self.slot_for(&resolved)?;
        self.put(resolved, Item { mode: Some(mode), slot, ..Item::swap(None, Some(before), sketch) });
        Ok(true)
    }

    /// Plans to make a link, or to point an existing one elsewhere.
    pub fn link(&mut self, place: &WorkspacePath, target: &Path) -> Result<(), ChangesError> {
        self.check_stopped()?;
        if place.is_root() {
            return Err(ChangesError::RootItself);
        }
        let resolved = self.root.resolve_entry(place)?;
        self.refuse_beneath_planned(&resolved, place)?;
        let before = self.root.look_real(&resolved)?;
        let is_folder = |seen: Option<EntryIdentity>| seen.is_some_and(|seen| seen.kind() == EntryKind::Directory);
        let planned = self.items.get(&resolved);
        if planned.map_or(is_folder(before), |item| is_folder(item.staged)) {
            return Err(PathError::IsDirectory { path: place.to_string() }.into());
        }
        if before.is_none() {
            self.make_parents(&resolved)?;
        }
        let leads_outside = self.root.link_leads_outside(&resolved, target);
        let subject = Subject { leads_outside, ..mode_subject(&resolved, EntryKind::Link, 0o777) };
        let sketch = Sketch { flags: flags(&subject), ..Sketch::default() };
        let slot = self.slot_for(&resolved)?;
        let staged = stage::link(self.folder()?, slot, target)?;
        self.put(resolved, Item { slot, ..Item::swap(Some(staged), before, sketch) });
        Ok(())
    }

    /// Ends the planning: from now on the changes can be shown, committed, discarded and undone by any process.
    pub fn seal(mut self) -> Result<Changes, ChangesError> {
        self.check_stopped()?;
        self.flag_what_git_obeys();
        self.note_indexes();
        let folder = self.folder.take().ok_or(ChangesError::Gone)?;
        let plan = ChangePlan {
            root: show_name(self.root.path().as_os_str()),
            root_seen: *self.root.seen(),
            git: self.root.git_folder().map(PlannedGitFolder::of),
            tag: tag(folder.path()),
            sync: folder.sync,
            items: std::mem::take(&mut self.items).into_values().collect(),
        };
        let log = match ChangeLog::create(folder.handle(), &plan).and_then(|log| folder.flush().map(|()| log)) {
            Ok(log) => log,
            Err(error) => {
                let _kept_for_cleaning = folder.remove();
                return Err(error);
            }
        };
        let state = ItemStates::staged(&plan);
        Ok(Changes::new(folder, log, plan, state).planned_in(Arc::clone(&self.root)))
    }

    pub(super) fn folder(&self) -> Result<&ChangesFolder, ChangesError> {
        self.folder.as_ref().ok_or(ChangesError::Gone)
    }

    pub(super) fn check_stopped(&self) -> Result<(), ChangesError> {
        if is_set(self.stop.as_deref()) { Err(ChangesError::Stopped) } else { Ok(()) }
    }

    /// The slot of a path, emptied if it was already planned.
    pub(super) fn slot_for(&mut self, place: &WorkspacePath) -> Result<usize, ChangesError> {
        if let Some(item) = self.items.get(place) {
            let slot = item.slot;
            self.folder()?.empty_slot(slot)?;
            return Ok(slot);
        }
        self.next_slot += 1;
        Ok(self.next_slot)
    }

    /// Notes an item, keeping what is known from an earlier word about the same path.
    pub(super) fn put(&mut self, place: WorkspacePath, mut item: Item) {
        item.path = place.to_string();
        if let Some(earlier) = self.items.remove(&place) {
            item.before = earlier.before;
            if item.tree.is_empty() {
                item.tree = earlier.tree;
            }
        }
        self.items.insert(place, item);
    }

    /// Lets these be turned only together.
    pub(super) fn bind(&mut self, places: &[WorkspacePath]) {
        // Nothing else has the number of the first one's slot.
        let bond = places.first().and_then(|place| self.items.get(place)).map(|item| item.slot);
        for place in places {
            if let Some(item) = self.items.get_mut(place) {
                item.bond = bond;
            }
        }
    }

    /// Refuses a path that this draft already does anything to.
    pub(super) fn refuse_planned(&self, resolved: &WorkspacePath, typed: &WorkspacePath) -> Result<(), ChangesError> {
        self.refuse_beneath_planned(resolved, typed)?;
        let is_beneath = |place: &WorkspacePath| place.as_path().starts_with(resolved.as_path());
        let item = self.items.range(resolved.clone()..).next().is_some_and(|(place, _)| is_beneath(place));
        let source = self.sources.range(resolved.clone()..).next().is_some_and(is_beneath);
        if item || source { Err(ChangesError::AlreadyPlanned { path: typed.to_string() }) } else { Ok(()) }
    }

    /// Refuses a path beneath one that goes or becomes something other than a folder, and both ends of a move.
    pub(super) fn refuse_beneath_planned(
        &self,
        resolved: &WorkspacePath,
        typed: &WorkspacePath,
    ) -> Result<(), ChangesError> {
        let planned = || Err(ChangesError::AlreadyPlanned { path: typed.to_string() });
        let is_moved = self.items.get(resolved).is_some_and(Item::is_end_of_a_move);
        if is_moved || self.sources.contains(resolved) {
            return planned();
        }
        for ancestor in resolved.ancestors() {
            let ancestor = WorkspacePath::known(ancestor.to_owned());
            if self.sources.contains(&ancestor) {
                return planned();
            }
            let Some(item) = self.items.get(&ancestor) else { continue };
            let stays_folder = item.mode.is_some() || item.makes_folder();
            if !stays_folder {
                return planned();
            }
        }
        Ok(())
    }

    fn make_parents(&mut self, resolved: &WorkspacePath) -> Result<(), ChangesError> {
        match resolved.parent() {
            Some(parent) => self.make_folders(&parent).map(|_| ()),
            None => Ok(()),
        }
    }

    fn make_folders(&mut self, resolved: &WorkspacePath) -> Result<bool, ChangesError> {
        let mut missing = Vec::new();
        let mut next = Some(resolved.clone());
        while let Some(place) = next.filter(|place| !place.is_root()) {
            if let Some(item) = self.items.get(&place).filter(|item| item.mode.is_none()) {
                if item.makes_folder() {
                    break;
                }
                return Err(ChangesError::AlreadyPlanned { path: place.to_string() });
            }
            match self.root.look_real(&place)? {
                Some(seen) if seen.kind() == EntryKind::Directory => break,
                Some(_) => return Err(PathError::NotDirectory { path: place.to_string() }.into()),
                None => {}
            }
            next = place.parent();
            missing.push(place);
        }
        let made = !missing.is_empty();
        for place in missing.into_iter().rev() {
            self.check_stopped()?;
            let slot = self.slot_for(&place)?;
            let staged = stage::folder(self.folder()?, slot)?;
            let subject = mode_subject(&place, EntryKind::Directory, staged.stamp.mode);
            let sketch = Sketch { flags: flags(&subject), ..Sketch::default() };
            self.put(place, Item { slot, ..Item::swap(Some(staged), None, sketch) });
        }
        Ok(made)
    }

    fn sketch_file(
        &mut self,
        place: &WorkspacePath,
        (exists, before): (bool, Option<&[u8]>),
        after: &[u8],
        staged: &EntryIdentity,
    ) -> Sketch {
        let old = match before {
            _ if !exists => DiffSide::Nothing,
            Some(content) => DiffSide::Content(content),
            None => DiffSide::Unknown,
        };
        let shown = compare(&place.to_string(), old, DiffSide::Content(after));
        let subject =
            Subject { before, after: Some(after), ..mode_subject(place, EntryKind::File, staged.stamp.mode & 0o7777) };
        let flags = flags(&subject);
        Sketch { flags, ..self.keep_diff(shown) }
    }

    /// Keeps a diff as long as there is room; the rest is computed when somebody asks.
    pub(super) fn keep_diff(&mut self, shown: RenderedDiff) -> Sketch {
        let room = LONGEST_DIFF.min(self.diffs_left);
        let diff = shown.diff.filter(|diff| diff.len() <= room);
        self.diffs_left -= diff.as_ref().map_or(0, String::len);
        Sketch { diff, binary: shown.binary, added: shown.added, removed: shown.removed, ..Sketch::default() }
    }

    /// Whether any more diffs can be kept.
    pub(super) fn has_room_for_diffs(&self) -> bool {
        self.diffs_left > LONGEST_DIFF
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            // A folder without a plan is nothing to anybody; what cannot be removed now is removed with the rest later.
            let _kept_for_cleaning = folder.remove();
        }
    }
}

/// Whether the caller wants it to stop.
pub(super) fn is_set(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

pub(super) fn check_expected(
    place: &WorkspacePath,
    expected: Expected,
    exists: bool,
    seen: Option<&EntryIdentity>,
) -> Result<(), ChangesError> {
    match expected {
        Expected::Anything => Ok(()),
        Expected::Nothing if exists => Err(ChangesError::AlreadyExists { path: place.to_string() }),
        Expected::Nothing => Ok(()),
        Expected::Exactly(stamp) if seen.is_some_and(|seen| seen.stamp == stamp) => Ok(()),
        Expected::Exactly(_) => Err(ChangesError::Stale { path: place.to_string() }),
    }
}

/// The file whose mode and owner a written file keeps; anything but a file cannot be written over.
fn file_to_keep(
    place: &WorkspacePath,
    planned: Option<&Item>,
    target: &WriteTarget,
) -> Result<Option<EntryIdentity>, ChangesError> {
    let there = match planned {
        None => target.seen,
        Some(item) if item.mode.is_some() => item.before.map(|before| {
            let mode = item.mode.unwrap_or_default() | (before.stamp.mode & !0o7777);
            EntryIdentity { stamp: FileStamp { mode, ..before.stamp }, ..before }
        }),
        Some(item) => item.staged,
    };
    match there.map(|seen| seen.kind()) {
        None | Some(EntryKind::File) => Ok(there),
        Some(EntryKind::Directory) => Err(PathError::IsDirectory { path: place.to_string() }.into()),
        Some(EntryKind::Link) => Err(ChangesError::AlreadyPlanned { path: place.to_string() }),
        Some(kind @ (EntryKind::Fifo | EntryKind::Socket | EntryKind::Device)) => {
            Err(PathError::NotRegular { path: place.to_string(), what: kind.described() }.into())
        }
    }
}

pub(super) fn mode_subject(place: &WorkspacePath, kind: EntryKind, mode: u32) -> Subject<'_> {
    let path = place.as_path();
    Subject { path, kind: Some(kind), mode, before: None, after: None, leads_outside: false }
}

/// A short text that no other set of changes has.
fn tag(dir: &Path) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    dir.hash(&mut hasher);
    std::process::id().hash(&mut hasher);
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().hash(&mut hasher);
    format!("{:012x}", hasher.finish() >> 16)
}
