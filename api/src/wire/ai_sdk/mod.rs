//! The AI SDK's wire: a UI message stream, one JSON chunk a frame, `[DONE]` last.
//!
//! A block (text, reasoning) opens and closes where one kind of event gives way to another, so what an event becomes depends
//! on the kind of the event before it. A run that waits for an answer ends the stream: the client answers with a new
//! request, whose stream goes on with the same message.

mod chunk;
mod message;
mod recalled;

use bytes::Bytes;
use chrono::DateTime;
use holdfast_shared::{
    approval::ApprovalStatus,
    event::{
        ApprovalRequested, ApprovalResolved, Event, EventBody, EventKind, ExecutedBy, ToolCallCompleted, ToolCallDelta,
        ToolCallStarted,
    },
    run::RunStatus,
};
use serde_json::{Value, json};

use super::{Before, Block, Shows, View};
pub use chunk::Chunk;
use chunk::{Crashes, Measured, Metadata, Question, UiAttempt, UiFinishReason, UiTool, is_a_servers};
pub use message::UiMessage;
pub use recalled::recalled;

/// The ids of blocks: a client closes one before it opens the next, so one of each kind is enough.
const TEXT: &str = "text";
const REASONING: &str = "reasoning";

/// After the last chunk.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// Appends what an event becomes; `[DONE]` comes with the last.
pub fn frames(buffer: &mut Vec<u8>, view: &View, before: Before, event: &Event) {
    let chunks = chunks(view, before, event);
    let ids = chunks.len().checked_sub(1);
    for (index, chunk) in chunks.iter().enumerate() {
        if ids == Some(index) {
            buffer.extend_from_slice(format!("id: {}\n", event.id).as_bytes());
        }
        frame(buffer, chunk);
    }
    if event.is_terminal() {
        buffer.extend_from_slice(DONE);
    }
}

/// Appends one chunk.
pub fn frame(buffer: &mut Vec<u8>, chunk: &Chunk) {
    buffer.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *buffer, chunk).expect("a chunk is always valid JSON");
    buffer.extend_from_slice(b"\n\n");
}

/// What begins a segment that goes on after an answer.
pub fn resumption(view: &View) -> Chunk {
    Chunk::Start { message_id: view.message_id, message_metadata: metadata(view) }
}

/// How many chunks `end_of_segment` has.
pub const CHUNKS_AT_A_PAUSE: u64 = 2;

/// What ends a segment of a run that waits.
pub fn end_of_segment() -> Bytes {
    let mut buffer = Vec::new();
    frame(&mut buffer, &Chunk::FinishStep);
    frame(&mut buffer, &Chunk::Finish { finish_reason: UiFinishReason::ToolCalls, message_metadata: None });
    buffer.extend_from_slice(DONE);
    buffer.into()
}

/// What an event becomes. One that cannot be read, because a newer version wrote it, becomes nothing.
pub fn chunks(view: &View, before: Before, event: &Event) -> Vec<Chunk> {
    let mut chunks = Vec::with_capacity(4);
    // Without pieces nothing is ever in the middle of anything.
    let has_pieces = view.shows == Shows::Everything;
    let known = |block| if has_pieces { block } else { Block::None };
    let (open, block) = (known(before.block()), known(Block::behind(event)));
    if open != block {
        chunks.extend(end_of(open));
        chunks.extend(end_of_frame(open, event));
    }
    if view.is_taken_back_by(event, before.id)
        && let Some(base) = event.base
    {
        let crashes = Crashes::of(&event.body());
        chunks.push(Chunk::DataAttempt { data: UiAttempt { attempt: event.id.attempt, base, crashes } });
    }
    let own = own(view, event);
    if !own.is_empty() && open != block {
        chunks.extend(start_of(block));
    }
    chunks.extend(own);
    chunks
}

const fn start_of(block: Block) -> Option<Chunk> {
    match block {
        Block::None | Block::Waiting => None,
        Block::Text => Some(Chunk::TextStart { id: TEXT }),
        Block::Reasoning => Some(Chunk::ReasoningStart { id: REASONING }),
    }
}

