//! The fold of a run's log into frames of the protocol. It starts at the log's start.

use std::borrow::Cow;

use holdfast_shared::{
    event::{
        ApprovalRequested, ApprovalResolved, Event, EventBody, ExecutedBy, ToolCallCompleted, ToolCallDelta,
        ToolCallStarted,
    },
    event_id::EventId,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    LangView,
    interrupt::LangInterrupt,
    journal::{Journal, MessageChange},
    message::{AnswerMessages, LangMessage, result_id},
    modes::LangMode,
    takeover::may_replace,
    values::LangValues,
    writer::FrameWriter,
    written::{AGENT, WrittenMessage},
};
use crate::wire::FrameId;

/// The node that makes the calls.
const TOOLS: &str = "tools";

/// Frames of a stream's end at a pause.
const PAUSE_FRAMES: u32 = 4;

/// The state of a stream after some events of a run's log.
#[derive(Debug, Clone)]
pub struct LangFold {
    /// The id of the run's answer.
    answer: Uuid,
    /// The last event.
    last: EventId,
    /// The number of its frames.
    frames: u32,
    journal: Journal,
    written: WrittenMessage,
    /// Whether the step's calls have been announced as an update.
    has_announced: bool,
}

impl LangFold {
    /// Returns the state before the log of the run whose answer has this id.
    pub fn of_answer(answer: Uuid) -> Self {
        Self {
            answer,
            last: EventId::ORIGIN,
            frames: 0,
            journal: Journal::default(),
            written: WrittenMessage::before(answer),
            has_announced: false,
        }
    }

    /// Returns the id of the next frame after those of the last event.
    pub const fn next_frame(&self) -> FrameId {
        FrameId { event: self.last, number: self.frames }
    }

    /// Returns the messages of the answer so far.
    pub fn messages(&self) -> AnswerMessages {
        self.journal.messages(self.answer)
    }

    /// Returns the id of the model's newest message.
    pub fn message_id(&self) -> String {
        self.written.id()
    }

    /// Returns the id of the message that the model's next output belongs to, unless it begins one.
    pub fn open_message(&self) -> Option<String> {
        (!self.written.is_between()).then(|| self.message_id())
    }

    /// Returns the questions that wait for the client.
    pub fn interrupts(&self) -> Vec<LangInterrupt> {
        self.journal.interrupts()
    }

    /// Applies the next event without frames.
    pub fn absorb(&mut self, event: &Event) {
        let (view, mut unused) = (LangView::default(), Vec::new());
        self.push(&mut FrameWriter::new(&view, &mut unused, FrameId { event: event.id, number: 0 }, false), event);
    }

    /// Applies the next event, and writes its frames.
    pub fn push(&mut self, writer: &mut FrameWriter<'_>, event: &Event) {
        let body = event.body();
        if let Some(base) = event.base.filter(|base| may_replace(&body, *base, self.last)) {
            self.rewind(base, event.id.attempt);
            if !event.is_terminal() {
                writer.metadata(event.id.attempt);
                self.write_values(writer);
            }
        }
        self.last = event.id;
        self.push_body(writer, event, body);
        self.frames = writer.number();
    }

    /// Takes back the events after the base.
    fn rewind(&mut self, base: EventId, attempt: u32) {
        self.journal.supersede_after(base);
        let messages = self.messages();
        self.written.rewind(messages.of_model(), messages.is_between(), attempt);
        self.has_announced = false;
    }

