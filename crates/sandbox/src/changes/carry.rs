//! Sets of changes in a backup: held still while they are copied, and bound to the copied files after they are restored.

use std::{
    collections::HashMap,
    fs,
    os::fd::AsFd,
    path::{Path, PathBuf},
    time::Duration,
};

use super::change_log::{ChangeLog, LogState};
use super::error::{ChangesError, kept_io};
use super::folder::ChangesFolder;
use super::lock::Lock;
use super::plan::{ChangePlan, Item, ItemStates};
use super::sealed::{Changes, PATIENCE};
use crate::stamp::{EntryIdentity, FileStamp, look_behind};
use crate::tree_reader::EntryMark;
use crate::workspace_path::{read_shown_name, show_name};

/// The workspaces whose files nobody commits or undoes while this is held.
#[derive(Debug)]
pub struct HeldWorkspaces {
    _lock: Lock,
}

impl HeldWorkspaces {
    /// Holds the workspaces of all sets in a data folder still, and these folders. A half turn whose process has died is
    /// healed first. Commits wait for as long as it is held.
    pub fn take(data: &Path, folders: &[PathBuf]) -> Result<HeldWorkspaces, ChangesError> {
        let mut held: Vec<EntryIdentity> = folders.iter().filter_map(|folder| look_behind(folder).ok()).collect();
        for set in sets(data) {
            // What cannot be read any more can neither be committed nor undone.
            if let Ok(changes) = Changes::open(&set) {
                held.extend(changes.plan.folders());
            }
        }
        held.sort_by_key(inode);
        held.dedup_by_key(|folder| inode(folder));
        let changes = data.join("changes");
        let failed = |source| kept_io("make the folder", source);
        // The locks lie beside the folder of all sets, so that one is named beneath it.
        let within = changes.join(format!("held-{}", std::process::id()));
        fs::create_dir_all(&within).map_err(failed)?;
        let open = fs::File::open(&within).map_err(failed)?;
        let lock = Lock::take(open.as_fd(), held, PATIENCE);
        fs::remove_dir(&within).ok();
        Ok(HeldWorkspaces { _lock: lock? })
    }
}

/// How long commits wait for each other, at most.
pub const COMMITS_WAIT: Duration = PATIENCE;

/// The folders of all whole sets of a data folder.
pub fn sets(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("changes")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut sets: Vec<PathBuf> = entries.filter(|path| path.join(super::change_log::FILE_NAME).is_file()).collect();
    sets.sort();
    sets
}

/// Whether this is a part of a set that a backup keeps, by its path beneath the set. The rest are layers of a command, which
/// only quicken later ones.
pub fn is_kept(path: &Path) -> bool {
    let Some(first) = path.components().next() else { return true };
    let name = first.as_os_str().to_string_lossy();
    name == super::change_log::FILE_NAME || name.starts_with("slot-")
}

/// Where the entries of a backup are now.
#[derive(Debug, Default)]
pub struct CarriedEntries {
    /// Folders that lie elsewhere now.
    pub folders: Vec<(PathBuf, PathBuf)>,
    /// By device and inode in the backup; `None` for a file with several names, which is several files now.
    entries: HashMap<(u64, u64), Option<(EntryIdentity, EntryIdentity)>>,
}

impl CarriedEntries {
    /// Notes that an entry with the first mark has the second one now.
    pub fn add(&mut self, before: EntryMark, now: EntryMark) {
        let known = self.entries.entry(before.inode());
        known.and_modify(|several| *several = None).or_insert(Some((before.0, now.0)));
    }

    /// The inode that an entry is now, if it was the same when the backup was made. What had changed before the backup is
    /// left as it is, so that it is still a conflict.
    fn identity(&self, then: &EntryIdentity) -> EntryIdentity {
        let Some(Some((before, now))) = self.entries.get(&inode(then)) else { return *then };
        if before.born != then.born {
            return *then;
        }
        EntryIdentity { stamp: restamped(&then.stamp, (&before.stamp, &now.stamp)), born: now.born, ..*now }
    }

