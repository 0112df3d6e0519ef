//! Wires: projections of a run's log into the protocols of clients, one file per protocol.
//!
//! A wire is a pure projection. The frames of an event depend only on the view, the event and the position before it.
//! So they are equal on every connection, and the relay encodes them once for all subscribers with one view. `reader`
//! is for the wires that show text to a reader. `fold` is for
//! wires with a state, and `durable` is no projection.

pub mod answer_text;
pub mod event_json;
mod fold;
pub mod plan;
pub mod reader;

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use holdfast_shared::{
    agent::StreamMode,
    context::AgentContext,
    event::{Event, EventKind},
    event_id::EventId,
    run::Run,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::protocols::{agent, ai_sdk, chat, native, text};

pub use self::{
    fold::{CLIENT_PLACE, FrameId, WireFold, is_taken_over, with_client_bytes},
    plan::UiPlan,
};

/// The open plan of an earlier run of a conversation, if there is one.
pub type EarlierPlan = Option<Arc<UiPlan>>;

/// The first bytes of every stream: how long a client waits before it reconnects, in ms.
pub const RETRY: &[u8] = b"retry: 1000\n\n";

/// Returns the last bytes of a stream that the server truncates at a shutdown or at the end of its life. The delay is
/// random, so that not all clients reconnect at once. No blank line follows, as after a heartbeat.
pub fn reconnect_hint() -> Bytes {
    let chance = getrandom::u32().expect("the system gives random bytes");
    Bytes::from(format!("retry: {}\n", 50 + chance % 950))
}

/// The last bytes of a stream whose client's token has expired. No blank line follows, as after a heartbeat.
pub const TOKEN_EXPIRED: &[u8] = b": the token has expired; come back with a new one\n";

/// The bytes of a heartbeat. No blank line follows, because some clients would take it for an event.
pub const HEARTBEAT: &[u8] = b": hb\n";

/// The protocols by which a client can follow a run.
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

/// How much of a run a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Everything that the wire knows, with deltas.
    All,
    /// Everything of a run that writes no deltas; its text is in the complete message.
    NoDeltas,
    /// Only complete messages and the end of the run.
    Messages,
}

impl Wire {
    /// Returns whether the wire's usual clients reconnect by themselves to a truncated stream.
    pub fn reconnects(self) -> bool {
        self != Self::AiSdk
    }
}

impl From<StreamMode> for Detail {
    fn from(mode: StreamMode) -> Self {
        match mode {
            StreamMode::Events => Self::All,
            StreamMode::Messages => Self::Messages,
        }
    }
}

/// The part of a run that a client sees. Clients with equal views receive equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub wire: Wire,
    pub detail: Detail,
    pub run_id: Uuid,
    pub conversation_id: Uuid,
    /// The id of the answer.
    pub message_id: Uuid,
    /// When the run was created.
    pub created_at: DateTime<Utc>,
    /// The context of the run, on the wires that show it.
    pub context: Option<Arc<AgentContext>>,
    /// The open plan of an earlier run of the conversation, on the wire that shows it.
    pub plan: EarlierPlan,
}

/// A position in a run's log: the last event, and the block that a reader is in after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogPosition {
    pub id: EventId,
    pub block: Block,
}

/// The block of output that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Block {
    None,
    Text,
    Reasoning,
    /// The run waits for an answer, or may wait for one.
    Waiting,
}

