//! What an operator allows beside the public internet: a host or a range, on one port or on the usual ones.

use std::{fmt, net::IpAddr, str::FromStr};

use url::Host;

use super::{address::holds, name::without_last_dot};

/// A host or a range of addresses that may be reached although the rules say no. Only an operator makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    place: HostPattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Name(String),
    Range { network: IpAddr, length: u32 },
}

/// Why a text names neither host nor range.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither a host nor a range; write it like `10.1.0.0/16`, `127.0.0.1:8080`, `[::1]:8080` or `wiki.local`"
)]
pub struct AllowedHostError(String);

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(text: &str) -> Result<Self, AllowedHostError> {
        let wrong = || AllowedHostError(text.to_owned());
        if let Some((network, length)) = text.split_once('/') {
            let network: IpAddr = network.parse().map_err(|_| wrong())?;
            let longest = if network.is_ipv4() { 32 } else { 128 };
            let length = length.parse().ok().filter(|length| *length <= longest).ok_or_else(wrong)?;
            return Ok(Self { place: HostPattern::Range { network, length }, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, Some(port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?))
            }
            Some(_) | None => (text, None),
        };
        let bare = host.parse().map(Host::Ipv6);
        let place = match bare.or_else(|_| Host::parse(host)).map_err(|_| wrong())? {
            Host::Domain(name) => HostPattern::Name(without_last_dot(&name).to_owned()),
            Host::Ipv4(address) => HostPattern::Range { network: address.into(), length: 32 },
            Host::Ipv6(address) => HostPattern::Range { network: address.into(), length: 128 },
        };
        Ok(Self { place, port })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Range { network: IpAddr::V6(only), length: 128 } if self.port.is_some() => {
                write!(f, "[{only}]")?
            }
            HostPattern::Range { network: only @ IpAddr::V4(_), length: 32 }
            | HostPattern::Range { network: only @ IpAddr::V6(_), length: 128 } => write!(f, "{only}")?,
            HostPattern::Range { network, length } => write!(f, "{network}/{length}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl AllowedHost {
    /// Whether it allows a host by that name, as far as the port goes.
    pub(super) fn names(&self, host: &str, port: u16) -> bool {
        let named = match &self.place {
            HostPattern::Name(name) => name == host,
            HostPattern::Range { .. } => false,
        };
        named && self.fits(port)
    }

    /// Whether it allows an address, as far as the port goes.
    pub(super) fn holds(&self, address: IpAddr, port: u16) -> bool {
        let within = match &self.place {
            HostPattern::Name(_) => false,
            HostPattern::Range { network, length } => holds(*network, *length, address.to_canonical()),
        };
        within && self.fits(port)
    }

    /// Whether it names a port of its own, which then need not be a usual one.
    pub(super) fn names_port(&self, port: u16) -> bool {
        self.port == Some(port)
    }

    fn fits(&self, port: u16) -> bool {
        self.port.is_none_or(|only| only == port)
    }
}
