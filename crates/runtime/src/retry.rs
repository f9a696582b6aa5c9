//! When work that failed is tried again, and after how long.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use crate::{CallId, Category, ToolError};

const MOST_RETRIES: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// By how much a delay may be shorter or longer, so that many callers do not come back at the same moment.
const SPREAD: f64 = 0.2;

/// Whether the work may be done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It only reads, or says itself that twice is the same as once.
    Safe,
    /// Only if it provably was not done once.
    Unsafe,
}

/// How long to wait before the work is tried again; `None` hands the error back.
pub(crate) fn delay(call: &CallId, error: &ToolError, attempt: u32, repeat: Repeat) -> Option<Duration> {
    // A time limit is the caller's or the tool's own: it has been used up, and is no passing trouble.
    let passes = error.recoverable && error.category != Category::Timeout;
    let may = match repeat {
        Repeat::Safe => true,
        Repeat::Unsafe => error.nothing_done(),
    };
    let asked_for = error.retry_after().unwrap_or_default();
    (passes && may && attempt <= MOST_RETRIES).then(|| backoff(attempt, chance(call, attempt)).max(asked_for))
}

/// 200 ms, doubled with each attempt; `chance` from 0 to 1 says where in the spread.
fn backoff(attempt: u32, chance: f64) -> Duration {
    let doubled = FIRST_DELAY.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(LONGEST_DELAY).mul_f64(1.0 + SPREAD * (2.0 * chance - 1.0))
}

/// Different for each call and attempt, and the same when looked at again.
fn chance(call: &CallId, attempt: u32) -> f64 {
    let mut hasher = DefaultHasher::new();
    (call, attempt).hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Repeat, backoff, chance, delay};
    use crate::{CallId, ErrorCode, ToolError};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn delays_double_and_spread() {
        for (attempt, base) in [(1, 200), (2, 400), (3, 800), (5, 3200), (6, 5000), (60, 5000)] {
            assert_eq!(backoff(attempt, 0.5), ms(base));
            assert_eq!(backoff(attempt, 0.0), ms(base).mul_f64(0.8));
            assert_eq!(backoff(attempt, 1.0), ms(base).mul_f64(1.2));
        }
        let chances: Vec<f64> = (0..1000).map(|_| chance(&CallId::new(), 1)).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        let mean = chances.iter().sum::<f64>() / 1000.0;
        assert!((0.4..0.6).contains(&mean), "calls spread evenly: {mean}");
    }

    #[test]
    fn only_passing_trouble_that_did_no_harm_is_tried_again() {
        let call = CallId::new();
        let busy = || ToolError::new(ErrorCode::Unavailable, "later");
        for attempt in 1..=3 {
            assert!(delay(&call, &busy(), attempt, Repeat::Safe).is_some());
        }
        assert_eq!(delay(&call, &busy(), 4, Repeat::Safe), None);
        assert_eq!(delay(&call, &busy(), 1, Repeat::Unsafe), None);
        assert!(delay(&call, &busy().having_done_nothing(), 1, Repeat::Unsafe).is_some());
        for code in [ErrorCode::Timeout, ErrorCode::InvalidArgs, ErrorCode::Cancelled, ErrorCode::OutcomeUnknown] {
            assert_eq!(delay(&call, &ToolError::new(code, "no"), 1, Repeat::Safe), None, "{code}");
        }
    }

    #[test]
    fn whoever_says_when_to_come_back_is_heard() {
        let call = CallId::new();
        let later = |after| ToolError::new(ErrorCode::Unavailable, "later").to_be_tried_after(after);
        assert_eq!(delay(&call, &later(ms(9000)), 1, Repeat::Safe), Some(ms(9000)));
        assert!(delay(&call, &later(ms(1)), 1, Repeat::Safe).unwrap() >= ms(160), "and never rushed");
    }
}
