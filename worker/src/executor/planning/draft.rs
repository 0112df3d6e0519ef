//! How a plan comes to be: a call of `agent_create_plan` makes it, and a reviewer or a human may judge it.

use holdfast_shared::{
    agent::ModelRole,
    approval::{ApprovalKind, ApprovalStatus},
    config::Provider,
    event::{EventBody, PlanCreated, PlanReviewed, PlanUpdated},
    excerpt,
    plan::{self, ExecutionMode, Plan, PlanInput, PlanReview, PlanStatus, PlanStep, ReviewedBy, Verdict},
    storable::storable,
    storage::{CallState, Progress, StepState},
    tool::{ToolCallStatus, ToolError},
    usage::Usage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    execution::start_child,
    prompts,
    steps::{check_steps, scope},
};
use crate::executor::{
    Stop,
    attempt::Attempt,
    call_plan::CallPlan,
    outcome::{complete, intend_here},
    side_call::ask_aside,
};
use crate::model::{Request, Turn};

/// Reviews by a reviewer before a human decides.
const MOST_ROUNDS: u32 = 2;

/// Times that the model is asked for steps, if it cannot be executed what it has written.
const TRIES: usize = 3;

/// Characters of the user's message that a plan keeps.
const MESSAGE_CHARS: usize = 4000;

/// The needs of a call of `agent_create_plan`.
pub enum Drafting {
    /// Nothing: the call has its outcome.
    Complete,
    /// The end of the reviewer's run.
    AwaitsReviewer,
    /// The answer to this question.
    AsksHuman(CallPlan),
}

/// The next action for a plan that is not executed yet.
#[derive(Debug, PartialEq)]
enum DraftAction {
    Execute,
    Refuse(ToolError),
    Review(u32),
    AwaitReviewer,
    /// The reviewer's run has ended with this text.
    Judge(u32, Result<String, String>),
    Revise,
    AskHuman,
}

/// Brings a call of `agent_create_plan` to its outcome, as far as that is possible now.
pub async fn make_plan(attempt: &mut Attempt<'_>, index: usize, input: Value) -> Result<Drafting, Stop> {
    let call_id = attempt.memory.calls[index].state.call_id.clone();
    match &attempt.memory.plan {
        Some(plan) if plan.call_id == call_id => {}
        Some(plan) if plan.is_open() => {
            let error =
                ToolError::new("plan_under_way", "this run executes a plan already; make another one afterwards");
            return Ok(refuse(attempt, index, error));
        }
        _ => match first_version(attempt, &call_id, input).await? {
            Ok(plan) => create(attempt, plan),
            Err(error) => return Ok(refuse(attempt, index, error)),
        },
    }
    loop {
        match next(attempt, index) {
            DraftAction::Execute => return Ok(execute(attempt, index)),
            DraftAction::Refuse(error) => {
                set_status(attempt, PlanStatus::Failed);
                return Ok(refuse(attempt, index, error));
            }
            DraftAction::Review(round) => {
                if let Err(error) = start_reviewer(attempt, round).await? {
                    set_status(attempt, PlanStatus::Failed);
                    return Ok(refuse(attempt, index, error));
                }
                return Ok(Drafting::AwaitsReviewer);
            }
            DraftAction::AwaitReviewer => return Ok(Drafting::AwaitsReviewer),
            DraftAction::Judge(round, answer) => {
                let (verdict, notes) = verdict_of(attempt, answer);
                review(attempt, PlanReview { round, verdict, notes, by: ReviewedBy::Reviewer });
            }
            DraftAction::Revise => revise(attempt).await?,
            DraftAction::AskHuman => {
                let plan = attempt.memory.plan.as_deref().expect("a plan was made");
                let notes = plan.metadata.reviews.last().map(|review| review.notes.clone());
                let mut input = json!(plan);
                input["notes"] = json!(notes);
                return Ok(Drafting::AsksHuman(CallPlan::Ask(ApprovalKind::Plan, input)));
            }
        }
    }
}

