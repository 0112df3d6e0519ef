//! The chunks of the AI SDK's UI message stream, version 1. The SDK's versions 5, 6 and 7 all know them, except that
//! version 5 lacks the two of approvals.

use chrono::{DateTime, Utc};
use holdfast_shared::{
    approval::ApprovalKind,
    citation::NumberedCitation,
    context::ProjectFocus,
    event::{CitationAdded, EntityAccessed, EventBody, ExecutedBy},
    event_id::EventId,
    file::ToolFile,
    finish_reason,
    run::{RunError, RunStatus},
    timestamp,
    usage::Usage,
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::wire::plan::UiPlan;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Chunk {
    /// The message begins, or continues after an answer.
    Start {
        message_id: Uuid,
        message_metadata: UiMetadata,
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
        /// Whether the call is dynamic; version 5 finds the call by this field.
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
    /// A file that a tool has returned. The SDK has no field for its name.
    File {
        url: String,
        media_type: String,
        provider_metadata: Value,
    },
    /// The agent's current state; no part of the message.
    DataState {
        data: Value,
        transient: bool,
    },
    DataContext {
        id: &'static str,
        data: Value,
    },
    DataFocus {
        data: ProjectFocus,
    },
    DataSteered {
        id: Uuid,
        data: Value,
    },
    DataSubagent {
        id: Uuid,
        data: Value,
    },
    DataPlan {
        id: Uuid,
        data: UiPlan,
    },
    DataStep {
        id: String,
        data: Value,
    },
    DataReview {
        data: Value,
    },
    /// How far the ingestion of a document is.
    DataDocument {
        id: Uuid,
        data: Value,
    },
    /// A passage that the text cites. The place is one of the text that was extracted from the document.
    SourceDocument {
        source_id: String,
        media_type: &'static str,
        title: String,
        provider_metadata: Value,
    },
    DataQuestions {
        data: Value,
    },
    /// The conversation is about another project.
    DataContextShift {
        data: Value,
    },
    DataOntology {
        data: Value,
    },
    DataTemplateRequest {
        data: Value,
    },
    DataTemplateSuggestion {
        data: Value,
    },
    DataCall {
        id: String,
        data: CallSummary,
    },
    DataQuestion {
        id: Uuid,
        data: ApprovalDetails,
    },
    DataWarning {
        data: Value,
    },
    /// A later attempt supersedes the chunks after `base`.
    DataAttempt {
        data: UiAttempt,
    },
    MessageMetadata {
        message_metadata: UiMetadata,
    },
    Error {
        error_text: String,
    },
    Abort,
    Finish {
        finish_reason: UiFinishReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<UiMetadata>,
    },
}

impl Chunk {
    /// Returns the part of a citation, whose own metadata say where the passage is.
    pub fn source(CitationAdded { number, source }: CitationAdded) -> Self {
        Self::SourceDocument {
            source_id: format!("citation-{number}"),
            media_type: "text/plain",
            title: source.title.clone(),
            provider_metadata: json!({"holdfast": NumberedCitation { number, citation: source }}),
        }
    }

    /// Returns the chunk of a file that a call has returned.
    pub fn of_file(call_id: &str, file: &ToolFile) -> Self {
        let ToolFile { file_id, name, media_type, bytes } = file;
        let facts = json!({"id": file_id, "name": name, "bytes": bytes, "toolCallId": call_id});
        Self::File { url: file.path(), media_type: media_type.clone(), provider_metadata: json!({"holdfast": facts}) }
    }
}

/// Metadata that the client keeps beside the message.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UiMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "timestamp::optional_milliseconds")]
    pub created_at: Option<DateTime<Utc>>,
    /// The status of the ended run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model ended the answer, with the name and the values of the native API.
    #[serde(skip_serializing_if = "Option::is_none", rename = "finish_reason")]
    pub finish_reason: Option<finish_reason::FinishReason>,
}

/// A call and its tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UiTool {
    pub tool_call_id: String,
    pub tool_name: String,
    /// Whether the front end does not know the tool; it knows only its own.
    #[serde(skip_serializing_if = "is_false")]
    pub dynamic: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UiAttempt {
    pub attempt: u32,
    pub base: EventId,
    /// The number of lost workers so far, and the number that fails the run.
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
    /// Returns the crashes of an attempt that a worker has started; `None` for other events.
    pub fn of(body: &EventBody<'_>) -> Option<Self> {
        match body {
            EventBody::AttemptStarted(started) => {
                Some(Self { crashes: started.crashes, max_crashes: started.max_crashes })
            }
            _ => None,
        }
    }
}

/// The facts of an approval that the SDK's own chunk lacks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDetails {
    pub approval_id: Uuid,
    pub call_id: String,
    pub kind: ApprovalKind,
    #[serde(serialize_with = "timestamp::milliseconds")]
    pub expires_at: DateTime<Utc>,
}

/// The duration of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSummary {
    pub tool_call_id: String,
    pub duration_ms: u64,
    /// The entities of the workspace that the call was about; none in a message that is read later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<EntityAccessed<'static>>,
}

/// Why a message, or a segment of it, has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UiFinishReason {
    Stop,
    /// The run waits for an approval, or for a result from the client.
    ToolCalls,
    /// The answer reached a length limit.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
    Error,
    /// The run was cancelled, or the model gave no known reason.
    Other,
}

impl From<finish_reason::FinishReason> for UiFinishReason {
    fn from(reason: finish_reason::FinishReason) -> Self {
        match reason {
            finish_reason::FinishReason::Stop => Self::Stop,
            finish_reason::FinishReason::Length => Self::Length,
            finish_reason::FinishReason::ContentFilter => Self::ContentFilter,
            // A client with `tool-calls` waits for results, and a completed run needs none.
            finish_reason::FinishReason::ToolCalls | finish_reason::FinishReason::Other => Self::Other,
        }
    }
}

impl UiTool {
    pub fn new(tool_call_id: String, tool_name: String, by: Option<ExecutedBy>) -> Self {
        let dynamic = is_dynamic(&tool_name, by);
        Self { tool_call_id, tool_name, dynamic }
    }
}

/// Returns whether the front end does not know the tool: a worker executes it, or, where nothing tells, it has the
/// name of an MCP server's, `<server>__<tool>`.
pub fn is_dynamic(tool_name: &str, by: Option<ExecutedBy>) -> bool {
    by.map_or_else(|| tool_name.contains("__"), |by| by == ExecutedBy::Worker)
}

// serde prescribes the signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}
