//! The input of SUBMIT, and its outcome.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::{EndedRun, added::AddedMessage};
use crate::storage::quota::ROWS;
use crate::{
    conversation::{Conversation, Handle},
    event::Event,
    file::{FileLink, UserContent},
    idempotency::IdempotencyKey,
    message::Message,
    overrides::{RunOverrides, StoredClientParts},
    run::{Run, SubmitMode},
    telemetry::Traceparent,
    time_zone::RunZone,
    tool::ClientTool,
};

/// A message that starts a run.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Chosen by the API, so that it can subscribe to the run before the commit.
    pub run_id: Uuid,
    /// The conversation of the message.
    pub target: Target,
    /// The message, or the message that the run answers again.
    pub input: MessageInput,
    /// Messages that the client has from elsewhere, oldest first. They come before the message if that is the conversation's first,
    /// else they have no effect.
    pub given: Vec<AddedMessage>,
    /// The id that the client gave its message; unique in the conversation.
    pub client_message_id: Option<String>,
    /// The effect on unfinished runs of the conversation.
    pub mode: SubmitMode,
    /// How the run is executed.
    pub options: RunOptions,
    /// Most bytes of JSON in the metadata of one conversation.
    pub max_metadata: usize,
    /// The client's idempotency key, if it sent one.
    pub key: Option<IdempotencyKey>,
    /// Most unfinished runs of the conversation.
    pub max_unfinished: usize,
    /// The group of an anonymous caller, whose runs take turns as those of one owner; `None` for each other caller.
    pub caller_group: Option<String>,
    /// The parent of the run's spans, wherever a worker executes it.
    pub traceparent: Option<Traceparent>,
}

impl NewRun {
    /// Returns the bytes that count for the quota, roughly, if the conversation takes the given messages.
    pub fn bytes_with_given(&self) -> usize {
        self.bytes() + self.given.iter().map(AddedMessage::bytes).sum::<usize>()
    }

    /// Returns the bytes that count for the quota, roughly, without the given messages.
    pub fn bytes(&self) -> usize {
        let parts = self.options.client_parts();
        ROWS + self.input.content().map_or(0, UserContent::stored_bytes)
            + parts.map_or(0, |parts| parts.to_string().len())
            + self.options.metadata.as_ref().map_or(0, |own| own.to_string().len())
    }
}

/// How a run is executed, as its client or its route chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// True if the run writes pieces of the answer as events.
    pub stream: bool,
    /// Tools that the client executes.
    pub client_tools: Vec<ClientTool>,
    /// Parts of the model's requests that the client brings.
    pub overrides: RunOverrides,
    /// True if no list shows the conversation that the message creates. It is removed with the run's events.
    pub hides_conversation: bool,
    /// A JSON object for the run and its checkpoints. Later runs of the conversation inherit it.
    pub metadata: Option<Value>,
    /// Longest time of the run without a sign of life, if its agent sets no time for the whole run.
    pub max_silence: Option<Duration>,
    /// True if the run makes the document of its conversation ready for searches, and asks no model.
    pub ingests: bool,
    /// True if the request also answers the question for which a run of the conversation waits, so that the message does not end it.
    pub keeps_wait: bool,
    /// Time from the submission before which no worker begins the run. Later runs of the conversation wait for it.
    pub delay: Option<Duration>,
    /// The zone of the dates that the run's model reads.
    pub zone: RunZone,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            stream: true,
            client_tools: Vec::new(),
            overrides: RunOverrides::default(),
            hides_conversation: false,
            metadata: None,
            max_silence: None,
            ingests: false,
            keeps_wait: false,
            delay: None,
            zone: RunZone::default(),
        }
    }
}

impl RunOptions {
    /// Returns the client's tools and overrides, as the run's row has them.
    pub fn client_parts(&self) -> Option<Value> {
        StoredClientParts::row(&self.client_tools, &self.overrides)
    }
}

/// The message that the run answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageInput {
    /// A new message after all others.
    New(UserContent),
    /// A new message that replaces an earlier one and all that follows it.
    Edit {
        /// The new text, with its files.
        content: UserContent,
        /// The replaced message.
        replace_from: Uuid,
    },
    /// Another answer to an earlier message. `replace_from` is the answer to replace, or that message itself.
    Again {
        /// The replaced answer, or the message that it answered.
        replace_from: Uuid,
    },
}

impl MessageInput {
    /// Returns the text and the files of the new message, if there is one.
    pub const fn content(&self) -> Option<&UserContent> {
        match self {
            Self::New(content) | Self::Edit { content, .. } => Some(content),
            Self::Again { .. } => None,
        }
    }

    /// Returns what the worker alone reads of the new message, and removes it here: the files to fetch, and the speaker.
    pub fn take_for_worker(&mut self) -> (Vec<FileLink>, Option<String>) {
        match self {
            Self::New(content) | Self::Edit { content, .. } => {
                (std::mem::take(&mut content.links), content.speaker.take())
            }
            Self::Again { .. } => (Vec::new(), None),
        }
    }

    /// Returns the message that is no longer part of the conversation, if there is one.
    pub const fn replace_from(&self) -> Option<Uuid> {
        match self {
            Self::New(_) => None,
            Self::Edit { replace_from, .. } | Self::Again { replace_from } => Some(*replace_from),
        }
    }
}

/// The conversation of a message.
#[derive(Debug, Clone)]
pub enum Target {
    /// The owner's conversation of this id.
    Existing(Uuid),
    /// A new conversation without a handle.
    New {
        /// Its agent; `None` for a plain conversation.
        agent_id: Option<Uuid>,
    },
    /// The owner's conversation of this handle. It is created with this agent if there is none.
    Named {
        /// The handle of the conversation.
        handle: Handle,
        /// The agent of a new conversation; `None` for a plain one.
        agent_id: Option<Uuid>,
    },
}

/// The outcome of SUBMIT.
pub enum SubmitOutcome {
    /// Message and run are committed.
    Accepted(Box<CommittedMessage>),
    /// An earlier request with this key was accepted; this is its result.
    Repeated(Box<(Conversation, Message, Run)>),
    /// The key belongs to another request.
    KeyReused,
    /// The conversation has an unfinished run, and the mode was `reject`.
    Busy,
    /// The conversation has its most unfinished runs.
    TooMany,
    /// The owner would exceed this number of unfinished runs.
    TooManyRuns(usize),
    /// The owner would exceed this number of bytes.
    QuotaExceeded(usize),
    /// The metadata, merged with that of earlier runs, is too large.
    MetadataTooLarge,
    /// There is no such conversation.
    ConversationNotFound,
    /// There is no such agent.
    AgentNotFound,
    /// Another message of the conversation has this client id.
    MessageExists,
    /// No current message of the conversation has this id.
    MessageNotFound,
    /// No message of the dialogue precedes the one to replace.
    NothingToAnswer,
}

/// A committed message and its effects.
pub struct CommittedMessage {
    /// The conversation after the commit.
    pub conversation: Conversation,
    /// The new message, or the message that the run answers again.
    pub message: Message,
    /// The run, which is queued.
    pub run: Run,
    /// The run's first event, `run.queued`.
    pub queued: Event,
    /// Runs that the message ended at once.
    pub ended: Vec<EndedRun>,
    /// Running runs with a cancel request. The caller signals their workers.
    pub cancel_requested: Vec<Uuid>,
}
