//! Payloads of a model's steps, and of the messages that it reads and writes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{event_id::EventId, finish_reason::FinishReason, message::Message, usage::Usage};

/// A model call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepStarted {
    /// The number of the step, from 1.
    pub step: u32,
}

/// A model call and its tool calls are complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepCompleted {
    /// The number of the step, from 1.
    pub step: u32,
    /// How many tool calls the model asked for.
    pub tool_calls: usize,
    /// The tokens of the model call.
    pub usage: Usage,
    /// Why the model ended the step.
    #[serde(default)]
    pub finish_reason: FinishReason,
    /// The model that has answered, as `<provider>/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A piece of the answer's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageDelta<'a> {
    /// The answer.
    pub message_id: Uuid,
    /// The text that follows the answer's text so far.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// A piece of the model's reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReasoningDelta<'a> {
    /// The answer that it belongs to.
    pub message_id: Uuid,
    /// The text that follows the reasoning so far.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// A message has joined a live run. In the log of that run, the next step answers it too. In the log of the run that the
/// message had before, the end of that run follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageSteered {
    /// In the log of the message's own run: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The message.
    pub message_id: Uuid,
    /// In the log of the message's own run: the run that it has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_run_id: Option<Uuid>,
}

/// The database has stored the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageCompleted {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The answer.
    pub message: Box<Message>,
}

/// The size of the conversation and its budget, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextUsage {
    /// Estimated tokens of the conversation.
    pub tokens: u64,
    /// Tokens that the conversation may take.
    pub budget: u64,
    /// Whether the model reads a summary in place of older messages.
    pub compressed: bool,
    /// The first message that the model reads word by word, if there are older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim_from: Option<Uuid>,
    /// The id of that message that its client has chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim_from_client_id: Option<String>,
}
