//! Agent cards: the address and the abilities of an agent, in a form that clients of 1.0 and of 0.3 read.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use axum_extra::headers::{ETag, HeaderMapExt, IfNoneMatch};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The words of a card.
pub struct CardWords<'a> {
    pub name: &'a str,
    pub description: &'a str,
}

/// How long a client may use a card without a request. A shared cache must not have it, because its addresses depend on the headers
/// of the request.
const CACHING: HeaderValue = HeaderValue::from_static("private, max-age=60");

/// Returns the card of an agent at an address, unless the client has it.
pub fn card(words: &CardWords<'_>, url: &str, headers: &HeaderMap) -> Response {
    let interface = |version: &str| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version});
    let card = json!({
        "name": words.name,
        "description": words.description,
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [interface("1.0"), interface("0.3")],
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
        "defaultInputModes": ["text/plain", "application/json", "image/*", "application/pdf"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "chat", "name": words.name, "description": words.description, "tags": ["chat"]}],
        // The fields that only clients of 0.3 read.
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
    });
    let card = card.to_string();
    let tag: ETag = format!("\"{}\"", hex::encode(&Sha256::digest(&card)[..16])).parse().expect("digits are a tag");
    let is_known = headers.typed_get::<IfNoneMatch>().is_some_and(|known| !known.precondition_passes(&tag));
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { Body::from(card).into_response() };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, CACHING);
    headers.typed_insert(tag);
    response
}
