//! The chat page: what `api/ui` was built into, compiled into the executable.
//!
//! The page may load nothing from elsewhere, and nothing that is written into it is executed: `POLICY` has browsers see to
//! that, whatever a model has said.

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::problem::Problem;

#[derive(RustEmbed)]
#[folder = "ui/dist"]
struct Built;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// What every file of the page says of itself.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(self)"),
];

/// `/` and `/c/{id}`: the page finds out by itself what it is to show.
pub async fn page(headers: HeaderMap) -> Response {
    // A newer build has other names for its files.
    file("index.html", "no-cache", &headers)
}

/// The files that the page is made of. Their names change with what is in them.
pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    file(&format!("assets/{name}"), "public, max-age=31536000, immutable", &headers)
}

/// The sign of the page in tabs and bookmarks.
pub async fn icon(headers: HeaderMap) -> Response {
    file("favicon.svg", "public, max-age=86400", &headers)
}

fn file(path: &str, caching: &'static str, headers: &HeaderMap) -> Response {
    let Some(EmbeddedFile { data, metadata }) = Built::get(path) else {
        return Problem::route_not_found(&format!("/{path}")).into_response();
    };
    let hash: String = metadata.sha256_hash()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    // Weak, because compression changes the bytes.
    let tag = format!("W/\"{hash}\"");
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(data).into_response(),
    };
    let said = response.headers_mut();
    said.insert(header::CONTENT_TYPE, HeaderValue::from_str(metadata.mimetype()).expect("a media type is plain text"));
    said.insert(header::ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits are plain text"));
    said.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    HEADERS.into_iter().for_each(|(name, value)| {
        said.insert(name, HeaderValue::from_static(value));
    });
    response
}
