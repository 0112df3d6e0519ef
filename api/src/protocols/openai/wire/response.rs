//! The response as the protocol has it, with the fields that its schema demands.

use holdfast_shared::{run::RunError, usage::Usage};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::ids::{ResponseId, conversation_id};

/// The part of a run that a response is, with what its request has said.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseHead {
    pub id: ResponseId,
    pub conversation_id: Uuid,
    /// The id of the answer's message.
    pub message_id: Uuid,
    /// Seconds since 1970.
    pub created_at: i64,
    pub model: String,
    pub previous_response_id: Option<String>,
    pub background: bool,
    /// Whether a list shows the conversation.
    pub store: bool,
    /// The client's own texts.
    pub metadata: Map<String, Value>,
    /// The namespaces of the client's functions.
    pub namespaces: Vec<String>,
    /// Further fields of the request, as the response repeats them.
    pub repeated: Map<String, Value>,
}

/// How far a response is.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseState {
    Queued,
    InProgress,
    Completed,
    /// The model has ended its answer early, for this reason.
    Incomplete(&'static str),
    Failed(RunError),
    Cancelled,
}

impl ResponseState {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete(_) => "incomplete",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl ResponseHead {
    /// Returns the response. `ended_at` is in seconds since 1970.
    pub fn json(
        &self,
        state: &ResponseState,
        output: Vec<Value>,
        usage: Option<Usage>,
        ended_at: Option<i64>,
    ) -> Value {
        let error = match state {
            ResponseState::Failed(RunError { code, message, .. }) => json!({"code": code, "message": message}),
            _ => Value::Null,
        };
        let incomplete = match state {
            ResponseState::Incomplete(reason) => json!({"reason": reason}),
            _ => Value::Null,
        };
        let completed_at = ended_at.filter(|_| *state == ResponseState::Completed);
        let mut response = json!({
            "id": self.id.to_string(), "object": "response", "created_at": self.created_at,
            "completed_at": completed_at, "status": state.name(), "background": self.background,
            "error": error, "incomplete_details": incomplete, "model": self.model, "output": output,
            "previous_response_id": self.previous_response_id, "conversation": {"id": conversation_id(self.conversation_id)},
            "metadata": self.metadata(), "usage": usage.map(usage_json), "store": self.store,
        });
        let fields = response.as_object_mut().expect("a response is an object");
        fields.extend(usual_fields());
        fields.extend(self.repeated.clone());
        response
    }

    /// Returns the client's texts with this server's ids.
    fn metadata(&self) -> Map<String, Value> {
        let mut metadata = self.metadata.clone();
        metadata.insert("run_id".into(), self.id.run_id.to_string().into());
        metadata.insert("conversation_id".into(), self.conversation_id.to_string().into());
        metadata.insert("message_id".into(), self.message_id.to_string().into());
        metadata
    }
}

/// Returns the fields that the schema demands, with their values for a request without them.
fn usual_fields() -> Map<String, Value> {
    let fields = json!({
        "instructions": null, "tools": [], "tool_choice": "auto", "parallel_tool_calls": true, "truncation": "auto",
        "text": {"format": {"type": "text"}}, "reasoning": {"effort": null, "summary": null},
        "temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0,
        "max_output_tokens": null, "max_tool_calls": null, "service_tier": "default",
        "safety_identifier": null, "prompt_cache_key": null
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns token counts as a response has them.
fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens, "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens, "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens)
    })
}
