//! Events: the immutable facts of a run, and the one form in which they are kept and carried.
//!
//! A worker encodes an event once, as a line `<id> <unix ms> <type> <payload>\n` whose payload is a JSON object. Those
//! bytes go into the run log, over pub/sub and into the archive; a wire projects them. Nobody has to understand a
//! payload to pass it on, so an event of a newer version travels through an older process unharmed.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    approval::{ApprovalKind, ApprovalStatus},
    event_id::EventId,
    finish_reason::FinishReason,
    message::Message,
    run::RunError,
    tool::ToolError,
    usage::Usage,
};

/// One event in its encoded form; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the run's log.
    pub id: EventId,
    /// When it was written, in ms since the Unix epoch.
    pub at_ms: i64,
    /// What this event supersedes everything after; present exactly on the first event of an attempt.
    pub base: Option<EventId>,
    line: Bytes,
    kind_at: u32,
    payload_at: u32,
}

/// What can happen in a run. `docs/events.md` describes each for clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EventBody {
    RunQueued {
        base: EventId,
        conversation_id: Uuid,
        input_message_id: Uuid,
        message_id: Uuid,
        agent_id: Option<Uuid>,
    },
    AttemptStarted {
        attempt: u32,
        base: EventId,
        reason: AttemptReason,
        crashes: u32,
        max_crashes: u32,
    },
    StepStarted {
        step: u32,
    },
    StepCompleted {
        step: u32,
        tool_calls: usize,
        usage: Usage,
        finish_reason: FinishReason,
    },
    MessageDelta {
        message_id: Uuid,
        text: String,
    },
    ReasoningDelta {
        message_id: Uuid,
        text: String,
    },
    /// A piece of a call's arguments, as the model writes them; the first has the tool's name.
    ToolCallDelta {
        call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        text: String,
    },
    ToolCallStarted {
        call_id: String,
        step: u32,
        name: String,
        input: Value,
        /// Who executes it.
        by: ExecutedBy,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::timestamp::optional_milliseconds")]
        expires_at: Option<DateTime<Utc>>,
    },
    ToolCallCompleted {
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<EventId>,
        call_id: String,
        name: String,
        /// Of a call that was refused, and so never started.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
        duration_ms: u64,
    },
    ApprovalRequested {
        approval_id: Uuid,
        call_id: String,
        kind: ApprovalKind,
        name: String,
        input: Value,
        #[serde(serialize_with = "crate::timestamp::milliseconds")]
        expires_at: DateTime<Utc>,
    },
    ApprovalResolved {
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<EventId>,
        approval_id: Uuid,
        call_id: String,
        decision: ApprovalStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        edited_input: Option<Value>,
    },
    MessageCompleted {
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<EventId>,
        message: Message,
    },
    /// The last event before a run waits for whoever must answer.
    AgentState {
        state: AgentState,
    },
    /// How much of its budget the conversation takes, and whether older messages were summarised for it just now.
    ContextUsage {
        tokens: u32,
        budget: u32,
        compressed: bool,
    },
    WarningRaised {
        code: String,
        message: String,
    },
    RunCompleted {
        message_id: Uuid,
        usage: Usage,
        /// Of the last step.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
    },
    RunFailed {
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<EventId>,
        error: RunError,
        usage: Usage,
    },
    RunCancelled {
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<EventId>,
        message_id: Option<Uuid>,
        usage: Usage,
    },
}

/// What the agent is about, where nothing else tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// The run waits for a human, or for the client that executes a tool.
    WaitingOnUser,
}

/// Who executes a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutedBy {
    Worker,
    /// The client: the run waits for its result.
    Client,
}

/// Why a worker began an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptReason {
    /// The first attempt.
    Claimed,
    /// A human has answered.
    Resumed,
    /// The worker before was shut down and handed the run over.
    Drain,
    /// The worker before gave no sign of life.
    LeaseExpired,
}

pub const RUN_QUEUED: &str = "run.queued";
pub const ATTEMPT_STARTED: &str = "attempt.started";
pub const STEP_STARTED: &str = "step.started";
pub const STEP_COMPLETED: &str = "step.completed";
pub const MESSAGE_DELTA: &str = "message.delta";
pub const REASONING_DELTA: &str = "reasoning.delta";
pub const TOOL_CALL_DELTA: &str = "tool_call.delta";
pub const TOOL_CALL_STARTED: &str = "tool_call.started";
pub const TOOL_CALL_COMPLETED: &str = "tool_call.completed";
pub const APPROVAL_REQUESTED: &str = "approval.requested";
pub const APPROVAL_RESOLVED: &str = "approval.resolved";
pub const MESSAGE_COMPLETED: &str = "message.completed";
pub const AGENT_STATE: &str = "agent.state";
pub const CONTEXT_USAGE: &str = "context.usage";
pub const WARNING_RAISED: &str = "warning.raised";
pub const RUN_COMPLETED: &str = "run.completed";
pub const RUN_FAILED: &str = "run.failed";
pub const RUN_CANCELLED: &str = "run.cancelled";

