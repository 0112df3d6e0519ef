//! Checks that a path is text. A route reads its ids as text, and would otherwise answer without a problem's code.

use axum::extract::Request;

use crate::problem::Problem;

/// Fails if the path is no UTF-8 once its percent-encoding is decoded.
pub fn check(request: &Request) -> Result<(), Problem> {
    let decoded = percent_encoding::percent_decode_str(request.uri().path()).decode_utf8();
    decoded.map(drop).map_err(|_| Problem::invalid_path())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_path_is_text() {
        let check = |path: &str, is_text: bool| {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            assert_eq!(super::check(&request).map_err(|problem| problem.code).is_ok(), is_text, "{path}");
        };
        check("/v1/runs", true);
        check("/api/chat/%C3%BC%20x/messages", true);
        check("/api/chat/%25ff/messages", true);
        check("/api/chat/%ff/messages", false);
        check("/v1/runs/%C3", false);
    }
}