/// Decides about the plan, and records a human's answer.
fn next(attempt: &mut Attempt<'_>, index: usize) -> DraftAction {
    let approval = attempt.memory.calls[index].approval.clone();
    if let Some(approval) = approval.filter(|approval| approval.status != ApprovalStatus::Pending) {
        return answered(attempt, approval.status, approval.edited_input, approval.reason);
    }
    let plan = attempt.memory.plan.as_deref().expect("a plan was made");
    match plan.execution_mode {
        ExecutionMode::AutoExecute => DraftAction::Execute,
        ExecutionMode::DraftOnly => DraftAction::AskHuman,
        ExecutionMode::AgentReview => next_of_review(plan, &attempt.memory.plan_calls),
    }
}

fn next_of_review(plan: &Plan, calls: &[CallState]) -> DraftAction {
    let judged = plan.metadata.reviews.last();
    let round = judged.map_or(0, |review| review.round) + 1;
    let is_asked = |call: &&CallState| {
        call.name == plan::REVIEW_CALL && call.input["plan_id"] == json!(plan.id) && call.input["round"] == json!(round)
    };
    match (calls.iter().find(is_asked), judged) {
        (Some(call), _) if call.status != ToolCallStatus::Completed => DraftAction::AwaitReviewer,
        (Some(call), _) => DraftAction::Judge(round, outcome(call)),
        (None, Some(review)) if review.verdict == Verdict::Approved => DraftAction::Execute,
        (None, Some(review)) if review.round >= MOST_ROUNDS => DraftAction::AskHuman,
        (None, Some(_)) if !plan.is_revised() => DraftAction::Revise,
        (None, _) => DraftAction::Review(round),
    }
}

/// Returns the answer of a child, or why there is none.
pub fn outcome(call: &CallState) -> Result<String, String> {
    match &call.error {
        Some(error) => Err(error.message.clone()),
        None => Ok(call.output.clone().unwrap_or_default()),
    }
}

fn answered(
    attempt: &mut Attempt<'_>,
    status: ApprovalStatus,
    edited: Option<Value>,
    reason: Option<String>,
) -> DraftAction {
    let is_approved = status == ApprovalStatus::Approved;
    let steps = match edited.filter(|_| is_approved) {
        None => None,
        Some(edited) => match plan::read_steps(&edited).and_then(|steps| plan::check_steps(steps, &scope(attempt))) {
            Ok(steps) => Some(steps),
            // Only a worker knows the tools.
            Err(error) => return DraftAction::Refuse(error),
        },
    };
    let round = attempt.memory.plan.as_deref().map_or(0, |plan| plan.metadata.reviews.len() as u32) + 1;
    let verdict = if is_approved { Verdict::Approved } else { Verdict::ChangesRequested };
    let notes = reason.clone().unwrap_or_default();
    review(attempt, PlanReview { round, verdict, notes, by: ReviewedBy::User });
    if !is_approved {
        let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let problem = format!("the user asks for changes of the plan{because}");
        return DraftAction::Refuse(ToolError::new("changes_requested", problem));
    }
    if let Some(steps) = steps {
        replace_steps(attempt, steps);
    }
    DraftAction::Execute
}

/// Returns the plan that a call makes. A model that is asked for steps may try again twice.
async fn first_version(
    attempt: &mut Attempt<'_>,
    call_id: &str,
    input: Value,
) -> Result<Result<Plan, ToolError>, Stop> {
    let call = match PlanInput::of(&input) {
        Ok(call) => call,
        Err(error) => return Ok(Err(error)),
    };
    let metadata = call.metadata();
    let checked = match call.steps {
        Some(steps) => check_steps(attempt, steps),
        None => ask_for_steps(attempt, &metadata.goal, None).await?,
    };
    Ok(checked.map(|steps| Plan {
        id: Uuid::now_v7(),
        run_id: attempt.claim.run_id,
        session_id: attempt.claim.conversation_id,
        call_id: call_id.to_owned(),
        user_message: excerpt::chars(
            &attempt.memory.input.content.model_text(attempt.definition.language),
            MESSAGE_CHARS,
        ),
        strategy: "planner_stream".to_owned(),
        execution_mode: call.execution_mode,
        status: PlanStatus::Draft,
        steps,
        metadata,
    }))
}

