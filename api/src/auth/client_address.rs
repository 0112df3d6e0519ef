//! Finds the client's address of a request.
//!
//! Any client can send `X-Forwarded-For`. The server believes a trusted proxy only about the proxy's own peer: it reads
//! the list from the right and stops at the first address that is no trusted proxy. A client may have invented all
//! further ones.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// In the extensions of a request: the address that opened the connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Returns whether the peer is a trusted proxy.
pub fn is_trusted(peer: IpAddr, trusted_proxies: &[IpNet]) -> bool {
    trusted_proxies.iter().any(|network| network.contains(&peer.to_canonical()))
}

/// Returns the client's address: the peer, or the peer of the farthest trusted proxy. A client cannot choose it.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    let mut forwarded = forwarded_for(headers).into_iter().rev();
    // Each trusted proxy names its own peer. An entry that is no address ends the search.
    while is_trusted(client, trusted_proxies)
        && let Some(Some(peer)) = forwarded.next()
    {
        client = peer;
    }
    client
}

/// Returns the address under which a client counts. For IPv6 it is the network of 2^64 addresses that one host can use.
pub fn one_client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// Returns the entries of all `X-Forwarded-For` headers in order; `None` for an entry that is no address.
fn forwarded_for(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let values = headers.get_all("x-forwarded-for").iter().map(|value| value.to_str().unwrap_or("?"));
    values.flat_map(|value| value.split(',')).map(|entry| address(entry.trim())).collect()
}

/// Parses an address, also with the port that some proxies add.
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
    fn the_client_is_the_first_address_from_the_right_that_is_no_trusted_proxy() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap()).to_vec();
        let check = |peer: &str, forwarded: &[&str], client: &str| {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append("x-forwarded-for", HeaderValue::from_str(value).unwrap());
            }
            let address = client_address(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(address, client.parse::<IpAddr>().unwrap(), "{peer} {forwarded:?}");
        };
        check("192.0.2.1", &[], "192.0.2.1");
        check("192.0.2.1", &["198.51.100.1"], "192.0.2.1");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["203.0.113.9, 198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["203.0.113.9", "198.51.100.1 ,10.0.0.2"], "198.51.100.1");
        check("10.0.0.1", &["198.51.100.1, 10.0.0.3, 10.0.0.2"], "198.51.100.1");
        check("fd00::1", &["2001:db8::7"], "2001:db8::7");
        check("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1");
        check("10.0.0.1", &["[2001:db8::7]:4711, [2001:db8::8]"], "2001:db8::8");
        check("10.0.0.1", &["anything, 198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &[""], "10.0.0.1");
        // If all are trusted proxies, the farthest is the client.
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
    }

    #[test]
    fn all_addresses_of_one_host_count_as_one_client() {
        let check = |address: &str, client: &str| {
            assert_eq!(one_client(address.parse().unwrap()), client.parse::<IpAddr>().unwrap(), "{address}");
        };
        check("192.0.2.1", "192.0.2.1");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
    }
}
