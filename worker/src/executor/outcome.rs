//! The records of a call: its intent, and its outcome.

use std::time::Duration;

use holdfast_shared::{
    event::{EventBody, ExecutedBy, MemoryTold, ToolCallCompleted, ToolCallStarted},
    excerpt,
    storable::storable,
    storage::{CallState, Progress},
    tool::{ToolCallStatus, ToolError},
    usage::Usage,
};
use serde_json::Value;

use super::{
    attempt::Attempt,
    knowledge,
    workspace::{accessed, tell},
};
use crate::tools::{CallResult, Tool};

/// Most entities that the event of a call names.
const MAX_ENTITIES: usize = 50;

/// The outcome of a call: its index in the step, its result, and how long it took.
pub type CallOutcome = (usize, Result<CallResult, ToolError>, Duration);

/// Records that the executor itself answers a call.
pub fn intend_here(attempt: &mut Attempt<'_>, index: usize) {
    let state = &attempt.memory.calls[index].state;
    let (tool, input) = (attempt.tool(&state.name).cloned(), state.input.clone());
    intend(attempt, index, &tool.expect("only a call of a tool is answered"), input);
}

/// Records the intent to make a call.
pub fn intend(attempt: &mut Attempt<'_>, index: usize, tool: &Tool, input: Value) {
    let state = &mut attempt.memory.calls[index].state;
    (state.status, state.effect, state.input) = (ToolCallStatus::Called, tool.effect, input);
    let state = state.clone();
    attempt.recorder.emit(&intent(&state));
    let resume_at = Some(attempt.recorder.last());
    attempt.recorder.note(Progress { calls: vec![state], resume_at, ..Progress::default() });
}

/// Returns the event of the intent to make a call.
pub fn intent(state: &CallState) -> EventBody<'_> {
    EventBody::ToolCallStarted(ToolCallStarted {
        call_id: state.call_id.as_str().into(),
        step: state.step,
        name: state.name.as_str().into(),
        input: (&state.input).into(),
        by: ExecutedBy::Worker,
        expires_at: None,
    })
}

/// Gives the passages of a result their numbers, and names them in its text.
fn with_numbers(attempt: &mut Attempt<'_>, index: usize, mut result: CallResult) -> CallResult {
    let passages = std::mem::take(&mut result.passages);
    if !passages.is_empty() {
        let call_id = attempt.memory.calls[index].state.call_id.clone();
        result.output = knowledge::result_of(attempt, &call_id, passages);
    }
    result
}

/// Records the outcome of a call.
pub fn complete(attempt: &mut Attempt<'_>, (index, outcome, duration): CallOutcome) {
    attempt.signs_of_life.note();
    let outcome = outcome.map(|result| with_numbers(attempt, index, result));
    let most = attempt.shared.worker.tools.tool_result_bytes;
    let duration_ms = duration.as_millis() as u64;
    let never_started = attempt.memory.calls[index].never_started();
    let state = &mut attempt.memory.calls[index].state;
    state.status = ToolCallStatus::Completed;
    state.duration_ms = Some(duration_ms);
    let CallResult { output, entities, notice, files, told, .. } = match outcome {
        Ok(result) => {
            state.error = None;
            result
        }
        Err(error) => {
            state.error = Some(ToolError { message: excerpt::bytes(storable(error.message), most), ..error });
            CallResult::default()
        }
    };
    state.output = state.error.is_none().then(|| excerpt::bytes(storable(output), most));
    state.files = files;
    let state = state.clone();
    attempt.memory.note_files(&state);
    let code = state.error.as_ref().map_or("ok", |error| error.code.as_str());
    tracing::info!(
        tool.name = state.name,
        tool.call_id = state.call_id,
        outcome = code,
        duration_ms,
        "tool call ended"
    );
    attempt.recorder.emit(&EventBody::ToolCallCompleted(ToolCallCompleted {
        base: None,
        call_id: state.call_id.as_str().into(),
        name: state.name.as_str().into(),
        by: state.by,
        input: never_started.then(|| (&state.input).into()),
        output: state.output.as_deref().map(Into::into),
        error: state.error.clone(),
        entities: entities.iter().take(MAX_ENTITIES).map(accessed).collect(),
        files: state.files.clone(),
        duration_ms,
    }));
    if !told.is_empty() {
        let call_id = state.call_id.as_str().into();
        attempt.recorder.emit(&EventBody::MemoryTold(MemoryTold { call_id, memories: told }));
    }
    if let Some(notice) = notice {
        tell(attempt, notice);
    }
    let usage = attempt.toolbox.workspace().map(|of_run| of_run.take_usage()).unwrap_or_default();
    if usage != Usage::default() {
        attempt.memory.add_usage_aside(usage);
        attempt.recorder.note(Progress { usage: Some(attempt.memory.usage), ..Progress::default() });
    }
    let resume_at = Some(attempt.recorder.last());
    attempt.recorder.note(Progress { calls: vec![state], resume_at, ..Progress::default() });
}
