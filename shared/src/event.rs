//! Events: the immutable facts of a run, and their one encoding.
//!
//! A worker encodes an event once, as a line `<id> <unix ms> <kind> <payload>\n` whose payload is a JSON object. The
//! run log, its channel and the archive carry these bytes, and a wire projects them. `body` parses the payload. A
//! process passes an event on without parsing its payload, so an event of a newer version travels through an older
//! process unchanged.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::event_id::EventId;

mod body;
mod payload;
mod raw_json;

pub use body::{EventBody, EventKind};
pub use payload::*;
pub use raw_json::RawJson;

/// One event in its encoded form. Clones are cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the run's log.
    pub id: EventId,
    /// When the worker wrote it, in ms since the Unix epoch.
    pub at_ms: i64,
    /// This event supersedes all events after its base. Only the first event of an attempt has one.
    pub base: Option<EventId>,
    kind: EventKind,
    line: Bytes,
    kind_at: u32,
    payload_at: u32,
}

/// A text that is no encoded event.
#[derive(Debug, thiserror::Error)]
#[error("an event of the log is damaged: {problem}: {line:.120}")]
pub struct DamagedEvent {
    problem: &'static str,
    line: String,
}

impl Event {
    /// Encodes one event. `encode_into` encodes the lines of a batch into one buffer.
    pub fn new(id: EventId, at: DateTime<Utc>, body: &EventBody<'_>) -> Self {
        let mut line = Vec::with_capacity(160);
        Self::encode_into(&mut line, id, at.timestamp_millis(), body);
        line.pop();
        Self::parse(line.into()).expect("an encoded event can be parsed")
    }

    /// Appends the line of an event, with its newline.
    pub fn encode_into(buffer: &mut Vec<u8>, id: EventId, at_ms: i64, body: &EventBody<'_>) {
        use std::io::Write as _;
        write!(buffer, "{id} {at_ms} {} ", body.kind().name()).expect("a Vec takes every write");
        serde_json::to_writer(&mut *buffer, body).expect("an event body is always valid JSON");
        buffer.push(b'\n');
    }

    /// Returns events of one moment with consecutive ids.
    pub fn sequence(first: EventId, now: DateTime<Utc>, bodies: &[EventBody<'_>]) -> Vec<Self> {
        let ids = std::iter::successors(Some(first), |id| Some(id.next()));
        ids.zip(bodies).map(|(id, body)| Self::new(id, now, body)).collect()
    }

    /// Returns the lines of events, each with its newline.
    pub fn lines(events: &[Self]) -> String {
        let line = |event: &Self| format!("{}\n", str::from_utf8(event.line()).expect("an event is a line of text"));
        events.iter().map(line).collect()
    }

    /// Parses one line, without its newline. Fails if the line is no event.
    pub fn parse(line: Bytes) -> Result<Self, DamagedEvent> {
        let damaged = |problem| DamagedEvent { problem, line: String::from_utf8_lossy(&line).into_owned() };
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
        let kind = EventKind::of(kind);
        Ok(Self { id, at_ms, base, kind, kind_at: kind_at as u32, payload_at: payload_at as u32, line })
    }

    /// Parses a batch of lines, each with its newline. The events share the batch's buffer.
    pub fn parse_batch(batch: &Bytes) -> Result<Vec<Self>, DamagedEvent> {
        let mut start = 0;
        memchr::memchr_iter(b'\n', batch)
            .map(|end| Self::parse(batch.slice(std::mem::replace(&mut start, end + 1)..end)))
            .collect()
    }

    /// Returns the parsed payload: `Unknown` if a newer version wrote it, but never `Unknown` for the end of a run.
    pub fn body(&self) -> EventBody<'_> {
        EventBody::read(self.kind, self.payload())
    }

    /// Returns the kind of the event.
    pub const fn kind(&self) -> EventKind {
        self.kind
    }

    /// Returns the name of the kind, also of a kind that this version does not know.
    pub fn kind_name(&self) -> &str {
        let kind = &self.line[self.kind_at as usize..self.payload_at as usize - 1];
        std::str::from_utf8(kind).expect("parse has checked that the line is UTF-8")
    }

    /// Returns the payload, a JSON object.
    pub fn payload(&self) -> &[u8] {
        &self.line[self.payload_at as usize..]
    }

    /// Returns the encoded event, without a newline.
    pub fn line(&self) -> &Bytes {
        &self.line
    }

    /// Returns whether the run ends with this event.
    pub const fn is_terminal(&self) -> bool {
        self.kind.is_terminal()
    }

    /// Returns whether the run waits for an answer after this event.
    pub fn is_wait(&self) -> bool {
        self.kind == EventKind::AgentState
            && matches!(self.body(), EventBody::AgentState(changed) if changed.state == AgentState::WaitingOnUser)
    }

    /// Returns a copy in its own memory, because an event of a batch keeps the whole batch in memory.
    pub fn detached(&self) -> Self {
        Self { line: Bytes::copy_from_slice(&self.line), ..*self }
    }

    /// Returns whether a client with all events up to `cursor` misses none between `cursor` and this event.
    pub fn follows(&self, cursor: EventId) -> bool {
        if self.id <= cursor {
            return false;
        }
        let continues = self.id.attempt == cursor.attempt && self.id.n == cursor.n + 1;
        continues || self.base.is_some_and(|base| cursor >= base)
    }
}