    fn push_body(&mut self, writer: &mut FrameWriter<'_>, event: &Event, body: EventBody<'_>) {
        match body {
            EventBody::RunQueued(_) => {
                writer.metadata(1);
                self.write_values(writer);
            }
            EventBody::StepStarted(started) => self.begin_step(writer, started.step),
            EventBody::StepCompleted(completed) => {
                self.written.end(writer);
                if completed.tool_calls > 0 {
                    self.write_values(writer);
                }
            }
            EventBody::MessageDelta(delta) => self.text(writer, &delta.text),
            EventBody::ReasoningDelta(delta) => self.reasoning(writer, &delta.text),
            EventBody::ToolCallDelta(delta) => self.arguments(writer, delta),
            EventBody::MessageCompleted(completed) => {
                // A run without deltas has its text here only.
                if !self.messages().has_text() {
                    self.text(writer, &completed.message.content.into_stored());
                }
            }
            EventBody::ToolCallStarted(call) => self.call_started(writer, &call),
            EventBody::ToolCallCompleted(call) => self.call_completed(writer, call),
            EventBody::ApprovalRequested(request) => self.asked(writer, event, &request),
            EventBody::ApprovalResolved(resolved) => self.resolved(writer, event, resolved),
            EventBody::RunCompleted(_) => {
                self.written.end(writer);
                self.write_newest(writer);
                self.write_values(writer);
                writer.always("end", || Value::Null);
            }
            EventBody::RunFailed(end) => {
                self.written.end(writer);
                self.write_values(writer);
                writer.always("error", || json!({"error": end.error.code, "message": end.error.message}));
            }
            EventBody::RunCancelled(_) => {
                self.written.end(writer);
                self.write_values(writer);
                writer.always("error", || json!({"error": "UserInterrupt", "message": "The run was cancelled."}));
            }
            EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::MessageSteered(_)
            | EventBody::SubagentStarted(_)
            | EventBody::SubagentCompleted(_)
            | EventBody::PlanCreated(_)
            | EventBody::PlanUpdated(_)
            | EventBody::PlanReviewed(_)
            | EventBody::PlanStepStarted(_)
            | EventBody::PlanStepCompleted(_)
            | EventBody::QuestionAsked(_)
            | EventBody::ContextShifted(_)
            | EventBody::FocusChanged(_)
            | EventBody::OntologyLoaded(_)
            | EventBody::TemplateRequested(_)
            | EventBody::TemplateSuggested(_)
            | EventBody::DocumentProgress(_)
            | EventBody::ContextRetrieved(_)
            | EventBody::CitationAdded(_)
            | EventBody::CitationDropped(_)
            | EventBody::MemoryTold(_)
            | EventBody::WarningRaised(_) => writer.custom(event),
            EventBody::AttemptStarted(_) | EventBody::Unknown => {}
        }
    }

    fn begin_step(&mut self, writer: &mut FrameWriter<'_>, step: u32) {
        self.written.end(writer);
        self.written.begin_step(step);
        self.has_announced = false;
        self.journal.push(self.last, MessageChange::Step);
    }

    fn text(&mut self, writer: &mut FrameWriter<'_>, text: &str) {
        if !text.is_empty() {
            self.journal.push(self.last, MessageChange::Text(text.to_owned()));
            self.written.text(writer, text);
        }
    }

    fn reasoning(&mut self, writer: &mut FrameWriter<'_>, text: &str) {
        if !text.is_empty() {
            self.journal.push(self.last, MessageChange::Reasoning(text.to_owned()));
            self.written.reasoning(writer, text);
        }
    }

    fn arguments(&mut self, writer: &mut FrameWriter<'_>, delta: ToolCallDelta<'_>) {
        let (call_id, name) = (delta.call_id.into_owned(), delta.name.map(Cow::into_owned));
        self.written.arguments(writer, &call_id, name.as_deref(), &delta.text);
        self.journal.push(self.last, MessageChange::Arguments { call_id, name, text: delta.text.into_owned() });
    }

    /// Shows all of a call that the stream has not shown yet. The model has written it.
    fn show_call(&mut self, writer: &mut FrameWriter<'_>, call_id: &str, name: &str, input: &str) {
        if !self.written.has_call(call_id) {
            self.written.arguments(writer, call_id, Some(name), input);
        }
        self.written.end(writer);
        let (call_id, name, input) = (call_id.to_owned(), name.to_owned(), input.to_owned());
        self.journal.push(self.last, MessageChange::Call { call_id, name, input });
    }

    /// Writes the model's message at its first call of a step, when it is complete.
    fn announce(&mut self, writer: &mut FrameWriter<'_>) {
        if !std::mem::replace(&mut self.has_announced, true) {
            self.write_newest(writer);
        }
    }

    fn call_started(&mut self, writer: &mut FrameWriter<'_>, call: &ToolCallStarted<'_>) {
        self.show_call(writer, &call.call_id, &call.name, &call.input.clone().into_text());
        self.announce(writer);
        writer.in_mode(LangMode::Tasks, || {
            json!({
                "id": call.call_id, "name": TOOLS, "input": {"name": call.name, "args": call.input.to_value()},
                "triggers": [], "interrupts": [],
            })
        });
        writer.in_mode(LangMode::Tools, || {
            json!({
                "event": "on_tool_start", "toolCallId": call.call_id, "name": call.name, "input": call.input.to_value(),
            })
        });
        if call.by == ExecutedBy::Client {
            self.journal.push(self.last, MessageChange::Asked(Box::new(LangInterrupt::of_call(call))));
        }
    }

