//! Default headers of every answer, errors included; a handler's own headers win. They stop browsers from guessing
//! content types, and caches from serving one caller's answer to another caller.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

/// Request headers that an answer depends on beside its URL.
const VARY: HeaderValue =
    HeaderValue::from_static("authorization, x-api-key, cookie, x-user, x-session-id, accept, origin");

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Adds the headers that an answer lacks.
pub fn complete(response: &mut Response) {
    // RFC 9110, section 8.6: a 204 has no length. Some clients would wait for the bytes of one.
    if response.status() == StatusCode::NO_CONTENT {
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    let headers = response.headers_mut();
    for (name, value) in [(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF), (header::CACHE_CONTROL, NO_STORE)] {
        headers.entry(name).or_insert(value);
    }
    // The page's files are the same for every caller.
    let is_public = headers[header::CACHE_CONTROL].as_bytes().starts_with(b"public");
    if !is_public {
        headers.append(header::VARY, VARY);
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    fn completed(response: impl IntoResponse) -> Response {
        let mut response = response.into_response();
        complete(&mut response);
        response
    }

    #[test]
    fn no_cache_stores_an_answer_without_cache_control() {
        let response = completed("hello");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!([header("x-content-type-options"), header("cache-control")], ["nosniff", "no-store"]);
        assert!(header("vary").contains("authorization"));
    }

    #[test]
    fn an_answer_keeps_the_headers_that_its_handler_set() {
        let of_a_caller = completed([(header::CACHE_CONTROL, "private, no-cache"), (header::VARY, "accept-encoding")]);
        assert_eq!(of_a_caller.headers()[header::CACHE_CONTROL], "private, no-cache");
        assert_eq!(of_a_caller.headers().get_all(header::VARY).iter().count(), 2);
        let of_all = completed([(header::CACHE_CONTROL, "public, max-age=60")]);
        assert!(!of_all.headers().contains_key(header::VARY));
    }

    #[test]
    fn an_answer_without_content_has_no_length() {
        let response = completed((StatusCode::NO_CONTENT, [(header::CONTENT_LENGTH, "0")]));
        assert!(!response.headers().contains_key(header::CONTENT_LENGTH));
    }
}