impl EventBody {
    /// The event's type, `noun.past_verb` or `noun.delta`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RunQueued { .. } => RUN_QUEUED,
            Self::AttemptStarted { .. } => ATTEMPT_STARTED,
            Self::StepStarted { .. } => STEP_STARTED,
            Self::StepCompleted { .. } => STEP_COMPLETED,
            Self::MessageDelta { .. } => MESSAGE_DELTA,
            Self::ReasoningDelta { .. } => REASONING_DELTA,
            Self::ToolCallDelta { .. } => TOOL_CALL_DELTA,
            Self::ToolCallStarted { .. } => TOOL_CALL_STARTED,
            Self::ToolCallCompleted { .. } => TOOL_CALL_COMPLETED,
            Self::ApprovalRequested { .. } => APPROVAL_REQUESTED,
            Self::ApprovalResolved { .. } => APPROVAL_RESOLVED,
            Self::MessageCompleted { .. } => MESSAGE_COMPLETED,
            Self::AgentState { .. } => AGENT_STATE,
            Self::ContextUsage { .. } => CONTEXT_USAGE,
            Self::WarningRaised { .. } => WARNING_RAISED,
            Self::RunCompleted { .. } => RUN_COMPLETED,
            Self::RunFailed { .. } => RUN_FAILED,
            Self::RunCancelled { .. } => RUN_CANCELLED,
        }
    }

    /// Whether this is a piece of something that a later event has whole.
    pub const fn is_delta(&self) -> bool {
        matches!(self, Self::MessageDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolCallDelta { .. })
    }
}

/// Whether a run has ended with an event of this type.
pub fn is_terminal(kind: &str) -> bool {
    matches!(kind, RUN_COMPLETED | RUN_FAILED | RUN_CANCELLED)
}

/// A text that should have been an encoded event.
#[derive(Debug, thiserror::Error)]
#[error("an event of the log is damaged: {problem}: {line:.120}")]
pub struct Damaged {
    problem: &'static str,
    line: String,
}

impl Event {
    /// Encodes what has happened. Lines of a batch may be encoded into one buffer with `encode_into`.
    pub fn new(id: EventId, at: DateTime<Utc>, body: &EventBody) -> Self {
        let mut line = Vec::with_capacity(160);
        Self::encode_into(&mut line, id, at.timestamp_millis(), body);
        line.pop();
        Self::parse(line.into()).expect("an encoded event can be parsed")
    }

    /// Appends the line of an event, with its newline.
    pub fn encode_into(buffer: &mut Vec<u8>, id: EventId, at_ms: i64, body: &EventBody) {
        use std::io::Write as _;
        write!(buffer, "{id} {at_ms} {} ", body.kind()).expect("a Vec takes every write");
        serde_json::to_writer(&mut *buffer, body).expect("an event body is always valid JSON");
        buffer.push(b'\n');
    }

    /// Reads one line, without its newline.
    pub fn parse(line: Bytes) -> Result<Self, Damaged> {
        let damaged = |problem| Damaged { problem, line: String::from_utf8_lossy(&line).into_owned() };
        let text = std::str::from_utf8(&line).map_err(|_| damaged("it is not UTF-8"))?;
        let mut parts = text.splitn(4, ' ');
        let mut part = || parts.next().ok_or_else(|| damaged("it has too few parts"));
        let (id, at, kind, payload) = (part()?, part()?, part()?, part()?);
        let kind_at = id.len() + 1 + at.len() + 1;
        let payload_at = kind_at + kind.len() + 1;
        let id: EventId = id.parse().map_err(|_| damaged("its id is malformed"))?;
        let at_ms = at.parse().map_err(|_| damaged("its time is malformed"))?;
        if !payload.starts_with('{') {
            return Err(damaged("its payload is no JSON object"));
        }
        let base = (id.n == 1).then(|| base_of(payload)).flatten();
        Ok(Self { id, at_ms, base, kind_at: kind_at as u32, payload_at: payload_at as u32, line })
    }

    /// Reads a batch: lines, each ended by a newline. The events share the batch's buffer.
    pub fn parse_batch(batch: &Bytes) -> Result<Vec<Self>, Damaged> {
        let mut start = 0;
        memchr::memchr_iter(b'\n', batch)
            .map(|end| Self::parse(batch.slice(std::mem::replace(&mut start, end + 1)..end)))
            .collect()
    }

    /// The event's type.
    pub fn kind(&self) -> &str {
        let kind = &self.line[self.kind_at as usize..self.payload_at as usize - 1];
        std::str::from_utf8(kind).expect("parse has checked that the line is UTF-8")
    }

