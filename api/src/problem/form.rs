//! Errors in the form of the protocol that the path belongs to. The response of a problem has the problem among its extensions.

use std::sync::Arc;

use axum::{
    Json,
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::Problem;

/// Replaces the body of a problem on the paths of a protocol that has errors of another form. Status and headers stay.
pub async fn of_wire(request: Request, next: Next) -> Response {
    let form: Option<fn(&Problem) -> Value> = match request.uri().path().split('/').nth(1) {
        Some("openai") => Some(openai),
        Some("langgraph") => Some(langgraph),
        _ => None,
    };
    let response = next.run(request).await;
    let problem = response.extensions().get::<Arc<Problem>>().map(Arc::clone);
    let (Some(form), Some(problem)) = (form, problem) else { return response };
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(header::CONTENT_LENGTH);
    let body = Json(form(&problem)).into_response().into_body();
    Response::from_parts(parts, body)
}

/// Returns a problem as the clients of OpenAI read it.
pub fn openai(problem: &Problem) -> Value {
    let kind = match problem.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    json!({ "error": { "message": problem.detail, "type": kind, "param": null, "code": problem.code } })
}

/// Returns a problem as the clients of LangGraph read it.
fn langgraph(problem: &Problem) -> Value {
    json!({ "detail": problem.detail, "code": problem.code })
}
