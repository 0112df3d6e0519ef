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
        AGENT_STATE, APPROVAL_REQUESTED, APPROVAL_RESOLVED, CONTEXT_USAGE, Event, MESSAGE_COMPLETED, MESSAGE_DELTA,
        REASONING_DELTA, RUN_CANCELLED, RUN_COMPLETED, RUN_FAILED, RUN_QUEUED, STEP_COMPLETED, STEP_STARTED,
        TOOL_CALL_COMPLETED, TOOL_CALL_DELTA, TOOL_CALL_STARTED, WARNING_RAISED,
    },
    finish_reason,
    run::{RunError, RunStatus},
    tool::ToolError,
    usage::Usage,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use super::{Before, Block, Shows, View};
pub use chunk::Chunk;
use chunk::{Attempt, FinishReason, Measured, Metadata, Question, Tool, is_a_servers};
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
    frame(&mut buffer, &Chunk::Finish { finish_reason: FinishReason::ToolCalls, message_metadata: None });
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
        let crashes = read(event).ok();
        chunks.push(Chunk::DataAttempt { data: Attempt { attempt: event.id.attempt, base, crashes } });
    }
    let own = own(view, event).unwrap_or_default();
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
        (Block::None | Block::Waiting, _) | (_, STEP_COMPLETED) | (Block::Reasoning, MESSAGE_DELTA) => None,
        (Block::Text | Block::Reasoning, _) => Some(Chunk::FinishStep),
    }
}

#[derive(Deserialize)]
struct Piece {
    text: String,
}

#[derive(Deserialize)]
struct CallPiece {
    call_id: String,
    name: Option<String>,
    text: String,
}

