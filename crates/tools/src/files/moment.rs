//! Moments as they are shown: RFC 3339 in UTC.

use std::time::SystemTime;

use jiff::Timestamp;

/// A time beyond what can be said, which only a broken or hostile file has, is the nearest that can.
pub(super) fn of(at: SystemTime) -> Timestamp {
    let beyond = if at < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::try_from(at).unwrap_or(beyond)
}
