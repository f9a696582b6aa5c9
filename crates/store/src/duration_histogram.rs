//! How long many calls took, in buckets that grow with the time: each is at most a quarter of what it stands for.

/// Numbers of milliseconds up to here have a bucket of their own.
const EXACT: i64 = 8;
/// Buckets between one power of two and the next.
const STEPS: i64 = 4;

/// How many calls took how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram(std::collections::BTreeMap<i64, i64>);

impl DurationHistogram {
    /// So many calls of one bucket. A negative bucket means that the time was not taken.
    pub(crate) fn add(&mut self, bucket: i64, calls: i64) {
        if bucket >= 0 {
            *self.0.entry(bucket).or_default() += calls;
        }
    }

    /// The time within which so many of a hundred calls were done, in milliseconds; `None` when none was timed.
    pub fn percentile(&self, percent: i64) -> Option<i64> {
        let calls: i64 = self.0.values().sum();
        let wanted = (calls * percent + 99) / 100;
        let mut passed = 0;
        for (bucket, calls) in &self.0 {
            passed += calls;
            if passed >= wanted.max(1) {
                return Some(end(*bucket));
            }
        }
        None
    }
}

/// The bucket of a number of milliseconds.
pub(crate) fn bucket(ms: i64) -> i64 {
    if ms < EXACT {
        return ms.max(0);
    }
    let power = i64::from(ms.ilog2());
    let step = (ms >> (power - 2)) & (STEPS - 1);
    EXACT + (power - 3) * STEPS + step
}

/// The most milliseconds that belong into a bucket.
fn end(bucket: i64) -> i64 {
    if bucket < EXACT {
        return bucket;
    }
    let (power, step) = ((bucket - EXACT) / STEPS + 3, (bucket - EXACT) % STEPS);
    let width = 1_i64.checked_shl(u32::try_from(power - 2).unwrap_or(u32::MAX)).unwrap_or(i64::MAX);
    width.saturating_mul(STEPS + step + 1).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{DurationHistogram, bucket, end};

    #[test]
    fn a_bucket_is_close_to_what_it_stands_for() {
        let mut before = 0;
        for ms in 0..200_000 {
            let at = bucket(ms);
            assert!(at >= before, "buckets are in order");
            before = at;
            assert!(end(at) >= ms && (end(at) - ms) * 4 <= ms.max(1), "{ms} is shown as {}", end(at));
        }
        assert!(bucket(i64::MAX) < 300 && end(bucket(i64::MAX)) > 0);
        assert_eq!(bucket(-5), 0);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let mut histogram = DurationHistogram::default();
        assert_eq!(histogram.percentile(50), None);
        (1..=100).for_each(|ms| histogram.add(bucket(ms), 1));
        histogram.add(-1, 5);
        let near = |percent, ms: i64| (0..=ms / 4).contains(&(histogram.percentile(percent).unwrap() - ms));
        assert!(near(50, 50) && near(95, 95) && near(99, 99), "{histogram:?}");
        let mut one = DurationHistogram::default();
        one.add(bucket(3), 1);
        assert_eq!([50, 95, 99].map(|percent| one.percentile(percent)), [Some(3); 3]);
    }
}