#[derive(Deserialize)]
struct Started {
    call_id: String,
    name: String,
    input: Value,
    by: Option<String>,
    approval_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct Completed {
    call_id: String,
    name: String,
    input: Option<Value>,
    output: Option<String>,
    error: Option<ToolError>,
    #[serde(default)]
    duration_ms: u64,
}

#[derive(Deserialize)]
struct Ended {
    #[serde(default)]
    usage: Usage,
    error: Option<RunError>,
    finish_reason: Option<finish_reason::FinishReason>,
}

#[derive(Deserialize)]
struct Resolved {
    call_id: String,
    decision: ApprovalStatus,
}

#[derive(Deserialize)]
struct Whole {
    message: Said,
}

#[derive(Deserialize)]
struct Said {
    content: String,
}

fn own(view: &View, event: &Event) -> serde_json::Result<Vec<Chunk>> {
    Ok(match event.kind() {
        // The text comes whole, but a question must be seen to be answered, and so must all that it is about.
        MESSAGE_DELTA | REASONING_DELTA | TOOL_CALL_DELTA if view.shows != Shows::Everything => Vec::new(),
        RUN_QUEUED => vec![resumption(view)],
        STEP_STARTED => vec![Chunk::StartStep],
        STEP_COMPLETED => vec![Chunk::FinishStep],
        MESSAGE_DELTA => vec![Chunk::TextDelta { id: TEXT, delta: read::<Piece>(event)?.text }],
        REASONING_DELTA => vec![Chunk::ReasoningDelta { id: REASONING, delta: read::<Piece>(event)?.text }],
        MESSAGE_COMPLETED if view.shows != Shows::Everything => whole(read::<Whole>(event)?.message.content),
        TOOL_CALL_DELTA => piece_of_call(read(event)?),
        TOOL_CALL_STARTED => asked(read(event)?),
        APPROVAL_REQUESTED => asked(read(event)?).into_iter().chain([question(read(event)?)]).collect(),
        APPROVAL_RESOLVED => withdrawn(read(event)?).into_iter().collect(),
        TOOL_CALL_COMPLETED => completed(read(event)?),
        AGENT_STATE => vec![Chunk::DataState { data: read(event)?, transient: true }],
        CONTEXT_USAGE => vec![Chunk::DataContext { id: "context", data: read(event)? }],
        WARNING_RAISED => vec![Chunk::DataWarning { data: read(event)? }],
        RUN_COMPLETED => {
            let outcome = outcome(RunStatus::Completed, event);
            vec![finish(outcome.finish_reason.map_or(FinishReason::Stop, FinishReason::from), outcome)]
        }
        RUN_CANCELLED => vec![Chunk::Abort, finish(FinishReason::Other, outcome(RunStatus::Cancelled, event))],
        RUN_FAILED => failed(outcome(RunStatus::Failed, event)),
        _ => Vec::new(),
    })
}

fn read<T: DeserializeOwned>(event: &Event) -> serde_json::Result<T> {
    serde_json::from_slice(event.payload())
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

fn piece_of_call(piece: CallPiece) -> Vec<Chunk> {
    let CallPiece { call_id, name, text } = piece;
    let start = name.map(|name| Chunk::ToolInputStart { tool: Tool::new(call_id.clone(), name) });
    let delta = (!text.is_empty()).then_some(Chunk::ToolInputDelta { tool_call_id: call_id, input_text_delta: text });
    start.into_iter().chain(delta).collect()
}

/// A call that is made, or asked about. Only those that a worker makes without a word are the provider's own affair: a
/// client sends the others' answers by itself.
fn asked(call: Started) -> Vec<Chunk> {
    let Started { call_id, name, input, by, approval_id } = call;
    let provider_executed = by.as_deref() == Some("worker");
    let available = Chunk::ToolInputAvailable { tool: Tool::new(call_id.clone(), name), input, provider_executed };
    let request = approval_id.map(|approval_id| Chunk::ToolApprovalRequest { approval_id, tool_call_id: call_id });
    [available].into_iter().chain(request).collect()
}

fn completed(call: Completed) -> Vec<Chunk> {
    let Completed { call_id: tool_call_id, name, input, output, error, duration_ms } = call;
    let data = Measured { tool_call_id: tool_call_id.clone(), duration_ms };
    let measured = Chunk::DataCall { id: tool_call_id.clone(), data };
    let dynamic = is_a_servers(&name);
    let was_asked_about =
        error.as_ref().is_some_and(|error| matches!(error.code.as_str(), "denied" | "approval_expired"));
    // Any other refused call was never shown. Versions differ in what they make of `tool-input-error`, so it is not used.
    let refused = input.filter(|_| !was_asked_about).map(|input| {
        let tool = Tool::new(tool_call_id.clone(), name.clone());
        Chunk::ToolInputAvailable { tool, input, provider_executed: true }
    });
    let outcome = match error {
        None => Chunk::ToolOutputAvailable { tool_call_id, output: shown(&name, output.unwrap_or_default()), dynamic },
        Some(error) if error.code == "denied" => Chunk::ToolOutputDenied { tool_call_id },
        Some(error) => Chunk::ToolOutputError { tool_call_id, error_text: error.message, dynamic },
    };
    refused.into_iter().chain([outcome, measured]).collect()
}

/// A tool's output, as the front end has it: what its own tools have answered is JSON again, if it was.
fn shown(name: &str, output: String) -> Value {
    let is_structured = output.starts_with(['{', '[']) && !is_a_servers(name);
    let structure = is_structured.then(|| serde_json::from_str(&output).ok()).flatten();
    structure.unwrap_or(Value::String(output))
}

/// What a human is to know before deciding: an outcome that nobody knows is no ordinary approval.
fn question(data: Question) -> Chunk {
    Chunk::DataQuestion { id: data.approval_id, data }
}

/// A question that nobody can answer any more. Of the answered ones, the call's own end tells.
fn withdrawn(resolved: Resolved) -> Option<Chunk> {
    let is_withdrawn = matches!(resolved.decision, ApprovalStatus::Superseded | ApprovalStatus::Cancelled);
    is_withdrawn.then_some(Chunk::ToolOutputDenied { tool_call_id: resolved.call_id })
}

/// How the run has ended.
fn outcome(status: RunStatus, event: &Event) -> Metadata {
    // From its end on, the message has a time of its own.
    let created_at = DateTime::from_timestamp_millis(event.at_ms);
    let known = Metadata { status: Some(status), created_at, ..Metadata::default() };
    match read(event) {
        Ok(Ended { usage, error, finish_reason }) => Metadata { usage: Some(usage), error, finish_reason, ..known },
        Err(_) => known,
    }
}

fn finish(finish_reason: FinishReason, message_metadata: Metadata) -> Chunk {
    Chunk::Finish { finish_reason, message_metadata: Some(message_metadata) }
}

/// A client reads nothing behind an error.
fn failed(message_metadata: Metadata) -> Vec<Chunk> {
    let message = message_metadata.error.as_ref().map(|error| error.message.clone());
    let error_text = message.unwrap_or_else(|| "the run has failed".to_owned());
    let finish = Chunk::Finish { finish_reason: FinishReason::Error, message_metadata: None };
    vec![Chunk::MessageMetadata { message_metadata }, Chunk::Error { error_text }, finish]
}
