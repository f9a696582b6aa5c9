//! A sealed set of changes: shown, committed, undone, discarded.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::change::{ChangeDirection, FileChange, FileChangeKind, FileChangeState, Selection};
use super::change_log::ChangeLog;
use super::check::agree;
use super::error::ChangesError;
use super::flags::ChangeFlag;
use super::folder::ChangesFolder;
use super::lock::Lock;
use super::plan::{ChangePlan, Item, ItemStates};
use super::recover::{NO_WAIT, heal, is_half_turned};
use super::rewritten_index::accept_rewritten;
use super::select::select;
use super::show::reversed;
use super::turn::{Parents, TurnContext, turn};
use crate::root::Root;
use crate::stamp::EntryKind;
use crate::transfer::EntryRef;
use crate::workspace_path::read_shown_name;

/// How long a turn waits for another one in the same workspace.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A sealed set of changes, opened by any process.
#[derive(Debug)]
pub struct Changes {
    pub(super) folder: ChangesFolder,
    log: ChangeLog,
    pub(super) plan: ChangePlan,
    pub(super) state: ItemStates,
    root: Option<Arc<Root>>,
    /// The workspace as it was open while they were planned; it may be elsewhere by now.
    planned_in: Option<Arc<Root>>,
    root_path: PathBuf,
    patience: Duration,
}

impl Changes {
    pub(super) fn new(folder: ChangesFolder, log: ChangeLog, plan: ChangePlan, state: ItemStates) -> Changes {
        let root_path = PathBuf::from(std::ffi::OsString::from_vec(crate::workspace_path::read_shown(&plan.root)));
        Changes { folder, log, plan, state, root: None, planned_in: None, root_path, patience: PATIENCE }
    }

    /// The same, with the workspace that is still open.
    pub(super) fn planned_in(self, root: Arc<Root>) -> Changes {
        Changes { planned_in: Some(root), ..self }
    }

    /// Opens sealed changes; a half turn that nobody is working on is healed first.
    pub fn open(dir: &Path) -> Result<Changes, ChangesError> {
        let mut folder = ChangesFolder::open(dir)?;
        let (log, plan) = ChangeLog::open(folder.handle())?.ok_or(ChangesError::Gone)?;
        folder.sync = plan.sync;
        let standing = log.standing()?;
        let half_turned = is_half_turned(&folder, &standing)?;
        let state = standing.state.unwrap_or_else(|| ItemStates::staged(&plan));
        let mut changes = Changes::new(folder, log, plan, state);
        if half_turned {
            changes.heal_if_free()?;
        }
        Ok(changes)
    }

    /// Waits at most this long for another turn in the same workspace.
    pub fn waiting(mut self, patience: Duration) -> Changes {
        self.patience = patience;
        self
    }

    /// Every changed path, in path order.
    pub fn list(&self) -> Vec<FileChange> {
        self.changes_of(0..self.plan.items.len())
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.plan.items.is_empty()
    }

    /// How many bytes the paths in the list have together, told without making it.
    pub fn listed_bytes(&self) -> usize {
        self.plan.items.iter().map(Item::listed_bytes).fold(0, usize::saturating_add)
    }

    /// The workspace that the changes belong to.
    pub fn root_path(&self) -> &Path {
        &self.root_path
    }

    /// Commits or undoes the chosen changes, all or none; gives those that were turned.
    pub fn turn(&mut self, direction: ChangeDirection, paths: Selection<'_>) -> Result<Vec<FileChange>, ChangesError> {
        self.turn_within(self.patience, direction, paths)
    }

    /// The same, if that takes a few system calls which wait for nobody; `None` where it would take longer.
    pub fn turn_at_once(
        &mut self,
        direction: ChangeDirection,
        paths: Selection<'_>,
    ) -> Result<Option<Vec<FileChange>>, ChangesError> {
        if !self.plan.is_brief() || !self.root()?.is_near() {
            return Ok(None);
        }
        match self.turn_within(NO_WAIT, direction, paths) {
            Err(ChangesError::Busy) => Ok(None),
            turned => turned.map(Some),
        }
    }

