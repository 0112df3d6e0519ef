//! The rule for changes that a browser sends for a page of another origin.
//!
//! A browser adds the user's cookie to the requests of all pages of the same site, and development mode needs no cookie at
//! all. So there a change needs a page of the server's own origin, or of a listed one. Other clients than browsers send
//! neither header, and pass. A request with a token passes too, because no other page has the token.

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderValue, Method, header,
        uri::{Authority, Uri},
    },
};
use holdfast_shared::config::ApiConfig;

use crate::{cors, host, problem::Problem};

/// Decides whether a page may change something without a token.
pub struct OriginRule {
    /// The other origins whose pages may.
    listed: Vec<HeaderValue>,
}

/// The result of the rule, in the extensions of a request.
#[derive(Debug, Clone)]
pub struct OriginVerdict(pub Result<(), Problem>);

impl OriginRule {
    /// Reads the settings. Outside of development mode, a listed origin also needs `HOLDFAST_CORS_CREDENTIALS`.
    pub fn new(api: &ApiConfig, is_development: bool) -> Self {
        Self { listed: if is_development || api.cors_credentials { cors::origins(api) } else { Vec::new() } }
    }

    /// Fails for a change that the browser sends for a page of another origin. `is_proxied` says that the peer is a
    /// trusted proxy, which may report the host of its own request.
    pub fn check(&self, request: &Request, is_proxied: bool) -> Result<(), Problem> {
        let headers = request.headers();
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        let origins = || headers.get_all(header::ORIGIN).iter();
        if origins().next().is_some() && origins().all(|origin| self.listed.contains(origin)) {
            return Ok(());
        }
        let hosts = own_hosts(headers, request.uri(), is_proxied);
        let is_own = |origin: &HeaderValue| hosts.iter().any(|host| is_of_host(origin, host));
        let sites = headers.get_all("sec-fetch-site");
        let is_elsewhere = |site: &HeaderValue| matches!(site.as_bytes(), b"same-site" | b"cross-site");
        if sites.iter().any(is_elsewhere) || !origins().all(is_own) {
            return Err(Problem::foreign_origin());
        }
        Ok(())
    }
}

/// Returns whether a page of another site sends the request. A listed origin may be one.
pub fn is_cross_site(headers: &HeaderMap) -> bool {
    headers.get_all("sec-fetch-site").iter().any(|site| site == "cross-site")
}

/// Returns the hosts by which the client may know this server.
fn own_hosts(headers: &HeaderMap, uri: &Uri, is_proxied: bool) -> Vec<Authority> {
    let named = headers.get(header::HOST).and_then(host::authority).or_else(|| uri.authority().cloned());
    let forwarded = headers.get("x-forwarded-host").filter(|_| is_proxied).and_then(|hosts| hosts.to_str().ok());
    let forwarded = forwarded.and_then(|hosts| hosts.split(',').next()?.trim().parse().ok());
    named.into_iter().chain(forwarded).collect()
}

