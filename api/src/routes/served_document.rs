//! `/openapi.json`: the description of the routes, made once, with a tag by which a client knows that it has it.

use std::sync::Arc;

use axum::{
    Extension,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use axum_extra::headers::{ETag, HeaderMapExt, IfNoneMatch};
use sha2::{Digest, Sha256};
use tokio::{sync::OnceCell, task::spawn_blocking};

use super::{document, routes};
use crate::app::App;

/// The document, once it is made.
#[derive(Clone, Default)]
pub struct MadeDocument(Arc<OnceCell<TaggedDocument>>);

struct TaggedDocument {
    bytes: Bytes,
    /// Weak, because the document has other bytes when it is compressed.
    tag: String,
}

/// Returns the document. The first request makes it, because most processes never need it.
pub async fn openapi_document(
    State(app): State<Arc<App>>,
    Extension(made): Extension<MadeDocument>,
    request_headers: HeaderMap,
) -> Response {
    let make = move || {
        let document = routes(app.config().max_chat_body_bytes).describe(document::base());
        let bytes = Bytes::from(document::complete(&document, app.config()).to_string());
        let tag = format!("W/\"{}\"", hex::encode(&Sha256::digest(&bytes)[..16]));
        TaggedDocument { bytes, tag }
    };
    let made = made.0.get_or_init(|| async { spawn_blocking(make).await.expect("the routes have descriptions") }).await;
    let tag: ETag = made.tag.parse().expect("hexadecimal digits are a tag");
    let is_known = request_headers.typed_get::<IfNoneMatch>().is_some_and(|known| !known.precondition_passes(&tag));
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { (json, made.bytes.clone()).into_response() };
    response.headers_mut().typed_insert(tag);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}
