//! The fold of a run's log into events of the protocol.
//!
//! Its clients refuse what begins twice or does not end, so the fold knows what is open. It starts at the log's start. Two folds
//! of one view are equal after equal events.

use std::{borrow::Cow, sync::Arc};

use holdfast_shared::{
    event::{
        ApprovalRequested, Event, EventBody, ExecutedBy, RawJson, ToolCallCompleted, ToolCallDelta, ToolCallStarted,
    },
    event_id::EventId,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    AgUiVersion, AgUiView,
    calls::{ShownCallState, ShownCalls},
    event::{AgUiEvent, AgUiOutcome, StatePatch},
    interrupt::AgUiInterrupt,
    message::{AgUiMessage, MessageIds, result_id},
    subagents::ShownSubagents,
};
use crate::wire::{Detail, FrameId, plan::UiPlan};

/// The state of a stream after some events of a run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct AgUiFold {
    /// The last event.
    last: EventId,
    /// The number of its frames.
    frames: u32,
    ids: MessageIds,
    open: OpenText,
    /// The step that is open.
    step: Option<u32>,
    calls: ShownCalls,
    subagents: ShownSubagents,
    /// The questions that wait for a human.
    interrupts: Arc<Vec<AgUiInterrupt>>,
}

/// The text that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenText {
    None,
    Message,
    Reasoning,
}

impl AgUiFold {
    /// Returns the state before the log of the run whose answer has this id.
    pub fn of_answer(answer: Uuid) -> Self {
        Self {
            last: EventId::ORIGIN,
            frames: 0,
            ids: MessageIds::of_answer(answer),
            open: OpenText::None,
            step: None,
            calls: ShownCalls::default(),
            subagents: ShownSubagents::default(),
            interrupts: Arc::default(),
        }
    }

    /// Returns whether the event supersedes events that a client of the view may have seen.
    pub fn is_superseded_by(&self, view: &AgUiView, event: &Event) -> bool {
        view.detail != Detail::Messages && event.base.is_some_and(|base| base < self.last)
    }