/// Returns whether an origin has this host and port. The schemes may differ, because a proxy may terminate TLS.
fn is_of_host(origin: &HeaderValue, host: &Authority) -> bool {
    let Some((scheme, authority)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
        return false;
    };
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let named = |authority: &Authority| {
        let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
        (name, authority.port_u16().unwrap_or(usual))
    };
    authority.parse().is_ok_and(|origin| named(&origin) == named(host))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const FRONT: &str = "https://front.example";

    /// The right that the settings give to `FRONT`.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum FrontRight {
        /// A key, and no origin that pages may use with the cookie.
        Checked,
        /// A key, `HOLDFAST_CORS_ORIGINS` and `HOLDFAST_CORS_CREDENTIALS`; or development mode and the first of them.
        Listed,
    }

    fn request(method: &Method, headers: &[(&str, &str)]) -> Request {
        let request = Request::builder().method(method).uri("/v1/runs").header("host", "chat.example.org");
        headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .body(Body::empty())
            .unwrap()
    }

    #[test]
    fn a_change_comes_from_the_servers_own_pages_or_from_no_browser() {
        let check = |mode: FrontRight, headers: &[(&str, &str)], passes: bool| {
            let listed = if mode == FrontRight::Listed { vec![HeaderValue::from_static(FRONT)] } else { Vec::new() };
            let rule = OriginRule { listed };
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let verdict = rule.check(&request(&method, headers), false);
                assert_eq!(verdict.is_ok(), passes, "{mode:?} {method} {headers:?}");
                assert!(verdict.err().is_none_or(|problem| problem.code == "foreign_origin"));
            }
            for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
                assert!(rule.check(&request(&method, headers), false).is_ok(), "{mode:?} {method} {headers:?}");
            }
        };
        let site = |site| ("sec-fetch-site", site);
        let origin = |origin| ("origin", origin);
        for mode in [FrontRight::Checked, FrontRight::Listed] {
            check(mode, &[], true);
            check(mode, &[site("same-origin")], true);
            check(mode, &[site("none")], true);
            check(mode, &[site("same-site")], false);
            check(mode, &[site("cross-site")], false);
            check(mode, &[origin("null")], false);
            check(mode, &[origin("")], false);
            check(mode, &[origin("https://chat.example.org")], true);
            check(mode, &[origin("http://chat.example.org")], true);
            check(mode, &[origin("https://chat.example.org:443")], true);
            check(mode, &[origin("https://chat.example.org:8443")], false);
            check(mode, &[origin("https://other.example.org")], false);
            check(mode, &[origin("https://example.org")], false);
            check(mode, &[origin("ftp://chat.example.org")], false);
            check(mode, &[site("same-origin"), origin("https://chat.example.org")], true);
            check(mode, &[site("same-origin"), origin("https://evil.example")], false);
            check(mode, &[site("same-site"), origin("https://chat.example.org")], false);
            check(mode, &[site("same-site"), origin("https://other.example.org")], false);
            check(mode, &[site("same-origin"), site("cross-site")], false);
            check(mode, &[origin(FRONT), origin("https://evil.example")], false);
            check(mode, &[origin("https://chat.example.org"), ("x-forwarded-host", "a.example")], true);
        }
        for headers in [&[origin(FRONT)][..], &[site("cross-site"), origin(FRONT)], &[site("same-site"), origin(FRONT)]]
        {
            check(FrontRight::Checked, headers, false);
            check(FrontRight::Listed, headers, true);
        }
    }

    #[test]
    fn only_a_trusted_proxy_reports_the_host() {
        let check = |is_proxied: bool, forwarded: &str, passes: bool| {
            let headers = [("origin", "https://public.example"), ("x-forwarded-host", forwarded)];
            let verdict = OriginRule { listed: Vec::new() }.check(&request(&Method::POST, &headers), is_proxied);
            assert_eq!(verdict.is_ok(), passes, "{is_proxied} {forwarded}");
        };
        check(true, "public.example", true);
        check(true, "public.example, inner.example", true);
        check(true, "inner.example", false);
        check(true, "", false);
        check(false, "public.example", false);
    }

    #[test]
    fn hosts_with_ports_and_addresses_are_compared_as_such() {
        let check = |origin: &str, host: &str, is_same: bool| {
            let origin_value = HeaderValue::from_str(origin).unwrap();
            assert_eq!(is_of_host(&origin_value, &host.parse().unwrap()), is_same, "{origin} {host}");
        };
        check("http://localhost:5173", "localhost:5173", true);
        check("http://localhost:5173", "localhost:8080", false);
        check("http://localhost", "localhost:80", true);
        check("https://localhost", "localhost:80", false);
        check("http://[::1]:8080", "[::1]:8080", true);
        check("http://127.0.0.1:8080", "localhost:8080", false);
        check("https://A.example", "a.example.", true);
    }
}
