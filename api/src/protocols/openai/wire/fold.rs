//! The fold of a run's log into the events of a response.

use std::sync::Arc;

use holdfast_shared::{
    event::{
        ApprovalRequested, Event, EventBody, EventKind, ExecutedBy, RunCompleted, ToolCallCompleted, ToolCallDelta,
        ToolCallStarted,
    },
    event_id::EventId,
    finish_reason::FinishReason,
    usage::Usage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    ids::split_name,
    item::{CallBody, ItemBody, OutputItem},
    output::ResponseOutput,
    response::{ResponseHead, ResponseState},
    sender::{FrameCounts, FrameSender},
    step_usage::StepUsage,
};
use crate::wire::{Detail, WireFold, answer_text::AnswerText};

/// The part of a run that a client sees as a response. Clients with equal views receive equal bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseView {
    pub detail: Detail,
    pub head: Arc<ResponseHead>,
    /// The pause after which the response begins; `None` for the first one of a run.
    pub after: Option<EventId>,
}

/// The state of a response after some events of a run's log.
#[derive(Debug, Clone)]
pub struct ResponseFold {
    counts: FrameCounts,
    output: ResponseOutput,
    state: ResponseState,
    has_begun: bool,
    /// Whether the log has the text in pieces, so that the complete message brings nothing new.
    has_deltas: bool,
    usage: StepUsage,
    /// When the last event was written, in seconds since 1970.
    at: i64,
}

impl ResponseFold {
    /// Returns the state before the log.
    pub fn of_run(run_id: Uuid) -> Self {
        Self {
            counts: FrameCounts::START,
            output: ResponseOutput::of_run(run_id),
            state: ResponseState::Queued,
            has_begun: false,
            has_deltas: false,
            usage: StepUsage::default(),
            at: 0,
        }
    }

    /// Returns the response so far.
    pub fn response(&self, view: &ResponseView) -> Value {
        let usage = Some(self.usage.total()).filter(|usage| *usage != Usage::default());
        view.head.json(&self.state, self.output.json(), usage, Some(self.at))
    }

    /// Returns the number of frames so far.
    pub const fn frames(&self) -> u64 {
        self.counts.sequence
    }

    pub const fn state(&self) -> &ResponseState {
        &self.state
    }

    pub fn usage(&self) -> Usage {
        self.usage.total()
    }

    pub fn items(&self) -> impl Iterator<Item = &OutputItem> {
        self.output.items()
    }

    /// Returns the state of a response that has ended because the run waits.
    pub fn paused(&self, view: &ResponseView) -> Self {
        let mut paused = self.clone();
        paused.end_at_pause(view, &mut Vec::new());
        paused
    }

    fn end_at_pause(&mut self, view: &ResponseView, buffer: &mut Vec<u8>) {
        let mut sender = FrameSender::new(buffer, self.counts);
        self.output.close_all(&mut sender);
        self.state = ResponseState::Completed;
        sender.send("response.completed", &json!({"response": self.response(view)}));
        self.counts = sender.counts;
    }

    fn send_response(&self, view: &ResponseView, sender: &mut FrameSender<'_>, kind: &str) {
        sender.send(kind, &json!({"response": self.response(view)}));
    }

    /// Sends the first events of a response, unless it has begun.
    fn begin(&mut self, view: &ResponseView, sender: &mut FrameSender<'_>, event: &Event) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        self.send_response(view, sender, "response.created");
        if event.kind() == EventKind::RunQueued {
            self.send_response(view, sender, "response.queued");
        } else {
            self.start(view, sender);
        }
    }

    fn start(&mut self, view: &ResponseView, sender: &mut FrameSender<'_>) {
        if self.state == ResponseState::Queued {
            self.state = ResponseState::InProgress;
            self.send_response(view, sender, "response.in_progress");
        }
    }

    fn push(&mut self, view: &ResponseView, sender: &mut FrameSender<'_>, event: &Event) {
        let output = &mut self.output;
        match event.body() {
            EventBody::AttemptStarted(_) => self.start(view, sender),
            EventBody::MessageDelta(delta) if !delta.text.is_empty() => output.text(sender, event.id, &delta.text),
            EventBody::MessageCompleted(completed) if !self.has_deltas => {
                let text = completed.message.content.into_stored();
                if !text.is_empty() {
                    output.text(sender, event.id, &text);
                }
            }
            EventBody::ReasoningDelta(delta) if !delta.text.is_empty() => {
                output.reasoning(sender, event.id, &delta.text);
            }
            EventBody::ToolCallDelta(delta) => self.call_delta(view, sender, event.id, delta),
            EventBody::ToolCallStarted(call) => self.call_started(view, sender, event.id, call),
            EventBody::ToolCallCompleted(call) => self.call_completed(view, sender, event.id, call),
            EventBody::ApprovalRequested(request) => self.asked(sender, event.id, request),
            EventBody::StepStarted(_) | EventBody::StepCompleted(_) => output.close(sender),
            EventBody::RunCompleted(end) => self.completed(view, sender, &end),
            EventBody::RunFailed(end) => {
                output.close_all(sender);
                self.state = ResponseState::Failed(end.error);
                self.send_response(view, sender, "response.failed");
            }
            // The protocol has no event for it: the stream ends, and the response has the status.
            EventBody::RunCancelled(_) => {
                output.close_all(sender);
                self.state = ResponseState::Cancelled;
            }
            EventBody::MessageDelta(_)
            | EventBody::ReasoningDelta(_)
            | EventBody::MessageCompleted(_)
            | EventBody::RunQueued(_)
            | EventBody::ApprovalResolved(_)
            | EventBody::AgentState(_)
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
            | EventBody::WarningRaised(_)
            | EventBody::Unknown => {}
        }
    }

