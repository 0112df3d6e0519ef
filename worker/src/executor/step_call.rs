//! A call of the newest step, with the newest question about it.

use holdfast_shared::{
    approval::{Approval, ApprovalKind},
    storage::CallState,
    tool::{ToolCall, ToolCallStatus},
};

/// A call of the newest step.
pub struct StepCall {
    pub state: CallState,
    /// The newest question about the call.
    pub approval: Option<Approval>,
}

impl StepCall {
    /// Returns whether no event has announced the call, except to the human who must approve it.
    pub fn never_started(&self) -> bool {
        match self.state.status {
            ToolCallStatus::Requested => true,
            ToolCallStatus::Waiting => {
                self.approval.as_ref().is_some_and(|approval| approval.kind != ApprovalKind::UnknownOutcome)
            }
            _ => false,
        }
    }
}

/// Returns the state of a call at this position of its step.
pub fn state_of(call: ToolCall, position: usize) -> CallState {
    let ToolCall {
        call_id,
        step,
        name,
        by,
        input,
        effect,
        status,
        child_run_id,
        output,
        error,
        files,
        duration_ms,
        expires_at,
        ..
    } = call;
    CallState {
        call_id,
        step,
        position,
        name,
        by,
        input,
        effect,
        status,
        schema: None,
        expires_at,
        child_run_id,
        output,
        error,
        files,
        duration_ms,
    }
}