/// Asks the model for the steps of a plan.
async fn ask_for_steps(
    attempt: &mut Attempt<'_>,
    goal: &str,
    notes: Option<&str>,
) -> Result<Result<Vec<PlanStep>, ToolError>, Stop> {
    if attempt.chosen_model.choice().provider == Provider::Scripted {
        let problem = "steps: the scripted model writes no plan of its own; give the steps with the call";
        return Ok(Err(ToolError::new("invalid_plan", problem)));
    }
    let mut problem = notes.map(ToOwned::to_owned);
    let mut refused = None;
    for _ in 0..TRIES {
        let tools = attempt.tool_specs();
        let turn = Turn::user(prompts::steps(goal, &tools, problem.as_deref()));
        let model = attempt.chosen_model.without_options();
        let request = Request { turns: vec![turn], ..Request::default() };
        let answer = match ask_aside(attempt, &model, request).await? {
            Ok((text, usage)) => {
                add_usage(attempt, usage);
                text
            }
            Err(error) => {
                return Ok(Err(ToolError::new("plan_not_made", format!("the model made no plan: {}", error.reason()))));
            }
        };
        let steps = json_in(&answer).ok_or_else(|| ToolError::new("invalid_plan", "the answer is no JSON object"));
        match steps.and_then(|steps| check_steps(attempt, plan::read_steps(&steps)?)) {
            Ok(steps) => return Ok(Ok(steps)),
            Err(error) => {
                problem = Some(error.message.clone());
                refused = Some(error);
            }
        }
    }
    Ok(Err(refused.expect("the model was asked")))
}

/// Makes the next version of a plan whose reviewer asks for changes. Without one, the second round judges the same plan.
async fn revise(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let plan = attempt.memory.plan.as_deref().expect("a plan was made");
    let notes = plan.metadata.reviews.last().map(|review| review.notes.clone()).unwrap_or_default();
    let goal = plan.metadata.goal.clone();
    let steps = ask_for_steps(attempt, &goal, Some(&notes)).await?;
    attempt.memory.plan.as_deref_mut().expect("a plan was made").metadata.revisions += 1;
    match steps {
        Ok(steps) => replace_steps(attempt, steps),
        Err(_) => note_plan(attempt, Vec::new()),
    }
    Ok(())
}

/// Starts the run that judges the plan.
async fn start_reviewer(attempt: &mut Attempt<'_>, round: u32) -> Result<Result<(), ToolError>, Stop> {
    let plan = attempt.memory.plan.clone().expect("a plan was made");
    let input = json!({"plan_id": plan.id, "round": round});
    let task = prompts::review(&plan);
    start_child(attempt, ModelRole::Reviewer, (plan.id, None), input, task, Vec::new())
        .await
        .map(|started| started.map(drop))
}

/// Reads a reviewer's answer. An answer without a verdict approves nothing, except from the scripted model.
fn verdict_of(attempt: &Attempt<'_>, answer: Result<String, String>) -> (Verdict, String) {
    let text = match answer {
        Ok(text) => text,
        Err(problem) => return (Verdict::ChangesRequested, format!("there was no review: {problem}")),
    };
    let verdict = json_in(&text);
    let notes = verdict.as_ref().and_then(|verdict| verdict["notes"].as_str()).map(|notes| storable(notes.to_owned()));
    match verdict.as_ref().and_then(|verdict| verdict["verdict"].as_str()) {
        Some("approved") => (Verdict::Approved, notes.unwrap_or_default()),
        Some(_) => (Verdict::ChangesRequested, notes.unwrap_or_default()),
        None if attempt.chosen_model.choice().provider == Provider::Scripted => (Verdict::Approved, String::new()),
        None => (Verdict::ChangesRequested, "the reviewer gave no verdict".to_owned()),
    }
}

