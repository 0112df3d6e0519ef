//! Wires: what a client's protocol makes of a run's log. A file per protocol.
//!
//! A wire is a pure projection: what an event becomes depends on the view, on the event and on the id of the event before
//! it, and on nothing else. So it becomes the same on every connection, and is encoded once for all who have the same view.
//! `reader` is what the wires share that show a reader text rather than events. `durable` is no projection: see there.

mod agent;
mod agent_context;
pub mod ai_sdk;
mod chat;
pub mod durable;
pub mod native;
mod reader;
mod text;

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use holdfast_shared::{
    agent::StreamMode,
    event::{Event, EventKind},
    event_id::EventId,
    run::Run,
};
use serde::Deserialize;
use uuid::Uuid;

pub use agent_context::AgentContext;

/// First on every stream: how long a client waits before it reconnects, in ms.
pub const RETRY: &[u8] = b"retry: 1000\n\n";

/// Last on a stream that is broken off by a shutdown, or at the end of its life: another moment for each client, so that they do not all come at once.
/// No blank line here either.
pub fn come_back() -> Bytes {
    let chance = getrandom::u32().expect("the system gives random bytes");
    Bytes::from(format!("retry: {}\n", 50 + chance % 950))
}

/// Last on a stream whose client's token has expired. No blank line here either.
pub const TOKEN_EXPIRED: &[u8] = b": the token has expired; come back with a new one\n";

/// Sent when nothing else is. There is no blank line after it, which some clients would take for an event.
pub const HEARTBEAT: &[u8] = b": hb\n";

/// The protocols that a run can be followed by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Every event, as it is.
    #[default]
    Native,
    /// The chat stream: `meta`, `token`, `mcp_tool`, `error`, `done`.
    Chat,
    /// The answer's text, then `[DONE]`.
    Text,
    /// The agent stream: `session`, `agent_state`, `text`, `tool_call`, `tool_result`, `context_usage`, `done` or `error`,
    /// then `[DONE]`.
    Agent,
    /// The AI SDK's UI message stream.
    #[serde(rename = "ai-sdk")]
    AiSdk,
}

/// How much of a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// All that the wire knows; the answer's text in pieces.
    Everything,
    /// The same of a run that writes no pieces: its text is in the whole message.
    Whole,
    /// Only whole messages and the end of the run.
    Messages,
}

impl Wire {
    /// Whether what an event becomes depends on the kind of the event before it.
    pub fn has_blocks(self) -> bool {
        self == Self::AiSdk
    }

    /// Whether the wire's usual clients come back by themselves where a stream is broken off.
    pub fn comes_back(self) -> bool {
        self != Self::AiSdk
    }
}

impl From<StreamMode> for Shows {
    fn from(mode: StreamMode) -> Self {
        match mode {
            StreamMode::Events => Self::Everything,
            StreamMode::Messages => Self::Messages,
        }
    }
}

/// What a client is shown of a run. Clients with equal views are sent the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub wire: Wire,
    pub shows: Shows,
    pub run_id: Uuid,
    pub conversation_id: Uuid,
    /// Of the answer.
    pub message_id: Uuid,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// What the run was started with, on the wire that tells of it.
    pub context: Option<Arc<AgentContext>>,
}

/// A place in a run's log: behind an event, as far as it matters for what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Before {
    pub id: EventId,
    /// `None` where only the id is known.
    pub block: Option<Block>,
}

/// What a reader is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Block {
    None,
    Text,
    Reasoning,
    /// Perhaps nothing comes before somebody has answered.
    Waiting,
}

