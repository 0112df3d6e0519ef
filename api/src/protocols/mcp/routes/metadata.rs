//! Where a client of `/mcp` learns that it needs a token, by RFC 9728: the metadata of the protected resource, and the challenge
//! that names it.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRequestParts, Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};
use serde_json::{Value, json};

use crate::{app::App, problem::Problem, server_origin::ServerOrigin};

/// The path of the metadata.
const PATH: &str = "/.well-known/oauth-protected-resource";

/// The metadata of `/mcp` as a protected resource.
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", operation_id = "protected_resource", tag = "mcp",
    responses(
        (status = 200, body = Object, description = "The metadata of RFC 9728: `resource`, `authorization_servers` (the issuers of HOLDFAST_JWT_ISSUERS that are addresses) and `bearer_methods_supported`."),
        (status = 404, body = Object, description = "not_found: the server checks no tokens.")
    )
)]
pub async fn protected_resource(
    State(app): State<Arc<App>>,
    ServerOrigin(origin): ServerOrigin,
) -> Result<Json<Value>, Problem> {
    if app.auth().is_development() {
        return Err(Problem::route_not_found(PATH));
    }
    let mut metadata = json!({
        "resource": format!("{origin}/mcp"), "resource_name": "Holdfast", "bearer_methods_supported": ["header"]
    });
    let issuers = app.auth().issuers().into_iter();
    let servers: Vec<&str> =
        issuers.filter(|issuer| issuer.starts_with("https://") || issuer.starts_with("http://")).collect();
    if !servers.is_empty() {
        metadata["authorization_servers"] = json!(servers);
    }
    Ok(Json(metadata))
}

/// Names the metadata in the challenge of a 401.
pub async fn challenge(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(ServerOrigin(origin)) = ServerOrigin::from_request_parts(&mut parts, &()).await;
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if response.status() == StatusCode::UNAUTHORIZED
        && let Ok(challenge) = HeaderValue::from_str(&format!("Bearer resource_metadata=\"{origin}{PATH}\""))
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
