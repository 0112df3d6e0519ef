//! The trace of a run: each message that the model read or wrote, tool calls and results included.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{event_id::EventId, tool::ToolCall, usage::Usage};

/// One message of the trace, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct TraceMessage {
    /// Its number in the run, from 1.
    pub position: u32,
    /// Its step, from 1; 0 for the messages before the first step.
    pub step: u32,
    /// The author of the message.
    pub role: TraceRole,
    /// Plain text; the output of a tool for the role `tool`.
    pub content: String,
    /// True if the content is missing because the reader may not see the agent's definition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Calls that a message of the assistant requests.
    pub tool_calls: Vec<RequestedCall>,
    /// The call whose result a message of a tool is, or whose plan gives the model a task.
    pub call_id: Option<String>,
    /// True if a tool's message reports a failure.
    pub is_error: bool,
    /// Tokens of the model call that wrote this message.
    pub usage: Option<Usage>,
    /// The model that wrote this message, as `<provider>/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The step of a plan that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_step: Option<u32>,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

impl TraceMessage {
    /// Returns the message for a reader who may not see definitions: without the agent's instructions.
    pub fn without_instructions(self) -> Self {
        match self.role {
            TraceRole::System => Self { content: String::new(), redacted: true, ..self },
            TraceRole::User | TraceRole::Assistant | TraceRole::Tool => self,
        }
    }
}

/// The author of a trace message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TraceRole {
    /// The agent's instructions.
    System,
    /// The run's input.
    User,
    /// The model.
    Assistant,
    /// The result of one tool call.
    Tool,
}

crate::text_enum!(TraceRole);

/// A call as the model requested it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestedCall {
    /// `call_` and a UUIDv7 in hexadecimal digits, chosen by the worker.
    pub call_id: String,
    /// Name of the tool, as the model knows it.
    pub name: String,
    /// Arguments, as the model wrote them.
    pub input: Value,
    /// Opaque data of the provider, which the next request must return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Value>,
}

/// Nodes of the executor's graph. A worker saves a checkpoint when it completes a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Node {
    /// The worker has read the input and its context.
    Input,
    /// The model has answered.
    Process,
    /// The calls of the step have outcomes.
    Tools,
    /// The answer is stored.
    Respond,
    /// The conversation was forked from the checkpoint of another one.
    Fork,
}

crate::text_enum!(Node);

/// A point of a run that a client can fork a conversation from, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Checkpoint {
    /// UUIDv7.
    pub id: Uuid,
    /// The conversation that lists the checkpoint.
    pub conversation_id: Uuid,
    /// The run that reached this point.
    pub run_id: Uuid,
    /// The completed node.
    pub node: Node,
    /// Steps begun at that point.
    pub step: u32,
    /// The newest event of the run at that point.
    pub event_id: EventId,
    /// Messages of the run's trace at that point.
    pub messages: u32,
    /// JSON that later runs of the conversation inherit.
    pub metadata: Value,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// A checkpoint with a page of the run's trace at that point, and the calls that those messages request.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct CheckpointState {
    /// The point itself; its fields stand beside the page.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    /// Trace messages of this page, in order.
    pub trace: Vec<TraceMessage>,
    /// Calls that these messages request, with their state at that point.
    pub tool_calls: Vec<ToolCall>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<String>,
}
