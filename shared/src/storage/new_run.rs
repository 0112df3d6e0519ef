//! What is submitted, and what becomes of it.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::EndedRun;
use crate::{
    conversation::{Conversation, Handle},
    event::Event,
    idempotency::IdempotencyKey,
    message::Message,
    run::{Run, SubmitMode},
    telemetry::Traceparent,
    tool::ClientTool,
};

/// A message that is to start a run.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Chosen by the caller, so that it can follow the run before it exists.
    pub run_id: Uuid,
    pub target: Target,
    pub input: MessageInput,
    /// What the client calls its message.
    pub client_message_id: Option<String>,
    pub mode: SubmitMode,
    pub options: RunOptions,
    /// Bytes of JSON that the metadata of one conversation may have.
    pub max_metadata: usize,
    pub key: Option<IdempotencyKey>,
    /// Runs that may wait in one conversation.
    pub max_unfinished: usize,
    /// The span that the run's own begin under, wherever it is executed.
    pub traceparent: Option<Traceparent>,
}

impl NewRun {
    /// The bytes that are stored for it, roughly.
    pub(super) fn bytes(&self) -> usize {
        let RunOptions { client_tools, metadata, .. } = &self.options;
        let tools = if client_tools.is_empty() { 0 } else { serde_json::json!(client_tools).to_string().len() };
        self.input.content().map_or(0, str::len) + tools + metadata.as_ref().map_or(0, |own| own.to_string().len())
    }
}

/// How a run is to be executed, as its client or its route wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Whether pieces of the answer are written as events.
    pub stream: bool,
    /// Tools that the client executes.
    pub client_tools: Vec<ClientTool>,
    /// A JSON object, kept with the run and its checkpoints; later runs of the conversation take it over.
    pub metadata: Option<Value>,
    /// What the run may take where its agent says nothing; else the deployment's own.
    pub max_duration: Option<Duration>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { stream: true, client_tools: Vec::new(), metadata: None, max_duration: None }
    }
}

/// What the run is to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageInput {
    /// A new message, after all others.
    New(String),
    /// A new message instead of this one and what follows it.
    Edit { content: String, replace_from: Uuid },
    /// The message before, once more, instead of this answer and what follows it. Instead of a user's message: that message.
    Again { replace_from: Uuid },
}

impl MessageInput {
    /// The new message, if there is one.
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::New(content) | Self::Edit { content, .. } => Some(content),
            Self::Again { .. } => None,
        }
    }

    /// The message that is no longer part of the conversation, if there is one.
    pub const fn replace_from(&self) -> Option<Uuid> {
        match self {
            Self::New(_) => None,
            Self::Edit { replace_from, .. } | Self::Again { replace_from } => Some(*replace_from),
        }
    }
}

/// The conversation that a message goes to.
#[derive(Debug, Clone)]
pub enum Target {
    Existing(Uuid),
    New {
        agent_id: Option<Uuid>,
    },
    /// The owner's conversation of this handle; made, with this agent, if there is none.
    Named {
        handle: Handle,
        agent_id: Option<Uuid>,
    },
}

/// What became of a message.
pub enum SubmitOutcome {
    /// Message and run are committed.
    Accepted(Box<CommittedMessage>),
    /// The same request was accepted before, under the same key.
    Repeated(Box<(Conversation, Message, Run)>),
    /// The key belongs to another request.
    KeyReused,
    /// The conversation has a run that has not ended, and the mode was `reject`.
    Busy,
    /// The conversation has as many unfinished runs as it may.
    TooMany,
    /// The owner has as many unfinished runs as it may: this many.
    TooManyRuns(usize),
    /// With this message, the owner would keep more bytes than it may: this many.
    QuotaExceeded(usize),
    /// With what earlier runs have brought, the metadata is too large.
    MetadataTooLarge,
    ConversationNotFound,
    AgentNotFound,
    /// The conversation has another message that the client calls so.
    MessageExists,
    /// The conversation has no such message any more, or never had.
    MessageNotFound,
    /// Nobody has said anything before what is to be replaced.
    NothingToAnswer,
}

/// A committed message and what its commit has brought with it.
pub struct CommittedMessage {
    pub conversation: Conversation,
    pub message: Message,
    pub run: Run,
    /// The run's first event, `run.queued`.
    pub queued: Event,
    /// Runs that the message has ended at once.
    pub ended: Vec<EndedRun>,
    /// Running runs that were asked to stop; their workers are to be told.
    pub cancel_requested: Vec<Uuid>,
}
