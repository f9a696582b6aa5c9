//! How long something takes that is done very often: counted in memory, without a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The upper ends of the buckets, in microseconds. What takes longer is in none of them.
const ENDS: [u64; 14] = [
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
];

/// Times in buckets.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    buckets: [AtomicU64; ENDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

/// What a histogram held at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Each bucket's upper end, and how many took at most so long.
    pub up_to: Vec<(Duration, u64)>,
    /// How many there were.
    pub count: u64,
    /// How long all of them took.
    pub total: Duration,
}

impl LatencyHistogram {
    /// One more that took so long.
    pub fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(ENDS.partition_point(|end| *end < micros)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many took how long until now.
    pub fn counts(&self) -> LatencyCounts {
        let mut below = 0;
        let up_to = ENDS.iter().zip(&self.buckets).map(|(end, bucket)| {
            below += bucket.load(Ordering::Relaxed);
            (Duration::from_micros(*end), below)
        });
        let up_to: Vec<(Duration, u64)> = up_to.collect();
        // What is added meanwhile must not make a bucket larger than the whole.
        let count = self.count.load(Ordering::Relaxed).max(below);
        LatencyCounts { up_to, count, total: Duration::from_micros(self.micros.load(Ordering::Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_every_bucket_that_ends_after_it() {
        let histogram = LatencyHistogram::default();
        for micros in [1, 250, 251, 1_000_000, 1_000_000_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let counts = histogram.counts();
        let up_to = |micros| counts.up_to.iter().find(|(end, _)| *end == Duration::from_micros(micros)).unwrap().1;
        assert_eq!((up_to(250), up_to(500), up_to(250_000), up_to(1_000_000), up_to(120_000_000)), (2, 3, 3, 4, 4));
        assert_eq!((counts.count, counts.total), (5, Duration::from_micros(1_001_000_502)));
    }
}