/// Returns the leading events that follow `cursor` without a gap, and drops those that `cursor` covers.
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

/// Returns the base in the payload of an attempt's first event.
fn base_of(payload: &str) -> Option<EventId> {
    #[derive(Deserialize)]
    struct First {
        base: Option<EventId>,
    }
    serde_json::from_str::<First>(payload).ok()?.base
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn delta(attempt: u32, n: u32) -> Event {
        let delta = MessageDelta { message_id: Uuid::nil(), text: "a\nb ü".into() };
        Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, &delta.into())
    }

    fn first(attempt: u32, base: EventId) -> Event {
        let started = AttemptStarted { attempt, base, reason: AttemptReason::Claimed, crashes: 0, max_crashes: 3 };
        Event::new(EventId::first_of(attempt), DateTime::UNIX_EPOCH, &started.into())
    }

    #[test]
    fn a_batch_parses_back_to_its_events() {
        let events = [first(1, EventId::ORIGIN), delta(1, 2), delta(1, 3)];
        let batch: Vec<u8> = events.iter().flat_map(|event| [event.line(), &b"\n"[..]].concat()).collect();
        assert_eq!(Event::parse_batch(&batch.into()).unwrap(), events);
    }

    #[test]
    fn an_unknown_event_passes_through() {
        let event = Event::parse(Bytes::from_static(b"3-1 7 dream.dreamt {\"base\":\"2-9\",\"x\":1}")).unwrap();
        assert_eq!(
            (event.kind_name(), event.payload(), event.base),
            ("dream.dreamt", &b"{\"base\":\"2-9\",\"x\":1}"[..], Some(EventId::new(2, 9)))
        );
        assert!(!event.is_terminal());
        assert_eq!((event.kind(), event.body()), (EventKind::Unknown, EventBody::Unknown));
    }

    #[test]
    fn an_event_parses_back_to_its_body() {
        let input = serde_json::json!({"b": [1, "ü"], "a": {}});
        let started = ToolCallStarted {
            call_id: "call".into(),
            step: 2,
            name: "bank__pay".into(),
            input: input.clone().into(),
            by: ExecutedBy::Client,
            expires_at: DateTime::from_timestamp_millis(7),
        };
        let event = Event::new(EventId::new(1, 2), DateTime::UNIX_EPOCH, &started.clone().into());
        assert_eq!(event.body(), EventBody::from(started));
        let EventBody::ToolCallStarted(read) = event.body() else { panic!("another kind") };
        assert_eq!(read.input.to_value(), input);
        assert!(matches!(read.name, std::borrow::Cow::Borrowed(_)), "the name was copied");
    }

    #[test]
    fn a_state_without_a_name_here_is_no_wait() {
        let event = |state: &str| Event::parse(format!("1-2 0 agent.state {{\"state\":\"{state}\"}}").into()).unwrap();
        assert!(event("waiting_on_user").is_wait());
        let dreaming = event("dreaming");
        assert!(!dreaming.is_wait());
        let EventBody::AgentState(changed) = dreaming.body() else { panic!("another kind") };
        assert_eq!(changed.state.into_name(), "dreaming");
    }

    #[test]
    fn the_end_of_a_run_is_never_unknown() {
        let body = |line: &'static str| Event::parse(Bytes::from_static(line.as_bytes())).unwrap();
        assert_eq!(body("1-2 0 run.completed {}").body(), RunCompleted::default().into());
        assert_eq!(body("1-2 0 run.failed {\"error\":7}").body(), RunFailed::default().into());
        assert_eq!(body("1-2 0 run.cancelled {\"usage\":[]}").body(), RunCancelled::default().into());
        assert_eq!(body("1-2 0 message.delta {\"text\":7}").body(), EventBody::Unknown);
    }

    #[test]
    fn a_word_of_a_newer_version_hides_no_event() {
        let nil = "00000000-0000-0000-0000-000000000000";
        let message = format!(
            r#"{{"id":"{nil}","conversation_id":"{nil}","run_id":null,"role":"oracle","content_type":"text","content":"hi","status":"late","retrieval_context":null,"created_at":"2026-11-22T08:30:00Z"}}"#
        );
        for line in [
            r#"attempt.started {"attempt":1,"base":"0-1","reason":"moved"}"#.to_owned(),
            r#"tool_call.started {"call_id":"c","step":1,"name":"n","input":{},"by":"moon"}"#.to_owned(),
            format!(
                r#"approval.requested {{"approval_id":"{nil}","call_id":"c","kind":"second","name":"n","input":{{}},"expires_at":"2026-11-22T08:30:00Z"}}"#
            ),
            format!(r#"approval.resolved {{"approval_id":"{nil}","call_id":"c","decision":"deferred"}}"#),
            format!(r#"message.completed {{"message":{message}}}"#),
        ] {
            let event = Event::parse(format!("1-2 0 {line}").into()).unwrap();
            assert_ne!(event.body(), EventBody::Unknown, "{line}");
        }
    }

    #[test]
    fn each_kind_has_its_own_name() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::of(kind.name()), *kind);
        }
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
