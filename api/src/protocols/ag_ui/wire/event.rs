//! The events of the AG-UI protocol that this server writes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{interrupt::AgUiInterrupt, message::AgUiMessage};

/// An event of the protocol, as one frame has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum AgUiEvent<'a> {
    RunStarted {
        thread_id: Cow<'a, str>,
        run_id: Cow<'a, str>,
        /// For clients that declare a version from 1.0 on.
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol_version: Option<&'static str>,
    },
    RunFinished {
        thread_id: Cow<'a, str>,
        run_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<AgUiOutcome>,
    },
    RunError {
        message: String,
        code: String,
    },
    StepStarted {
        step_name: String,
    },
    StepFinished {
        step_name: String,
    },
    TextMessageStart {
        message_id: String,
        role: &'static str,
    },
    TextMessageContent {
        message_id: String,
        delta: Cow<'a, str>,
    },
    TextMessageEnd {
        message_id: String,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: Cow<'a, str>,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: Cow<'a, str>,
        tool_call_name: Cow<'a, str>,
        parent_message_id: String,
    },
    ToolCallArgs {
        tool_call_id: Cow<'a, str>,
        delta: Cow<'a, str>,
    },
    ToolCallEnd {
        tool_call_id: Cow<'a, str>,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
        role: &'static str,
    },
    StateDelta {
        delta: Vec<StatePatch>,
    },
    MessagesSnapshot {
        messages: Vec<AgUiMessage>,
    },
    SubagentStarted {
        subagent_run_id: Uuid,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    SubagentFinished {
        subagent_run_id: Uuid,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// Success without it.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<SubagentOutcome>,
    },
    SubagentError {
        subagent_run_id: Uuid,
        message: String,
        code: &'static str,
    },
    /// An event of the log that the protocol has no type for: its kind and its payload.
    Custom {
        name: &'static str,
        value: Value,
    },
}

/// How a run, or a part of it, has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum AgUiOutcome {
    Success {
        /// The calls whose results the front end owes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    Interrupt {
        interrupts: Vec<AgUiInterrupt>,
    },
    Cancelled,
}

/// The reason for which a stream ends a subagent that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SubagentOutcome {
    /// The run waits.
    Suspended,
}

/// An operation of JSON Patch that sets a member of the client's state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatePatch {
    op: &'static str,
    path: &'static str,
    value: Value,
}

impl StatePatch {
    /// Sets a member, whether or not the state has it.
    pub const fn set(path: &'static str, value: Value) -> Self {
        Self { op: "add", path, value }
    }
}
