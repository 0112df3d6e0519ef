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
use uuid::Uuid;

use super::Problem;

/// The header by which OpenAI's clients name a request in reports.
const REQUEST_ID: &str = "x-request-id";

/// The header by which OpenAI's clients know whether to repeat a request.
const SHOULD_RETRY: &str = "x-should-retry";

/// Replaces the body of a problem on the paths of a protocol that has errors of another form. Status and headers stay.
pub async fn of_wire(request: Request, next: Next) -> Response {
    let first = request.uri().path().split('/').nth(1);
    let is_openai = first == Some("openai");
    let form: Option<fn(&Problem) -> Value> = match first {
        Some("openai") => Some(openai),
        Some("langgraph") => Some(langgraph),
        Some("a2a") => Some(|problem| a2a(problem, &Value::Null)),
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

/// Returns a problem as the clients of OpenAI read it.
pub fn openai(problem: &Problem) -> Value {
    let kind = match problem.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let param = match problem.code {
        "model_not_found" => Some("model"),
        "context_length_exceeded" => Some("messages"),
        _ => None,
    };
    json!({ "error": { "message": problem.detail, "type": kind, "param": param, "code": problem.code } })
}

/// Returns a problem as the clients of LangGraph read it.
fn langgraph(problem: &Problem) -> Value {
    json!({ "detail": langgraph_detail(problem), "code": problem.code })
}

/// The words of problems, each with the name that the clients of LangGraph have sent.
const LANGGRAPH_WORDS: [(&str, &str); 6] = [
    ("Conversation ", "Thread "),
    ("no conversation ", "no thread "),
    ("no agent ", "no assistant "),
    ("the mode ", "the multitask_strategy "),
    ("edited_input is", "The edited arguments are"),
    ("send content with replace_from", "send a message, or another checkpoint"),
];

/// Returns the sentence of a problem in the words of LangGraph.
pub fn langgraph_detail(problem: &Problem) -> String {
    // Only the first of each, because the ids of the client stand after them.
    let words = LANGGRAPH_WORDS.iter();
    words.fold(problem.detail.clone(), |detail, (ours, theirs)| detail.replacen(ours, theirs, 1))
}

/// Returns a problem as the clients of A2A read it: the response to the JSON-RPC request with this id.
pub fn a2a(problem: &Problem, request_id: &Value) -> Value {
    let (code, reason) = match problem.code {
        "task_not_found" | "run_not_found" => (-32001, "TASK_NOT_FOUND"),
        "task_not_cancelable" => (-32002, "TASK_NOT_CANCELABLE"),
        "push_notifications_unsupported" => (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        "task_ended" => (-32004, "UNSUPPORTED_OPERATION"),
        "unsupported_part" | "file_type_refused" | "attachment_not_taken" => (-32005, "CONTENT_TYPE_NOT_SUPPORTED"),
        "no_extended_card" => (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
        "unsupported_version" => (-32009, "VERSION_NOT_SUPPORTED"),
        "invalid_json" => (-32700, "PARSE_ERROR"),
        "invalid_request" => (-32600, "INVALID_REQUEST"),
        "unknown_method" => (-32601, "METHOD_NOT_FOUND"),
        _ => match problem.status {
            StatusCode::UNAUTHORIZED => (-32000, "UNAUTHENTICATED"),
            StatusCode::FORBIDDEN => (-32000, "PERMISSION_DENIED"),
            StatusCode::TOO_MANY_REQUESTS => (-32000, "RESOURCE_EXHAUSTED"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => (-32005, "CONTENT_TYPE_NOT_SUPPORTED"),
            status if status.is_server_error() => (-32603, "INTERNAL_ERROR"),
            _ => (-32602, "INVALID_PARAMS"),
        },
    };
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org",
        "metadata": {"code": problem.code},
    });
    json!({
        "jsonrpc": "2.0", "id": request_id,
        "error": {"code": code, "message": problem.detail, "data": [info]},
    })
}
