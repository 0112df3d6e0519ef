//! Development mode: every caller is `debug_user`, or the user that `X-User` names, and may do everything.
//!
//! So `DevelopmentGate` admits this machine only: it checks the Host name and the address of the peer. `origin` refuses
//! changes by pages of other origins, which the developer's browser may show.

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{HeaderMap, header, uri::Authority},
};
use holdfast_shared::config::UsersConfig;

use super::{CallerKind, Identity, MAX_NAME_CHARS, name};
use crate::problem::Problem;

/// Names the user in development mode.
pub const HEADER: &str = "x-user";

const DEVELOPER: &str = "debug_user";

pub fn identify(headers: &HeaderMap) -> Result<Identity, Problem> {
    let header_value = headers.get(HEADER);
    let owner = header_value.map_or(Some(DEVELOPER), name).ok_or_else(|| Problem::invalid_user(MAX_NAME_CHARS))?;
    Ok(Identity {
        owner: owner.to_owned(),
        kind: CallerKind::Developer,
        is_operator: true,
        is_unnamed: header_value.is_none(),
        expires_at: None,
        is_ambient: true,
        new_user: None,
    })
}

/// Paths that probes request by address; they show no user's data.
const PROBE_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Decides which requests development mode accepts.
pub struct DevelopmentGate {
    /// `HOLDFAST_DEVELOPMENT`. In a container the peer is a proxy or the host's end of a bridge.
    takes_any_peer: bool,
}

impl DevelopmentGate {
    pub const fn new(users: &UsersConfig) -> Self {
        Self { takes_any_peer: users.development }
    }

    /// Fails for a request to another host, or from another machine.
    pub fn admit(&self, request: &Request, peer: IpAddr) -> Result<(), Problem> {
        if PROBE_PATHS.contains(&request.uri().path()) {
            return Ok(());
        }
        match host(request.headers(), request.uri().authority()) {
            Some(host) if is_loopback(&host) => {}
            host => return Err(Problem::foreign_host(host.as_deref().unwrap_or(""))),
        }
        if !self.takes_any_peer && !peer.to_canonical().is_loopback() {
            return Err(Problem::foreign_peer(peer));
        }
        Ok(())
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

    fn request(path: &str) -> Request {
        Request::builder().uri(path).header("host", "localhost:8080").body(axum::body::Body::empty()).unwrap()
    }

    #[test]
    fn the_gate_admits_only_this_machine_unless_the_setting_says_otherwise() {
        let check = |takes_any_peer: bool, path: &str, peer: &str, refused: Option<&str>| {
            let gate = DevelopmentGate { takes_any_peer };
            let admitted = gate.admit(&request(path), peer.parse().unwrap());
            assert_eq!(admitted.err().map(|problem| problem.code), refused, "{path} for {peer}");
        };
        for peer in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            check(false, "/v1/runs", peer, None);
        }
        for peer in ["172.17.0.1", "192.168.0.7", "fd00::1", "::ffff:10.0.0.1"] {
            check(false, "/v1/runs", peer, Some("foreign_peer"));
            check(true, "/v1/runs", peer, None);
            check(false, "/readyz", peer, None);
        }
    }

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
