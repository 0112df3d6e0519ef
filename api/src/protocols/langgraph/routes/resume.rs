//! The value of `resume`: the answers to the interrupts of a thread, in the forms in which clients write them.

use std::collections::HashSet;

use holdfast_shared::{
    approval::ApprovalStatus,
    run::{Run, RunStatus},
    tool::ToolCallStatus,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::request::result_of;
use crate::{app::App, problem::Problem, thread::PartAnswer};

/// Returns the answers that a value of `resume` has: one by one for each id of an interrupt, or one for the only interrupt.
pub async fn answers_of(app: &App, run: &Run, value: &Value) -> Result<Vec<PartAnswer>, Problem> {
    let open = open_questions(app, run).await?;
    let by_id =
        value.as_object().filter(|fields| !fields.is_empty() && fields.keys().all(|id| open.all.contains(id.as_str())));
    if let Some(fields) = by_id {
        return fields.iter().map(|(id, value)| answer_to(id, value)).collect();
    }
    if run.status != RunStatus::Waiting || open.open.is_empty() {
        return Err(Problem::run_not_waiting(run.id));
    }
    // A client without ids has a list of answers, in the order of the questions.
    let listed = value["decisions"].as_array().or_else(|| human_responses(value));
    match (&open.open[..], listed.filter(|listed| listed.len() == open.open.len())) {
        (ids, Some(listed)) => ids.iter().zip(listed).map(|(id, value)| answer_to(id, value)).collect(),
        ([id], None) => Ok(vec![answer_to(id, value)?]),
        _ => Err(Problem::invalid_body(
            "Several interrupts are open; resume has a field for each, whose name is the id of the interrupt.",
        )),
    }
}

/// Returns answers by the ids of their questions. Fails if one is no question of the run: a repeated answer must not reach another.
pub async fn answers_by_id(app: &App, run: &Run, answers: &Map<String, Value>) -> Result<Vec<PartAnswer>, Problem> {
    let questions = open_questions(app, run).await?;
    if !answers.keys().all(|id| questions.all.contains(id.as_str())) {
        return Err(Problem::run_not_waiting(run.id));
    }
    answers.iter().map(|(id, value)| answer_to(id, value)).collect()
}

/// Returns a list of answers as Agent Inbox and agent-chat-ui write it: `[{type: "accept" | "edit" | "response" | "ignore", args}]`.
fn human_responses(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|answers| answers.iter().all(|answer| decision_of(answer).is_some()))
}

/// The questions of a run, by their ids.
struct RunQuestions {
    all: HashSet<String>,
    /// Those without an answer, in the order in which the run asked them.
    open: Vec<String>,
}

async fn open_questions(app: &App, run: &Run) -> Result<RunQuestions, Problem> {
    let (approvals, calls) = tokio::try_join!(app.storage().approvals(run.id), app.storage().tool_calls(run.id))?;
    let mut questions = RunQuestions { all: HashSet::new(), open: Vec::new() };
    for approval in approvals {
        let id = approval.id.to_string();
        if approval.status == ApprovalStatus::Pending {
            questions.open.push(id.clone());
        }
        questions.all.insert(id);
    }
    for call in calls {
        if call.status == ToolCallStatus::Client {
            questions.open.push(call.call_id.clone());
        }
        questions.all.insert(call.call_id);
    }
    Ok(questions)
}

/// Returns the answer to a question: to an approval, whose id is a UUID, or the result of a call.
fn answer_to(id: &str, value: &Value) -> Result<PartAnswer, Problem> {
    let Ok(approval) = Uuid::try_parse(id) else {
        // The SDK's headless tools send `{"error": …}` for a failure.
        let error = value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.get("error"));
        let result = result_of(error.unwrap_or(value), error.is_some())?;
        return Ok(PartAnswer::Result { call_id: id.to_owned(), result });
    };
    let HumanAnswer { approved, reason, edited_input } = HumanAnswer::of(value).ok_or_else(|| {
        Problem::invalid_body(
            "The answer to an interrupt is an object such as {\"approved\": true, \"reason\": \"…\"}, a boolean, or one of the forms \
             that docs/langgraph.md lists.",
        )
    })?;
    Ok(PartAnswer::Approval { id: approval, approved, reason, edited_input })
}

