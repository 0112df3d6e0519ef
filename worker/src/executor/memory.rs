//! What an attempt knows of its run: the trace so far, the calls of the present step, and what both add up to.

use holdfast_shared::{
    approval::{Approval, ApprovalKind},
    finish_reason::FinishReason,
    message::Message,
    storage::{CallState, EarlierMessage, NewTraceMessage, Start, Summary},
    tool::{ToolCall, ToolCallStatus},
    trace::{RequestedCall, TraceMessage, TraceRole},
    usage::Usage,
};
use serde_json::Value;

use super::Next;

/// The run so far. Whatever is pushed here is noted for the database by whoever pushes it.
pub struct Memory {
    /// What stands for all that came before `earlier`.
    pub summary: Option<Summary>,
    /// Messages before the run's own input, oldest first.
    pub earlier: Vec<EarlierMessage>,
    pub input: Message,
    pub trace: Vec<NewTraceMessage>,
    /// The calls of the newest step, in the order in which the model asked for them.
    pub calls: Vec<Pending>,
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
pub struct Pending {
    pub state: CallState,
    /// The newest question about it.
    pub approval: Option<Approval>,
}

impl Pending {
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
        let trace: Vec<NewTraceMessage> = trace.into_iter().map(remembered).collect();
        let step = trace.iter().map(|said| said.step).max().unwrap_or(0);
        let calls_made = calls.len() as u32;
        let newest = calls.into_iter().filter(|call| call.step == step).enumerate();
        let calls = newest.map(|(position, call)| {
            let approval = approvals.iter().rev().find(|approval| approval.call_id == call.call_id).cloned();
            Pending { state: state_of(call, position), approval }
        });
        let usage = trace.iter().filter_map(|said| said.usage).sum();
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
    pub fn next(&self) -> Next {
        match self.trace.last() {
            Some(said) if said.role == TraceRole::Assistant && said.tool_calls.is_empty() => Next::Respond,
            Some(said) if said.role == TraceRole::Assistant => Next::Tools,
            _ => Next::Process,
        }
    }

    /// What the run has said in all steps.
    pub fn text(&self) -> String {
        let said = self.trace.iter().filter(|said| said.role == TraceRole::Assistant);
        said.map(|said| said.content.as_str()).collect()
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
    pub fn asked_input(&self, call_id: &str) -> Option<&Value> {
        self.asked(call_id).map(|asked| &asked.input)
    }

    /// The call as the model has asked for it.
    pub fn asked(&self, call_id: &str) -> Option<&RequestedCall> {
        self.trace.iter().flat_map(|said| &said.tool_calls).find(|asked| asked.call_id == call_id)
    }

    /// Takes up the calls that the newest step asks for.
    pub fn ask_for(&mut self, calls: &[RequestedCall]) {
        self.calls_made += calls.len() as u32;
        let pending = calls.iter().enumerate().map(|(position, call)| Pending {
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
        self.calls = pending.collect();
    }
}

fn remembered(said: TraceMessage) -> NewTraceMessage {
    let TraceMessage { position, step, role, content, tool_calls, call_id, is_error, usage, .. } = said;
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
