//! How much the gateway takes from whom.

use std::num::NonZeroU32;

use anyhow::{Context, Result};
use haft_server::{AddressRange, LargeBodies, Place, Rate, Rates, ServerLimits};

use super::values::{number, texts};

/// How much the server of tenants takes from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// How many requests of each caller.
    pub per_caller: RateSetting,
    /// How many requests of all callers of a tenant.
    pub per_tenant: RateSetting,
    /// How many requests from each address, of callers that are not known.
    pub per_address: RateSetting,
    /// How many connections at a time.
    pub connections: usize,
    /// Whose word counts for where a request comes from.
    pub proxies: Vec<AddressRange>,
}

/// How many requests are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateSetting {
    /// All where only this machine can ask, else as many as is usual.
    #[default]
    Auto,
    /// All.
    Off,
    /// So many.
    Only(Rate),
}

impl Default for LimitSettings {
    fn default() -> Self {
        let auto = RateSetting::Auto;
        Self { per_caller: auto, per_tenant: auto, per_address: auto, connections: 10_000, proxies: Vec::new() }
    }
}

impl LimitSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "serve.rate_per_caller" => self.per_caller = RateSetting::read(value)?,
            "serve.rate_per_tenant" => self.per_tenant = RateSetting::read(value)?,
            "serve.rate_per_address" => self.per_address = RateSetting::read(value)?,
            "serve.connections" => self.connections = usize::try_from(number(value)?)?,
            "serve.proxies" => self.proxies = proxies(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What holds at a place.
    pub(crate) fn at(&self, place: &Place) -> ServerLimits {
        let is_open = !place.listens_at.ip().is_loopback() || place.public_url.is_some();
        let rate = |setting: RateSetting, usual: &str| match setting {
            RateSetting::Auto if is_open => written_rate(usual),
            RateSetting::Auto | RateSetting::Off => None,
            RateSetting::Only(rate) => Some(rate),
        };
        let rates = Rates {
            per_caller: rate(self.per_caller, USUAL_PER_CALLER),
            per_tenant: rate(self.per_tenant, USUAL_PER_TENANT),
            per_address: rate(self.per_address, USUAL_PER_ADDRESS),
            spares_this_machine: self.per_address == RateSetting::Auto,
        };
        ServerLimits {
            rates: rates.into(),
            connections: self.connections,
            bodies: LargeBodies::default(),
            proxies: self.proxies.as_slice().into(),
        }
    }
}

/// What holds where nothing is set.
const USUAL_PER_CALLER: &str = "100/s burst 400";
const USUAL_PER_TENANT: &str = "500/s burst 2000";
const USUAL_PER_ADDRESS: &str = "5/s burst 50";

impl RateSetting {
    fn read(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            rate => {
                let wrong = || format!("`{rate}` is no rate; write it like `100/s burst 400`, or `off` or `auto`");
                written_rate(rate).map(Self::Only).with_context(wrong)
            }
        }
    }
}

/// Such as `100/s burst 400`. Without a burst so many come at once as in a second.
fn written_rate(text: &str) -> Option<Rate> {
    let (rate, burst) = text.split_once(" burst ").unwrap_or((text, ""));
    let per_second: NonZeroU32 = rate.strip_suffix("/s")?.parse().ok()?;
    let burst = if burst.is_empty() { per_second } else { burst.parse().ok()? };
    Some(Rate { per_second, burst })
}

fn proxies(text: &str) -> Result<Vec<AddressRange>> {
    let ranges = texts(text)?;
    ranges.iter().map(|range| range.parse().map_err(anyhow::Error::msg)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u32, burst: u32) -> Rate {
        Rate { per_second: NonZeroU32::new(per_second).unwrap(), burst: NonZeroU32::new(burst).unwrap() }
    }

    #[test]
    fn rates_are_read_as_they_are_written() {
        assert_eq!(RateSetting::read("auto").unwrap(), RateSetting::Auto);
        assert_eq!(RateSetting::read("off").unwrap(), RateSetting::Off);
        assert_eq!(RateSetting::read("5/s burst 20").unwrap(), RateSetting::Only(rate(5, 20)));
        assert_eq!(RateSetting::read("5/s").unwrap(), RateSetting::Only(rate(5, 5)));
        for wrong in ["", "5", "0/s", "5/m", "5/s burst", "5/s burst 0", "-1/s", "5/s 20"] {
            RateSetting::read(wrong).unwrap_err();
        }
        for usual in [USUAL_PER_CALLER, USUAL_PER_TENANT, USUAL_PER_ADDRESS] {
            assert!(written_rate(usual).is_some(), "{usual}");
        }
    }
}
