//! Errors in the form of the protocol that the path belongs to. The response of a problem has the problem among its extensions.

use std::sync::Arc;

use axum::{
    Json,
    extract::Request,
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::Value;
use uuid::Uuid;

use super::{a2a, langgraph, openai};
use crate::problem::Problem;

/// The header by which OpenAI's clients name a request in reports.
const REQUEST_ID: &str = "x-request-id";

/// The header by which OpenAI's clients know whether to repeat a request.
const SHOULD_RETRY: &str = "x-should-retry";

/// Replaces the body of a problem on the paths of a protocol that has errors of another form. Status and headers stay.
pub async fn of_wire(request: Request, next: Next) -> Response {
    let first = request.uri().path().split('/').nth(1);
    let is_openai = first == Some("openai");
    let form: Option<fn(&Problem) -> Value> = match first {
        Some("openai") => Some(openai::problem::form),
        Some("langgraph") => Some(langgraph::problem::form),
        Some("a2a") => Some(|problem| a2a::problem::form(problem, &Value::Null)),
        _ => None,
    };
    let mut response = next.run(request).await;
    if is_openai {
        let id = format!("req_{}", Uuid::now_v7().simple());
        response.headers_mut().insert(REQUEST_ID, HeaderValue::from_str(&id).expect("an id is a header value"));
    }
    let problem = response.extensions().get::<Arc<Problem>>().map(Arc::clone);
    let (Some(form), Some(problem)) = (form, problem) else { return response };
    let (mut parts, _) = response.into_parts();
    if is_openai && problem.is_final() {
        parts.headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(header::CONTENT_LENGTH);
    let body = Json(form(&problem)).into_response().into_body();
    Response::from_parts(parts, body)
}
