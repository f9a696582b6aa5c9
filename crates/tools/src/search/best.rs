//! The first so many of any number of things, in order, in bounded memory.

use std::{cmp::Ordering, collections::BinaryHeap};

/// Keeps the things with the smallest keys: at most so many, and at most so much together. Whatever order they come in,
/// and however they are shared out among threads, what is kept is the same.
pub(crate) struct Best<K, T> {
    most: usize,
    /// How much all of them may weigh, in bytes.
    heaviest: usize,
    weight: usize,
    /// What came while there was room for everything.
    first: Vec<RankedItem<K, T>>,
    /// All of them once there is not. Invariant: one of the two is empty.
    kept: BinaryHeap<RankedItem<K, T>>,
    /// The smallest key that found no room. Invariant: every kept key is smaller.
    ceiling: Option<K>,
}

struct RankedItem<K, T> {
    key: K,
    weight: usize,
    thing: T,
}

impl<K: Ord, T> Best<K, T> {
    pub(crate) fn new(most: usize, heaviest: usize) -> Self {
        Self { most, heaviest, weight: 0, first: Vec::new(), kept: BinaryHeap::new(), ceiling: None }
    }

    /// Whether something would be kept now, that stands before the keys for which this is true. Asked before the work of
    /// making it.
    pub(crate) fn wants(&self, is_before: impl Fn(&K) -> bool) -> bool {
        if self.ceiling.as_ref().is_some_and(|ceiling| !is_before(ceiling)) {
            return false;
        }
        self.first.len().max(self.kept.len()) < self.most || self.kept.peek().is_some_and(|worst| is_before(&worst.key))
    }

    /// Keeps it if it is among the first.
    pub(crate) fn offer(&mut self, key: K, weight: usize, thing: T) {
        if self.ceiling.as_ref().is_some_and(|ceiling| key >= *ceiling) {
            return;
        }
        self.weight += weight;
        self.first.push(RankedItem { key, weight, thing });
        if self.kept.is_empty() && self.first.len() < self.most && self.weight <= self.heaviest {
            return;
        }
        self.kept.extend(self.first.drain(..));
        while self.kept.len() > self.most || self.weight > self.heaviest {
            let Some(worst) = self.kept.pop() else { return };
            self.weight -= worst.weight;
            self.ceiling = Some(worst.key);
        }
    }

    /// Takes over what another thread kept.
    pub(crate) fn absorb(&mut self, other: Self) {
        if let Some(ceiling) = other.ceiling {
            self.lower_the_ceiling(ceiling);
        }
        for RankedItem { key, weight, thing } in other.first.into_iter().chain(other.kept) {
            self.offer(key, weight, thing);
        }
    }

    /// What was kept, in order.
    pub(crate) fn into_sorted(self) -> Vec<(K, T)> {
        let mut kept = if self.kept.is_empty() { self.first } else { self.kept.into_vec() };
        kept.sort_unstable();
        kept.into_iter().map(|kept| (kept.key, kept.thing)).collect()
    }

    fn lower_the_ceiling(&mut self, ceiling: K) {
        if self.ceiling.as_ref().is_some_and(|own| *own <= ceiling) {
            return;
        }
        self.kept.extend(self.first.drain(..));
        while self.kept.peek().is_some_and(|worst| worst.key >= ceiling) {
            let Some(worst) = self.kept.pop() else { break };
            self.weight -= worst.weight;
        }
        self.ceiling = Some(ceiling);
    }
}

impl<K: Ord, T> Ord for RankedItem<K, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: Ord, T> PartialOrd for RankedItem<K, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, T> PartialEq for RankedItem<K, T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K: Ord, T> Eq for RankedItem<K, T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Best;

    /// The obvious way: sort everything, take from the front while there is room.
    fn prefix(mut all: Vec<(u32, usize)>, most: usize, heaviest: usize) -> Vec<(u32, usize)> {
        all.sort_unstable();
        let mut weight = 0;
        all.into_iter()
            .take(most)
            .take_while(|(_, own)| {
                weight += own;
                weight <= heaviest
            })
            .collect()
    }

    proptest! {
        #[test]
        fn it_is_the_front_of_all(
            weights in prop::collection::vec(0usize..40, 0..80),
            order in any::<prop::sample::Index>(),
            (most, heaviest, threads) in (0usize..30, 0usize..400, 1usize..4),
        ) {
            let mut all: Vec<(u32, usize)> = (0..).zip(weights).collect();
            let expected = prefix(all.clone(), most, heaviest);
            if !all.is_empty() {
                let at = order.index(all.len());
                all.rotate_left(at);
            }
            let mut workers: Vec<Best<u32, usize>> = (0..threads).map(|_| Best::new(most, heaviest)).collect();
            for (at, (key, weight)) in all.into_iter().enumerate() {
                workers[at * 7 % threads].offer(key, weight, weight);
            }
            let mut whole = workers.remove(0);
            workers.into_iter().for_each(|worker| whole.absorb(worker));
            prop_assert_eq!(whole.into_sorted(), expected);
        }
    }
}
