//! Moments as they are shown.

use std::time::SystemTime;

use jiff::Timestamp;

/// RFC 3339 in UTC. A time beyond what that can say, which only a broken or hostile file has, is the nearest that it can.
pub(super) fn shown(at: SystemTime) -> String {
    let beyond = if at < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::try_from(at).unwrap_or(beyond).to_string()
}
