//! A moment of the clock that filesystems stamp their files with.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A moment of the filesystem's clock, as (seconds, nanoseconds). Whatever a workspace had before a command began has
/// an earlier ctime; whatever anybody changes after has this or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileTime(pub i64, pub u32);

impl FileTime {
    /// The earliest that a file which is changed now can get.
    pub fn now() -> FileTime {
        FileTime::of(ClockId::RealtimeCoarse)
    }

    /// The latest that a file which has been changed until now can have: some are stamped by the finer clock.
    pub(super) fn latest() -> FileTime {
        FileTime::of(ClockId::Realtime)
    }

    fn of(clock: ClockId) -> FileTime {
        let now = clock_gettime(clock);
        FileTime(now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0))
    }
}