const fn end_of(block: Block) -> Option<Chunk> {
    match block {
        Block::None | Block::Waiting => None,
        Block::Text => Some(Chunk::TextEnd { id: TEXT }),
        Block::Reasoning => Some(Chunk::ReasoningEnd { id: REASONING }),
    }
}

/// A client that counts chunks passes over a second block of the same name within a step, as if it were said again. So a step
/// is over for it with its text, or with reasoning that no text follows. To the others this says nothing.
fn end_of_frame(block: Block, event: &Event) -> Option<Chunk> {
    match (block, event.kind()) {
        (Block::None | Block::Waiting, _)
        | (_, EventKind::StepCompleted)
        | (Block::Reasoning, EventKind::MessageDelta) => None,
        (Block::Text | Block::Reasoning, _) => Some(Chunk::FinishStep),
    }
}

fn own(view: &View, event: &Event) -> Vec<Chunk> {
    // Without pieces the text comes whole, but a reader must see a question to answer it, and all that it is about.
    let has_pieces = view.shows == Shows::Everything;
    if event.kind().is_delta() && !has_pieces {
        return Vec::new();
    }
    match event.body() {
        EventBody::RunQueued(_) => vec![resumption(view)],
        EventBody::StepStarted(_) => vec![Chunk::StartStep],
        EventBody::StepCompleted(_) => vec![Chunk::FinishStep],
        EventBody::MessageDelta(delta) => vec![Chunk::TextDelta { id: TEXT, delta: delta.text.into_owned() }],
        EventBody::ReasoningDelta(delta) => {
            vec![Chunk::ReasoningDelta { id: REASONING, delta: delta.text.into_owned() }]
        }
        EventBody::MessageCompleted(completed) if !has_pieces => whole(completed.message.content.into_stored()),
        EventBody::ToolCallDelta(delta) => piece_of_call(delta),
        EventBody::ToolCallStarted(call) => vec![available(call)],
        EventBody::ApprovalRequested(request) => requested(request),
        EventBody::ApprovalResolved(resolved) => withdrawn(resolved).into_iter().collect(),
        EventBody::ToolCallCompleted(call) => completed(call),
        EventBody::AgentState(state) => vec![Chunk::DataState { data: json!(state), transient: true }],
        EventBody::ContextUsage(usage) => vec![Chunk::DataContext { id: "context", data: json!(usage) }],
        EventBody::WarningRaised(warning) => vec![Chunk::DataWarning { data: json!(warning) }],
        EventBody::RunCompleted(end) => {
            let status = Some(RunStatus::Completed);
            let (usage, finish_reason) = (Some(end.usage), end.finish_reason);
            let metadata = Metadata { status, usage, finish_reason, ..ended(event) };
            vec![finish(finish_reason.map_or(UiFinishReason::Stop, UiFinishReason::from), metadata)]
        }
        EventBody::RunCancelled(end) => {
            let status = Some(RunStatus::Cancelled);
            let metadata = Metadata { status, usage: Some(end.usage), ..ended(event) };
            vec![Chunk::Abort, finish(UiFinishReason::Other, metadata)]
        }
        EventBody::RunFailed(end) => {
            let error_text = end.error.message.clone();
            let (status, usage, error) = (Some(RunStatus::Failed), Some(end.usage), Some(end.error));
            let message_metadata = Metadata { status, usage, error, ..ended(event) };
            // A client reads nothing after an error.
            let finish = Chunk::Finish { finish_reason: UiFinishReason::Error, message_metadata: None };
            vec![Chunk::MessageMetadata { message_metadata }, Chunk::Error { error_text }, finish]
        }
        EventBody::AttemptStarted(_) | EventBody::MessageCompleted(_) | EventBody::Unknown => Vec::new(),
    }
}

fn metadata(view: &View) -> Metadata {
    Metadata {
        run_id: Some(view.run_id),
        conversation_id: Some(view.conversation_id),
        created_at: Some(view.created_at),
        ..Metadata::default()
    }
}

fn whole(text: String) -> Vec<Chunk> {
    match text.is_empty() {
        true => Vec::new(),
        false => {
            vec![Chunk::TextStart { id: TEXT }, Chunk::TextDelta { id: TEXT, delta: text }, Chunk::TextEnd { id: TEXT }]
        }
    }
}