impl Block {
    /// Behind this event.
    pub fn behind(event: &Event) -> Self {
        match event.kind() {
            EventKind::MessageDelta => Self::Text,
            EventKind::ReasoningDelta => Self::Reasoning,
            EventKind::AgentState if event.is_wait() => Self::Waiting,
            // An answer; the run may still wait for another one.
            EventKind::ApprovalResolved | EventKind::ToolCallCompleted if event.base.is_some() => Self::Waiting,
            EventKind::RunQueued
            | EventKind::AttemptStarted
            | EventKind::StepStarted
            | EventKind::StepCompleted
            | EventKind::ToolCallDelta
            | EventKind::ToolCallStarted
            | EventKind::ToolCallCompleted
            | EventKind::ApprovalRequested
            | EventKind::ApprovalResolved
            | EventKind::MessageCompleted
            | EventKind::AgentState
            | EventKind::ContextUsage
            | EventKind::WarningRaised
            | EventKind::RunCompleted
            | EventKind::RunFailed
            | EventKind::RunCancelled
            | EventKind::Unknown => Self::None,
        }
    }
}

impl Before {
    /// Before everything.
    pub const START: Self = Self { id: EventId::ORIGIN, block: Some(Block::None) };

    /// Behind an event that a client names.
    pub fn cursor(id: EventId) -> Self {
        if id == EventId::ORIGIN { Self::START } else { Self { id, block: None } }
    }

    pub fn behind(event: &Event) -> Self {
        Self { id: event.id, block: Some(Block::behind(event)) }
    }

    fn block(self) -> Block {
        self.block.unwrap_or(Block::None)
    }
}

impl View {
    pub fn of(run: &Run, wire: Wire, shows: Shows) -> Self {
        let context = (wire == Wire::Agent).then(|| AgentContext::of(run)).flatten().map(Arc::new);
        Self {
            wire,
            shows,
            run_id: run.id,
            conversation_id: run.conversation_id,
            message_id: run.output_message_id,
            created_at: run.created_at,
            context,
        }
    }

    /// About how many bytes an event becomes, so that a buffer need not grow.
    pub const fn usual_bytes(&self) -> usize {
        match (self.shows, self.wire) {
            (Shows::Messages, _) => 0,
            (_, Wire::Native) => 256,
            (_, Wire::Chat | Wire::Agent | Wire::AiSdk) => 64,
            (_, Wire::Text) => 32,
        }
    }

    fn shows_as_event(&self, event: &Event) -> bool {
        self.shows != Shows::Messages || event.kind() == EventKind::MessageCompleted || event.is_terminal()
    }

    /// Whether a stream ends where the run waits: the client answers with a new request.
    pub fn ends_at_waits(&self) -> bool {
        self.wire == Wire::AiSdk
    }

    /// Whether the client may have been shown what this event takes back.
    fn is_taken_back_by(&self, event: &Event, before: EventId) -> bool {
        // Whole messages come last, and none is ever taken back.
        self.shows != Shows::Messages && event.base.is_some_and(|base| base < before)
    }
}

/// Writes the events of a view as frames, one after the other. What an event becomes may depend on the one before it, and on
/// none before that, so that any place in the log is enough to begin at.
#[derive(Debug)]
pub struct Projector {
    view: View,
    before: Before,
}

impl Projector {
    /// Begins behind an event.
    pub const fn after(before: Before, view: View) -> Self {
        Self { view, before }
    }

    /// Appends what the next event becomes; that may be nothing. Of several frames, the last has the event's id.
    pub fn frame(&mut self, buffer: &mut Vec<u8>, event: &Event) {
        let before = std::mem::replace(&mut self.before, Before::behind(event));
        match self.view.wire {
            Wire::Native if self.view.shows_as_event(event) => native::frame(buffer, self.view.run_id, event),
            Wire::Native => {}
            Wire::Chat => chat::frames(buffer, &self.view, before.id, event),
            Wire::Agent => agent::frames(buffer, &self.view, before.id, event),
            Wire::Text => text::frames(buffer, &self.view, before.id, event),
            Wire::AiSdk => ai_sdk::frames(buffer, &self.view, before, event),
        }
    }
}

#[cfg(test)]
mod tests;
