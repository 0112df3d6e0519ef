//! The AI SDK's wire: a UI message stream, one JSON chunk per frame, `[DONE]` last.
//!
//! A block (text, reasoning) opens or closes where the kind of event changes. So the chunks of an event depend on the
//! kind of the event before it. The stream ends where a run waits for an answer. The client answers with a new request,
//! whose stream continues the same message.

mod chunk;
mod message;

use bytes::Bytes;
use chrono::DateTime;
use holdfast_shared::{
    approval::ApprovalStatus,
    event::{
        ApprovalRequested, ApprovalResolved, EntityAccessed, Event, EventBody, EventKind, ExecutedBy, PlanCreated,
        PlanStepCompleted, PlanStepStarted, PlanUpdated, ToolCallCompleted, ToolCallDelta, ToolCallStarted,
    },
    run::RunStatus,
};
use serde_json::Value;
use uuid::Uuid;

use crate::wire::{Block, Detail, LogPosition, View, plan};
pub use chunk::Chunk;
use chunk::{ApprovalDetails, CallSummary, Crashes, UiAttempt, UiFinishReason, UiMetadata, UiTool, is_dynamic};
pub use message::UiMessage;

/// The ids of blocks. A client closes one block before it opens the next, so one id per kind is enough.
const TEXT: &str = "text";
const REASONING: &str = "reasoning";

/// The frame after the last chunk.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// Appends the frames of an event, and `[DONE]` after the last event.
pub fn frames(buffer: &mut Vec<u8>, view: &View, position: LogPosition, event: &Event) {
    let chunks = chunks(view, position, event);
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

/// Appends the frame of a chunk.
pub fn frame(buffer: &mut Vec<u8>, chunk: &Chunk) {
    buffer.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *buffer, chunk).expect("a chunk is always valid JSON");
    buffer.extend_from_slice(b"\n\n");
}

/// Returns the first chunk of a segment that continues after an answer.
pub fn resumption(view: &View) -> Chunk {
    Chunk::Start { message_id: view.message_id, message_metadata: metadata(view) }
}

/// The number of chunks in `end_of_segment`.
pub const CHUNKS_AT_A_PAUSE: u64 = 2;

/// Returns the frames that end a segment of a waiting run.
pub fn end_of_segment() -> Bytes {
    let mut buffer = Vec::new();
    frame(&mut buffer, &Chunk::FinishStep);
    frame(&mut buffer, &Chunk::Finish { finish_reason: UiFinishReason::ToolCalls, message_metadata: None });
    buffer.extend_from_slice(DONE);
    buffer.into()
}

