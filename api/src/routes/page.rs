//! The chat page: the build of `api/ui`, compiled into the executable.
//!
//! Each file is there in Brotli and gzip, too, so that no request compresses anything. `POLICY` makes browsers refuse
//! foreign resources and injected scripts, also if a model's output contains them.

use std::borrow::Cow;

use axum::{
    body::Body,
    extract::{OriginalUri, Path},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use axum_extra::headers::{ETag, HeaderMapExt, IfNoneMatch};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::problem::Problem;

#[derive(RustEmbed)]
#[folder = "ui/dist"]
struct PageFiles;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// The headers of every file of the page.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(self)"),
];

/// `/`, `/c/{id}`, `/memories`, `/w`, `/k` and below them: the page reads its own URL and shows the conversation.
pub async fn page(headers: HeaderMap) -> Response {
    // Browsers must check for a newer build, whose assets have other names.
    file("index.html", "no-cache", &headers)
}

/// Returns an asset of the page. Its name changes with its content, so browsers may cache it.
pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    file(&format!("assets/{name}"), "public, max-age=31536000, immutable", &headers)
}

/// Returns the icon for tabs and bookmarks.
pub async fn icon(headers: HeaderMap) -> Response {
    file("favicon.svg", "public, max-age=86400", &headers)
}

/// The answer for unknown paths: for a browser the page, which shows the error, and for programs a problem. A path that ends with a
/// slash leads to the path without it.
pub async fn not_found(OriginalUri(uri): OriginalUri, method: Method, headers: HeaderMap) -> Response {
    if let Some(location) = without_slash(&uri) {
        return (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, location)]).into_response();
    }
    let is_of_programs = ["/v1/", "/api/", "/mcp"].into_iter().any(|prefix| uri.path().starts_with(prefix));
    if is_of_programs || !matches!(method, Method::GET | Method::HEAD) || !wants_html(&headers) {
        return Problem::route_not_found(uri.path()).into_response();
    }
    let mut response = file("index.html", "no-store", &HeaderMap::new());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// Returns the path and the query of an address without the slashes at the end of its path; `None` if there are none, or if a browser
/// would take the rest for another host.
fn without_slash(uri: &Uri) -> Option<HeaderValue> {
    let path = uri.path().strip_suffix('/')?.trim_end_matches('/');
    let is_of_host = path.starts_with('/') && !path[1..].starts_with(['/', '\\']);
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    is_of_host.then(|| HeaderValue::from_str(&format!("{path}{query}")).ok())?
}

fn wants_html(headers: &HeaderMap) -> bool {
    listed(headers, &header::ACCEPT).any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/html"))
}

/// Returns the items of a list header.
fn listed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','))
}

/// The codings of the embedded files with their file endings, smallest first.
const CODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// Returns whether a client accepts a coding: by name or by `*`, and not with weight 0.
pub fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let accepts_name = |name: &str| {
        listed(headers, &header::ACCEPT_ENCODING).find_map(|item| {
            let (own, weight) = item.split_once(';').unwrap_or((item, ""));
            let is_refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
            own.trim().eq_ignore_ascii_case(name).then_some(!is_refused)
        })
    };
    accepts_name(coding).or_else(|| accepts_name("*")).unwrap_or(false)
}

/// Returns the smallest form of a file that the client accepts, with its coding; `None` if it accepts no coding.
fn encoded(path: &str, headers: &HeaderMap) -> Option<(Cow<'static, [u8]>, &'static str)> {
    let mut codings = CODINGS.into_iter().filter(|(coding, _)| accepts(headers, coding));
    codings.find_map(|(coding, ending)| Some((PageFiles::get(&format!("{path}{ending}"))?.data, coding)))
}

fn file(path: &str, caching: &'static str, headers: &HeaderMap) -> Response {
    let Some(EmbeddedFile { data, metadata }) = PageFiles::get(path) else {
        return Problem::route_not_found(&format!("/{path}")).into_response();
    };
    let (data, coding) = encoded(path, headers).map_or((data, None), |(data, coding)| (data, Some(coding)));
    // The tag is weak, because the file has other bytes in each coding.
    let tag = format!("W/\"{}\"", hex::encode(&metadata.sha256_hash()[..16]));
    let tag: ETag = tag.parse().expect("hexadecimal digits are a tag");
    let is_known = headers.typed_get::<IfNoneMatch>().is_some_and(|known| !known.precondition_passes(&tag));
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { Body::from(data).into_response() };
    let response_headers = response.headers_mut();
    response_headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_str(metadata.mimetype()).expect("a media type is plain text"));
    response_headers.typed_insert(tag);
    response_headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response_headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(coding) = coding.filter(|_| !is_known) {
        response_headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    HEADERS.into_iter().for_each(|(name, value)| {
        response_headers.insert(name, HeaderValue::from_static(value));
    });
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn an_address_loses_the_slashes_at_its_end() {
        let check = |address: &str, expected: Option<&str>| {
            let location = without_slash(&address.parse().unwrap());
            assert_eq!(location.as_ref().map(|value| value.to_str().unwrap()), expected, "{address}");
        };
        check("/v1/runs/", Some("/v1/runs"));
        check("/v1/runs//?limit=1", Some("/v1/runs?limit=1"));
        check("/v1/runs", None);
        check("/", None);
        check("//elsewhere.example/", None);
        check("///", None);
    }

    #[test]
    fn a_client_gets_the_smallest_coding_that_it_accepts() {
        let check = |accepted: &'static str, coding: Option<&str>| {
            let response = file("index.html", "no-cache", &sending(header::ACCEPT_ENCODING, accepted));
            let sent_coding = response.headers().get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap());
            assert_eq!(sent_coding, coding, "{accepted:?}");
            assert_eq!(response.headers()[header::VARY], "accept-encoding");
        };
        check("", None);
        check("identity", None);
        check("gzip, deflate, br", Some("br"));
        check("gzip, deflate", Some("gzip"));
        check("br;q=0, GZIP;q=0.5", Some("gzip"));
        check("*", Some("br"));
        check("br;q=0.0, *", Some("gzip"));
        check("*;q=0", None);
    }

    #[test]
    fn every_coded_file_has_a_plain_one_and_is_smaller() {
        for path in PageFiles::iter().filter(|path| CODINGS.iter().any(|(_, ending)| path.ends_with(ending))) {
            let plain = path.rsplit_once('.').expect("a coded file has an ending").0;
            let (coded, plain) = (PageFiles::get(&path).unwrap().data, PageFiles::get(plain).expect(plain).data);
            assert!(coded.len() < plain.len(), "{path}");
        }
        assert!(PageFiles::get("index.html.br").is_some() && PageFiles::get("index.html.gz").is_some());
    }

    #[test]
    fn only_a_browser_gets_the_page_for_an_unknown_path() {
        assert!(wants_html(&sending(header::ACCEPT, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")));
        assert!(!wants_html(&sending(header::ACCEPT, "*/*")));
        assert!(!wants_html(&sending(header::ACCEPT, "application/json")));
    }
}
