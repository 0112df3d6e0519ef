//! The native wire, read: bytes to frames to events. Nothing here waits or asks.

use holdfast_shared::{event_id::EventId, finish_reason::FinishReason};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::client::{OutputMessage as Message, RunFailure as RunError};

/// Cuts a stream of server-sent events into the data of its frames, wherever the network has cut it.
#[derive(Debug, Default)]
pub struct Frames {
    /// The begin of a line whose end has not come.
    rest: Vec<u8>,
    data: Option<String>,
}

impl Frames {
    /// Takes the next bytes; gives the data of the frames that end in them.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for end in lines {
            self.rest.extend_from_slice(end);
            let line = std::mem::take(&mut self.rest);
            complete.extend(self.read_line(&String::from_utf8_lossy(&line)));
        }
        self.rest.extend_from_slice(last);
        complete
    }

    fn read_line(&mut self, line: &str) -> Option<String> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            return self.data.take();
        }
        // The event repeats what the fields `id` and `event` say; comments are heartbeats.
        let value = line.strip_prefix("data:")?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            Some(data) => data.extend(["\n", value]),
            none => *none = Some(value.to_owned()),
        }
        None
    }
}

/// One event of a run.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: EventId,
    /// On an attempt's first event: what comes after the base is superseded.
    pub base: Option<EventId>,
    pub body: Body,
}

/// What the chat understands of an event.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type")]
pub enum Body {
    #[serde(rename = "run.queued")]
    Queued { conversation_id: Uuid },
    #[serde(rename = "attempt.started")]
    AttemptStarted { reason: String },
    #[serde(rename = "message.delta")]
    Text { text: String },
    #[serde(rename = "reasoning.delta")]
    Reasoning { text: String },
    #[serde(rename = "tool_call.started")]
    CallStarted { call_id: String, name: String, input: Value, by: String },
    #[serde(rename = "tool_call.completed")]
    CallCompleted { call_id: String, name: String, output: Option<String>, error: Option<RunError>, duration_ms: u64 },
    #[serde(rename = "approval.requested")]
    ApprovalRequested { approval_id: Uuid, call_id: String, kind: String, name: String, input: Value },
    #[serde(rename = "approval.resolved")]
    ApprovalResolved { approval_id: Uuid, decision: String, reason: Option<String>, edited_input: Option<Value> },
    #[serde(rename = "message.completed")]
    Message { message: Message },
    #[serde(rename = "warning.raised")]
    Warning { message: String },
    #[serde(rename = "run.completed")]
    Completed { finish_reason: Option<FinishReason> },
    #[serde(rename = "run.failed")]
    Failed { error: RunError },
    #[serde(rename = "run.cancelled")]
    Cancelled,
    /// Of a newer server.
    #[serde(other)]
    Unknown,
}

/// Where an event stands to what a client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The client has it.
    Known,
    /// Nothing is missing between.
    Next,
    /// Something is.
    Gap,
}

impl Event {
    /// Reads a frame's data; nothing if it is no event.
    pub fn parse(data: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head {
            id: EventId,
            base: Option<EventId>,
        }
        let Head { id, base } = serde_json::from_str(data).ok()?;
        // A known type with another payload is a newer server's, too.
        let body = serde_json::from_str(data).unwrap_or(Body::Unknown);
        Some(Self { id, base: base.filter(|_| id.n == 1), body })
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self.body, Body::Completed { .. } | Body::Failed { .. } | Body::Cancelled)
    }

    /// The rule by which ids alone prove that nothing was missed.
    pub fn place(&self, cursor: EventId) -> Place {
        if self.id <= cursor {
            return Place::Known;
        }
        match self.id == cursor.next() || self.base.is_some_and(|base| cursor >= base) {
            true => Place::Next,
            false => Place::Gap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = concat!(
        "retry: 1000\n\n",
        "id: 0-1\nevent: run.queued\ndata: {\"a\":1}\n\n",
        ": heartbeat\n\n",
        "id: 1-1\r\nevent: x\r\ndata:{\"ü\":\"…\"}\r\n\r\n",
        "data: two\ndata: lines\n\n",
        "data: its end never came"
    );

    #[test]
    fn frames_are_the_same_wherever_the_stream_is_cut() {
        let expected = ["{\"a\":1}", "{\"ü\":\"…\"}", "two\nlines"];
        for first in 0..STREAM.len() {
            for second in first..STREAM.len() {
                let mut frames = Frames::default();
                let parts =
                    [&STREAM.as_bytes()[..first], &STREAM.as_bytes()[first..second], &STREAM.as_bytes()[second..]];
                let data: Vec<String> = parts.iter().flat_map(|part| frames.push(part)).collect();
                assert_eq!(data, expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn an_event_is_read_as_far_as_it_is_known() {
        let check = |data: &str, expected: &str| {
            let event = Event::parse(data).map(|event| format!("{} {:?} {:?}", event.id, event.base, event.body));
            assert_eq!(event.unwrap_or("none".to_owned()), expected);
        };
        check(r#"{"id":"1-2","type":"message.delta","text":"hi"}"#, r#"1-2 None Text { text: "hi" }"#);
        check(r#"{"id":"1-2","base":"0-1","type":"dream.dreamt"}"#, "1-2 None Unknown");
        check(r#"{"id":"2-1","base":"1-7","type":"dream.dreamt"}"#, "2-1 Some(EventId { attempt: 1, n: 7 }) Unknown");
        check(r#"{"id":"1-2","type":"message.delta","text":["hi"]}"#, "1-2 None Unknown");
        check(r#"{"id":"1-9","type":"run.completed","usage":{}}"#, "1-9 None Completed { finish_reason: None }");
        check(r#"{"type":"message.delta","text":"hi"}"#, "none");
        check("no JSON", "none");
    }

    #[test]
    fn ids_alone_tell_whether_something_is_missing() {
        let check = |cursor: &str, next: (&str, Option<&str>), expected: Place| {
            let id = |text: &str| text.parse::<EventId>().unwrap();
            let event = Event { id: id(next.0), base: next.1.map(id), body: Body::Unknown };
            assert_eq!(event.place(id(cursor)), expected, "{cursor} then {next:?}");
        };
        check("0-0", ("0-1", Some("0-0")), Place::Next);
        check("1-2", ("1-3", None), Place::Next);
        check("1-2", ("1-2", None), Place::Known);
        check("1-2", ("1-4", None), Place::Gap);
        check("1-9", ("2-1", Some("1-5")), Place::Next);
        check("1-4", ("2-1", Some("1-5")), Place::Gap);
        check("1-9", ("2-2", None), Place::Gap);
        check("2-1", ("1-10", None), Place::Known);
    }
}