    fn turn_within(
        &mut self,
        patience: Duration,
        direction: ChangeDirection,
        paths: Selection<'_>,
    ) -> Result<Vec<FileChange>, ChangesError> {
        let root = self.root()?;
        let _lock = Lock::take(self.folder.handle(), root.folders(), patience)?;
        self.refresh(&root)?;
        let chosen = select(&self.plan, &self.state, direction, paths)?;
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let mut parents = Parents::new(&root);
        if let Some(state) = accept_rewritten(self.turn_context(&root), &chosen, &mut parents) {
            self.log.settle(&state)?;
            self.state = state;
        }
        let context = self.turn_context(&root);
        let mut chosen = agree(context, direction, chosen, &mut parents)?;
        self.state = turn(context, direction, &chosen, &mut parents)?;
        chosen.sort_unstable();
        Ok(self.changes_of(chosen))
    }

    /// What a turn would do, and whether it could; touches nothing. An undo is shown from its own side.
    pub fn preview_turn(
        &self,
        direction: ChangeDirection,
        paths: Selection<'_>,
    ) -> Result<Vec<FileChange>, ChangesError> {
        let root = match &self.root {
            Some(root) => Arc::clone(root),
            None => self.open_root()?,
        };
        let state = self.log.standing()?.state.unwrap_or_else(|| self.state.clone());
        let chosen = select(&self.plan, &state, direction, paths)?;
        let mut parents = Parents::new(&root);
        let context = TurnContext { state: &state, ..self.turn_context(&root) };
        let state = accept_rewritten(context, &chosen, &mut parents).unwrap_or_else(|| state.clone());
        let context = TurnContext { state: &state, ..self.turn_context(&root) };
        let mut chosen = agree(context, direction, chosen, &mut parents)?;
        chosen.sort_unstable();
        let units = self.plan.units();
        let changes = |index: usize| {
            let item = &self.plan.items[index];
            let changes = item.changes(units[index], state.items[index].state).into_iter();
            match direction {
                ChangeDirection::Commit => changes.collect(),
                ChangeDirection::Undo => {
                    let mut back = item.flags_of_return();
                    let inverted = changes.flat_map(|change| inverted(item, change));
                    let flagged = inverted.map(|change| match back.remove(&change.path) {
                        Some(flags) => with_flags(change, flags),
                        None => change,
                    });
                    flagged.collect::<Vec<_>>()
                }
            }
        };
        Ok(chosen.into_iter().flat_map(changes).collect())
    }

    /// Throws away what is staged and was never committed; what was undone can still be committed again.
    pub fn discard(&mut self) -> Result<(), ChangesError> {
        let root = self.root()?;
        let _lock = Lock::take(self.folder.handle(), root.folders(), self.patience)?;
        self.refresh(&root)?;
        let staged: Vec<usize> = (0..self.plan.items.len())
            .filter(|&index| self.state.items[index].state == FileChangeState::Staged)
            .collect();
        let mut next = self.state.clone();
        for &index in &staged {
            next.items[index].state = FileChangeState::Discarded;
        }
        self.log.settle(&next)?;
        for index in staged {
            self.empty_slot(index)?;
        }
        self.state = next;
        Ok(())
    }