/// Returns the chunks of an event; none if a newer version wrote the event and this one cannot read it.
pub fn chunks(view: &View, position: LogPosition, event: &Event) -> Vec<Chunk> {
    let mut chunks = Vec::with_capacity(4);
    // Without deltas, no block is ever open.
    let has_deltas = view.detail == Detail::All;
    let visible = |block| if has_deltas { block } else { Block::None };
    let (open, block) = (visible(position.block), visible(Block::after(event)));
    if open != block {
        chunks.extend(end_of(open));
        chunks.extend(step_end_after(open, event));
    }
    if view.supersedes_shown(event, position.id)
        && let Some(base) = event.base
    {
        let crashes = Crashes::of(&event.body());
        chunks.push(Chunk::DataAttempt { data: UiAttempt { attempt: event.id.attempt, base, crashes } });
    }
    let chunks_of_event = event_chunks(view, event);
    if !chunks_of_event.is_empty() && open != block {
        chunks.extend(start_of(block));
    }
    chunks.extend(chunks_of_event);
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

/// Ends the step after its text, or after reasoning without a text. Clients that count chunks skip a second block with
/// one name within a step, as if it were a repetition. For other clients the chunk has no effect.
fn step_end_after(block: Block, event: &Event) -> Option<Chunk> {
    match (block, event.kind()) {
        (Block::None | Block::Waiting, _)
        | (_, EventKind::StepCompleted)
        | (Block::Reasoning, EventKind::MessageDelta) => None,
        (Block::Text | Block::Reasoning, _) => Some(Chunk::FinishStep),
    }
}

fn event_chunks(view: &View, event: &Event) -> Vec<Chunk> {
    // Without deltas the text comes as one block, but a reader must see all of a question to answer it.
    let has_deltas = view.detail == Detail::All;
    if event.kind().is_delta() && !has_deltas {
        return Vec::new();
    }
    match event.body() {
        EventBody::RunQueued(_) => std::iter::once(resumption(view)).chain(focus(view)).collect(),
        EventBody::StepStarted(_) => vec![Chunk::StartStep],
        EventBody::StepCompleted(_) => vec![Chunk::FinishStep],
        EventBody::MessageDelta(delta) => vec![Chunk::TextDelta { id: TEXT, delta: delta.text.into_owned() }],
        EventBody::ReasoningDelta(delta) => {
            vec![Chunk::ReasoningDelta { id: REASONING, delta: delta.text.into_owned() }]
        }
        EventBody::MessageCompleted(completed) if !has_deltas => whole_text(completed.message.content.into_stored()),
        EventBody::ToolCallDelta(delta) => argument_delta(delta),
        EventBody::ToolCallStarted(call) => vec![call_available(call)],
        EventBody::ApprovalRequested(request) => match request.child_run_id {
            None => approval_request(request),
            Some(child) => childs_request(child, request),
        },
        EventBody::ApprovalResolved(resolved) => match resolved.child_run_id {
            None => withdrawal(resolved).into_iter().collect(),
            Some(child) => vec![childs_answer(child, resolved)],
        },
        EventBody::ToolCallCompleted(call) => call_completed(call),
        EventBody::AgentState(_) => vec![Chunk::DataState { data: payload(event), transient: true }],
        EventBody::ContextUsage(_) => vec![Chunk::DataContext { id: "context", data: payload(event) }],
        EventBody::SubagentStarted(started) => {
            vec![Chunk::DataSubagent { id: started.child_run_id, data: payload(event) }]
        }
        EventBody::SubagentCompleted(completed) => vec![subagent_completed(event, completed.child_run_id)],
        EventBody::PlanCreated(PlanCreated { plan }) | EventBody::PlanUpdated(PlanUpdated { plan, .. }) => {
            vec![Chunk::DataPlan { id: plan.id, data: (*plan).into() }]
        }
        EventBody::PlanStepStarted(PlanStepStarted { plan_id, step, .. })
        | EventBody::PlanStepCompleted(PlanStepCompleted { plan_id, step }) => {
            vec![Chunk::DataStep { id: plan::step_id(plan_id, &step), data: plan::step_data(plan_id, *step) }]
        }
        EventBody::PlanReviewed(review) => vec![Chunk::DataReview { data: plan::review_data(&review) }],
        EventBody::ContextShifted(_) => vec![Chunk::DataContextShift { data: payload(event) }],
        EventBody::FocusChanged(changed) => vec![Chunk::DataFocus { data: changed.focus }],
        EventBody::OntologyLoaded(_) => vec![Chunk::DataOntology { data: payload(event) }],
        EventBody::TemplateRequested(_) => vec![Chunk::DataTemplateRequest { data: payload(event) }],
        EventBody::TemplateSuggested(_) => vec![Chunk::DataTemplateSuggestion { data: payload(event) }],
        EventBody::CitationAdded(citation) => vec![Chunk::source(citation)],
        EventBody::DocumentProgress(progress) => {
            vec![Chunk::DataDocument { id: progress.document_id, data: payload(event) }]
        }
        EventBody::QuestionAsked(asked) => vec![Chunk::DataQuestions { data: serde_json::json!(asked) }],
        EventBody::MessageSteered(steered) => {
            vec![Chunk::DataSteered { id: steered.message_id, data: payload(event) }]
        }
        EventBody::WarningRaised(_) => vec![Chunk::DataWarning { data: payload(event) }],
        EventBody::RunCompleted(end) => {
            let status = Some(RunStatus::Completed);
            let (usage, finish_reason) = (Some(end.usage), end.finish_reason);
            let metadata = UiMetadata { status, usage, finish_reason, ..end_metadata(event) };
            vec![finish(finish_reason.map_or(UiFinishReason::Stop, UiFinishReason::from), metadata)]
        }
        EventBody::RunCancelled(end) => {
            let status = Some(RunStatus::Cancelled);
            let metadata = UiMetadata { status, usage: Some(end.usage), ..end_metadata(event) };
            vec![Chunk::Abort, finish(UiFinishReason::Other, metadata)]
        }
        EventBody::RunFailed(end) => {
            let error_text = end.error.message.clone();
            let (status, usage, error) = (Some(RunStatus::Failed), Some(end.usage), Some(end.error));
            let message_metadata = UiMetadata { status, usage, error, ..end_metadata(event) };
            // A client reads nothing after an error.
            let finish = Chunk::Finish { finish_reason: UiFinishReason::Error, message_metadata: None };
            vec![Chunk::MessageMetadata { message_metadata }, Chunk::Error { error_text }, finish]
        }
        // The output of the call names the memories.
        EventBody::MemoryTold(_)
        | EventBody::AttemptStarted(_)
        | EventBody::ContextRetrieved(_)
        | EventBody::CitationDropped(_)
        | EventBody::MessageCompleted(_)
        | EventBody::Unknown => Vec::new(),
    }
}

fn focus(view: &View) -> Option<Chunk> {
    let focus = view.context.as_ref()?.project_focus.clone()?;
    Some(Chunk::DataFocus { data: focus })
}

/// Returns the payload as it is, so that a client receives the fields of a newer version too.
fn payload(event: &Event) -> Value {
    serde_json::from_slice(event.payload()).unwrap_or_default()
}

/// Returns the chunk of an ended child. The outcome of the call has its output.
fn subagent_completed(event: &Event, id: Uuid) -> Chunk {
    let mut data = payload(event);
    if let Some(fields) = data.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "output" | "error" | "base"));
    }
    Chunk::DataSubagent { id, data }
}

