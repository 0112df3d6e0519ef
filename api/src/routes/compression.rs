//! Compresses JSON for clients that ask for it. Streams, files, errors and answers with a secret stay as they are.

use std::{io::Write as _, sync::Arc};

use axum::{
    body::{self, Body, Bytes, HttpBody},
    extract::Request,
    http::{HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use flate2::{Compression, write::GzEncoder};
use tokio::task::spawn_blocking;

use super::page::accepts;
use crate::{auth::NewUserCookie, problem::Problem};

/// Bytes up to which a body stays as it is.
const SMALL: u64 = 1024;

/// Bytes from which another thread compresses the body.
const LARGE: usize = 32 * 1024;

/// Headers of answers that stay as they are: parts and files, and those that are encoded already.
const LEFT_ALONE: [header::HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_DISPOSITION,
    header::CONTENT_RANGE,
    header::ACCEPT_RANGES,
    header::SET_COOKIE,
];

/// Compresses the answer of a request that accepts gzip.
pub async fn compress(request: Request, next: Next) -> Response {
    let wants = request.method() != Method::HEAD && accepts(request.headers(), "gzip");
    let mut response = next.run(request).await;
    if !is_compressible(&response) {
        return response;
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !wants {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(bytes) = body::to_bytes(body, usize::MAX).await else { return Problem::internal().into_response() };
    let compressed = if bytes.len() < LARGE {
        gzip(&bytes)
    } else {
        spawn_blocking(move || gzip(&bytes)).await.expect("the compression of an answer ends")
    };
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Response::from_parts(head, Body::from(compressed))
}

/// Returns whether the answer is JSON of more than `SMALL` bytes that is complete in memory.
fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let is_json = essence == "application/json" || essence.ends_with("+json");
    let is_whole = response.body().size_hint().exact().is_some_and(|bytes| bytes > SMALL);
    // The form of an error may change later, and a new user's answer has a secret.
    let (extensions, is_left_alone) = (response.extensions(), LEFT_ALONE.iter().any(|name| headers.contains_key(name)));
    let has_secret = extensions.get::<NewUserCookie>().is_some();
    is_json && is_whole && !is_left_alone && !has_secret && extensions.get::<Arc<Problem>>().is_none()
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).expect("a Vec takes every write");
    encoder.finish().expect("a Vec takes every write").into()
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn only_whole_json_without_a_secret_is_compressed() {
        let json = || ([(header::CONTENT_TYPE, "application/json")], "x".repeat(1025)).into_response();
        let check =
            |response: Response, expected: bool| assert_eq!(is_compressible(&response), expected, "{response:?}");
        check(json(), true);
        check(
            ([(header::CONTENT_TYPE, "application/a2a+json; charset=utf-8")], "x".repeat(1025)).into_response(),
            true,
        );
        check(([(header::CONTENT_TYPE, "application/json")], "x".repeat(1024)).into_response(), false);
        check(([(header::CONTENT_TYPE, "text/event-stream")], "x".repeat(1025)).into_response(), false);
        check((StatusCode::OK, "x".repeat(1025)).into_response(), false);
        for name in LEFT_ALONE {
            let mut response = json();
            response.headers_mut().insert(name, HeaderValue::from_static("x"));
            check(response, false);
        }
        let stream = Body::from_stream(futures::stream::iter([Ok::<_, std::io::Error>("x".repeat(1025))]));
        check(([(header::CONTENT_TYPE, "application/json")], stream).into_response(), false);
        check(Problem::invalid_body("x".repeat(1025)).into_response(), false);
    }
}
