//! Answers to the questions of a waiting run: approvals, and results of tools that the front end executes.

use std::sync::Arc;

use axum::http::StatusCode;
use holdfast_shared::{
    approval::{ApprovalStatus, Decision},
    run::Run,
    storage::ClientResult,
    tool::ToolCallStatus,
};
use serde_json::Value;
use uuid::Uuid;

use crate::{app::App, auth::Caller, problem::Problem};

/// An answer to a question of a run, as a client's request has it.
pub enum PartAnswer {
    Approval {
        id: Uuid,
        approved: bool,
        reason: Option<String>,
        /// Arguments that replace those of the model.
        edited_input: Option<Value>,
    },
    Result {
        call_id: String,
        result: ClientResult,
    },
}

impl PartAnswer {
    /// Returns the id of the question, as the run log has it.
    pub fn question(&self) -> String {
        match self {
            Self::Approval { id, .. } => id.to_string(),
            Self::Result { call_id, .. } => call_id.clone(),
        }
    }
}

/// Gives a run the answers that it waits for. It does not trust the parts about a call: an answer applies to the stored call, and
/// the first answer counts.
pub async fn answer_questions(
    app: &Arc<App>,
    caller: &Caller,
    run: &Run,
    answers: Vec<PartAnswer>,
) -> Result<(), Problem> {
    let approvals = app.storage().approvals(run.id).await?;
    let calls = app.storage().tool_calls(run.id).await?;
    // Clients repeat an answer until the call has an end, which an abandoned call never has.
    let is_abandoned =
        |call_id: &str| calls.iter().any(|call| call.call_id == call_id && call.status == ToolCallStatus::Abandoned);
    let call_of = |answer: &PartAnswer| match answer {
        PartAnswer::Approval { id, .. } => {
            approvals.iter().find(|approval| approval.id == *id).map(|approval| &approval.call_id)
        }
        PartAnswer::Result { call_id, .. } => calls.iter().map(|call| &call.call_id).find(|id| *id == call_id),
    };
    if answers.iter().filter_map(call_of).any(|call_id| is_abandoned(call_id)) {
        return Err(Problem::run_not_waiting(run.id));
    }
    let is_open = |answer: &PartAnswer| match answer {
        PartAnswer::Approval { id, .. } => {
            approvals.iter().any(|approval| approval.id == *id && approval.status == ApprovalStatus::Pending)
        }
        PartAnswer::Result { call_id, .. } => {
            calls.iter().any(|call| call.call_id == *call_id && call.status == ToolCallStatus::Client)
        }
    };
    for answer in answers.into_iter().filter(is_open) {
        let result = match answer {
            PartAnswer::Approval { id, approved, reason, edited_input } => {
                let decision =
                    if approved { Decision::Approve { edited_input, reason } } else { Decision::Deny { reason } };
                app.decide(caller, run.id, id, decision).await
            }
            PartAnswer::Result { call_id, result } => {
                app.complete_client_call(&caller.owner, run.id, call_id, result).await
            }
        };
        match result {
            Ok(_) => {}
            // Another request answered first.
            Err(problem) if problem.status == StatusCode::CONFLICT => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}
