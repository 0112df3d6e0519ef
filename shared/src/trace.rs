//! The trace of a run: all that the model was told and said, tool calls and their results included.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{event_id::EventId, tool::ToolCall, usage::Usage};

/// One message of the trace, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct TraceMessage {
    /// Its place in the run, from 1.
    pub position: u32,
    /// The step that it belongs to, from 1; 0 for what was there before the first.
    pub step: u32,
    pub role: TraceRole,
    pub content: String,
    /// Whether the content is left out, because the reader may not see the agent's definition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// What an assistant's message asks for.
    pub tool_calls: Vec<RequestedCall>,
    /// The call that a tool's message is the result of.
    pub call_id: Option<String>,
    pub is_error: bool,
    /// What the model call of an assistant's message has used.
    pub usage: Option<Usage>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

impl TraceMessage {
    /// The message as a caller sees it who may not see definitions: without the agent's instructions.
    pub fn without_instructions(self) -> Self {
        match self.role {
            TraceRole::System => Self { content: String::new(), redacted: true, ..self },
            TraceRole::User | TraceRole::Assistant | TraceRole::Tool => self,
        }
    }
}

/// Who speaks in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceRole {
    System,
    User,
    Assistant,
    Tool,
}

crate::text_enum!(TraceRole { System = "system", User = "user", Assistant = "assistant", Tool = "tool" });

/// A call as the model has asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestedCall {
    pub call_id: String,
    pub name: String,
    pub input: Value,
    /// What the model's provider wants back with it, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Value>,
}

/// Nodes of the executor's graph; a checkpoint is saved when one is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// The input and its context were read.
    Input,
    /// The model has answered.
    Process,
    /// The calls that it asked for have outcomes.
    Tools,
    /// The answer is stored.
    Respond,
    /// The conversation was forked from another one's checkpoint.
    Fork,
}

crate::text_enum!(Node {
    Input = "input",
    Process = "process",
    Tools = "tools",
    Respond = "respond",
    Fork = "fork",
});

/// A point of a run that a conversation can be forked from, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Checkpoint {
    pub id: Uuid,
    pub conversation_id: Uuid,
    pub run_id: Uuid,
    pub node: Node,
    pub step: u32,
    /// The newest event of the run at that point.
    pub event_id: EventId,
    /// Messages of the run's trace at that point.
    pub messages: u32,
    /// What later runs of the conversation take over.
    pub metadata: Value,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// A checkpoint with a page of what was known by then: the trace, and the calls that its messages ask for.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct CheckpointState {
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    pub trace: Vec<TraceMessage>,
    pub tool_calls: Vec<ToolCall>,
    /// The cursor of the page after this one, absent at the end.
    pub next: Option<String>,
}