fn piece_of_call(delta: ToolCallDelta<'_>) -> Vec<Chunk> {
    let (tool_call_id, text) = (delta.call_id.into_owned(), delta.text.into_owned());
    let start =
        delta.name.map(|name| Chunk::ToolInputStart { tool: UiTool::new(tool_call_id.clone(), name.into_owned()) });
    let delta = (!text.is_empty()).then_some(Chunk::ToolInputDelta { tool_call_id, input_text_delta: text });
    start.into_iter().chain(delta).collect()
}

/// A call that is made. Only those that a worker makes without a word are the provider's own affair: a client sends the
/// results of the others by itself.
fn available(call: ToolCallStarted<'_>) -> Chunk {
    let tool = UiTool::new(call.call_id.into_owned(), call.name.into_owned());
    let provider_executed = call.by == ExecutedBy::Worker;
    Chunk::ToolInputAvailable { tool, input: call.input.to_value(), provider_executed }
}

/// A call that waits for a human. `data-question` says what the human must know: an unknown outcome is no ordinary approval.
fn requested(request: ApprovalRequested<'_>) -> Vec<Chunk> {
    let (approval_id, call_id) = (request.approval_id, request.call_id.into_owned());
    let tool = UiTool::new(call_id.clone(), request.name.into_owned());
    let data = Question { approval_id, call_id: call_id.clone(), kind: request.kind, expires_at: request.expires_at };
    vec![
        Chunk::ToolInputAvailable { tool, input: request.input.to_value(), provider_executed: false },
        Chunk::ToolApprovalRequest { approval_id, tool_call_id: call_id },
        Chunk::DataQuestion { id: approval_id, data },
    ]
}

fn completed(call: ToolCallCompleted<'_>) -> Vec<Chunk> {
    let (tool_call_id, name) = (call.call_id.into_owned(), call.name.into_owned());
    let data = Measured { tool_call_id: tool_call_id.clone(), duration_ms: call.duration_ms };
    let measured = Chunk::DataCall { id: tool_call_id.clone(), data };
    let dynamic = is_a_servers(&name);
    let was_asked_about =
        call.error.as_ref().is_some_and(|error| matches!(error.code.as_str(), "denied" | "approval_expired"));
    // Any other refused call was never shown. Versions differ in what they make of `tool-input-error`, so it is not used.
    let refused = call.input.filter(|_| !was_asked_about).map(|input| {
        let tool = UiTool::new(tool_call_id.clone(), name.clone());
        Chunk::ToolInputAvailable { tool, input: input.to_value(), provider_executed: true }
    });
    let outcome = match call.error {
        None => {
            let output = output_of(&name, call.output.unwrap_or_default().into_owned());
            Chunk::ToolOutputAvailable { tool_call_id, output, dynamic }
        }
        Some(error) if error.code == "denied" => Chunk::ToolOutputDenied { tool_call_id },
        Some(error) => Chunk::ToolOutputError { tool_call_id, error_text: error.message, dynamic },
    };
    refused.into_iter().chain([outcome, measured]).collect()
}

/// A tool's output, as the front end has it: what its own tools have answered is JSON again, if it was.
fn output_of(name: &str, output: String) -> Value {
    let is_structured = output.starts_with(['{', '[']) && !is_a_servers(name);
    let structure = is_structured.then(|| serde_json::from_str(&output).ok()).flatten();
    structure.unwrap_or(Value::String(output))
}

/// An approval that can no longer be decided. The end of its call tells of a decided one.
fn withdrawn(resolved: ApprovalResolved<'_>) -> Option<Chunk> {
    let is_withdrawn = matches!(resolved.decision, ApprovalStatus::Superseded | ApprovalStatus::Cancelled);
    is_withdrawn.then(|| Chunk::ToolOutputDenied { tool_call_id: resolved.call_id.into_owned() })
}

/// What the end of a run says of its message, which has a time of its own from then on.
fn ended(event: &Event) -> Metadata {
    Metadata { created_at: DateTime::from_timestamp_millis(event.at_ms), ..Metadata::default() }
}

fn finish(finish_reason: UiFinishReason, message_metadata: Metadata) -> Chunk {
    Chunk::Finish { finish_reason, message_metadata: Some(message_metadata) }
}