    /// The payload, a JSON object.
    pub fn payload(&self) -> &[u8] {
        &self.line[self.payload_at as usize..]
    }

    /// The encoded event, without a newline.
    pub fn line(&self) -> &Bytes {
        &self.line
    }

    /// Whether the run has ended with this event.
    pub fn is_terminal(&self) -> bool {
        is_terminal(self.kind())
    }

    /// Whether the run waits for somebody after this event.
    pub fn is_wait(&self) -> bool {
        #[derive(Deserialize)]
        struct Told {
            state: AgentState,
        }
        let told = || serde_json::from_slice::<Told>(self.payload());
        self.kind() == AGENT_STATE && told().is_ok_and(|told| told.state == AgentState::WaitingOnUser)
    }

    /// Whether a client that has everything up to `cursor` misses nothing between `cursor` and this event.
    pub fn follows(&self, cursor: EventId) -> bool {
        if self.id <= cursor {
            return false;
        }
        let continues = self.id.attempt == cursor.attempt && self.id.n == cursor.n + 1;
        continues || self.base.is_some_and(|base| cursor >= base)
    }
}

/// The leading events of `events` that follow `cursor`, one after the other; what `cursor` already covers is dropped.
pub fn following(events: Vec<Event>, mut cursor: EventId) -> Vec<Event> {
    let known = events.iter().take_while(|event| event.id <= cursor).count();
    let fresh = events[known..].iter().take_while(|event| {
        let follows = event.follows(cursor);
        cursor = event.id;
        follows
    });
    let end = known + fresh.count();
    events.into_iter().take(end).skip(known).collect()
}

/// The base in the payload of an attempt's first event.
fn base_of(payload: &str) -> Option<EventId> {
    #[derive(Deserialize)]
    struct First {
        base: Option<EventId>,
    }
    serde_json::from_str::<First>(payload).ok()?.base
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(attempt: u32, n: u32) -> Event {
        let body = EventBody::MessageDelta { message_id: Uuid::nil(), text: "a\nb ü".into() };
        Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, &body)
    }

    fn first(attempt: u32, base: EventId) -> Event {
        let body =
            EventBody::AttemptStarted { attempt, base, reason: AttemptReason::Claimed, crashes: 0, max_crashes: 3 };
        Event::new(EventId::first_of(attempt), DateTime::UNIX_EPOCH, &body)
    }

    #[test]
    fn a_batch_brings_back_its_events() {
        let events = [first(1, EventId::ORIGIN), delta(1, 2), delta(1, 3)];
        let batch: Vec<u8> = events.iter().flat_map(|event| [event.line(), &b"\n"[..]].concat()).collect();
        assert_eq!(Event::parse_batch(&batch.into()).unwrap(), events);
    }

    #[test]
    fn an_unknown_event_passes_through() {
        let event = Event::parse(Bytes::from_static(b"3-1 7 dream.dreamt {\"base\":\"2-9\",\"x\":1}")).unwrap();
        assert_eq!(
            (event.kind(), event.payload(), event.base),
            ("dream.dreamt", &b"{\"base\":\"2-9\",\"x\":1}"[..], Some(EventId::new(2, 9)))
        );
        assert!(!event.is_terminal());
    }

    #[test]
    fn a_damaged_line_is_an_error_and_no_panic() {
        for line in ["", "1-1", "1-1 2 kind", "x 2 kind {}", "1-1 x kind {}", "1-1 2 kind []"] {
            assert!(Event::parse(Bytes::from(line)).is_err(), "{line:?} was accepted");
        }
    }

    #[test]
    fn follows_proves_that_nothing_is_missing() {
        let id = EventId::new;
        let check =
            |cursor, event: &Event, expected| assert_eq!(event.follows(cursor), expected, "{cursor} then {}", event.id);
        check(id(1, 2), &delta(1, 3), true);
        check(id(1, 1), &delta(1, 3), false);
        check(id(1, 3), &delta(1, 3), false);
        check(id(1, 9), &delta(2, 2), false);
        check(id(1, 9), &first(2, id(1, 5)), true);
        check(id(1, 5), &first(2, id(1, 5)), true);
        check(id(1, 4), &first(2, id(1, 5)), false);
        check(EventId::ORIGIN, &first(1, id(0, 1)), false);
    }

    #[test]
    fn following_drops_the_known_and_stops_at_a_gap() {
        let events = vec![delta(1, 2), delta(1, 3), delta(1, 4), delta(1, 6)];
        let ids = |cursor| following(events.clone(), cursor).iter().map(|event| event.id.n).collect::<Vec<_>>();
        assert_eq!(ids(EventId::new(1, 2)), [3, 4]);
        assert_eq!(ids(EventId::new(1, 6)), [0; 0]);
        assert_eq!(ids(EventId::ORIGIN), [0; 0]);
    }
}
