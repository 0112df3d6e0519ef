//! An answer whose events are past their time, from what is kept for longer: its trace and its calls. Its reasoning is gone, and
//! so are the parts that say what went on.

use holdfast_shared::{
    event::ToolCallCompleted,
    run::Run,
    tool::{ToolCall, ToolCallStatus},
    trace::{TraceMessage, TraceRole},
};

use super::{
    Chunk, TEXT, UiMessage,
    chunk::{Metadata, UiTool, is_a_servers},
    completed,
};

/// `None` for an answer that has left no trace.
pub fn recalled(run: &Run, trace: Vec<TraceMessage>, calls: &[ToolCall]) -> Option<UiMessage> {
    let mut message = UiMessage::new(run.output_message_id.to_string(), "assistant", Vec::new());
    let mut steps = trace.into_iter().filter(|said| said.role == TraceRole::Assistant).peekable();
    steps.peek()?;
    message.apply(Chunk::Start { message_id: run.output_message_id, message_metadata: metadata(run) });
    for said in steps {
        message.apply(Chunk::StartStep);
        if !said.content.is_empty() {
            message.apply(Chunk::TextStart { id: TEXT });
            message.apply(Chunk::TextDelta { id: TEXT, delta: said.content });
            message.apply(Chunk::TextEnd { id: TEXT });
        }
        for asked in said.tool_calls {
            let Some(call) = calls.iter().find(|call| call.call_id == asked.call_id) else { continue };
            made(call).into_iter().for_each(|chunk| message.apply(chunk));
        }
    }
    Some(message)
}

fn metadata(run: &Run) -> Metadata {
    Metadata {
        run_id: Some(run.id),
        conversation_id: Some(run.conversation_id),
        created_at: Some(run.created_at),
        status: Some(run.status),
        error: run.error.clone(),
        usage: run.usage,
        finish_reason: run.finish_reason,
    }
}

fn made(call: &ToolCall) -> Vec<Chunk> {
    let provider_executed = is_a_servers(&call.name);
    let tool = UiTool::new(call.call_id.clone(), call.name.clone());
    let mut chunks = vec![Chunk::ToolInputAvailable { tool, input: call.input.clone(), provider_executed }];
    if call.status == ToolCallStatus::Completed {
        chunks.extend(completed(ToolCallCompleted {
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
