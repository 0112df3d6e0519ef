//! The failure of a request that got no usable answer, as its transport knows it.
//!
//! In rmcp, only the answer travels from every transport to the caller of a request in one way. So a failure travels as
//! a JSON-RPC error with a private mark in its data, and the connection recognises it.

use std::{error::Error as _, sync::LazyLock};

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Key of the mark in an error's data.
///
/// Invariant: no server knows the mark. With it, a server could declare a delivered call undelivered, and a call of a
/// `once` tool would be repeated.
static MARK: LazyLock<String> = LazyLock::new(|| format!("holdfast/trouble/{}", Uuid::now_v7().simple()));

/// Why there is no answer, with a sentence for people that contains no secret and no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportFailure {
    pub kind: TransportFailureKind,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportFailureKind {
    /// Certainly not delivered.
    Undelivered,
    /// HTTP 401 or 403.
    Unauthorized,
    /// HTTP 401, with the address of the server that issues tokens.
    OAuth,
    /// Another HTTP error status; the server may or may not have executed the request.
    Status(u16),
    /// Delivered, or partly; the connection broke before the answer.
    Lost,
    Malformed,
    TooLarge,
}

impl TransportFailure {
    pub fn new(kind: TransportFailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    pub fn too_large(limit: usize) -> Self {
        Self::new(TransportFailureKind::TooLarge, format!("the answer is larger than {limit} bytes"))
    }

    pub fn too_many_values(limit: usize) -> Self {
        Self::new(TransportFailureKind::TooLarge, format!("the answer has more than {limit} values"))
    }

    pub fn too_much_text(limit: usize) -> Self {
        Self::new(TransportFailureKind::TooLarge, format!("the answer has more than {limit} bytes of text"))
    }

    pub fn of_request(error: reqwest::Error) -> Self {
        let kind = if error.is_connect() || error.is_builder() {
            TransportFailureKind::Undelivered
        } else {
            TransportFailureKind::Lost
        };
        Self::new(kind, in_full(error))
    }

    /// Returns the failure that an error carries, if the error has the mark.
    pub fn of(error: &ErrorData) -> Option<Self> {
        let kind = TransportFailureKind::deserialize(error.data.as_ref()?.get(MARK.as_str())?).ok()?;
        Some(Self::new(kind, error.message.clone()))
    }

    /// Returns the failure as an answer to the request `id`.
    pub fn into_answer(self, id: RequestId) -> ServerJsonRpcMessage {
        let data = serde_json::json!({ MARK.as_str(): self.kind });
        ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, self.detail, Some(data)), Some(id))
    }
}

/// Returns an error with its causes, without the address, which may contain a key.
fn in_full(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
