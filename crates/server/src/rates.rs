//! How many requests may come: from each caller, for each tenant, and from each address that nobody knows.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, MonotonicClock},
    middleware::NoOpMiddleware,
    state::keyed::HashMapStateStore,
};
use haft_runtime::{CallerId, ErrorCode, TenantId, ToolError};

use crate::{admit::Admission, client_address::ClientAddress, problem::Problem};

/// How many callers, tenants or addresses are told apart; those that come when there are so many share one limit.
const MOST: usize = 65_536;
/// How often those are forgotten that have not asked for a while, and how often when there are too many.
const SWEPT: Duration = Duration::from_secs(60);
const SWEPT_WHEN_FULL: Duration = Duration::from_secs(1);

/// How many requests may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So many in each second.
    pub per_second: NonZeroU32,
    /// So many at once after a pause.
    pub burst: NonZeroU32,
}

/// How many requests are answered; `None` for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// For each caller.
    pub per_caller: Option<Rate>,
    /// For all callers of a tenant together.
    pub per_tenant: Option<Rate>,
    /// For each address, of requests whose caller is not known: signing in, wrong keys.
    pub per_address: Option<Rate>,
    /// Whether addresses of this machine itself are not counted: a proxy that nobody named asks for everybody.
    pub spares_this_machine: bool,
}

/// Counts requests.
pub struct RateLimits {
    callers: Option<KeyedLimit<CallerId>>,
    tenants: Option<KeyedLimit<TenantId>>,
    addresses: Option<KeyedLimit<AddressGroup>>,
    spares_this_machine: bool,
}

impl From<Rates> for RateLimits {
    fn from(rates: Rates) -> Self {
        Self {
            callers: rates.per_caller.map(KeyedLimit::new),
            tenants: rates.per_tenant.map(KeyedLimit::new),
            addresses: rates.per_address.map(KeyedLimit::new),
            spares_this_machine: rates.spares_this_machine,
        }
    }
}

impl RateLimits {
    /// Counts a request whose caller was looked for; refused when there were too many.
    pub(crate) fn count(&self, client: Option<ClientAddress>, admission: &Admission) -> Result<(), Problem> {
        match admission {
            Admission::Known(identity) => {
                let caller = &identity.caller;
                check(&self.callers, &caller.id, "of this caller")?;
                check(&self.tenants, caller.scope.tenant(), "of this tenant")
            }
            Admission::Nobody | Admission::Refused(_) => self.count_unknown(client),
        }
    }

    /// Counts a request of somebody who is not known.
    pub(crate) fn count_unknown(&self, client: Option<ClientAddress>) -> Result<(), Problem> {
        let spared = |client: &ClientAddress| self.spares_this_machine && client.outside_address().is_none();
        let Some(ClientAddress(address)) = client.filter(|client| !spared(client)) else { return Ok(()) };
        check(&self.addresses, &AddressGroup::of(address), "from this address")
    }
}

fn check<K: Hash + Eq + Clone>(limit: &Option<KeyedLimit<K>>, key: &K, whose: &str) -> Result<(), Problem> {
    let Some(wait) = limit.as_ref().and_then(|limit| limit.take(key)) else { return Ok(()) };
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    let message = format!("too many requests {whose}; ask again in {} s", millis.div_ceil(1000));
    Err(ToolError::new(ErrorCode::RateLimited, message).with("retryAfterMs", millis).into())
}

/// Addresses that one client is likely to have all of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AddressGroup {
    V4(u32),
    /// The first half: the rest is usually one machine's own to choose.
    V6(u64),
}

impl AddressGroup {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address.into()),
            IpAddr::V6(address) => Self::V6((u128::from(address) >> 64) as u64),
        }
    }
}

type Buckets<K> = RateLimiter<Option<K>, HashMapStateStore<Option<K>>, MonotonicClock, NoOpMiddleware<Instant>>;

/// A limit of its own for each key.
struct KeyedLimit<K: Hash + Eq + Clone> {
    buckets: Buckets<K>,
    swept: Mutex<Instant>,
}

impl<K: Hash + Eq + Clone> KeyedLimit<K> {
    fn new(rate: Rate) -> Self {
        let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
        let buckets = RateLimiter::new(quota, HashMapStateStore::new(HashMap::default()), MonotonicClock);
        Self { buckets, swept: Mutex::new(Instant::now()) }
    }

    /// Counts one request; says how long to wait when there were too many.
    fn take(&self, key: &K) -> Option<Duration> {
        let is_full = self.sweep();
        // Those that come when nothing can be forgotten share what is under no key.
        let key = (!is_full).then(|| key.clone());
        let refused = self.buckets.check_key(&key).err()?;
        Some(refused.wait_time_from(MonotonicClock.now()))
    }

    /// Forgets keys that have asked for nothing lately, now and then; says whether there is no room for another one.
    fn sweep(&self) -> bool {
        let is_full = self.buckets.len() >= MOST;
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.elapsed() < if is_full { SWEPT_WHEN_FULL } else { SWEPT } {
            return is_full;
        }
        *swept = Instant::now();
        self.buckets.retain_recent();
        self.buckets.shrink_to_fit();
        self.buckets.len() >= MOST
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    fn rate(per_second: u32, burst: u32) -> Rate {
        Rate { per_second: NonZeroU32::new(per_second).unwrap(), burst: NonZeroU32::new(burst).unwrap() }
    }

    #[test]
    fn each_key_has_its_own_limit() {
        let limit = KeyedLimit::new(rate(1, 2));
        assert_eq!((limit.take(&"a"), limit.take(&"a")), (None, None));
        let wait = limit.take(&"a").unwrap();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(limit.take(&"b"), None);
    }

    #[test]
    fn what_is_remembered_stays_bounded() {
        let limit = KeyedLimit::new(rate(1, 1));
        let refused = (0..MOST + 100).filter(|key| limit.take(key).is_some()).count();
        assert!(limit.buckets.len() <= MOST + 1, "{}", limit.buckets.len());
        assert!(refused >= 90, "those that came late share one limit: {refused}");
        let forgetful = KeyedLimit::new(rate(1_000_000, 1));
        for key in 0..1000 {
            forgetful.take(&key);
        }
        *forgetful.swept.lock().unwrap() -= SWEPT;
        forgetful.take(&0);
        assert!(forgetful.buckets.len() < 10, "{}", forgetful.buckets.len());
    }

    #[test]
    fn the_addresses_of_one_network_are_one_client() {
        let group = |text: &str| AddressGroup::of(text.parse().unwrap());
        assert_eq!(group("2001:db8::1"), group("2001:db8::ffff:1"));
        assert_ne!(group("2001:db8::1"), group("2001:db8:0:1::1"));
        assert_ne!(group("192.0.2.1"), group("192.0.2.2"));
    }
}
