//! The changes of all calls that are kept in the data folder, and giving them up.

use std::path::PathBuf;

use haft_runtime::{CallId, ToolError};
use haft_sandbox::changes::{self, ChangesError};

use crate::{
    blocking::{StopWith, blocking},
    refusal::Trying,
    workspace::{CHANGES, changes_of},
};

/// Whatever lies in haft's data folder because of changes.
#[derive(Clone, Debug)]
pub struct KeptChanges {
    data: PathBuf,
}

/// What is kept of one call's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallChangesSummary {
    /// How much space it takes.
    pub bytes: u64,
    /// Whether something of it waits to be committed.
    pub has_staged: bool,
}

/// What became of the attempt to give changes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUpResult {
    /// They are gone.
    Gone,
    /// Somebody works with them at this moment.
    InUse,
}

impl KeptChanges {
    /// In haft's data folder.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into() }
    }

    /// The calls whose changes are kept, oldest first.
    pub fn calls(&self) -> Vec<CallId> {
        let mut calls: Vec<CallId> = self.names().iter().filter_map(|name| CallId::parse(name)).collect();
        calls.sort();
        calls
    }

    /// Whether the changes of a call are kept.
    pub fn has(&self, call: &CallId) -> bool {
        changes_of(&self.data, call).exists()
    }

    /// What is kept of a call's changes; `None` when that is nothing.
    pub async fn look(&self, call: &CallId) -> Result<Option<CallChangesSummary>, ToolError> {
        let dir = changes_of(&self.data, call);
        blocking(StopWith::Nothing, move |_| match changes::look(&dir) {
            Ok(kept) => Ok(Some(CallChangesSummary { bytes: kept.bytes, has_staged: kept.has_staged })),
            Err(ChangesError::Gone) => Ok(None),
            Err(refused) => Err(refused).trying("look at the changes"),
        })
        .await
    }

    /// Gives the changes of a call up: it can then neither be undone nor committed.
    pub async fn give_up(&self, call: &CallId) -> Result<GiveUpResult, ToolError> {
        let dir = changes_of(&self.data, call);
        blocking(StopWith::Nothing, move |_| match changes::give_up(&dir) {
            Ok(()) | Err(ChangesError::Gone) => Ok(GiveUpResult::Gone),
            Err(ChangesError::Busy) => Ok(GiveUpResult::InUse),
            Err(refused) => Err(refused).trying("remove the changes"),
        })
        .await
    }

    /// Removes what was being given up when haft was killed.
    pub async fn clear_leftovers(&self) -> Result<(), ToolError> {
        let folder = self.data.join(CHANGES);
        let gone: Vec<String> = self.names().into_iter().filter(|name| name.starts_with(changes::GONE)).collect();
        blocking(StopWith::Nothing, move |_| {
            gone.iter().try_for_each(|name| changes::remove_gone(&folder.join(name)).trying("remove the changes"))
        })
        .await
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.data.join(CHANGES)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}
