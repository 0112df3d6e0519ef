//! An answer whose events have expired, from its trace and its calls, which the database keeps for longer. It lacks the
//! reasoning and the data parts.

use holdfast_shared::{
    event::ToolCallCompleted,
    run::Run,
    tool::{ToolCall, ToolCallStatus},
    trace::{TraceMessage, TraceRole},
};

use super::{
    Chunk, TEXT, UiMessage, call_completed,
    chunk::{UiMetadata, UiTool, is_server_tool},
};

/// Returns the answer of a run, or `None` if the run has no trace.
pub fn answer_from_trace(run: &Run, trace: Vec<TraceMessage>, calls: &[ToolCall]) -> Option<UiMessage> {
    let mut message = UiMessage::new(run.output_message_id.to_string(), "assistant", Vec::new());
    let mut steps = trace.into_iter().filter(|step| step.role == TraceRole::Assistant).peekable();
    steps.peek()?;
    message.apply(Chunk::Start { message_id: run.output_message_id, message_metadata: metadata(run) });
    for step in steps {
        message.apply(Chunk::StartStep);
        if !step.content.is_empty() {
            message.apply(Chunk::TextStart { id: TEXT });
            message.apply(Chunk::TextDelta { id: TEXT, delta: step.content });
            message.apply(Chunk::TextEnd { id: TEXT });
        }
        for request in step.tool_calls {
            let Some(call) = calls.iter().find(|call| call.call_id == request.call_id) else { continue };
            chunks_of_call(call).into_iter().for_each(|chunk| message.apply(chunk));
        }
    }
    Some(message)
}

fn metadata(run: &Run) -> UiMetadata {
    UiMetadata {
        run_id: Some(run.id),
        conversation_id: Some(run.conversation_id),
        created_at: Some(run.created_at),
        status: Some(run.status),
        error: run.error.clone(),
        usage: run.usage,
        finish_reason: run.finish_reason,
    }
}

fn chunks_of_call(call: &ToolCall) -> Vec<Chunk> {
    let provider_executed = is_server_tool(&call.name);
    let tool = UiTool::new(call.call_id.clone(), call.name.clone());
    let mut chunks = vec![Chunk::ToolInputAvailable { tool, input: call.input.clone(), provider_executed }];
    if call.status == ToolCallStatus::Completed {
        chunks.extend(call_completed(ToolCallCompleted {
            base: None,
            call_id: call.call_id.as_str().into(),
            name: call.name.as_str().into(),
            input: None,
            output: call.output.as_deref().map(Into::into),
            error: call.error.clone(),
            duration_ms: call.duration_ms.unwrap_or_default(),
        }));
    }
    chunks
}
