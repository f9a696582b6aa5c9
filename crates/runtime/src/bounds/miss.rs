//! Which bound a call did not keep.

use std::fmt;

use serde_json::Value;

use super::carries;
use crate::{Change, ChangeKind, ChangeList, Evidence};

/// What bounds are held against, gathered once for a decision.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub(super) input: &'a Value,
    /// `None` when the call could not be staged.
    pub(super) changes: Option<&'a ChangeList>,
    pub(super) bytes: u64,
    /// The first change that only bounds with executables contain.
    pub(super) executable: Option<Miss<'a>>,
    pub(super) flagged: bool,
}

impl<'a> Seen<'a> {
    /// What is known of a call.
    pub fn new(input: &'a Value, evidence: &'a Evidence) -> Self {
        let changes = match evidence {
            Evidence::Staged { changes, .. } => Some(changes),
            Evidence::Plain { .. } => None,
        };
        let list = || changes.into_iter().flat_map(|changes| &changes.0);
        Self {
            input,
            changes,
            bytes: changes.map_or(0, ChangeList::bytes),
            executable: list().find_map(executable),
            flagged: list().any(|change| !change.flags.is_empty()),
        }
    }
}

fn executable(change: &Change) -> Option<Miss<'_>> {
    let path = &change.path;
    if carries(change) {
        return Some(Miss::Carried { path });
    }
    change.executable.then_some(Miss::Executable { path })
}

/// Which bound a call did not keep, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss<'a> {
    /// Another input is covered.
    Input,
    /// The effect could not be seen before.
    Unseen,
    /// Too many paths change.
    Files {
        /// How many may.
        most: usize,
        /// How many do.
        found: usize,
    },
    /// Too much is written.
    Bytes {
        /// How much may be.
        most: u64,
        /// How much is.
        found: u64,
    },
    /// A path changes in another way.
    Kind {
        /// Which.
        path: &'a str,
        /// How.
        kind: ChangeKind,
    },
    /// A path is executable.
    Executable {
        /// Which.
        path: &'a str,
    },
    /// A folder may hold executable files.
    Carried {
        /// Which.
        path: &'a str,
    },
    /// A path matches no glob.
    Outside {
        /// Which.
        path: &'a str,
    },
    /// A path must be looked at twice, and is not named.
    Flagged {
        /// Which.
        path: &'a str,
    },
}

impl fmt::Display for Miss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("input: it covers another input"),
            Self::Unseen => f.write_str("what it does cannot be seen before, so only its exact input can be covered"),
            Self::Files { most, found } => write!(f, "max_files = {most}, but {found} paths change"),
            Self::Bytes { most, found } => write!(f, "max_bytes = {most}, but {found} bytes are written"),
            Self::Kind { path, kind } => write!(f, "kinds: `{path}` would be {}", kind_word(*kind)),
            Self::Executable { path } => write!(f, "executables: `{path}` is executable"),
            Self::Carried { path } => write!(f, "executables: `{path}` may hold some"),
            Self::Outside { path } => write!(f, "paths: `{path}` lies outside them"),
            Self::Flagged { path } => write!(f, "paths: `{path}` is flagged and not named by its very path"),
        }
    }
}

/// All that bounds did not contain: the first bound that failed, and how many did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed<'a> {
    /// The first that failed.
    pub first: Miss<'a>,
    /// How many failed.
    pub failed: usize,
}

impl Missed<'_> {
    /// Whether it is the same sort of call, so that a person may wonder why it was not covered.
    pub(crate) fn is_near(&self) -> bool {
        self.first != Miss::Input
    }
}

/// Gathers misses, bound by bound, without keeping all of them: a thousand grants are held against each call.
#[derive(Default)]
pub(super) struct Misses<'a> {
    first: Option<Miss<'a>>,
    failed: usize,
}

impl<'a> Misses<'a> {
    pub(super) fn add(&mut self, miss: Option<Miss<'a>>) {
        if let Some(miss) = miss {
            self.first.get_or_insert(miss);
            self.failed += 1;
        }
    }

    pub(super) fn told(self) -> Result<(), Missed<'a>> {
        self.first.map_or(Ok(()), |first| Err(Missed { first, failed: self.failed }))
    }
}

impl fmt::Display for Missed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failed {
            1 => self.first.fmt(f),
            more => write!(f, "{}, and {} more of its bounds failed", self.first, more - 1),
        }
    }
}

fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Changed => "changed",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Mode => "given another mode",
        ChangeKind::Link => "linked",
        ChangeKind::Renamed => "renamed",
    }
}
