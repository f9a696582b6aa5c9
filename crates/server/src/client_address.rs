//! Where a request comes from: the other end of its connection, or what a proxy of ours says.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, header},
    middleware::Next,
    response::Response,
};

use crate::connections::PeerAddress;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address that a request comes from. This is the only place where it is worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl ClientAddress {
    /// The address, where it tells anything: whoever is on this machine may be anybody, or a proxy that nobody named.
    pub(crate) fn outside_address(self) -> Option<IpAddr> {
        Some(self.0).filter(|address| !address.is_loopback())
    }
}

/// An address, or all addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    bits: u8,
}

impl FromStr for AddressRange {
    type Err = String;

    /// Reads `10.0.0.1`, `10.0.0.0/8` or `fd00::/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no address and no network; write it like 10.0.0.1 or 10.0.0.0/8");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse::<u8>().map_err(|_| wrong()))?;
        if bits > most { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl AddressRange {
    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let apart = u32::from(own) ^ u32::from(other);
                apart.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let apart = u128::from(own) ^ u128::from(other);
                apart.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// Notes where each request comes from.
pub(crate) async fn locate(State(proxies): State<Arc<[AddressRange]>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
    let address = address_of(peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), request.headers(), &proxies);
    request.extensions_mut().insert(ClientAddress(address));
    next.run(request).await
}

/// The address behind all of our proxies. What others than they say counts for nothing.
fn address_of(peer: IpAddr, headers: &HeaderMap, proxies: &[AddressRange]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_ours = |address: IpAddr| proxies.iter().any(|proxy| proxy.contains(address));
    if !is_ours(peer) {
        return peer;
    }
    let listed = [(X_FORWARDED_FOR, of_list as fn(&str) -> Option<IpAddr>), (header::FORWARDED, of_pair)];
    let mut told = listed.into_iter().filter_map(|(name, read)| {
        let hops: Vec<&str> =
            headers.get_all(name).iter().flat_map(|line| line.to_str().unwrap_or("?").split(',')).collect();
        let mut last = hops.first().map(|_| peer)?;
        // The last hop was written by the proxy itself, each one before by whoever that names.
        for hop in hops.iter().rev() {
            match read(hop.trim()) {
                Some(address) => last = address,
                None => break,
            }
            if !is_ours(last) {
                break;
            }
        }
        Some(last)
    });
    match (told.next(), told.next()) {
        (Some(one), Some(other)) if one != other => peer,
        (Some(one), _) => one,
        (None, _) => peer,
    }
}

/// A hop of `X-Forwarded-For`: an address, perhaps with a port.
fn of_list(hop: &str) -> Option<IpAddr> {
    let plain = hop.parse::<IpAddr>().ok();
    let with_port = || hop.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || hop.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    plain.or_else(with_port).or_else(bracketed).map(|address| address.to_canonical())
}

/// A hop of `Forwarded`: `for=` with an address, among other things.
fn of_pair(hop: &str) -> Option<IpAddr> {
    let pairs = hop.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, address) = pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    of_list(address.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    fn client(peer: &str, told: &[(HeaderName, &str)]) -> String {
        let proxies: Vec<AddressRange> = ["10.0.0.0/8", "fd00::1"].map(|range| range.parse().unwrap()).into();
        let headers = told.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        address_of(peer.parse().unwrap(), &headers, &proxies).to_string()
    }

    #[test]
    fn only_our_own_proxies_say_for_whom_they_ask() {
        let told = [(X_FORWARDED_FOR, "203.0.113.9")];
        assert_eq!(client("192.0.2.1", &told), "192.0.2.1");
        assert_eq!(client("10.1.2.3", &told), "203.0.113.9");
        assert_eq!(client("::ffff:10.1.2.3", &told), "203.0.113.9");
        assert_eq!(client("fd00::1", &told), "203.0.113.9");
        assert_eq!(client("fd00::2", &told), "fd00::2");
        assert_eq!(client("10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn what_a_client_writes_before_the_proxy_is_not_believed() {
        assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, "127.0.0.1, 203.0.113.9")]), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, "127.0.0.1, 203.0.113.9, 10.0.0.2")]), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, "nonsense")]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, "203.0.113.9, nonsense")]), "10.0.0.1");
        let (list, pair) = ((X_FORWARDED_FOR, "203.0.113.9"), (header::FORWARDED, "for=127.0.0.1"));
        assert_eq!(client("10.0.0.1", &[list, pair]), "10.0.0.1", "which of the two did the proxy write?");
    }

    #[test]
    fn both_headers_are_read() {
        for (told, expected) in [
            ("for=203.0.113.9;proto=https", "203.0.113.9"),
            ("For=\"203.0.113.9:4711\"", "203.0.113.9"),
            ("proto=https; for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=unknown", "10.0.0.1"),
            ("for=198.51.100.1, for=203.0.113.9", "203.0.113.9"),
        ] {
            assert_eq!(client("10.0.0.1", &[(header::FORWARDED, told)]), expected, "{told}");
        }
        assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, "[2001:db8::1]")]), "2001:db8::1");
    }

    #[test]
    fn ranges_are_read_and_nothing_else() {
        for wrong in ["", "10.0.0.1/33", "10.0.0/8", "::/129", "example.org", "10.0.0.1/x"] {
            wrong.parse::<AddressRange>().unwrap_err();
        }
        assert!("0.0.0.0/0".parse::<AddressRange>().unwrap().contains("8.8.8.8".parse().unwrap()));
    }
}
