//! The form of problems for the clients of A2A.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::problem::Problem;

/// Returns a problem as the clients of A2A read it: the response to the JSON-RPC request with this id.
pub fn form(problem: &Problem, request_id: &Value) -> Value {
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
