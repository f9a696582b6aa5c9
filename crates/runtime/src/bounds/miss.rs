//! Which bound a call did not keep.

use std::fmt;

use serde_json::Value;

use super::carries;
use crate::{Change, ChangeKind, ChangeList, Evidence, Reach, git_folder};

/// What bounds are held against, gathered once for a decision.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    pub(super) input: &'a Value,
    /// `None` when the call could not be staged.
    changes: Option<&'a ChangeList>,
    part: ChangeSubset,
    /// The host that a call which could not be staged reaches.
    pub(super) reach: Option<&'a Reach>,
    pub(super) bytes: u64,
    /// The first change that only bounds with executables contain.
    pub(super) executable: Option<Miss<'a>>,
    pub(super) flagged: bool,
    /// The first change that bounds for derived ones do not contain.
    pub(super) source: Option<Miss<'a>>,
}

/// Which changes of a call bounds are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeSubset {
    All,
    /// Build output and caches.
    Derived,
    /// Everything else.
    Source,
}

impl ChangeSubset {
    pub(crate) fn has(self, change: &Change) -> bool {
        match self {
            Self::All => true,
            Self::Derived => change.derived,
            Self::Source => !change.derived,
        }
    }
}

impl<'a> CallFacts<'a> {
    /// What is known of a call.
    pub fn new(input: &'a Value, evidence: &'a Evidence) -> Self {
        match evidence {
            Evidence::Staged { changes, .. } => Self::of(input, Some(changes), ChangeSubset::All),
            Evidence::Plain(described) => {
                Self { reach: described.reach.as_ref(), ..Self::of(input, None, ChangeSubset::All) }
            }
        }
    }

    /// The same, of a part of the changes only.
    pub(crate) fn only(&self, part: ChangeSubset) -> Self {
        Self { reach: self.reach, ..Self::of(self.input, self.changes, part) }
    }

    fn of(input: &'a Value, changes: Option<&'a ChangeList>, part: ChangeSubset) -> Self {
        let list = || changes.into_iter().flat_map(|changes| &changes.0).filter(move |change| part.has(change));
        Self {
            input,
            changes,
            part,
            reach: None,
            bytes: list().filter(|change| change.kind != ChangeKind::Deleted).map(|change| change.size).sum(),
            executable: list().find_map(executable),
            flagged: list().any(|change| !change.flags.is_empty()),
            source: list().find(|change| !change.derived).map(|change| {
                // The index of a commit is no build output beside it.
                let is_built = |change: &Change| change.derived && git_folder(&change.path).is_none();
                Miss::Source { path: &change.path, beside_derived: list().any(is_built) }
            }),
        }
    }

    /// The changes, where they could be seen.
    pub(super) fn list(&self) -> Option<impl Iterator<Item = &'a Change> + Clone + use<'a>> {
        let part = self.part;
        self.changes.map(|changes| changes.0.iter().filter(move |change| part.has(change)))
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
    /// It reads from another host.
    Host {
        /// Which.
        host: &'a str,
    },
    /// It sends something to a host.
    Sends {
        /// Which.
        host: &'a str,
    },
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
    /// A path is neither build output nor a cache.
    Source {
        /// Which.
        path: &'a str,
        /// Whether others are.
        beside_derived: bool,
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
            Self::Input => f.write_str("it is for another input"),
            Self::Unseen => f.write_str("what it does cannot be seen before, so only its exact input can be covered"),
            Self::Host { host } => write!(f, "`{host}` is not one of its hosts"),
            Self::Sends { host } => {
                write!(f, "it sends something to `{host}`, which only its exact input can cover")
            }
            Self::Files { most, found } => write!(f, "{found} paths would change, and it allows {most}"),
            Self::Bytes { most, found } => write!(f, "{found} bytes would be written, and it allows {most}"),
            Self::Kind { path, kind } => write!(f, "`{path}` would be {}, which it does not allow", kind_word(*kind)),
            Self::Executable { path } => write!(f, "`{path}` is executable"),
            Self::Carried { path } => write!(f, "`{path}` may hold executable files"),
            Self::Outside { path } => write!(f, "`{path}` lies outside its paths"),
            Self::Source { path, .. } => write!(f, "`{path}` is neither build output nor a cache"),
            Self::Flagged { path } => write!(f, "`{path}` is flagged, and it does not name that very path"),
        }
    }
}

/// All that bounds did not contain: the first bound that failed, and how many did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosestMiss<'a> {
    /// The first that failed.
    pub first: Miss<'a>,
    /// How many failed.
    pub failed: usize,
}

impl ClosestMiss<'_> {
    /// Whether it is the same sort of call, so that a person may wonder why it was not covered.
    pub(crate) fn is_near(&self) -> bool {
        !matches!(self.first, Miss::Input | Miss::Source { beside_derived: false, .. })
    }

    /// Whether there was nothing to hold against the bounds.
    pub(crate) fn is_unseen(&self) -> bool {
        matches!(self.first, Miss::Unseen)
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

    pub(super) fn told(self) -> Result<(), ClosestMiss<'a>> {
        self.first.map_or(Ok(()), |first| Err(ClosestMiss { first, failed: self.failed }))
    }
}

impl fmt::Display for ClosestMiss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failed {
            1 => self.first.fmt(f),
            2 => write!(f, "{} (and 1 more reason)", self.first),
            more => write!(f, "{} (and {} more reasons)", self.first, more - 1),
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