    /// Empties a slot, unless it holds something that we did not put there.
    fn empty_slot(&self, index: usize) -> Result<(), ChangesError> {
        let slot = self.plan.items[index].slot;
        let name = ChangesFolder::slot_name(slot);
        let found = EntryRef { dir: self.folder.handle(), name: &name }
            .look()
            .map_err(|errno| ChangesError::kept("look into a slot", errno))?;
        match (&self.state.items[index].slot, found) {
            (Some(ours), Some(found)) if found.is(ours) => self.folder.empty_slot(slot),
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }

    /// Takes over what other processes have done since; the lock is held.
    fn refresh(&mut self, root: &Root) -> Result<(), ChangesError> {
        let standing = self.log.standing()?;
        let half_turned = is_half_turned(&self.folder, &standing)?;
        if let Some(state) = standing.state {
            self.state = state;
        }
        if half_turned {
            let (state, _) = heal(self.turn_context(root), standing.turning)?;
            self.state = state;
        }
        Ok(())
    }

    fn turn_context<'a>(&'a self, root: &'a Root) -> TurnContext<'a> {
        TurnContext { folder: &self.folder, log: &self.log, root, plan: &self.plan, state: &self.state }
    }

    fn heal_if_free(&mut self) -> Result<(), ChangesError> {
        // Without the workspace there is nothing to heal, but the changes can still be listed.
        let Ok(root) = self.root() else { return Ok(()) };
        match Lock::take(self.folder.handle(), root.folders(), NO_WAIT) {
            Ok(_lock) => self.refresh(&root),
            Err(ChangesError::Busy) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The workspace, opened on first use.
    pub(super) fn root(&mut self) -> Result<Arc<Root>, ChangesError> {
        if let Some(root) = &self.root {
            return Ok(Arc::clone(root));
        }
        let root = self.open_root()?;
        self.root = Some(Arc::clone(&root));
        Ok(root)
    }

    /// The workspace at its path. The one that is still open serves again where the path still leads to it.
    fn open_root(&self) -> Result<Arc<Root>, ChangesError> {
        match &self.planned_in {
            Some(root) if root.is_still_at(&self.root_path) => Ok(Arc::clone(root)),
            Some(_) | None => open_root(&self.plan).map(Arc::new),
        }
    }

    fn changes_of(&self, chosen: impl IntoIterator<Item = usize>) -> Vec<FileChange> {
        let units = self.plan.units();
        let changes = |index: usize| self.plan.items[index].changes(units[index], self.state.items[index].state);
        chosen.into_iter().flat_map(changes).collect()
    }
}

/// A change from the other side. What had made room for a move is listed beside it.
fn inverted(item: &Item, change: FileChange) -> Vec<FileChange> {
    let kind = match change.kind {
        FileChangeKind::Created => FileChangeKind::Deleted,
        FileChangeKind::Deleted => FileChangeKind::Created,
        FileChangeKind::Link if item.before.is_none() => FileChangeKind::Deleted,
        kind @ (FileChangeKind::Changed | FileChangeKind::Mode | FileChangeKind::Link | FileChangeKind::Renamed) => {
            kind
        }
    };
    let diff = change.diff.as_deref().map(reversed);
    let summary = change.summary.as_ref().map(|summary| format!("undo {summary}"));
    let Some(home) = change.from.clone() else {
        let (added, removed) = (change.removed, change.added);
        let mut back = FileChange { kind, diff, added, removed, summary, ..change };
        // What is there again is as large and as executable as it was.
        if let Some(before) = item.before.filter(|_| back.path == item.path && !back.directory) {
            back.executable = before.kind() == EntryKind::File && before.stamp.mode & 0o111 != 0;
            back.size = before.stamp.size;
        }
        return vec![back];
    };
    let plain = FileChange { from: None, replaces: None, diff: None, added: 0, removed: 0, ..change.clone() };
    let back = FileChange { path: home, from: Some(change.path.clone()), ..plain.clone() };
    let replaced = change.replaces.map(|size| FileChange { kind: FileChangeKind::Created, size, ..plain });
    std::iter::once(back).chain(replaced).collect()
}

fn with_flags(mut change: FileChange, more: Vec<ChangeFlag>) -> FileChange {
    change.flags.extend(more);
    change.flags.sort_unstable();
    change.flags.dedup();
    change
}

/// Opens the workspace of a plan, if it and its git folder are still the same.
pub(super) fn open_root(plan: &ChangePlan) -> Result<Root, ChangesError> {
    let root = Root::open(Path::new(&read_shown_name(&plan.root)), &[]).map_err(|_| ChangesError::OtherWorkspace)?;
    if !root.seen().is(&plan.root_seen) {
        return Err(ChangesError::OtherWorkspace);
    }
    let Some(git) = &plan.git else { return Ok(root) };
    let shared = PathBuf::from(read_shown_name(&git.path));
    let own = shared.join(read_shown_name(&git.own));
    let root = root.with_git_folder(&shared, &own).map_err(|_| ChangesError::OtherWorkspace)?;
    let is_same = root.git_folder().is_some_and(|found| found.seen().is(&git.seen));
    if is_same { Ok(root) } else { Err(ChangesError::OtherWorkspace) }
}
