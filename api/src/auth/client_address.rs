//! Where a request comes from: the client, and whoever a trusted proxy has seen.
//!
//! Anybody can send `X-Forwarded-For`. Only from a trusted proxy it is believed, and then only its last foreign entry is
//! the proxy's own word; what stands before it may be made up, so there are two addresses.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// In the extensions of a request: who has opened the connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client, as far as it can be known.
    pub client: IpAddr,
    /// Behind a trusted proxy: what the proxy has seen.
    pub seen_by_proxy: Option<IpAddr>,
}

impl ClientAddress {
    pub fn of(peer: IpAddr, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> Self {
        let is_trusted = |address: &IpAddr| trusted_proxies.iter().any(|network| network.contains(address));
        let peer = peer.to_canonical();
        if !is_trusted(&peer) {
            return Self { client: peer, seen_by_proxy: None };
        }
        let forwarded = forwarded_for(headers);
        let Some(last) = forwarded.last() else { return Self { client: peer, seen_by_proxy: None } };
        // Where all are trusted proxies, one of them asks for itself.
        let foreign = forwarded.iter().rev().find(|entry| !entry.as_ref().is_some_and(is_trusted));
        let seen_by_proxy = foreign.unwrap_or(last).unwrap_or(peer);
        Self { client: forwarded[0].unwrap_or(seen_by_proxy), seen_by_proxy: Some(seen_by_proxy) }
    }
}

/// What counts as one client: an address, or the network of 2^64 addresses that an IPv6 host can choose from.
pub fn one_client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// The entries of all such headers in their order; `None` is an entry that is no address.
fn forwarded_for(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let values = headers.get_all("x-forwarded-for").iter().map(|value| value.to_str().unwrap_or("?"));
    values.flat_map(|value| value.split(',')).map(|entry| address(entry.trim())).collect()
}

/// Some proxies add the port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|socket: SocketAddr| socket.ip())).ok()?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_proxys_word_is_told_from_what_a_client_makes_up() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap()).to_vec();
        let check = |peer: &str, forwarded: &[&str], client: &str, seen: Option<&str>| {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append("x-forwarded-for", HeaderValue::from_str(value).unwrap());
            }
            let address = ClientAddress::of(peer.parse().unwrap(), &headers, &trusted);
            let expected = |text: &str| text.parse::<IpAddr>().unwrap();
            assert_eq!(address.client, expected(client), "{peer} {forwarded:?}");
            assert_eq!(address.seen_by_proxy, seen.map(expected), "{peer} {forwarded:?}");
        };
        check("192.0.2.1", &[], "192.0.2.1", None);
        check("192.0.2.1", &["198.51.100.1"], "192.0.2.1", None);
        check("10.0.0.1", &[], "10.0.0.1", None);
        check("10.0.0.1", &["198.51.100.1"], "198.51.100.1", Some("198.51.100.1"));
        check("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1", Some("198.51.100.1"));
        check("10.0.0.1", &["203.0.113.9, 198.51.100.1"], "203.0.113.9", Some("198.51.100.1"));
        check("10.0.0.1", &["203.0.113.9", "198.51.100.1 ,10.0.0.2"], "203.0.113.9", Some("198.51.100.1"));
        check("fd00::1", &["2001:db8::7"], "2001:db8::7", Some("2001:db8::7"));
        check("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1", Some("198.51.100.1"));
        check("10.0.0.1", &["[2001:db8::7]:4711, [2001:db8::8]"], "2001:db8::7", Some("2001:db8::8"));
        check("10.0.0.1", &["anything, 198.51.100.1"], "198.51.100.1", Some("198.51.100.1"));
        check("10.0.0.1", &["198.51.100.1, unknown"], "198.51.100.1", Some("10.0.0.1"));
        check("10.0.0.1", &[""], "10.0.0.1", Some("10.0.0.1"));
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3", Some("10.0.0.2"));
    }

    #[test]
    fn a_host_cannot_choose_among_addresses_of_its_own() {
        let check = |address: &str, client: &str| {
            assert_eq!(one_client(address.parse().unwrap()), client.parse::<IpAddr>().unwrap(), "{address}");
        };
        check("192.0.2.1", "192.0.2.1");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
    }
}