fn metadata(view: &View) -> UiMetadata {
    UiMetadata {
        run_id: Some(view.run_id),
        conversation_id: Some(view.conversation_id),
        created_at: Some(view.created_at),
        ..UiMetadata::default()
    }
}

fn whole_text(text: String) -> Vec<Chunk> {
    if text.is_empty() {
        Vec::new()
    } else {
        vec![Chunk::TextStart { id: TEXT }, Chunk::TextDelta { id: TEXT, delta: text }, Chunk::TextEnd { id: TEXT }]
    }
}

fn argument_delta(delta: ToolCallDelta<'_>) -> Vec<Chunk> {
    let (tool_call_id, text) = (delta.call_id.into_owned(), delta.text.into_owned());
    let start = delta
        .name
        .map(|name| Chunk::ToolInputStart { tool: UiTool::new(tool_call_id.clone(), name.into_owned(), delta.by) });
    let delta = (!text.is_empty()).then_some(Chunk::ToolInputDelta { tool_call_id, input_text_delta: text });
    start.into_iter().chain(delta).collect()
}

/// Returns the chunk of a started call. Only a call that a worker makes counts as executed by the provider. A client
/// sends the results of other calls by itself.
fn call_available(call: ToolCallStarted<'_>) -> Chunk {
    let tool = UiTool::new(call.call_id.into_owned(), call.name.into_owned(), Some(call.by));
    let provider_executed = call.by == ExecutedBy::Worker;
    Chunk::ToolInputAvailable { tool, input: call.input.to_value(), provider_executed }
}

/// Returns the chunks of a call that waits for a human. `data-question` has the kind of approval, because an unknown
/// outcome is no ordinary approval.
fn approval_request(request: ApprovalRequested<'_>) -> Vec<Chunk> {
    let (approval_id, call_id) = (request.approval_id, request.call_id.into_owned());
    // Workers alone ask before a call.
    let tool = UiTool::new(call_id.clone(), request.name.into_owned(), Some(ExecutedBy::Worker));
    let data =
        ApprovalDetails { approval_id, call_id: call_id.clone(), kind: request.kind, expires_at: request.expires_at };
    vec![
        Chunk::ToolInputAvailable { tool, input: request.input.to_value(), provider_executed: false },
        Chunk::ToolApprovalRequest { approval_id, tool_call_id: call_id },
        Chunk::DataQuestion { id: approval_id, data },
    ]
}

