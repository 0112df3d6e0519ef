//! What a model is asked: a conversation, the tools that it may call, and how it is to answer.

use holdfast_shared::agent::ReasoningEffort;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Instructions, sent in the provider's own place for them.
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub turns: Vec<Turn>,
    /// Tools that the model may call; without any, it must answer in words.
    pub tools: Vec<ToolSpec>,
    pub options: Options,
}

/// One part of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    User(String),
    /// What the assistant said and which tools it called. `text` may be empty if there are calls.
    Assistant {
        text: String,
        calls: Vec<ToolRequest>,
    },
    /// The outcome of one of the calls of the assistant's turn before.
    Tool {
        call_id: String,
        name: String,
        text: String,
        is_error: bool,
    },
}

/// A tool, as the model gets to know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub input_schema: Value,
}

/// A call that the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Holdfast's own, not the provider's: at most 40 characters of `[a-zA-Z0-9_-]`, which every provider takes.
    pub id: String,
    pub name: String,
    pub input: Value,
    /// What the provider wants back with the call, such as a thought signature; nobody else needs to understand it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Value>,
}

/// How to answer; what is absent is as the deployment, or else the provider, has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_tokens: Option<u32>,
    /// Texts at which the model stops.
    pub stop: Vec<String>,
    pub reasoning_effort: Option<ReasoningEffort>,
}

impl ToolRequest {
    /// The arguments as they are sent back. The providers refuse a conversation with arguments that are no object, and the
    /// model learns from the call's outcome that they were none.
    pub(super) fn arguments(&self) -> Value {
        match &self.input {
            Value::Object(_) => self.input.clone(),
            _ => Value::Object(Map::new()),
        }
    }
}