/// A human's answer to the question whether a call may be made.
#[derive(Debug, PartialEq)]
struct HumanAnswer {
    approved: bool,
    reason: Option<String>,
    /// The arguments with which the human has replaced those of the model.
    edited_input: Option<Value>,
}

impl HumanAnswer {
    fn of(value: &Value) -> Option<Self> {
        // A list for the only question: of LangChain's middleware for humans in the loop, or of Agent Inbox.
        let value = match (value["decisions"].get(0), human_responses(value).map(Vec::as_slice)) {
            (Some(only), _) | (None, Some([only])) => only,
            _ => value,
        };
        let approved = value["approved"].as_bool().or_else(|| value.as_bool()).or_else(|| decision_of(value))?;
        // A refusal says why: `args` of a response is the text that the human has written.
        let written = value["args"].as_str().filter(|_| value["type"] == "response");
        let reason = [&value["reason"], &value["message"]].into_iter().find_map(Value::as_str).or(written);
        let action = ["edited_action", "editedAction"].iter().find_map(|name| value.get(*name));
        let edited = action.or_else(|| value.get("args").filter(|_| value["type"] == "edit"));
        let edited = edited.and_then(|action| action.get("args"));
        let edited_input = value.get("input").or(edited).filter(|input| input.is_object()).cloned();
        Some(Self { approved, reason: reason.map(str::to_owned), edited_input })
    }
}

/// Returns whether an answer of a known type lets the call be made. A response instead of the call refuses it.
fn decision_of(answer: &Value) -> Option<bool> {
    match answer["type"].as_str()? {
        "approve" | "accept" | "edit" => Some(true),
        "reject" | "ignore" | "response" | "respond" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_client_s_form_of_an_answer_is_read() {
        let check = |value: Value, approved: bool, reason: Option<&str>, edited_input: Option<Value>| {
            let expected = HumanAnswer { approved, reason: reason.map(str::to_owned), edited_input };
            assert_eq!(HumanAnswer::of(&value), Some(expected), "{value}");
        };
        let input = json!({"text": "ho"});
        let action = json!({"action": "echo", "args": input});
        check(json!(true), true, None, None);
        check(json!({"approved": false, "reason": "no"}), false, Some("no"), None);
        check(json!({"approved": true, "input": input}), true, None, Some(input.clone()));
        check(json!({"decisions": [{"type": "approve"}]}), true, None, None);
        check(json!({"decisions": [{"type": "reject", "message": "no"}]}), false, Some("no"), None);
        let edit = json!({"type": "edit", "edited_action": {"name": "echo", "args": input}});
        check(json!({"decisions": [edit]}), true, None, Some(input.clone()));
        check(json!([{"type": "accept", "args": null}]), true, None, None);
        check(json!([{"type": "accept", "args": action}]), true, None, None);
        check(json!([{"type": "edit", "args": action}]), true, None, Some(input.clone()));
        check(json!([{"type": "response", "args": "later, please"}]), false, Some("later, please"), None);
        check(json!([{"type": "ignore", "args": null}]), false, None, None);
        check(json!({"type": "ignore"}), false, None, None);
        check(json!({"type": "edit", "args": action}), true, None, Some(input));
        let two = json!([{"type": "accept"}, {"type": "accept"}]);
        for unknown in [two, json!("yes"), json!(null), json!([]), json!([1]), json!({"type": "maybe"}), json!({})] {
            assert_eq!(HumanAnswer::of(&unknown), None, "{unknown}");
        }
    }
}