/// Returns the JSON object in a model's answer, which may have words around it.
pub(super) fn json_in(text: &str) -> Option<Value> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(start..=end)?).ok().filter(Value::is_object)
}

fn create(attempt: &mut Attempt<'_>, plan: Plan) {
    attempt.recorder.emit(&EventBody::PlanCreated(PlanCreated { plan: Box::new(plan.clone()) }));
    let steps = plan.steps.clone();
    attempt.memory.plan = Some(Box::new(plan));
    note_plan(attempt, steps);
}

/// Executes the plan. The call starts only now, because a call that a human must approve has not started.
fn execute(attempt: &mut Attempt<'_>, index: usize) -> Drafting {
    intend_here(attempt, index);
    set_status(attempt, PlanStatus::Executing);
    let plan = attempt.memory.plan.as_deref().expect("a plan was made");
    let output = json!({"plan_id": plan.id, "status": "executing", "steps": plan.steps.len()}).to_string();
    complete(attempt, (index, Ok(output.into()), Default::default()));
    Drafting::Complete
}

fn refuse(attempt: &mut Attempt<'_>, index: usize, error: ToolError) -> Drafting {
    complete(attempt, (index, Err(error), Default::default()));
    Drafting::Complete
}

fn review(attempt: &mut Attempt<'_>, review: PlanReview) {
    let plan = attempt.memory.plan.as_deref_mut().expect("a plan was made");
    plan.metadata.reviews.push(review.clone());
    let plan_id = plan.id;
    attempt.recorder.emit(&EventBody::PlanReviewed(PlanReviewed {
        plan_id,
        round: review.round,
        verdict: review.verdict,
        notes: review.notes.into(),
        by: review.by,
    }));
    note_plan(attempt, Vec::new());
}

fn replace_steps(attempt: &mut Attempt<'_>, steps: Vec<PlanStep>) {
    let plan = attempt.memory.plan.as_deref_mut().expect("a plan was made");
    plan.steps = steps.clone();
    let updated = plan.clone();
    attempt.recorder.emit(&EventBody::PlanUpdated(PlanUpdated { base: None, plan: Box::new(updated) }));
    note_plan(attempt, steps);
}

/// Records another status of the run's plan.
pub fn set_status(attempt: &mut Attempt<'_>, status: PlanStatus) {
    let plan = attempt.memory.plan.as_deref_mut().expect("a plan was made");
    plan.status = status;
    let plan = plan.clone();
    attempt.recorder.emit(&EventBody::PlanUpdated(PlanUpdated { base: None, plan: Box::new(plan) }));
    note_plan(attempt, Vec::new());
}

/// Records the plan with those of its steps that have changed.
pub fn note_plan(attempt: &mut Attempt<'_>, steps: Vec<PlanStep>) {
    let plan = attempt.memory.plan.as_deref().cloned().expect("a plan was made");
    let plan_id = plan.id;
    let plan_steps = steps.into_iter().map(|step| StepState { plan_id, step }).collect();
    let resume_at = Some(attempt.recorder.last());
    attempt.recorder.note(Progress { plans: vec![plan], plan_steps, resume_at, ..Progress::default() });
}

pub(super) fn add_usage(attempt: &mut Attempt<'_>, usage: Usage) {
    attempt.memory.add_usage_aside(usage);
    let usage = Some(attempt.memory.usage);
    attempt.recorder.note(Progress { usage, ..Progress::default() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_object_is_found_among_words() {
        assert_eq!(json_in("Sure: {\"a\": {\"b\": 1}} – done"), Some(json!({"a": {"b": 1}})));
        assert_eq!((json_in("no"), json_in("} {"), json_in("{x}")), (None, None, None));
    }
}
