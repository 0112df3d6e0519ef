//! The address of this server in answers that name it.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};

/// The address of this server as the client has it, without a path.
pub struct ServerOrigin(pub String);

impl<S: Send + Sync> FromRequestParts<S> for ServerOrigin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(header::HOST.as_str()).or_else(|| parts.uri.authority().map(|host| host.as_str()));
        // A proxy that ends TLS says so. A client that lies deceives itself only.
        let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
        Ok(Self(format!("{scheme}://{}", host.unwrap_or("localhost"))))
    }
}
