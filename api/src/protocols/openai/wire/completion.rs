//! The fold of a run's log into the chunks of a chat completion.

use std::sync::Arc;

use holdfast_shared::{
    event::{Event, EventBody, EventKind, ExecutedBy},
    event_id::EventId,
    finish_reason::FinishReason,
    usage::Usage,
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::problem::form;
use super::{
    ids::call_id,
    sender::{FrameCounts, FrameSender},
    step_usage::StepUsage,
};
use crate::{
    problem::Problem,
    wire::{Detail, WireFold},
};

/// The fields that all chunks of a completion share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionHead {
    pub run_id: Uuid,
    /// Seconds since 1970.
    pub created_at: i64,
    pub model: String,
}

/// The part of a run that a client sees as a completion. Clients with equal views receive equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionView {
    pub detail: Detail,
    pub head: Arc<CompletionHead>,
    /// The pause after which the completion begins; `None` for the first one of a run.
    pub after: Option<EventId>,
    /// Whether the last chunk has the token counts.
    pub has_usage: bool,
}

/// The state of a completion after some events of a run's log.
#[derive(Debug, Clone)]
pub struct CompletionFold {
    counts: FrameCounts,
    has_begun: bool,
    has_deltas: bool,
    /// Whether the client has text, which a later attempt cannot take back.
    has_text: bool,
    /// The client's calls that the completion has shown.
    calls: Arc<Vec<String>>,
    usage: StepUsage,
}

#[derive(Serialize)]
struct SentChunk<'a, D> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: [ChunkChoice<D>; 1],
}

#[derive(Serialize)]
struct ChunkChoice<D> {
    index: u32,
    delta: D,
    finish_reason: Option<&'static str>,
}

/// A text that is longer by `content`.
#[derive(Serialize)]
struct ContentDelta<'a> {
    content: &'a str,
}

impl CompletionHead {
    /// Returns the id of a completion.
    pub fn id(&self) -> String {
        format!("chatcmpl-{}", self.run_id.simple())
    }
}

impl CompletionFold {
    /// The state before the log.
    pub fn new() -> Self {
        Self {
            counts: FrameCounts::START,
            has_begun: false,
            has_deltas: false,
            has_text: false,
            calls: Arc::default(),
            usage: StepUsage::default(),
        }
    }

    fn push(&mut self, view: &CompletionView, sender: &mut FrameSender<'_>, event: &Event) {
        match event.body() {
            EventBody::MessageDelta(delta) if view.detail != Detail::Messages => self.text(view, sender, &delta.text),
            EventBody::MessageCompleted(completed) if !self.has_deltas => {
                self.text(view, sender, &completed.message.content.into_stored());
            }
            EventBody::ReasoningDelta(delta) if view.detail != Detail::Messages => {
                send(view, sender, json!({"reasoning_content": delta.text}), None);
            }
            EventBody::ToolCallStarted(call) if call.by == ExecutedBy::Client => {
                let function = json!({"name": call.name, "arguments": call.input.into_text()});
                let id = call_id(view.head.run_id, &call.call_id);
                let call_of_chunk =
                    json!({"index": self.calls.len(), "id": id, "type": "function", "function": function});
                Arc::make_mut(&mut self.calls).push(call.call_id.into_owned());
                send(view, sender, json!({"tool_calls": [call_of_chunk]}), None);
            }
            EventBody::RunCompleted(end) => self.end(view, sender, finish_reason(end.finish_reason)),
            EventBody::RunFailed(end) => {
                sender.send_chunk(&form(&Problem::run_refused(view.head.run_id, &end.error)));
                sender.send_done();
            }
            EventBody::RunCancelled(_) => self.end(view, sender, "stop"),
            _ => {}
        }
    }

    fn text(&mut self, view: &CompletionView, sender: &mut FrameSender<'_>, text: &str) {
        if !text.is_empty() {
            self.has_text = true;
            send(view, sender, ContentDelta { content: text }, None);
        }
    }

    fn end(&self, view: &CompletionView, sender: &mut FrameSender<'_>, reason: &'static str) {
        send(view, sender, json!({}), Some(reason));
        if view.has_usage {
            let mut chunk = json!(chunk(view, json!({}), None));
            (chunk["choices"], chunk["usage"]) = (json!([]), completion_usage(self.usage.total()));
            sender.send_chunk(&chunk);
        }
        sender.send_done();
    }
}

/// Returns token counts as a completion has them.
pub fn completion_usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens}
    })
}

/// Returns why a completion has ended.
const fn finish_reason(reason: Option<FinishReason>) -> &'static str {
    match reason {
        Some(FinishReason::Length) => "length",
        Some(FinishReason::ContentFilter) => "content_filter",
        _ => "stop",
    }
}

fn chunk<'a, D>(view: &'a CompletionView, delta: D, finish_reason: Option<&'static str>) -> SentChunk<'a, D> {
    let CompletionHead { created_at, ref model, .. } = *view.head;
    let choices = [ChunkChoice { index: 0, delta, finish_reason }];
    SentChunk { id: view.head.id(), object: "chat.completion.chunk", created: created_at, model, choices }
}

fn send(
    view: &CompletionView,
    sender: &mut FrameSender<'_>,
    delta: impl Serialize,
    finish_reason: Option<&'static str>,
) {
    sender.send_chunk(&chunk(view, delta, finish_reason));
}

impl WireFold for CompletionFold {
    type View = CompletionView;

    const RECONNECTS: bool = false;

    fn frame(&mut self, view: &CompletionView, buffer: &mut Vec<u8>, event: &Event) {
        self.has_deltas |= event.kind() == EventKind::MessageDelta && view.detail != Detail::Messages;
        self.counts = self.counts.at(event.id);
        let is_earlier = view.after.is_some_and(|pause| event.id <= pause);
        self.usage.apply(event, is_earlier);
        if is_earlier {
            return;
        }
        let mut sender = FrameSender::new(buffer, self.counts);
        if !self.has_begun {
            self.has_begun = true;
            send(view, &mut sender, json!({"role": "assistant", "content": ""}), None);
        }
        // The protocol cannot take text back, so the text of another attempt is a paragraph of its own.
        if event.kind() == EventKind::AttemptStarted && self.has_text && view.detail != Detail::Messages {
            send(view, &mut sender, json!({"content": "\n\n"}), None);
        }
        // Calls of an earlier attempt are asked for once more, or never.
        if event.kind() == EventKind::AttemptStarted {
            self.calls = Arc::default();
        }
        self.push(view, &mut sender, event);
        self.counts = sender.counts;
    }

    fn ends_at_pause(&self) -> bool {
        // An approval is given elsewhere, so the completion waits for it.
        !self.calls.is_empty()
    }

    fn pause(&self, view: &CompletionView, buffer: &mut Vec<u8>) {
        self.end(view, &mut FrameSender::new(buffer, self.counts), "tool_calls");
    }
}
