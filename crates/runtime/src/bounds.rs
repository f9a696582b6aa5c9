//! What a grant or a rule covers: which paths, kinds, counts and sizes of change, and which inputs.

mod hosts;
mod miss;
mod moved;
mod paths;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use hosts::host_matches;
pub(crate) use miss::ChangeSubset;
use miss::Misses;
pub use miss::{CallFacts, ClosestMiss, Miss};
use moved::{carried, deeds, reaches_into};
pub(crate) use moved::{carries, kinds, touched};
use paths::Paths;
pub(crate) use paths::escaped;

use crate::{Change, ChangeKind, Reach};

/// Bounds as they are written in settings, flags and JSON. A bound that is absent limits nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "bounds such as {\"paths\": [\"src/**\"]}")]
pub struct WrittenBounds {
    /// Globs; every changed path must match one. `*` stays within a folder, `**` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// The kinds of change that may occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<ChangeKind>>,
    /// How many paths may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_files: Option<usize>,
    /// How many bytes may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Whether executable files may be made or changed; `false` when absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executables: bool,
    /// Whether only build output and caches may change; `false` when absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// The hosts that may be read from; `*` stands for any letters. What is staged reached none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The one input that is covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// Bounds that were checked, with their globs compiled. Made once, asked at every decision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "WrittenBounds", into = "WrittenBounds")]
pub struct Bounds {
    written: WrittenBounds,
    paths: Option<Paths>,
}

/// Why bounds cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundsError(String);

impl fmt::Display for BoundsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BoundsError {}

impl TryFrom<WrittenBounds> for Bounds {
    type Error = BoundsError;

    fn try_from(written: WrittenBounds) -> Result<Self, BoundsError> {
        let empty = |name: &str| {
            let sentence = format!("`{name}` is empty, so that nothing is covered; leave it out to limit nothing");
            Err(BoundsError(sentence))
        };
        if written.kinds.as_ref().is_some_and(Vec::is_empty) {
            return empty("kinds");
        }
        if written.hosts.as_ref().is_some_and(|hosts| hosts.iter().all(String::is_empty)) {
            return empty("hosts");
        }
        if written.max_files == Some(0) {
            return Err(BoundsError("`max_files` must be at least 1: what changes nothing is not asked for".into()));
        }
        let paths = match &written.paths {
            Some(globs) if globs.is_empty() => return empty("paths"),
            Some(globs) => Some(Paths::new(globs)?),
            None => None,
        };
        Ok(Self { written, paths })
    }
}

impl From<Bounds> for WrittenBounds {
    fn from(bounds: Bounds) -> Self {
        bounds.written
    }
}

impl PartialEq for Bounds {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Bounds {
    /// The bounds as they were written.
    pub fn written(&self) -> &WrittenBounds {
        &self.written
    }

    /// Whether they limit nothing.
    pub fn are_unlimited(&self) -> bool {
        self.written == WrittenBounds::default()
    }

    /// Whether all that a call does lies within. What could not be staged is contained by its exact input only, or by
    /// the host that it reads from.
    pub fn contain<'a>(&self, seen: &CallFacts<'a>) -> Result<(), ClosestMiss<'a>> {
        let mut misses = Misses::default();
        misses.add(match &self.written.input {
            Some(only) => (only != seen.input).then_some(Miss::Input),
            None if seen.list().is_some() => None,
            None => self.beyond(seen.reach),
        });
        let Some(list) = seen.list() else { return misses.told() };
        misses.add(seen.source.filter(|_| self.written.derived));
        misses.add(self.written.max_files.and_then(|most| {
            let found = list.clone().count();
            (found > most).then_some(Miss::Files { most, found })
        }));
        misses.add(self.written.max_bytes.and_then(|most| {
            let found = seen.bytes;
            (found > most).then_some(Miss::Bytes { most, found })
        }));
        misses.add(self.written.kinds.as_ref().and_then(|allowed| {
            let mut found = list.clone().flat_map(|change| kinds(change).map(move |kind| (&change.path, kind)));
            let (path, kind) = found.find(|(_, kind)| !allowed.contains(kind))?;
            Some(Miss::Kind { path, kind })
        }));
        misses.add(seen.executable.filter(|_| !self.written.executables));
        misses.add(list.clone().find_map(|change| self.outside(change)).map(|path| Miss::Outside { path }));
        // A flagged change is never contained unless the bounds name that very path.
        let flagged = list.filter(|_| seen.flagged).find(|change| !change.flags.is_empty() && !self.name(change));
        misses.add(flagged.map(|change| Miss::Flagged { path: &change.path }));
        misses.told()
    }

    /// Whether one change is of the sort that these bounds are about, for rules that ask or deny.
    pub fn touch(&self, change: &Change) -> bool {
        let executable = change.executable || carries(change) || !self.written.executables;
        // No change of a file reaches a host.
        executable
            && (change.derived || !self.written.derived)
            && self.written.hosts.is_none()
            && (deeds(change).any(|(path, kind)| self.are_about(path, kind))
                || self.are_about_new_folder(change)
                || self.reach_into(change))
    }

    /// Whether they name a host.
    pub(crate) fn reach(&self, host: &str) -> bool {
        self.written.hosts.iter().flatten().any(|pattern| host_matches(pattern, host))
    }

    /// What of a call that could not be staged lies beyond them.
    fn beyond<'a>(&self, reach: Option<&'a Reach>) -> Option<Miss<'a>> {
        let Some(reach) = reach.filter(|_| self.written.hosts.is_some()) else { return Some(Miss::Unseen) };
        let host = &reach.host;
        match (self.reach(host), reach.sends) {
            (true, false) => None,
            (true, true) => Some(Miss::Sends { host }),
            (false, _) => Some(Miss::Host { host }),
        }
    }

    fn are_about(&self, path: &str, kind: ChangeKind) -> bool {
        self.written.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
            && self.paths.as_ref().is_none_or(|paths| paths.hold(path))
    }

    /// Whether a new folder is one in which they are about everything.
    fn are_about_new_folder(&self, change: &Change) -> bool {
        change.directory
            && change.kind == ChangeKind::Created
            && self.written.kinds.as_ref().is_none_or(|kinds| kinds.contains(&ChangeKind::Created))
            && self.paths.as_ref().is_some_and(|paths| paths.hold_all_beneath(&change.path))
    }

    /// Whether they could be about something that a moved folder carries along and that is not listed.
    fn reach_into(&self, change: &Change) -> bool {
        let moves = [ChangeKind::Renamed, ChangeKind::Created, ChangeKind::Deleted];
        let kind = self.written.kinds.as_ref().is_none_or(|kinds| moves.iter().any(|kind| kinds.contains(kind)));
        let into = |end: &str| self.written.paths.iter().flatten().any(|glob| reaches_into(glob, end));
        carries(change) && kind && touched(change).any(into)
    }

    /// The end of a change that does not lie within, or whose content may not.
    fn outside<'a>(&self, change: &'a Change) -> Option<&'a str> {
        let paths = self.paths.as_ref()?;
        let within =
            |end: &str| paths.hold(end) && (!carries(change) || carried(end).iter().all(|path| paths.hold(path)));
        // Who may make anything in a folder may make the folder.
        let is_new_folder = change.directory && change.kind == ChangeKind::Created;
        let may_be_made = |end: &str| is_new_folder && paths.hold_all_beneath(end);
        touched(change).find(|end| !within(end) && !may_be_made(end))
    }

    fn name(&self, change: &Change) -> bool {
        self.paths.as_ref().is_some_and(|paths| touched(change).all(|path| paths.name(path)))
    }
}

#[cfg(test)]
mod tests;
