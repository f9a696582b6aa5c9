//! Which changes a turn takes: whole units, in the order in which they must be swapped.

use std::collections::{HashMap, HashSet};

use super::change::{ChangeDirection, FileChangeState, Selection};
use super::error::ChangesError;
use super::plan::{ChangePlan, Item, ItemStates};
use crate::workspace_path::show_name;

/// How many similar paths are offered for an unknown one.
const SUGGESTIONS: usize = 3;

/// The items that a turn takes, in the order in which they are swapped.
pub(super) fn select(
    plan: &ChangePlan,
    state: &ItemStates,
    direction: ChangeDirection,
    selection: Selection<'_>,
) -> Result<Vec<usize>, ChangesError> {
    let mut chosen = match selection {
        Selection::All => all(plan, state, direction)?,
        Selection::Some(paths) => some(plan, state, direction, paths)?,
    };
    chosen.sort_by_key(|&index| (rank(&plan.items[index]), index));
    if direction == ChangeDirection::Undo {
        chosen.reverse();
    }
    Ok(chosen)
}

/// Whether a change in this state can be turned this way.
pub(super) fn can_turn(state: FileChangeState, direction: ChangeDirection) -> bool {
    match (state, direction) {
        (FileChangeState::Staged | FileChangeState::Undone, ChangeDirection::Commit) => true,
        (FileChangeState::Committed, ChangeDirection::Undo) => true,
        (FileChangeState::Committed | FileChangeState::Discarded, ChangeDirection::Commit) => false,
        (FileChangeState::Staged | FileChangeState::Undone | FileChangeState::Discarded, ChangeDirection::Undo) => {
            false
        }
    }
}

/// Permissions that let us write come first, those that take it away last; between them, parents before children.
pub(super) fn rank(item: &Item) -> u8 {
    match item.mode {
        None => 1,
        Some(mode) if mode & 0o200 != 0 && item.before.is_some_and(|seen| seen.stamp.mode & 0o200 == 0) => 0,
        Some(_) => 2,
    }
}

fn all(plan: &ChangePlan, state: &ItemStates, direction: ChangeDirection) -> Result<Vec<usize>, ChangesError> {
    let chosen: Vec<usize> =
        (0..plan.items.len()).filter(|&index| can_turn(state.items[index].state, direction)).collect();
    match state.items.first() {
        Some(first) if chosen.is_empty() => Err(ChangesError::WrongState { path: String::new(), state: first.state }),
        _ => Ok(chosen),
    }
}

fn some(
    plan: &ChangePlan,
    state: &ItemStates,
    direction: ChangeDirection,
    paths: &[String],
) -> Result<Vec<usize>, ChangesError> {
    let by_path = by_path(plan);
    let mut chosen = HashSet::new();
    let mut beneath = Vec::new();
    for path in paths {
        let shown = show_name(path.as_ref());
        match by_path.get(path.as_str()).or_else(|| by_path.get(shown.as_str())) {
            Some(&index) => {
                check_state(plan, state, direction, index)?;
                chosen.insert(index);
            }
            None => beneath.push(path),
        }
    }
    // An entry beneath a folder that goes or comes is fine when the whole folder was chosen, too.
    let folders = if beneath.is_empty() { HashMap::new() } else { folders_of(plan) };
    for path in beneath {
        let index = *folders.get(path).ok_or_else(|| unknown(plan, path))?;
        if !chosen.contains(&index) {
            let unit = plan.items[index].changes(index, FileChangeState::Staged).into_iter().map(|change| change.path);
            return Err(ChangesError::NotAUnit { path: path.clone(), unit: unit.collect() });
        }
    }
    let units = plan.units();
    let turned: HashSet<usize> = chosen.iter().map(|&index| units[index]).collect();
    chosen.extend((0..units.len()).filter(|&index| turned.contains(&units[index])));
    match direction {
        ChangeDirection::Commit => add_parents(plan, state, &by_path, &mut chosen)?,
        ChangeDirection::Undo => check_folders_are_whole(plan, state, &chosen)?,
    }
    Ok(chosen.into_iter().collect())
}

/// Every item by its path; a move also by where it comes from.
fn by_path(plan: &ChangePlan) -> HashMap<&str, usize> {
    let items = plan.items.iter().enumerate();
    let sources = items.clone().filter_map(|(index, item)| Some((item.moved.as_ref()?.from.as_str(), index)));
    sources.chain(items.map(|(index, item)| (item.path.as_str(), index))).collect()
}

fn check_state(
    plan: &ChangePlan,
    state: &ItemStates,
    direction: ChangeDirection,
    index: usize,
) -> Result<(), ChangesError> {
    let state = state.items[index].state;
    if can_turn(state, direction) {
        return Ok(());
    }
    Err(ChangesError::WrongState { path: plan.items[index].path.clone(), state })
}

/// Every entry beneath a folder that goes, comes or moves, with the item of that folder.
fn folders_of(plan: &ChangePlan) -> HashMap<String, usize> {
    let folders = plan.items.iter().enumerate().filter(|(_, item)| !item.tree.is_empty() || !item.brings.is_empty());
    let entries = folders.flat_map(|(index, item)| {
        item.changes(index, FileChangeState::Staged).into_iter().skip(1).map(move |change| (change.path, index))
    });
    entries.collect()
}

/// A new file needs its new folders.
fn add_parents(
    plan: &ChangePlan,
    state: &ItemStates,
    by_path: &HashMap<&str, usize>,
    chosen: &mut HashSet<usize>,
) -> Result<(), ChangesError> {
    for index in chosen.clone() {
        let mut path = plan.items[index].path.as_str();
        while let Some((parent, _)) = path.rsplit_once('/') {
            path = parent;
            let Some(&above) = by_path.get(parent).filter(|&&above| plan.items[above].makes_folder()) else { continue };
            if state.items[above].state != FileChangeState::Committed {
                check_state(plan, state, ChangeDirection::Commit, above)?;
                chosen.insert(above);
            }
        }
    }
    Ok(())
}

/// A new folder goes only with everything that was put into it.
fn check_folders_are_whole(plan: &ChangePlan, state: &ItemStates, chosen: &HashSet<usize>) -> Result<(), ChangesError> {
    for &index in chosen.iter().filter(|&&index| plan.items[index].makes_folder()) {
        let inside = format!("{}/", plan.items[index].path);
        // In path order everything inside follows at once.
        let unit: Vec<usize> = (index + 1..plan.items.len())
            .take_while(|&other| plan.items[other].path.starts_with(&inside))
            .filter(|&other| state.items[other].state == FileChangeState::Committed)
            .collect();
        if unit.iter().any(|other| !chosen.contains(other)) {
            let path = plan.items[index].path.clone();
            let unit = std::iter::once(index).chain(unit).map(|other| plan.items[other].path.clone()).collect();
            return Err(ChangesError::NotAUnit { path, unit });
        }
    }
    Ok(())
}

/// The answer to a path that is not among the changes.
pub(super) fn unknown(plan: &ChangePlan, path: &str) -> ChangesError {
    let mut alike: Vec<(f64, &str)> = plan
        .items
        .iter()
        .map(|item| (strsim::normalized_damerau_levenshtein(path, &item.path), item.path.as_str()))
        .filter(|(likeness, _)| *likeness > 0.5)
        .collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0));
    let nearest = alike.into_iter().take(SUGGESTIONS).map(|(_, path)| path.to_owned()).collect();
    ChangesError::UnknownPath { path: path.to_owned(), nearest }
}
