//! In which order results come.

use std::{cmp::Reverse, ffi::OsStr, sync::Arc, time::SystemTime};

use schemars::JsonSchema;
use serde::Deserialize;

/// In which order results come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SortOrder {
    #[default]
    Path,
    Modified,
}

/// Where a result stands among all: by time if that was asked for, then by the bytes of the path, then by line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SortKey {
    newest: Option<Reverse<SystemTime>>,
    pub(super) path: Arc<OsStr>,
    pub(super) line: u64,
}

impl SortKey {
    /// The key of a file, which is the smallest of all keys of its lines.
    pub(super) fn new(sort: SortOrder, path: &OsStr, modified: SystemTime) -> Self {
        let newest = match sort {
            SortOrder::Path => None,
            SortOrder::Modified => Some(Reverse(modified)),
        };
        Self { newest, path: Arc::from(path), line: 0 }
    }

    pub(super) fn at_line(&self, line: u64) -> Self {
        Self { line, ..self.clone() }
    }
}
