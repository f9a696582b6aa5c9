//! Faults on purpose, for tests: what a database may do at any time is done often.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// What goes wrong, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Of 100 transactions, so many lose against another one and have to be run again.
    pub conflicts: u64,
    /// Of 100 commits, so many break off without an answer. Half of them were carried out. (Only where there is a
    /// connection that can break.)
    pub cut_commits: u64,
    /// Each commit is held back by a random time up to this.
    pub longest_delay: Duration,
}

impl Default for Faults {
    /// As the tests of the store have them.
    fn default() -> Self {
        Self { conflicts: 10, cut_commits: 1, longest_delay: Duration::ZERO }
    }
}

/// What happens to a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutCommit {
    No,
    Before,
    After,
}

impl Faults {
    /// Whether this transaction loses.
    pub(crate) fn conflict(&self) -> bool {
        random() % 100 < self.conflicts
    }

    /// Whether this commit breaks off.
    pub(crate) fn cut(&self) -> CutCommit {
        if random() % 100 >= self.cut_commits {
            return CutCommit::No;
        }
        if random().is_multiple_of(2) { CutCommit::Before } else { CutCommit::After }
    }

    /// How long this commit is held back.
    pub(crate) fn delay(&self) -> Duration {
        let most = u64::try_from(self.longest_delay.as_millis()).unwrap_or(u64::MAX);
        if most == 0 { Duration::ZERO } else { Duration::from_millis(random() % most) }
    }
}

/// Random enough for faults: each process has other numbers.
fn random() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let seed = || uuid::Uuid::now_v7().as_u64_pair().1 | 1;
    let step = |last: u64| {
        let mut next = if last == 0 { seed() } else { last };
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        Some(next)
    };
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap_or(1) >> 11
}
