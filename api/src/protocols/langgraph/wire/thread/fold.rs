//! The fold of a run's log into the events of its thread's stream. It starts at the log's start, so the events of a log are the
//! same on each stream.

use std::{collections::HashMap, sync::Arc};

use holdfast_shared::{
    event::{ApprovalRequested, Event, EventBody, ToolCallCompleted, ToolCallDelta, ToolCallStarted},
    event_id::EventId,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    channels::{Channel, Channels},
    message::{OpenMessage, TextKind},
    writer::ThreadWriter,
};
use crate::protocols::langgraph::wire::{
    LangHistory, LangMessage, fold::LangFold, takeover::may_replace, values::LangValues,
};

/// The part of a thread's stream that a client sees of one run.
#[derive(Debug)]
pub struct ThreadView {
    pub channels: Channels,
    pub run_id: Uuid,
    /// The id of the run's answer.
    pub answer: Uuid,
    /// The place of the run in its thread.
    pub position: u64,
    /// The sequence number of the last event that the client has; 0 for none.
    pub since: u64,
    /// The messages of the thread before the run's answer.
    pub history: Arc<LangHistory>,
    pub checkpoints: RunCheckpoints,
}

/// The checkpoints of a run: that of the state before its message, that with the message, and that with the answer.
#[derive(Debug, Clone, Copy)]
pub struct RunCheckpoints {
    pub before: Uuid,
    pub input: Uuid,
    /// The number of the state with the message among the states of the thread.
    pub step: i64,
}

/// The state of a stream after some events of a run's log.
#[derive(Debug)]
pub struct ThreadFold {
    writer: ThreadWriter,
    state: LangFold,
    history: Arc<LangHistory>,
    checkpoints: RunCheckpoints,
    answer: Uuid,
    last: EventId,
    /// The message that the model writes.
    message: Option<OpenMessage>,
    /// The message that has ended last. A client that saw it begin again would drop its blocks.
    ended: Option<String>,
    /// The calls that a message has shown, each since an event.
    shown: HashMap<String, EventId>,
    /// The calls that have begun, each since an event.
    started: HashMap<String, EventId>,
}

impl ThreadFold {
    /// Returns the state before the log.
    pub fn new(view: ThreadView) -> Self {
        let ThreadView { channels, run_id, answer, position, since, history, checkpoints } = view;
        Self {
            writer: ThreadWriter::new(channels, run_id, position, since),
            state: LangFold::of_answer(answer),
            history,
            checkpoints,
            answer,
            last: EventId::ORIGIN,
            message: None,
            ended: None,
            shown: HashMap::new(),
            started: HashMap::new(),
        }
    }