    fn call_completed(&mut self, writer: &mut FrameWriter<'_>, call: ToolCallCompleted<'_>) {
        if let Some(input) = call.input {
            self.show_call(writer, &call.call_id, &call.name, &input.into_text());
            self.announce(writer);
        }
        let is_error = call.error.is_some();
        let error = call.error.map(|error| error.message);
        let content = error.or_else(|| call.output.map(Cow::into_owned)).unwrap_or_default();
        let (call_id, name) = (call.call_id.into_owned(), call.name.into_owned());
        // A lost worker may have sent the same result.
        let result_id = self.written.id_of_pieces(result_id(&call_id));
        let message = LangMessage::Tool { call_id, name, content, is_error };
        writer.message(TOOLS, self.written.step(), || {
            let mut piece = message.to_value();
            piece["id"] = result_id.into();
            piece
        });
        writer.in_mode(LangMode::Updates, || json!({TOOLS: {"messages": [message.to_value()]}}));
        let LangMessage::Tool { call_id, name, content, is_error } = message else { return };
        writer.in_mode(LangMode::Tasks, || {
            let (result, error) = if is_error { (Value::Null, Some(&content)) } else { (json!(content), None) };
            json!({"id": call_id, "name": TOOLS, "result": result, "error": error, "interrupts": []})
        });
        writer.in_mode(LangMode::Tools, || {
            let (event, field) = if is_error { ("on_tool_error", "error") } else { ("on_tool_end", "output") };
            json!({"event": event, "toolCallId": call_id, "name": name, field: content})
        });
        self.journal.push(self.last, MessageChange::Answered(call_id.clone()));
        self.journal.push(self.last, MessageChange::Result { call_id, name, content, is_error });
    }

    fn asked(&mut self, writer: &mut FrameWriter<'_>, event: &Event, request: &ApprovalRequested<'_>) {
        if request.child_run_id.is_none() {
            self.show_call(writer, &request.call_id, &request.name, &request.input.clone().into_text());
            self.announce(writer);
        }
        writer.custom(event);
        self.journal.push(self.last, MessageChange::Asked(Box::new(LangInterrupt::of_approval(request))));
    }

    fn resolved(&mut self, writer: &mut FrameWriter<'_>, event: &Event, resolved: ApprovalResolved<'_>) {
        self.journal.push(self.last, MessageChange::Answered(resolved.approval_id.to_string()));
        if let (None, Some(input)) = (resolved.child_run_id, resolved.edited_input) {
            let (call_id, input) = (resolved.call_id.into_owned(), input.into_text().into_owned());
            self.journal.push(self.last, MessageChange::Call { call_id, name: String::new(), input });
        }
        writer.custom(event);
    }

    /// Writes the last frames of a stream that ends because the run waits.
    pub fn end_at_pause(&self, writer: &mut FrameWriter<'_>) {
        let interrupts = self.interrupts();
        // A client takes either the messages or the questions of one frame.
        self.write_values(writer);
        let view = writer.view;
        writer.in_mode(LangMode::Values, || LangValues { interrupts: Some(&interrupts), ..self.values(view) });
        writer.in_mode(LangMode::Updates, || json!({"__interrupt__": interrupts}));
        writer.always("end", || Value::Null);
    }

    fn write_newest(&self, writer: &mut FrameWriter<'_>) {
        writer.in_mode(LangMode::Updates, || {
            let messages = self.messages();
            let newest: Vec<Value> = messages.newest().map(LangMessage::to_value).into_iter().collect();
            json!({AGENT: {"messages": newest}})
        });
    }

    fn write_values(&self, writer: &mut FrameWriter<'_>) {
        let view = writer.view;
        writer.in_mode(LangMode::Values, || self.values(view));
    }

    /// Returns all messages of the thread.
    fn values<'a>(&self, view: &'a LangView) -> LangValues<'a> {
        let answer = self.messages().into_messages();
        LangValues {
            history: &view.history,
            answer: answer.iter().map(LangMessage::to_value).collect(),
            interrupts: None,
        }
    }

    /// Writes the first frames of a stream that continues after the pause at the last event.
    pub fn begin_after_pause(&mut self, view: &LangView, buffer: &mut Vec<u8>) {
        let first = FrameId { number: self.frames + PAUSE_FRAMES, ..self.next_frame() };
        let mut writer = FrameWriter::new(view, buffer, first, true);
        writer.metadata(self.last.attempt);
        self.write_values(&mut writer);
    }
}
