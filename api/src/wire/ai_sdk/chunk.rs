//! The chunks of the AI SDK's UI message stream, version 1: those that its versions 5, 6 and 7 all know, and the two of
//! approvals, which version 5 lacks.

use chrono::{DateTime, Utc};
use holdfast_shared::{
    approval::ApprovalKind,
    event::EventBody,
    event_id::EventId,
    finish_reason,
    run::{RunError, RunStatus},
    timestamp,
    usage::Usage,
};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Chunk {
    /// The message begins, or goes on after an answer.
    Start {
        message_id: Uuid,
        message_metadata: Metadata,
    },
    StartStep,
    FinishStep,
    TextStart {
        id: &'static str,
    },
    TextDelta {
        id: &'static str,
        delta: String,
    },
    TextEnd {
        id: &'static str,
    },
    ReasoningStart {
        id: &'static str,
    },
    ReasoningDelta {
        id: &'static str,
        delta: String,
    },
    ReasoningEnd {
        id: &'static str,
    },
    ToolInputStart {
        #[serde(flatten)]
        tool: UiTool,
    },
    ToolInputDelta {
        tool_call_id: String,
        input_text_delta: String,
    },
    ToolInputAvailable {
        #[serde(flatten)]
        tool: UiTool,
        input: Value,
        #[serde(skip_serializing_if = "is_false")]
        provider_executed: bool,
    },
    ToolApprovalRequest {
        approval_id: Uuid,
        tool_call_id: String,
    },
    ToolOutputAvailable {
        tool_call_id: String,
        output: Value,
        /// Where the call was dynamic; version 5 looks for it by this.
        #[serde(skip_serializing_if = "is_false")]
        dynamic: bool,
    },
    ToolOutputError {
        tool_call_id: String,
        error_text: String,
        #[serde(skip_serializing_if = "is_false")]
        dynamic: bool,
    },
    ToolOutputDenied {
        tool_call_id: String,
    },
    /// What the agent is doing now, for whoever listens; no part of the message.
    DataState {
        data: Value,
        transient: bool,
    },
    DataContext {
        id: &'static str,
        data: Value,
    },
    DataCall {
        id: String,
        data: Measured,
    },
    DataQuestion {
        id: Uuid,
        data: Question,
    },
    DataWarning {
        data: Value,
    },
    /// What came after `base` is no longer part of the answer.
    DataAttempt {
        data: UiAttempt,
    },
    MessageMetadata {
        message_metadata: Metadata,
    },
    Error {
        error_text: String,
    },
    Abort,
    Finish {
        finish_reason: UiFinishReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Metadata>,
    },
}

/// What the client keeps beside the message.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "timestamp::optional_milliseconds")]
    pub created_at: Option<DateTime<Utc>>,
    /// How the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model ended the answer. Name and values are those of the native API.
    #[serde(skip_serializing_if = "Option::is_none", rename = "finish_reason")]
    pub finish_reason: Option<finish_reason::FinishReason>,
}

/// A tool and a call of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UiTool {
    pub tool_call_id: String,
    pub tool_name: String,
    /// Whether the front end does not know it: all but its own.
    #[serde(skip_serializing_if = "is_false")]
    pub dynamic: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UiAttempt {
    pub attempt: u32,
    pub base: EventId,
    /// Workers that were lost so far, and how many may be until the run fails.
    #[serde(flatten)]
    pub crashes: Option<Crashes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Crashes {
    crashes: u32,
    max_crashes: u32,
}

impl Crashes {
    /// Of an attempt that a worker has begun; an answer or an ending has none.
    pub fn of(body: &EventBody<'_>) -> Option<Self> {
        match body {
            EventBody::AttemptStarted(started) => {
                Some(Self { crashes: started.crashes, max_crashes: started.max_crashes })
            }
            _ => None,
        }
    }
}

/// What is known of an approval beside its id.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub approval_id: Uuid,
    pub call_id: String,
    pub kind: ApprovalKind,
    #[serde(serialize_with = "timestamp::milliseconds")]
    pub expires_at: DateTime<Utc>,
}

/// What is known of a call beside its output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    pub tool_call_id: String,
    pub duration_ms: u64,
}

/// Why a message, or a segment of it, is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UiFinishReason {
    Stop,
    /// It waits for an approval, or for the client's tool.
    ToolCalls,
    /// It was cut off at a limit.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
    Error,
    /// It was cancelled, or ended for a reason without a name.
    Other,
}

impl From<finish_reason::FinishReason> for UiFinishReason {
    fn from(reason: finish_reason::FinishReason) -> Self {
        match reason {
            finish_reason::FinishReason::Stop => Self::Stop,
            finish_reason::FinishReason::Length => Self::Length,
            finish_reason::FinishReason::ContentFilter => Self::ContentFilter,
            // A client takes `tool-calls` for a message that waits for it, and a completed run waits for nothing.
            finish_reason::FinishReason::ToolCalls | finish_reason::FinishReason::Other => Self::Other,
        }
    }
}

impl UiTool {
    pub fn new(tool_call_id: String, tool_name: String) -> Self {
        let dynamic = is_a_servers(&tool_name);
        Self { tool_call_id, tool_name, dynamic }
    }
}

/// Tools of servers are named `<server>__<tool>`; the client's own have no server.
pub fn is_a_servers(tool_name: &str) -> bool {
    tool_name.contains("__")
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}