    fn stamp(&self, then: &FileStamp) -> FileStamp {
        match self.entries.get(&(then.dev, then.ino)) {
            Some(Some((before, now))) => restamped(then, (&before.stamp, &now.stamp)),
            Some(None) | None => *then,
        }
    }

    /// A path as it was shown, where it lies now.
    fn place(&self, shown: &str) -> String {
        let path = PathBuf::from(read_shown_name(shown));
        let moved = self.folders.iter().find_map(|(from, to)| Some(to.join(path.strip_prefix(from).ok()?)));
        moved.map_or_else(|| shown.to_owned(), |path| show_name(path.as_os_str()))
    }
}

/// The stamp that an entry has now. One that was touched between the look and the backup counts as touched.
fn restamped(then: &FileStamp, (before, now): (&FileStamp, &FileStamp)) -> FileStamp {
    if !then.same_apart_from_renames(before) {
        return FileStamp { dev: now.dev, ino: now.ino, ..*then };
    }
    let ctime = if then.ctime == before.ctime { now.ctime } else { (0, 0) };
    FileStamp { ctime, ..*now }
}

fn inode(of: &EntryIdentity) -> (u64, u64) {
    (of.stamp.dev, of.stamp.ino)
}

/// The devices and inodes that a set looks for.
pub fn inodes_of(dir: &Path) -> Result<Vec<(u64, u64)>, ChangesError> {
    let folder = ChangesFolder::open(dir)?;
    let (log, mut plan) = ChangeLog::open(folder.handle())?.ok_or(ChangesError::Gone)?;
    let mut state = log.standing()?.state;
    let mut inodes = Vec::new();
    each_identity(&mut plan, state.as_mut(), |identity| inodes.push(inode(identity)));
    each_stamp(&mut plan, |stamp| inodes.push((stamp.dev, stamp.ino)));
    Ok(inodes)
}

/// Binds a restored set to the entries that were restored with it.
pub fn rebind(dir: &Path, carried: &CarriedEntries) -> Result<(), ChangesError> {
    let folder = ChangesFolder::open(dir)?;
    let (log, mut plan) = ChangeLog::open(folder.handle())?.ok_or(ChangesError::Gone)?;
    let LogState { mut state, turning } = log.standing()?;
    plan.root = carried.place(&plan.root);
    if let Some(git) = &mut plan.git {
        git.path = carried.place(&git.path);
    }
    each_identity(&mut plan, state.as_mut(), |identity| *identity = carried.identity(identity));
    each_stamp(&mut plan, |stamp| *stamp = carried.stamp(stamp));
    folder.unlink(super::change_log::FILE_NAME)?;
    let log = ChangeLog::create(folder.handle(), &plan)?;
    if let Some(state) = state {
        log.settle(&state)?;
    }
    if turning { log.begin() } else { Ok(()) }
}

fn each_identity(plan: &mut ChangePlan, state: Option<&mut ItemStates>, mut visit: impl FnMut(&mut EntryIdentity)) {
    visit(&mut plan.root_seen);
    plan.git.iter_mut().for_each(|git| visit(&mut git.seen));
    for Item { staged, before, moved, .. } in &mut plan.items {
        let moved = moved.as_mut().map(|moved| &mut moved.seen);
        staged.iter_mut().chain(before).chain(moved).for_each(&mut visit);
    }
    for rest in state.into_iter().flat_map(|state| &mut state.items) {
        rest.slot.iter_mut().chain(&mut rest.path).chain(&mut rest.from).for_each(&mut visit);
    }
}

fn each_stamp(plan: &mut ChangePlan, mut visit: impl FnMut(&mut FileStamp)) {
    for item in &mut plan.items {
        item.tree.iter_mut().chain(&mut item.brings).for_each(|entry| visit(&mut entry.stamp));
    }
}
