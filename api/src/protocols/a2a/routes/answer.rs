//! Answers to the questions of a task: decisions about approvals, and results of calls that a front end executes.

use holdfast_shared::{approval::ApprovalStatus, given_json, run::Run, storable::has_nul, storage::ClientResult};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::call::A2aCall;
use crate::{problem::Problem, thread::PartAnswer};

/// An answer to a question of a task.
pub enum TaskAnswer {
    Decision(TaskDecision),
    Result(TaskResult),
}

/// A decision about an approval.
pub struct TaskDecision {
    /// The approval; needed if the task has asked more than once.
    approval_id: Option<Uuid>,
    approves: bool,
    reason: Option<String>,
    /// Arguments that replace those of the model.
    edited_input: Option<Value>,
}

/// The result of a call.
pub struct TaskResult {
    call_id: String,
    result: ClientResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecisionPart {
    decision: String,
    approval_id: Option<Uuid>,
    reason: Option<String>,
    input: Option<Value>,
}

impl TaskAnswer {
    /// Returns the answer that a data part has, if it has one. Fails if the answer is invalid.
    pub fn read(data: &Value) -> Result<Option<Self>, Problem> {
        let answer = if data.get("decision").is_some() {
            Some(Self::Decision(TaskDecision::read(data)?))
        } else {
            TaskResult::read(data)?.map(Self::Result)
        };
        if answer.is_some() && has_nul(data) {
            return Err(Problem::invalid_content());
        }
        Ok(answer)
    }
}

impl TaskDecision {
    fn read(data: &Value) -> Result<Self, Problem> {
        let part: DecisionPart = given_json::read(data)
            .map_err(|problem| Problem::invalid_body(format!("A decision is invalid: {problem}.")))?;
        let approves = match part.decision.as_str() {
            "approve" => true,
            "deny" => false,
            _ => return Err(Problem::invalid_body("A decision is \"approve\" or \"deny\".")),
        };
        let edited_input = part.input.filter(Value::is_object);
        Ok(Self { approval_id: part.approval_id, approves, reason: part.reason, edited_input })
    }
}

impl TaskResult {
    fn read(data: &Value) -> Result<Option<Self>, Problem> {
        let Some(call_id) = data.get("callId").and_then(Value::as_str) else { return Ok(None) };
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let result = match (data.get("result"), data.get("error")) {
            (Some(result), None) => ClientResult::Output(text(result)),
            (None, Some(error)) => ClientResult::Error(text(error)),
            (Some(_), Some(_)) => {
                return Err(Problem::invalid_body("The result of a call is either a result or an error."));
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(Self { call_id: call_id.to_owned(), result }))
    }
}

/// Returns answers, each with its question. Fails if a decision does not say which of several approvals it means.
pub async fn named(call: &A2aCall<'_>, run: &Run, answers: Vec<TaskAnswer>) -> Result<Vec<PartAnswer>, Problem> {
    let approvals = call.app.storage().approvals(run.id).await?;
    // A repeated message must not answer the next question, so only a single approval needs no name.
    let single = match &approvals[..] {
        [approval] if approval.status != ApprovalStatus::Cancelled => Some(approval.id),
        _ => None,
    };
    let answer = |answer: TaskAnswer| {
        let decision = match answer {
            TaskAnswer::Decision(decision) => decision,
            TaskAnswer::Result(TaskResult { call_id, result }) => return Ok(PartAnswer::Result { call_id, result }),
        };
        let id = decision.approval_id.or(single).ok_or_else(|| match approvals.len() {
            0 | 1 => Problem::run_not_waiting(run.id),
            _ => Problem::invalid_body("The task has asked more than once: add the approvalId of the question."),
        })?;
        let TaskDecision { approves: approved, reason, edited_input, .. } = decision;
        Ok(PartAnswer::Approval { id, approved, reason, edited_input })
    };
    answers.into_iter().map(answer).collect()
}
