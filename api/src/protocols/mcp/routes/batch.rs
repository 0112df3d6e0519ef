//! Batches of messages, which only the revision 2025-03-26 of the protocol has.

use axum::{
    Json,
    body::{Body, to_bytes},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

/// The revision with batches, which a request without the header has too.
const REVISION: &str = "2025-03-26";

/// Most messages of a batch.
const MAX_MESSAGES: usize = 50;

/// Returns whether a body is a list of messages.
pub fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

/// Returns the messages of a batch, or the answer to one that is refused.
pub fn messages(headers: &HeaderMap, body: &[u8]) -> Result<Vec<Value>, Box<Response>> {
    let refuse = |message: String| Err(Box::new(refused(ErrorCode::INVALID_REQUEST, &message)));
    let messages = match serde_json::from_slice::<Vec<Value>>(body) {
        Ok(messages) => messages,
        Err(_) => return Err(Box::new(refused(ErrorCode::PARSE_ERROR, "the body is not valid JSON"))),
    };
    let revision = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok()).unwrap_or(REVISION);
    if revision != REVISION {
        return refuse(format!("the revision {revision} has no batches; send each message in a request of its own"));
    }
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return refuse(format!("a batch has 1 to {MAX_MESSAGES} messages, not {}", messages.len()));
    }
    if messages.iter().any(|message| message["method"] == "initialize") {
        return refuse("initialize is not part of a batch; send it in a request of its own".to_owned());
    }
    Ok(messages)
}

/// The answers to the messages of a batch so far.
#[derive(Default)]
pub struct BatchAnswers(Vec<Value>);

impl BatchAnswers {
    /// Takes in the answer to one message; a notification has none. Returns the answer to the whole batch if this one refuses the
    /// request's headers, which all messages share.
    pub async fn add(&mut self, answer: Response) -> Option<Response> {
        let (head, body) = answer.into_parts();
        let Ok(body) = to_bytes(body, usize::MAX).await else { return None };
        match serde_json::from_slice(&body) {
            Ok(answer) => self.0.push(answer),
            Err(_) if !head.status.is_success() => return Some(Response::from_parts(head, Body::from(body))),
            Err(_) => {}
        }
        None
    }

    pub fn into_response(self) -> Response {
        if self.0.is_empty() { StatusCode::ACCEPTED.into_response() } else { Json(self.0).into_response() }
    }
}

/// Returns the answer to a body that is no message, and no batch that is taken.
pub fn refused(code: ErrorCode, message: &str) -> Response {
    let error = json!({"code": code, "message": message});
    (StatusCode::BAD_REQUEST, Json(json!({"jsonrpc": "2.0", "id": null, "error": error}))).into_response()
}
