//! What an attempt knows of its run: the trace so far, the calls of the present step, and what both add up to.

use holdfast_shared::{
    approval::{Approval, ApprovalKind},
    finish_reason::FinishReason,
    message::Message,
    storage::{CallState, Earlier, NewTraceMessage, Start, Summary},
    tool::{ToolCall, ToolCallStatus},
    trace::{RequestedCall, TraceMessage, TraceRole},
    usage::Usage,
};
use serde_json::Value;

use super::NextNode;

/// The run so far. Whatever is pushed here is noted for the database by whoever pushes it.
pub struct Memory {
    /// What stands for all that came before `earlier`.
    pub summary: Option<Summary>,
    /// Messages before the run's own input, oldest first.
    pub earlier: Vec<Earlier>,
    pub input: Message,
    pub trace: Vec<NewTraceMessage>,
    /// The calls of the newest step, in the order in which the model asked for them.
    pub calls: Vec<StepCall>,
    /// Calls of all steps.
    pub calls_made: u32,
    /// The newest step; 0 before the first.
    pub step: u32,
    pub usage: Usage,
    /// Why the newest step has ended.
    pub finish_reason: Option<FinishReason>,
    /// What checkpoints carry from run to run.
    pub metadata: Value,
}

/// A call of the newest step.
pub struct StepCall {
    pub state: CallState,
    /// The newest question about it.
    pub approval: Option<Approval>,
}

impl StepCall {
    /// Whether nobody has been told of the call but the one who was asked to approve it.
    pub fn never_started(&self) -> bool {
        match self.state.status {
            ToolCallStatus::Requested => true,
            ToolCallStatus::Waiting => {
                self.approval.as_ref().is_some_and(|approval| approval.kind == ApprovalKind::Policy)
            }
            _ => false,
        }
    }
}

impl Memory {
    /// What earlier attempts have left, or a fresh run.
    pub fn of(start: Start) -> Self {
        let Start { history, trace, calls, approvals, metadata, finish_reason, .. } = start;
        let trace: Vec<NewTraceMessage> = trace.into_iter().map(new_trace_message).collect();
        let step = trace.iter().map(|message| message.step).max().unwrap_or(0);
        let calls_made = calls.len() as u32;
        let newest = calls.into_iter().filter(|call| call.step == step).enumerate();
        let calls = newest.map(|(position, call)| {
            let approval = approvals.iter().rev().find(|approval| approval.call_id == call.call_id).cloned();
            StepCall { state: state_of(call, position), approval }
        });
        let usage = trace.iter().filter_map(|message| message.usage).sum();
        Self {
            summary: history.summary,
            earlier: history.earlier,
            input: history.input,
            calls: calls.collect(),
            trace,
            calls_made,
            step,
            usage,
            finish_reason,
            metadata,
        }
    }

    /// Where the graph goes on.
    pub fn next(&self) -> NextNode {
        match self.trace.last() {
            Some(message) if message.role == TraceRole::Assistant && message.tool_calls.is_empty() => NextNode::Respond,
            Some(message) if message.role == TraceRole::Assistant => NextNode::Tools,
            _ => NextNode::Process,
        }
    }

    /// What the run has said in all steps.
    pub fn text(&self) -> String {
        let messages = self.trace.iter().filter(|message| message.role == TraceRole::Assistant);
        messages.map(|message| message.content.as_str()).collect()
    }

    /// Puts a message at the end of the trace, and answers it for the database.
    pub fn push(&mut self, role: TraceRole, content: String, step: u32) -> &mut NewTraceMessage {
        self.trace.push(NewTraceMessage {
            position: self.trace.len() as u32 + 1,
            step,
            role,
            content,
            tool_calls: Vec::new(),
            call_id: None,
            is_error: false,
            usage: None,
        });
        self.trace.last_mut().expect("a message was just pushed")
    }

    /// The arguments that the model has asked for.
    pub fn requested_input(&self, call_id: &str) -> Option<&Value> {
        self.requested_call(call_id).map(|requested_call| &requested_call.input)
    }

    /// The call as the model has asked for it.
    pub fn requested_call(&self, call_id: &str) -> Option<&RequestedCall> {
        self.trace
            .iter()
            .flat_map(|message| &message.tool_calls)
            .find(|requested_call| requested_call.call_id == call_id)
    }

    /// Takes up the calls that the newest step asks for.
    pub fn add_calls(&mut self, calls: &[RequestedCall]) {
        self.calls_made += calls.len() as u32;
        let step_calls = calls.iter().enumerate().map(|(position, call)| StepCall {
            state: CallState {
                call_id: call.call_id.clone(),
                step: self.step,
                position,
                name: call.name.clone(),
                input: call.input.clone(),
                effect: Default::default(),
                status: ToolCallStatus::Requested,
                schema: None,
                expires_at: None,
                output: None,
                error: None,
                duration_ms: None,
            },
            approval: None,
        });
        self.calls = step_calls.collect();
    }
}

fn new_trace_message(message: TraceMessage) -> NewTraceMessage {
    let TraceMessage { position, step, role, content, tool_calls, call_id, is_error, usage, .. } = message;
    NewTraceMessage { position, step, role, content, tool_calls, call_id, is_error, usage }
}

fn state_of(call: ToolCall, position: usize) -> CallState {
    let ToolCall { call_id, step, name, input, effect, status, output, error, duration_ms, expires_at, .. } = call;
    CallState {
        call_id,
        step,
        position,
        name,
        input,
        effect,
        status,
        schema: None,
        expires_at,
        output,
        error,
        duration_ms,
    }
}
