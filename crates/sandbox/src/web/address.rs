//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of version 4 that are not the public internet, and what each is.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an address of this very machine"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "an address that providers share"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a metadata address of a cloud"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address, where clouds keep their metadata"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "an address for protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "an address for examples"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay address"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "an address for measurements"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "an address for examples"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "an address for examples"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// Parts of 2000::/3 that are not the public internet either, and what each is.
const NOT_PUBLIC_V6: &[(Ipv6Addr, u32, &str)] = &[
    // Teredo, benchmarks, ORCHID: tunnels and identifiers, no hosts.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "an address for protocols and tunnels"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "an address for examples"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "an address that hides one of version 4 (6to4)"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "an address for examples"),
];
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Addresses of version 4 as a translator shows them to hosts of version 6.
const TRANSLATED: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// What an address is when it is not one of the public internet.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let within =
        |&&(network, length, _): &&(Ipv4Addr, u32, &str)| holds(IpAddr::V4(network), length, IpAddr::V4(address));
    NOT_PUBLIC_V4.iter().find(within).map(|(_, _, what)| *what)
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return not_public_v4(mapped);
    }
    let within = |network: Ipv6Addr, length| holds(IpAddr::V6(network), length, IpAddr::V6(address));
    if within(TRANSLATED.0, TRANSLATED.1) {
        let [.., high, low] = address.segments();
        return not_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    if !within(PUBLIC_V6.0, PUBLIC_V6.1) {
        return Some(if address.is_loopback() { "a loopback address" } else { "no public address" });
    }
    NOT_PUBLIC_V6.iter().find(|(network, length, _)| within(*network, *length)).map(|(_, _, what)| *what)
}

/// Whether a network holds an address of the same version.
pub(super) fn holds(network: IpAddr, length: u32, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (network.to_bits() ^ address.to_bits()).leading_zeros() >= length.min(32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (network.to_bits() ^ address.to_bits()).leading_zeros() >= length.min(128)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}