/// Returns the chunks of a call of a run below that waits for a human. Clients count the calls of the last step only, so
/// the call has a step of its own, without the open call that the child answers.
fn childs_request(child: Uuid, request: ApprovalRequested<'_>) -> Vec<Chunk> {
    let call_id = childs_call_id(child, &request.call_id);
    let request = approval_request(ApprovalRequested { call_id: call_id.into(), ..request });
    [Chunk::FinishStep, Chunk::StartStep].into_iter().chain(request).collect()
}

/// Returns the chunk that closes such a call in the log of its top run, which has no outcome of the call.
fn childs_answer(child: Uuid, resolved: ApprovalResolved<'_>) -> Chunk {
    let tool_call_id = childs_call_id(child, &resolved.call_id);
    match resolved.decision {
        ApprovalStatus::Approved => {
            Chunk::ToolOutputAvailable { tool_call_id, output: Value::from("approved"), dynamic: true }
        }
        _ => Chunk::ToolOutputDenied { tool_call_id },
    }
}

/// Returns the id of a child's call in the stream of the run above: as short as any, and never that of another run's call.
fn childs_call_id(child: Uuid, call_id: &str) -> String {
    format!("call_{}", Uuid::new_v5(&child, call_id.as_bytes()).simple())
}

fn call_completed(call: ToolCallCompleted<'_>) -> Vec<Chunk> {
    let (tool_call_id, name) = (call.call_id.into_owned(), call.name.into_owned());
    let data = CallSummary {
        tool_call_id: tool_call_id.clone(),
        duration_ms: call.duration_ms,
        entities: call.entities.into_iter().map(EntityAccessed::into_owned).collect(),
    };
    let files: Vec<Chunk> = call.files.iter().map(|file| Chunk::of_file(&tool_call_id, file)).collect();
    let duration = Chunk::DataCall { id: tool_call_id.clone(), data };
    let dynamic = is_dynamic(&name, call.by);
    let was_asked_about =
        call.error.as_ref().is_some_and(|error| matches!(error.code.as_str(), "denied" | "approval_expired"));
    // The stream has not shown any other refused call. The SDK's versions treat `tool-input-error` differently, so this
    // wire does not use it.
    let refused = call.input.filter(|_| !was_asked_about).map(|input| {
        let tool = UiTool::new(tool_call_id.clone(), name.clone(), call.by);
        Chunk::ToolInputAvailable { tool, input: input.to_value(), provider_executed: true }
    });
    let outcome = match call.error {
        None => {
            let output = output_of(dynamic, call.output.unwrap_or_default().into_owned());
            Chunk::ToolOutputAvailable { tool_call_id, output, dynamic }
        }
        Some(error) if error.code == "denied" => Chunk::ToolOutputDenied { tool_call_id },
        Some(error) => Chunk::ToolOutputError { tool_call_id, error_text: error.message, dynamic },
    };
    refused.into_iter().chain([outcome]).chain(files).chain([duration]).collect()
}

/// Returns a tool's output for the front end. JSON that the front end's own tool returned becomes JSON again.
fn output_of(dynamic: bool, output: String) -> Value {
    let is_structured = output.starts_with(['{', '[']) && !dynamic;
    let structure = is_structured.then(|| serde_json::from_str(&output).ok()).flatten();
    structure.unwrap_or(Value::String(output))
}

/// Returns the chunk of an approval that can no longer be decided. For a decided one, the end of its call has the
/// chunk.
fn withdrawal(resolved: ApprovalResolved<'_>) -> Option<Chunk> {
    let is_withdrawn = matches!(resolved.decision, ApprovalStatus::Superseded | ApprovalStatus::Cancelled);
    is_withdrawn.then(|| Chunk::ToolOutputDenied { tool_call_id: resolved.call_id.into_owned() })
}

/// Returns the metadata of an ended run's message, whose time is now that of the end.
fn end_metadata(event: &Event) -> UiMetadata {
    UiMetadata { created_at: DateTime::from_timestamp_millis(event.at_ms), ..UiMetadata::default() }
}

fn finish(finish_reason: UiFinishReason, message_metadata: UiMetadata) -> Chunk {
    Chunk::Finish { finish_reason, message_metadata: Some(message_metadata) }
}
