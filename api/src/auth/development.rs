//! Development mode: everybody is `debug_user` or whoever `X-User` says, and may do everything.
//!
//! Only requests to a loopback Host name are answered, so that no web page can reach a developer's server through the
//! developer's browser.

use axum::{
    extract::Request,
    http::{HeaderMap, header, uri::Authority},
};

use super::{Identity, Kind, MAX_NAME_CHARS, name};
use crate::problem::Problem;

/// Who a developer says to be.
pub const HEADER: &str = "x-user";

const DEVELOPER: &str = "debug_user";

pub fn identify(headers: &HeaderMap) -> Result<Identity, Problem> {
    let named = headers.get(HEADER);
    let owner = named.map_or(Some(DEVELOPER), name).ok_or_else(|| Problem::invalid_user(MAX_NAME_CHARS))?;
    Ok(Identity {
        owner: owner.to_owned(),
        kind: Kind::Developer,
        is_operator: true,
        is_stranger: named.is_none(),
        expires_at: None,
        newcomer: None,
    })
}

/// What machines ask by address; nothing of any user is there.
const FOR_MACHINES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refuses requests that were addressed to another name than this host's own.
pub fn only_loopback_hosts(request: &Request) -> Result<(), Problem> {
    if FOR_MACHINES.contains(&request.uri().path()) {
        return Ok(());
    }
    match host(request.headers(), request.uri().authority()) {
        Some(host) if is_loopback(&host) => Ok(()),
        host => Err(Problem::foreign_host(host.as_deref().unwrap_or(""))),
    }
}

fn host(headers: &HeaderMap, authority: Option<&Authority>) -> Option<String> {
    match headers.get(header::HOST) {
        Some(host) => Some(host.to_str().ok()?.parse::<Authority>().ok()?.host().to_owned()),
        None => Some(authority?.host().to_owned()),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_hosts_own_names_are_loopback() {
        for host in ["localhost", "LOCALHOST", "localhost.", "chat.localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]"]
        {
            assert!(is_loopback(host), "{host} was refused");
        }
        for host in ["", "example.org", "localhost.example.org", "127.0.0.1.example.org", "10.0.0.1", "0.0.0.0", "[::]"]
        {
            assert!(!is_loopback(host), "{host} was accepted");
        }
    }
}
