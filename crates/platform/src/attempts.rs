//! How often something that can be guessed may be tried.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::{ErrorCode, ToolError};

/// For how many addresses and people attempts are counted.
const MOST: usize = 20_000;

/// Who tries, or whose password is tried.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tried {
    /// The mail address that is given, whether or not somebody has it.
    Mail(String),
    /// A person who is signed in.
    Person(String),
    /// The same, who types the code of a device.
    DeviceCode(String),
    /// Where the request comes from: an address, or the network of one of version 6.
    From(IpAddr),
}

impl Tried {
    /// The network address that attempts from somewhere are counted by.
    pub(crate) fn from(address: IpAddr) -> Self {
        Self::From(match address {
            IpAddr::V4(_) => address,
            // Whoever has one address of version 6 has a whole network of them.
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                [a, b, c, d, 0, 0, 0, 0].into()
            }
        })
    }

    /// How many at once, and after how long there is one more.
    fn allowed(&self) -> (u32, Duration) {
        match self {
            Self::Mail(_) | Self::Person(_) | Self::DeviceCode(_) => (10, Duration::from_secs(60)),
            Self::From(_) => (30, Duration::from_secs(10)),
        }
    }
}

/// Counts attempts that fail. What succeeds is given back.
#[derive(Default)]
pub(crate) struct Attempts {
    /// When each will have all its attempts again.
    counted: Mutex<HashMap<Tried, Instant>>,
}

impl Attempts {
    /// Takes one attempt of each, or of none and says how long to wait.
    pub(crate) fn take(&self, tried: &[Tried]) -> Result<(), ToolError> {
        let now = Instant::now();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= MOST {
            counted.retain(|_, whole| *whole > now);
        }
        if counted.len() >= MOST {
            // So many at once are an attack; those who have tried most stay counted.
            let half = now + Duration::from_secs(120);
            counted.retain(|_, whole| *whole > half);
        }
        let wait = tried.iter().filter_map(|one| {
            let (most, each) = one.allowed();
            let whole = counted.get(one).copied().filter(|whole| *whole > now).unwrap_or(now) + each;
            (whole - now).checked_sub(each * most).filter(|wait| !wait.is_zero())
        });
        if let Some(wait) = wait.max() {
            let message = format!("there were too many attempts; try again in {} s", wait.as_secs() + 1);
            let error = ToolError::new(ErrorCode::RateLimited, message);
            return Err(error.with("retryAfterMs", u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
        }
        for one in tried {
            let whole = counted.entry(one.clone()).or_insert(now);
            *whole = (*whole).max(now) + one.allowed().1;
        }
        Ok(())
    }

    /// Gives back what succeeded.
    pub(crate) fn give_back(&self, tried: &[Tried]) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for one in tried {
            if let Some(whole) = counted.get_mut(one) {
                *whole = whole.checked_sub(one.allowed().1).unwrap_or(*whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn after_so_many_attempts_there_is_a_wait() {
        let attempts = Attempts::default();
        let (ann, bob) = (Tried::Mail("ann".to_owned()), Tried::Mail("bob".to_owned()));
        for _ in 0..10 {
            attempts.take(std::slice::from_ref(&ann)).unwrap();
        }
        let refused = attempts.take(&[bob.clone(), ann.clone()]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        let wait = refused.details["retryAfterMs"].as_u64().unwrap();
        assert!((58_000..=60_000).contains(&wait), "{wait}");
        for _ in 0..10 {
            attempts.take(std::slice::from_ref(&bob)).unwrap();
        }
        attempts.take(std::slice::from_ref(&bob)).unwrap_err();
        attempts.give_back(std::slice::from_ref(&ann));
        attempts.take(&[ann]).unwrap();
    }

    #[test]
    fn a_network_of_version_6_counts_as_one() {
        let at = |text: &str| Tried::from(text.parse().unwrap());
        assert_eq!(at("2001:db8:1:2::1"), at("2001:db8:1:2:ffff::9"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