    /// Returns what a client gets for an event that supersedes others: the end of what is open, the messages without what is
    /// superseded, and what the event itself brings. The fold continues with the state that the event's attempt continues from.
    pub fn restart<'a>(
        &mut self,
        view: &AgUiView,
        (base, mut messages): (Self, Vec<AgUiMessage>),
        event: &'a Event,
    ) -> Vec<AgUiEvent<'a>> {
        let mut events: Vec<AgUiEvent<'a>> = self.closing();
        // A client keeps the reasoning that it has if the messages have none.
        if self.ids.has_reasoning() && !messages.iter().any(AgUiMessage::is_reasoning) {
            messages.push(AgUiMessage::reasoning(base.ids.clone().for_reasoning()));
        }
        events.push(view.snapshot(messages));
        // Subagents outlive an attempt, and the client has seen them begin.
        *self = Self { subagents: std::mem::take(&mut self.subagents), ..base };
        // The parts that are open there have ended on this stream.
        self.closing();
        events.extend(self.push(view, event));
        self.frames = events.len() as u32;
        events
    }

    /// Returns the last event.
    pub const fn last(&self) -> EventId {
        self.last
    }

    /// Returns the id of the next frame after those of the last event.
    pub const fn next_frame(&self) -> FrameId {
        FrameId { event: self.last, number: self.frames }
    }

    /// Returns the events that end what is open.
    pub fn closing(&mut self) -> Vec<AgUiEvent<'static>> {
        let mut events = self.end_text();
        let open = self.calls.close();
        events.extend(open.into_iter().map(|id| AgUiEvent::ToolCallEnd { tool_call_id: id.into() }));
        let step = self.step.take();
        events.extend(step.map(|step| AgUiEvent::StepFinished { step_name: step_name(step) }));
        events
    }

    /// Returns the first events of a stream that continues after a pause. The stream before it has ended what was open.
    pub fn begin_after_pause(&mut self, view: &AgUiView) -> Vec<AgUiEvent<'static>> {
        self.closing();
        let mut events = vec![view.started()];
        events.extend(self.subagents.begun());
        events
    }

    /// Returns the last events of a stream that ends because the run waits.
    pub fn end_at_pause(&self, view: &AgUiView) -> Vec<AgUiEvent<'static>> {
        let mut closed = self.clone();
        let mut events = closed.closing();
        events.extend(closed.subagents.suspended());
        let outcome = if closed.interrupts.is_empty() {
            AgUiOutcome::Success { pending_tool_call_ids: closed.calls.of_client() }
        } else {
            AgUiOutcome::Interrupt { interrupts: closed.interrupts.to_vec() }
        };
        events.push(view.finished(outcome));
        events
    }

    /// Applies the next event, and returns what a client gets for it.
    pub fn push<'a>(&mut self, view: &AgUiView, event: &'a Event) -> Vec<AgUiEvent<'a>> {
        self.last = event.id;
        // Each attempt begins with nothing open, also for a client that has not seen the end of the one before.
        let mut events: Vec<AgUiEvent<'a>> = if event.base.is_some() { self.closing() } else { Vec::new() };
        if view.shows(event.kind()) {
            events.extend(self.events_of(view, event));
        }
        self.frames = events.len() as u32;
        events
    }

    fn events_of<'a>(&mut self, view: &AgUiView, event: &'a Event) -> Vec<AgUiEvent<'a>> {
        match event.body() {
            EventBody::RunQueued(_) => vec![view.started(), custom(event)],
            EventBody::StepStarted(started) => {
                let mut events = self.closing();
                self.step = Some(started.step);
                events.push(AgUiEvent::StepStarted { step_name: step_name(started.step) });
                events
            }
            EventBody::StepCompleted(_) => self.closing(),
            EventBody::MessageDelta(delta) => self.text(delta.text),
            EventBody::MessageCompleted(completed) => {
                let mut events = self.text(completed.message.content.into_stored().into());
                events.extend(self.end_text());
                events
            }
            EventBody::ReasoningDelta(_) if view.version == AgUiVersion::Early => vec![custom(event)],
            EventBody::ReasoningDelta(delta) => self.reasoning(delta.text),
            EventBody::ToolCallDelta(delta) => self.arguments(delta),
            EventBody::ToolCallStarted(call) => self.call_started(view, call),
            EventBody::ApprovalRequested(request) => self.asked(request, event),
            EventBody::ApprovalResolved(resolved) => {
                Arc::make_mut(&mut self.interrupts).retain(|interrupt| interrupt.id != resolved.approval_id);
                vec![custom(event)]
            }
            EventBody::ToolCallCompleted(call) => self.call_completed(view, call, event),
            EventBody::PlanCreated(created) => vec![set("/plan", json!(UiPlan::from(*created.plan)))],
            EventBody::PlanUpdated(updated) => vec![set("/plan", json!(UiPlan::from(*updated.plan)))],
            EventBody::ContextShifted(_) => vec![set("/context", payload(event))],
            EventBody::FocusChanged(changed) => vec![set("/focus", json!(changed.focus))],
            EventBody::SubagentStarted(started) if view.version == AgUiVersion::One => {
                let is_shown = self.calls.state_of(&started.call_id).is_some();
                self.subagents.begin(&started, is_shown).into_iter().chain([custom(event)]).collect()
            }
            EventBody::SubagentCompleted(completed) if view.version == AgUiVersion::One => {
                self.subagents.end(&completed).into_iter().chain([custom(event)]).collect()
            }
            EventBody::SubagentStarted(_) | EventBody::SubagentCompleted(_) => vec![custom(event)],
            EventBody::RunCompleted(_) => {
                self.end(view.finished(AgUiOutcome::Success { pending_tool_call_ids: Vec::new() }))
            }
            EventBody::RunCancelled(_) => self.end(view.finished(AgUiOutcome::Cancelled)),
            EventBody::RunFailed(end) => {
                self.end(AgUiEvent::RunError { message: end.error.message, code: end.error.code })
            }
            EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::MessageSteered(_)
            | EventBody::PlanReviewed(_)
            | EventBody::PlanStepStarted(_)
            | EventBody::PlanStepCompleted(_)
            | EventBody::QuestionAsked(_)
            | EventBody::OntologyLoaded(_)
            | EventBody::TemplateRequested(_)
            | EventBody::TemplateSuggested(_)
            | EventBody::DocumentProgress(_)
            | EventBody::ContextRetrieved(_)
            | EventBody::CitationAdded(_)
            | EventBody::CitationDropped(_)
            | EventBody::MemoryTold(_)
            | EventBody::WarningRaised(_) => vec![custom(event)],
            EventBody::AttemptStarted(_) | EventBody::Unknown => Vec::new(),
        }
    }

    fn end<'a>(&mut self, last: AgUiEvent<'a>) -> Vec<AgUiEvent<'a>> {
        let mut events = self.closing();
        events.extend(self.subagents.close());
        events.push(last);
        events
    }

    fn text<'a>(&mut self, delta: Cow<'a, str>) -> Vec<AgUiEvent<'a>> {
        if delta.is_empty() {
            return Vec::new();
        }
        let mut events = Vec::with_capacity(1);
        if self.open != OpenText::Message {
            events = self.end_text();
            self.open = OpenText::Message;
            events.push(AgUiEvent::TextMessageStart { message_id: self.ids.for_text(), role: "assistant" });
        }
        events.push(AgUiEvent::TextMessageContent { message_id: self.ids.current(), delta });
        events
    }

    fn reasoning<'a>(&mut self, delta: Cow<'a, str>) -> Vec<AgUiEvent<'a>> {
        if delta.is_empty() {
            return Vec::new();
        }
        let mut events = Vec::with_capacity(1);
        if self.open != OpenText::Reasoning {
            events = self.end_text();
            self.open = OpenText::Reasoning;
            let message_id = self.ids.for_reasoning();
            events.push(AgUiEvent::ReasoningStart { message_id: message_id.clone() });
            events.push(AgUiEvent::ReasoningMessageStart { message_id, role: "reasoning" });
        }
        events.push(AgUiEvent::ReasoningMessageContent { message_id: self.ids.current_reasoning(), delta });
        events
    }

    fn end_text(&mut self) -> Vec<AgUiEvent<'static>> {
        match std::mem::replace(&mut self.open, OpenText::None) {
            OpenText::None => Vec::new(),
            OpenText::Message => vec![AgUiEvent::TextMessageEnd { message_id: self.ids.current() }],
            OpenText::Reasoning => {
                let message_id = self.ids.current_reasoning();
                vec![
                    AgUiEvent::ReasoningMessageEnd { message_id: message_id.clone() },
                    AgUiEvent::ReasoningEnd { message_id },
                ]
            }
        }
    }

    fn arguments<'a>(&mut self, delta: ToolCallDelta<'a>) -> Vec<AgUiEvent<'a>> {
        let mut events = Vec::new();
        if let Some(name) = delta.name {
            events.extend(self.begin_call(delta.call_id.clone(), name));
        }
        if !delta.text.is_empty() && self.calls.state_of(&delta.call_id) == Some(ShownCallState::Open) {
            events.push(AgUiEvent::ToolCallArgs { tool_call_id: delta.call_id, delta: delta.text });
        }
        events
    }

    /// Begins a call, unless the stream has shown it.
    fn begin_call<'a>(&mut self, id: Cow<'a, str>, name: Cow<'a, str>) -> Vec<AgUiEvent<'a>> {
        if self.calls.state_of(&id).is_some() {
            return Vec::new();
        }
        let mut events: Vec<AgUiEvent<'a>> = self.end_text();
        self.calls.begin(&id, self.last);
        let parent_message_id = self.ids.for_call();
        events.push(AgUiEvent::ToolCallStart { tool_call_id: id, tool_call_name: name, parent_message_id });
        events
    }

    /// Shows all of a call that the stream has not shown yet.
    fn show_call<'a>(&mut self, id: &Cow<'a, str>, name: Cow<'a, str>, input: RawJson<'a>) -> Vec<AgUiEvent<'a>> {
        let mut events = self.begin_call(id.clone(), name);
        if !events.is_empty() {
            events.push(AgUiEvent::ToolCallArgs { tool_call_id: id.clone(), delta: input.into_text() });
        }
        if self.calls.state_of(id) == Some(ShownCallState::Open) {
            self.calls.set(id, ShownCallState::Shown);
            events.push(AgUiEvent::ToolCallEnd { tool_call_id: id.clone() });
        }
        events
    }

    fn call_started<'a>(&mut self, view: &AgUiView, call: ToolCallStarted<'a>) -> Vec<AgUiEvent<'a>> {
        if view.detail == Detail::Messages && call.by != ExecutedBy::Client {
            return Vec::new();
        }
        let events = self.show_call(&call.call_id, call.name, call.input);
        if call.by == ExecutedBy::Client {
            self.calls.set(&call.call_id, ShownCallState::OfClient);
        }
        events
    }

    fn asked<'a>(&mut self, request: ApprovalRequested<'a>, event: &Event) -> Vec<AgUiEvent<'a>> {
        let is_own = request.child_run_id.is_none();
        Arc::make_mut(&mut self.interrupts).push(AgUiInterrupt::of(&request));
        let mut events = Vec::new();
        if is_own {
            events = self.show_call(&request.call_id, request.name, request.input);
        }
        events.push(custom(event));
        events
    }

    /// Returns the end of a call. A client that continues a thread after a pause has sent the results of its own tools.
    fn call_completed<'a>(
        &mut self,
        view: &AgUiView,
        call: ToolCallCompleted<'a>,
        event: &Event,
    ) -> Vec<AgUiEvent<'a>> {
        // Of whole messages, a client gets the calls that it must answer.
        if view.detail == Detail::Messages && self.calls.state_of(&call.call_id).is_none() {
            return Vec::new();
        }
        let mut events = match call.input {
            Some(input) => self.show_call(&call.call_id, call.name, input),
            None => Vec::new(),
        };
        let is_sent = view.after.is_some_and(|pause| event.id > pause && self.calls.waited_at(&call.call_id, pause));
        self.calls.set(&call.call_id, ShownCallState::Ended);
        if !is_sent {
            let error = call.error.map(|error| Cow::Owned(error.message));
            events.push(AgUiEvent::ToolCallResult {
                message_id: result_id(&call.call_id),
                content: error.or(call.output).unwrap_or_default(),
                tool_call_id: call.call_id,
                role: "tool",
            });
        }
        if !call.files.is_empty() || !call.entities.is_empty() {
            events.push(custom(event));
        }
        events
    }
}

fn step_name(step: u32) -> String {
    format!("step {step}")
}

fn set(path: &'static str, value: Value) -> AgUiEvent<'static> {
    AgUiEvent::StateDelta { delta: vec![StatePatch::set(path, value)] }
}

/// Returns the event as it is, under the name of its kind.
fn custom(event: &Event) -> AgUiEvent<'static> {
    AgUiEvent::Custom { name: event.kind().name(), value: payload(event) }
}

fn payload(event: &Event) -> Value {
    serde_json::from_slice(event.payload()).unwrap_or_default()
}
