//! Who is asking: the one place that answers it.
//!
//! Until users come, this is development mode: everybody is `debug_user` or whoever `X-User` says, and only requests to
//! a loopback Host name are answered, so that no web page can reach a developer's server through the developer's
//! browser.

use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderMap, header, request::Parts, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::problem::Problem;

/// The owner of everything that a request may see and make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub owner: String,
}

/// A caller who may change what belongs to the deployment. In development mode that is everybody.
#[derive(Debug, Clone, Copy)]
pub struct Operator;

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Caller::from_request_parts(parts, state).await.map(|_| Self)
    }
}

const DEVELOPER: &str = "debug_user";
const MAX_NAME_CHARS: usize = 128;

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(name) = parts.headers.get("x-user") else {
            return Ok(Self { owner: DEVELOPER.to_owned() });
        };
        let name = std::str::from_utf8(name.as_bytes()).ok().map(str::trim);
        match name {
            Some(name)
                if (1..=MAX_NAME_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control) =>
            {
                Ok(Self { owner: name.to_owned() })
            }
            _ => Err(Problem::invalid_user(MAX_NAME_CHARS)),
        }
    }
}

/// What machines ask by address; nothing of any user is there.
const FOR_MACHINES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refuses requests that were addressed to another name than this host's own.
pub async fn only_loopback_hosts(request: Request, next: Next) -> Response {
    if FOR_MACHINES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match host(request.headers(), request.uri().authority()) {
        Some(host) if is_loopback(&host) => next.run(request).await,
        host => Problem::foreign_host(host.as_deref().unwrap_or("")).into_response(),
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
