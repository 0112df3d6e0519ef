//! Checks that a request names exactly one host. If a request named two, a proxy and this server could route it
//! differently.

use axum::{
    extract::Request,
    http::{
        HeaderValue, header,
        uri::{Authority, Uri},
    },
};

use crate::problem::Problem;

/// Fails if the request has several `Host` headers, an invalid one, or a target on another host than the header names.
pub fn check(request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let Some(host) = hosts.next() else { return Ok(()) };
    if hosts.next().is_some() {
        return Err(Problem::invalid_host());
    }
    let host = authority(host).ok_or_else(Problem::invalid_host)?;
    let is_other = |target: &Authority| host_and_port(request.uri(), target) != host_and_port(request.uri(), &host);
    match request.uri().authority() {
        Some(target) if is_other(target) => Err(Problem::invalid_host()),
        _ => Ok(()),
    }
}

/// Returns the host of a header, if it is exactly one.
pub fn authority(value: &HeaderValue) -> Option<Authority> {
    let text = value.to_str().ok()?.trim();
    let is_one = !text.contains([',', '@', ' ', '\t']);
    let authority = text.parse::<Authority>().ok().filter(|_| is_one)?;
    // The parser takes any word for a port.
    (authority.host() == text || authority.port_u16().is_some()).then_some(authority)
}

/// Returns name and port, so that two spellings of one host are equal.
fn host_and_port(uri: &Uri, authority: &Authority) -> (String, u16) {
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    (authority.host().trim_end_matches('.').to_ascii_lowercase(), authority.port_u16().unwrap_or(usual))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_request_names_one_host() {
        let check = |target: &str, hosts: &[&str], taken: bool| {
            let mut request = Request::builder().uri(target).body(Body::empty()).unwrap();
            for host in hosts {
                request.headers_mut().append(header::HOST, HeaderValue::from_str(host).unwrap());
            }
            let checked = super::check(&request);
            assert_eq!(checked.is_ok(), taken, "{target} {hosts:?}");
            assert!(checked.err().is_none_or(|problem| problem.code == "invalid_host"));
        };
        check("/", &[], true);
        check("/", &["a.example:8080"], true);
        check("/", &["[::1]:8080"], true);
        check("/", &["a.example", "a.example"], false);
        check("/", &["a.example, b.example"], false);
        check("/", &["a.example b.example"], false);
        check("/", &["user@a.example"], false);
        check("/", &["a.example:port"], false);
        check("http://a.example/", &["A.example.:80"], true);
        check("https://a.example:443/", &["a.example"], true);
        check("http://a.example:8080/", &["a.example:8080"], true);
        check("http://a.example/", &["b.example"], false);
        check("http://a.example:81/", &["a.example:82"], false);
        check("http://a.example/", &[], true);
    }
}
