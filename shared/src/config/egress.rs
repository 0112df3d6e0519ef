//! The addresses that a worker connects to because a user has named them.

use std::{net::IpAddr, str::FromStr, time::Duration};

use ipnet::IpNet;

use super::{bytes, milliseconds};

/// Settings of what workers fetch for users.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Egress")]
pub struct EgressConfig {
    /// Hosts and networks that workers reach for users although they are private or speak plain http, as
    /// pictures.intranet,10.1.0.0/16,127.0.0.1:9000; none unless set.
    #[arg(long, env = "HOLDFAST_EGRESS_ALLOW", value_delimiter = ',')]
    pub egress_allow: Vec<AllowedHost>,

    /// Largest answer that a worker fetches for a user, in bytes.
    #[arg(long, env = "HOLDFAST_EGRESS_MAX_BYTES", default_value = "10485760", value_parser = bytes)]
    pub egress_max_bytes: usize,

    /// Longest time in which a worker fetches the pictures of one message, in ms.
    #[arg(long = "egress-ms", env = "HOLDFAST_EGRESS_MS", default_value = "10000", value_parser = milliseconds)]
    pub egress: Duration,
}

/// An exception to the rules of egress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    place: AllowedPlace,
    /// The only port; any without it.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowedPlace {
    /// A name, in lower case.
    Name(String),
    Network(IpNet),
}

impl AllowedHost {
    /// Returns whether the exception is for a host of this name, or for an address that the URL has, and this port.
    pub fn is_for(&self, host: &str, port: u16) -> bool {
        let has_host = match (&self.place, host.trim_matches(['[', ']']).parse::<IpAddr>()) {
            (AllowedPlace::Name(name), _) => name.eq_ignore_ascii_case(host),
            (AllowedPlace::Network(network), Ok(address)) => network.contains(&address),
            (AllowedPlace::Network(_), Err(_)) => false,
        };
        has_host && self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Some(network) = network_of(text) {
            return Ok(Self { place: AllowedPlace::Network(network), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| expected(text))?)),
            None => (text, None),
        };
        if let Some(network) = network_of(host.trim_matches(['[', ']'])) {
            return Ok(Self { place: AllowedPlace::Network(network), port });
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(expected(text));
        }
        Ok(Self { place: AllowedPlace::Name(host.to_ascii_lowercase()), port })
    }
}

fn network_of(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

fn expected(text: &str) -> String {
    format!("a host, an address or a network, such as pictures.intranet, 127.0.0.1:9000 or 10.1.0.0/16, not {text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_for_its_host_and_its_port() {
        let check = |exception: &str, host: &str, port: u16, expected: bool| {
            let parsed: AllowedHost = exception.parse().unwrap();
            assert_eq!(parsed.is_for(host, port), expected, "{exception} for {host}:{port}");
        };
        check("pictures.intranet", "Pictures.Intranet", 443, true);
        check("pictures.intranet", "more.pictures.intranet", 443, false);
        check("pictures.intranet:8443", "pictures.intranet", 443, false);
        check("127.0.0.1:9000", "127.0.0.1", 9000, true);
        check("127.0.0.1:9000", "127.0.0.1", 9001, false);
        check("10.1.0.0/16", "10.1.7.8", 80, true);
        check("10.1.0.0/16", "10.2.7.8", 80, false);
        check("10.1.0.0/16", "ten.example", 80, false);
        check("[::1]:9000", "[::1]", 9000, true);
        check("::1", "[::1]", 9000, true);
        for unknown in ["", "a b", "http://a", "a:port", "*"] {
            assert!(unknown.parse::<AllowedHost>().is_err(), "{unknown}");
        }
    }
}