impl Block {
    /// Returns the block after an event.
    pub fn after(event: &Event) -> Self {
        match event.kind() {
            // A citation follows the delta that has its mark, and does not end the text.
            EventKind::MessageDelta | EventKind::CitationAdded => Self::Text,
            EventKind::ReasoningDelta => Self::Reasoning,
            EventKind::AgentState if event.is_wait() => Self::Waiting,
            // One answer has arrived; the run may still wait for another one.
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
            | EventKind::DocumentProgress
            | EventKind::ContextRetrieved
            | EventKind::CitationDropped
            | EventKind::WarningRaised
            | EventKind::MessageSteered
            | EventKind::PlanCreated
            | EventKind::PlanUpdated
            | EventKind::PlanReviewed
            | EventKind::PlanStepStarted
            | EventKind::PlanStepCompleted
            | EventKind::QuestionAsked
            | EventKind::ContextShifted
            | EventKind::FocusChanged
            | EventKind::OntologyLoaded
            | EventKind::TemplateRequested
            | EventKind::TemplateSuggested
            | EventKind::MemoryTold
            | EventKind::SubagentStarted
            | EventKind::SubagentCompleted
            | EventKind::RunCompleted
            | EventKind::RunFailed
            | EventKind::RunCancelled
            | EventKind::Unknown => Self::None,
        }
    }
}

impl LogPosition {
    /// The position before all events.
    pub const START: Self = Self { id: EventId::ORIGIN, block: Block::None };

    pub fn after(event: &Event) -> Self {
        Self { id: event.id, block: Block::after(event) }
    }
}

impl View {
    pub fn of(run: &Run, wire: Wire, detail: Detail) -> Self {
        let metadata = run.metadata.as_ref().filter(|_| matches!(wire, Wire::Agent | Wire::AiSdk));
        let context = metadata.and_then(AgentContext::of).map(Arc::new);
        Self {
            wire,
            detail,
            run_id: run.id,
            conversation_id: run.conversation_id,
            message_id: run.output_message_id,
            created_at: run.created_at,
            context,
            plan: None,
        }
    }

    /// Returns about how many bytes the frames of an event take, to size buffers.
    pub const fn typical_event_bytes(&self) -> usize {
        match (self.detail, self.wire) {
            (Detail::Messages, _) => 0,
            (_, Wire::Native) => 320,
            (_, Wire::Chat | Wire::Agent | Wire::AiSdk) => 64,
            (_, Wire::Text) => 32,
        }
    }

    fn includes(&self, event: &Event) -> bool {
        self.detail != Detail::Messages || event.kind() == EventKind::MessageCompleted || event.is_terminal()
    }

    /// Returns the last frames of a stream that ends at a position where the run may wait, because the client answers
    /// with a new request. `None` if streams of this view continue there.
    pub fn end_at_wait(&self, position: LogPosition) -> Option<Bytes> {
        let ends = self.wire == Wire::AiSdk && position.block == Block::Waiting;
        ends.then(ai_sdk::wire::end_of_segment)
    }

    /// Returns whether this event supersedes events that the client may have seen.
    pub fn supersedes_shown(&self, event: &Event, previous: EventId) -> bool {
        // Complete messages come last, and no event supersedes them.
        self.detail != Detail::Messages && event.base.is_some_and(|base| base < previous)
    }
}

/// Writes the events of a view as frames, one after the other. The frames depend only on the event and the position
/// before it, so a projector can start at any position.
#[derive(Debug)]
pub struct Projector {
    view: View,
    position: LogPosition,
}

impl Projector {
    /// Starts after a position.
    pub const fn after(position: LogPosition, view: View) -> Self {
        Self { view, position }
    }

    /// Appends the frames of the next event, if it has any. Of several frames, the last has the event's id.
    pub fn frame(&mut self, buffer: &mut Vec<u8>, event: &Event) {
        let position = std::mem::replace(&mut self.position, LogPosition::after(event));
        match self.view.wire {
            Wire::Native if self.view.includes(event) => native::wire::frame(buffer, self.view.run_id, event),
            Wire::Native => {}
            Wire::Chat => chat::wire::frames(buffer, &self.view, position.id, event),
            Wire::Agent => agent::wire::frames(buffer, &self.view, position.id, event),
            Wire::Text => text::wire::frames(buffer, &self.view, position.id, event),
            Wire::AiSdk => ai_sdk::wire::frames(buffer, &self.view, position, event),
        }
    }
}

#[cfg(test)]
mod tests;