    fn call_delta(
        &mut self,
        view: &ResponseView,
        sender: &mut FrameSender<'_>,
        event: EventId,
        delta: ToolCallDelta<'_>,
    ) {
        if let (Some(name), Some(by)) = (&delta.name, delta.by) {
            self.output.begin_call(sender, event, call_item(view, &delta.call_id, name, by));
        }
        self.output.arguments(sender, event, &delta.call_id, &delta.text);
    }

    fn call_started(
        &mut self,
        view: &ResponseView,
        sender: &mut FrameSender<'_>,
        event: EventId,
        call: ToolCallStarted<'_>,
    ) {
        if !self.output.is_open(&call.call_id) {
            self.output.begin_call(sender, event, call_item(view, &call.call_id, &call.name, call.by));
        }
        self.output.end_arguments(sender, event, &call.call_id, call.input.into_text());
    }

    fn call_completed(
        &mut self,
        view: &ResponseView,
        sender: &mut FrameSender<'_>,
        event: EventId,
        call: ToolCallCompleted<'_>,
    ) {
        // A response shows no results of the client's own calls.
        if call.by == Some(ExecutedBy::Client) {
            return;
        }
        if let Some(input) = call.input
            && !self.output.is_open(&call.call_id)
        {
            self.output.begin_call(sender, event, call_item(view, &call.call_id, &call.name, ExecutedBy::Worker));
            self.output.end_arguments(sender, event, &call.call_id, input.into_text());
        }
        let result = match call.error {
            Some(error) => Err(error.message),
            None => Ok(call.output.unwrap_or_default().into_owned()),
        };
        self.output.end_call(sender, &call.call_id, result);
    }

    fn asked(&mut self, sender: &mut FrameSender<'_>, event: EventId, request: ApprovalRequested<'_>) {
        let arguments = AnswerText::of(event, &request.input.into_text());
        let (call_id, name) = (request.call_id.into_owned(), request.name.into_owned());
        let call = CallBody { call_id, name, namespace: None, arguments };
        self.output.show(sender, event, ItemBody::McpApproval { approval_id: request.approval_id, call });
    }

    fn completed(&mut self, view: &ResponseView, sender: &mut FrameSender<'_>, end: &RunCompleted) {
        self.output.close_all(sender);
        let (state, kind) = match end.finish_reason {
            Some(FinishReason::Length) => (ResponseState::Incomplete("max_output_tokens"), "response.incomplete"),
            Some(FinishReason::ContentFilter) => (ResponseState::Incomplete("content_filter"), "response.incomplete"),
            _ => (ResponseState::Completed, "response.completed"),
        };
        self.state = state;
        self.send_response(view, sender, kind);
    }
}

fn call_item(view: &ResponseView, call_id: &str, name: &str, by: ExecutedBy) -> ItemBody {
    let of_client = split_name(name, &view.head.namespaces).filter(|_| by == ExecutedBy::Client);
    let (namespace, name) = of_client.map_or((None, name), |(namespace, name)| (Some(namespace.to_owned()), name));
    let (call_id, name) = (call_id.to_owned(), name.to_owned());
    let call = CallBody { call_id, name, namespace, arguments: AnswerText::default() };
    match by {
        ExecutedBy::Client => ItemBody::FunctionCall(call),
        _ => ItemBody::McpCall { call, output: None, error: None },
    }
}

impl WireFold for ResponseFold {
    type View = ResponseView;

    const RECONNECTS: bool = false;

    fn frame(&mut self, view: &ResponseView, buffer: &mut Vec<u8>, event: &Event) {
        self.has_deltas |= event.kind() == EventKind::MessageDelta && view.detail != Detail::Messages;
        self.at = event.at_ms.div_euclid(1000);
        self.counts = self.counts.at(event.id);
        let is_earlier = view.after.is_some_and(|pause| event.id <= pause);
        self.usage.apply(event, is_earlier);
        if is_earlier {
            return;
        }
        let mut sender = FrameSender::new(buffer, self.counts);
        self.begin(view, &mut sender, event);
        // The log may lack events that a lost worker has sent, so each open item ends here for every client.
        if let Some(base) = event.base {
            self.output.close_all(&mut sender);
            self.output.drop_after(base);
        }
        if view.shows(event.kind()) {
            self.push(view, &mut sender, event);
        }
        self.counts = sender.counts;
    }

    fn pause(&self, view: &ResponseView, buffer: &mut Vec<u8>) {
        self.clone().end_at_pause(view, buffer);
    }
}

impl ResponseView {
    /// Returns whether the view shows events of a kind. Of whole messages, a client gets the questions that it must answer.
    fn shows(&self, kind: EventKind) -> bool {
        self.detail != Detail::Messages
            || !matches!(kind, EventKind::MessageDelta | EventKind::ReasoningDelta | EventKind::ToolCallDelta)
    }
}
