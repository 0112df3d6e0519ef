//! Reads one JSON-RPC message as the answer to one request.
//!
//! rmcp ignores an answer with an unknown id, so its call would wait for the time-out. Therefore ids are checked here.

use rmcp::model::{RequestId, ServerJsonRpcMessage};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::json;

use super::transport_failure::{TransportFailure, TransportFailureKind};

/// The fields that distinguish answers from calls.
#[derive(Default, Deserialize)]
pub struct MessageHead {
    #[serde(default)]
    pub id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    jsonrpc: Option<String>,
    #[serde(default, deserialize_with = "present")]
    result: bool,
    #[serde(default, deserialize_with = "present")]
    error: bool,
}

/// Returns that a field is there, whatever it has.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(field).map(|_| true)
}

impl MessageHead {
    /// Returns the head of a message; an empty one if the message cannot be read.
    pub fn of(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }

    /// Returns whether the text was a message of JSON-RPC 2.0.
    pub fn is_message(&self) -> bool {
        self.jsonrpc.as_deref() == Some("2.0") && (self.is_call() || self.result || self.error)
    }

    /// Returns a request of the server without its parameters, so that it is refused and does not wait. `None` for a notification.
    pub fn bare_request(&self) -> Option<String> {
        let (id, method) = (self.id.as_ref()?, self.method.as_ref()?);
        Some(json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string())
    }

    /// Returns whether the message is a request or a notification of the server.
    pub const fn is_call(&self) -> bool {
        self.method.is_some()
    }
}

/// Returns the answer to the request `id`, or what is wrong with it.
pub fn read(text: &[u8], id: &RequestId) -> Result<ServerJsonRpcMessage, TransportFailure> {
    let malformed = |problem: String| TransportFailure::new(TransportFailureKind::Malformed, problem);
    match serde_json::from_slice(text) {
        Ok(message @ (ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))) => addressed_to(message, id),
        Ok(_) => Err(malformed("the server sent a request or notification in place of the answer".into())),
        Err(error) => Err(malformed(format!("the answer is not JSON-RPC 2.0: {error}"))),
    }
}

/// Returns whether two ids are equal; a server may have turned a number into a text.
pub fn same_id(one: &RequestId, other: &RequestId) -> bool {
    one == other || one.to_string() == other.to_string()
}

fn addressed_to(mut message: ServerJsonRpcMessage, id: &RequestId) -> Result<ServerJsonRpcMessage, TransportFailure> {
    match &mut message {
        ServerJsonRpcMessage::Response(answer) if same_id(&answer.id, id) => answer.id = id.clone(),
        // A server that could not read the id omits it.
        ServerJsonRpcMessage::Error(answer) if answer.id.as_ref().is_none_or(|found| same_id(found, id)) => {
            answer.id = Some(id.clone());
        }
        _ => {
            return Err(TransportFailure::new(
                TransportFailureKind::Malformed,
                "the answer has the id of another request",
            ));
        }
    }
    Ok(message)
}