    /// Returns the events of the stream since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        self.writer.take()
    }

    /// Returns the bytes that `take` would return.
    pub fn bytes(&self) -> usize {
        self.writer.bytes()
    }

    /// Applies the next event of the log.
    pub fn push(&mut self, event: &Event) {
        self.writer.begin(event.id, event.at_ms);
        let body = event.body();
        let rewound = event.base.filter(|base| may_replace(&body, *base, self.last));
        // A run without deltas has its text here only.
        let has_text = !matches!(body, EventBody::MessageCompleted(_)) || self.state.messages().has_text();
        self.state.absorb(event);
        if let Some(base) = rewound {
            // Invariant: the state is that of a log without the superseded events, which a later client does not read.
            self.message = None;
            self.ended = self.state.open_message();
            self.shown.retain(|_, since| *since <= base);
            self.started.retain(|_, since| *since <= base);
            if !event.is_terminal() {
                self.values();
            }
        }
        self.last = event.id;
        self.push_body(event, body, has_text);
    }

    fn push_body(&mut self, event: &Event, body: EventBody<'_>, has_text: bool) {
        match body {
            EventBody::RunQueued(_) => {
                self.lifecycle("running");
                if event.id == EventId::first_of(0) {
                    let RunCheckpoints { before, input, step } = self.checkpoints;
                    self.checkpoint(input, before, step, "input");
                }
                self.values();
            }
            EventBody::AttemptStarted(_) => self.lifecycle("running"),
            EventBody::StepStarted(_) => self.end_message(),
            EventBody::StepCompleted(completed) => {
                if completed.tool_calls > 0 {
                    self.end_message();
                    self.values();
                }
            }
            EventBody::MessageDelta(delta) => self.text(TextKind::Text, &delta.text),
            EventBody::ReasoningDelta(delta) => self.text(TextKind::Reasoning, &delta.text),
            EventBody::ToolCallDelta(delta) => self.arguments(&delta),
            EventBody::MessageCompleted(completed) => {
                if !has_text {
                    self.text(TextKind::Text, &completed.message.content.into_stored());
                }
            }
            EventBody::ToolCallStarted(call) => self.call_started(&call),
            EventBody::ToolCallCompleted(call) => self.call_completed(&call),
            EventBody::ApprovalRequested(request) => self.asked(event, &request),
            EventBody::RunCompleted(_) => {
                self.end_message();
                let RunCheckpoints { input, step, .. } = self.checkpoints;
                self.checkpoint(self.answer, input, step + 1, "loop");
                self.values();
                self.lifecycle("completed");
            }
            EventBody::RunFailed(end) => {
                self.end_message();
                self.values();
                self.writer.event(
                    Channel::Lifecycle,
                    || json!({"event": "failed", "graph_name": "agent", "error": end.error.message}),
                );
            }
            EventBody::RunCancelled(_) => {
                self.end_message();
                self.values();
                self.lifecycle("interrupted");
            }
            _ => {
                // The message is complete where the run waits. The stream of a client that comes later has no pause there.
                if event.is_wait() {
                    self.end_message();
                }
                self.custom(event);
            }
        }
    }

    /// Appends the events of a pause after the last event of the log: the run waits for the client.
    pub fn pause(&mut self) {
        let number = self.writer.number();
        self.values();
        for interrupt in self.state.interrupts() {
            self.writer.event(Channel::Input, || json!({"interrupt_id": interrupt.id, "payload": interrupt.value}));
        }
        self.lifecycle("interrupted");
        // The events of a pause are not counted, because a later client does not read those of a pause that is over.
        self.writer.set_number(number);
    }

    fn text(&mut self, kind: TextKind, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.open_message();
        if let Some(message) = self.message.as_mut() {
            message.push_text(&mut self.writer, kind, piece);
        }
    }

    /// Begins the message that the last event belongs to, unless it is the open one.
    fn open_message(&mut self) {
        let id = self.state.message_id();
        if self.message.as_ref().is_some_and(|open| open.id == id) {
            return;
        }
        self.end_message();
        self.message = Some(OpenMessage::begin(&mut self.writer, id));
    }

    fn end_message(&mut self) {
        if let Some(message) = self.message.take() {
            self.ended = Some(message.id.clone());
            message.end(&mut self.writer);
        }
    }

    fn arguments(&mut self, delta: &ToolCallDelta<'_>) {
        if delta.name.is_some() {
            self.shown.insert(delta.call_id.clone().into_owned(), self.last);
            self.open_message();
        }
        if let Some(message) = self.message.as_mut() {
            message.push_arguments(&mut self.writer, &delta.call_id, delta.name.as_deref(), &delta.text);
        }
    }

    /// Shows a call with its complete arguments in the open message. A message that has ended stays as it is.
    fn show_call(&mut self, call_id: &str, name: &str, input: &str) {
        let is_new = !self.shown.contains_key(call_id);
        if is_new {
            self.shown.insert(call_id.to_owned(), self.last);
        }
        if is_new && self.message.is_none() && self.ended != Some(self.state.message_id()) {
            self.open_message();
        }
        if let Some(message) = self.message.as_mut().filter(|message| is_new || message.has_open(call_id)) {
            message.set_call(&mut self.writer, call_id, name, input.to_owned());
        }
    }

    fn call_started(&mut self, call: &ToolCallStarted<'_>) {
        self.show_call(&call.call_id, &call.name, &call.input.clone().into_text());
        self.start_call(&call.call_id, &call.name, || call.input.to_value());
    }

    fn start_call(&mut self, call_id: &str, name: &str, input: impl FnOnce() -> Value) {
        if self.started.insert(call_id.to_owned(), self.last).is_none() {
            self.writer.event(
                Channel::Tools,
                || json!({"event": "tool-started", "tool_call_id": call_id, "tool_name": name, "input": input()}),
            );
        }
    }

    fn call_completed(&mut self, call: &ToolCallCompleted<'_>) {
        if let Some(input) = &call.input {
            self.show_call(&call.call_id, &call.name, &input.clone().into_text());
            self.start_call(&call.call_id, &call.name, || input.to_value());
        }
        self.writer.event(Channel::Tools, || match &call.error {
            Some(error) => json!({"event": "tool-error", "tool_call_id": call.call_id, "message": error.message}),
            None => json!({"event": "tool-finished", "tool_call_id": call.call_id, "output": call.output}),
        });
    }

    fn asked(&mut self, event: &Event, request: &ApprovalRequested<'_>) {
        if request.child_run_id.is_none() {
            self.show_call(&request.call_id, &request.name, &request.input.clone().into_text());
        }
        self.custom(event);
    }

    fn lifecycle(&mut self, status: &str) {
        self.writer.event(Channel::Lifecycle, || json!({"event": status, "graph_name": "agent"}));
    }

    fn checkpoint(&mut self, id: Uuid, parent: Uuid, step: i64, source: &str) {
        self.writer
            .event(Channel::Checkpoints, || json!({"id": id, "parent_id": parent, "step": step, "source": source}));
    }

    fn values(&mut self) {
        let Self { writer, state, history, .. } = self;
        writer.event(Channel::Values, || {
            let answer = state.messages().into_messages();
            LangValues { history, answer: answer.iter().map(LangMessage::to_value).collect(), interrupts: None }
        });
    }

    fn custom(&mut self, event: &Event) {
        self.writer
            .custom(event.kind().name(), || serde_json::from_slice::<Value>(event.payload()).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::event::{AttemptReason, AttemptStarted, ExecutedBy, MessageDelta, RunQueued, StepStarted};

    use super::*;

    fn fold() -> ThreadFold {
        ThreadFold::new(ThreadView {
            channels: Channels::of(["messages", "tools", "values", "lifecycle"]),
            run_id: Uuid::nil(),
            answer: Uuid::max(),
            position: 1,
            since: 0,
            history: Arc::default(),
            checkpoints: RunCheckpoints { before: Uuid::nil(), input: Uuid::nil(), step: 0 },
        })
    }

    fn event(id: &str, body: &EventBody<'_>) -> Event {
        Event::new(id.parse().unwrap(), DateTime::UNIX_EPOCH, body)
    }

    fn step(id: &str, step: u32) -> Event {
        event(id, &EventBody::StepStarted(StepStarted { step }))
    }

    fn delta(id: &str, text: &str) -> Event {
        event(id, &EventBody::MessageDelta(MessageDelta { message_id: Uuid::max(), text: text.into() }))
    }

    fn call(id: &str, call_id: &str) -> Event {
        let (call_id, name, input) = (call_id.into(), "echo".into(), json!({}).into());
        let (by, expires_at) = (ExecutedBy::Worker, None);
        event(id, &EventBody::ToolCallStarted(ToolCallStarted { call_id, step: 1, name, input, by, expires_at }))
    }

    fn attempt(id: &str, base: &str, reason: AttemptReason) -> Event {
        let (attempt, base) = (id.parse::<EventId>().unwrap().attempt, base.parse().unwrap());
        event(id, &EventBody::AttemptStarted(AttemptStarted { attempt, base, reason, crashes: 0, max_crashes: 3 }))
    }

    fn text_of(fold: &mut ThreadFold, events: &[Event]) -> String {
        events.iter().for_each(|event| fold.push(event));
        String::from_utf8(fold.take()).unwrap()
    }

    #[test]
    fn a_later_client_has_the_events_of_one_that_saw_the_lost_worker() {
        let queued = EventBody::RunQueued(RunQueued {
            base: EventId::ORIGIN,
            conversation_id: Uuid::nil(),
            input_message_id: Uuid::nil(),
            message_id: Uuid::max(),
            agent_id: None,
        });
        let start = [event("0-1", &queued), attempt("1-1", "0-1", AttemptReason::Claimed), step("1-2", 1)];
        let kept = [delta("1-3", "I "), call("1-4", "a")];
        let lost = [delta("1-5", "lost"), call("1-6", "b")];
        let next = [
            attempt("2-1", "1-4", AttemptReason::LeaseExpired),
            call("2-2", "b"),
            step("2-3", 2),
            delta("2-4", "done"),
        ];
        let (mut witness, mut later) = (fold(), fold());
        assert_eq!(text_of(&mut witness, &start), text_of(&mut later, &start));
        assert_eq!(text_of(&mut witness, &kept), text_of(&mut later, &kept));
        assert!(text_of(&mut witness, &lost).contains("lost"));
        let (seen, read) = (text_of(&mut witness, &next), text_of(&mut later, &next));
        assert_eq!(seen, read);
        assert!(!seen.contains("lost") && seen.contains("\"tool_call_id\":\"b\"") && seen.contains("done"), "{seen}");
    }
}
