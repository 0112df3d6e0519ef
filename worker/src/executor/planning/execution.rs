//! The execution of a plan: steps begin when they have what they need, and each end of a step is a checkpoint.

use holdfast_shared::{
    agent::ModelRole,
    context::AgentContext,
    event::{EventBody, PlanStepCompleted, PlanStepStarted, SubagentStarted},
    excerpt,
    plan::{self, PlanStatus, PlanStep, StepStatus},
    run::RunError,
    storable::storable,
    storage::{CallState, NewChild, NewRole, NewTraceMessage, Progress, StepState},
    subagent::SubagentRole,
    tool::{Effect, ToolCallStatus, ToolError},
    trace::{Node, TraceRole},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    draft::{outcome, set_status},
    edits::take_edits,
    prompts,
};
use crate::{
    executor::{
        NextNode, Stop,
        attempt::Attempt,
        delegate::{no_room, too_many_children},
        retry_query::retry_query,
        tree::{no_room_in_tree, room_in_tree},
    },
    lease::Signal,
};

/// Characters of a step's result that the plan keeps. A child's log has its whole answer.
const RESULT_CHARS: usize = 4000;

/// Positions of the calls of plans, which come after all calls of their step.
const FIRST_POSITION: usize = 1000;

/// Takes the plan as far as it can go now: ends what has ended, begins what can begin, and leaves the run to its children if
/// nothing else is left. After the last step, the model writes the answer.
pub async fn advance(attempt: &mut Attempt<'_>) -> Result<NextNode, Stop> {
    end_executors(attempt);
    end_own_step(attempt);
    take_edits(attempt).await?;
    let has_begun_children = begin_steps(attempt).await?;
    let plan = attempt.memory.plan.as_deref().expect("a plan is executed");
    if plan.own_step().is_some() {
        if has_begun_children {
            // The children work beside the planner's own step.
            attempt.durable_until(Signal::Yield).await?;
            attempt.recorder.append_deferred();
        }
        return Ok(NextNode::Process);
    }
    if plan.count(StepStatus::Executing) > 0 {
        return Err(Stop::WaitingForChildren);
    }
    end_plan(attempt);
    Ok(NextNode::Process)
}

/// Ends the steps whose children have ended.
fn end_executors(attempt: &mut Attempt<'_>) {
    let plan = attempt.memory.plan.as_deref().expect("a plan is executed");
    let executing = plan.steps.iter().filter(|step| step.status == StepStatus::Executing && step.executor_required);
    let call_of = |step: &PlanStep| {
        attempt
            .memory
            .plan_calls
            .iter()
            .find(|call| call.child_run_id == step.child_run_id && call.status == ToolCallStatus::Completed)
    };
    let ended: Vec<(u32, Result<String, String>)> =
        executing.filter_map(|step| Some((step.step_number, outcome(call_of(step)?)))).collect();
    for (number, outcome) in ended {
        end_step(attempt, number, outcome);
    }
}

/// Ends the step that the planner has taken, if its answer is there.
fn end_own_step(attempt: &mut Attempt<'_>) {
    let Some(number) = attempt.memory.plan_step() else { return };
    let answer = attempt
        .memory
        .trace
        .last()
        .filter(|message| message.role == TraceRole::Assistant && message.tool_calls.is_empty());
    if let Some(answer) = answer.map(|message| message.content.clone()) {
        end_step(attempt, number, Ok(answer));
    }
}

/// Ends the step that the planner takes with the failure of its model, if it takes one.
pub fn fail_own_step(attempt: &mut Attempt<'_>, error: &RunError) {
    let Some(number) = attempt.memory.plan_step() else { return };
    end_step(attempt, number, Err(format!("{}: {}", error.code, error.message)));
}

/// Records the end of a step: a result, or an error of its own or of the executor.
fn end_step(attempt: &mut Attempt<'_>, number: u32, outcome: Result<String, String>) {
    let outcome = outcome.and_then(|answer| match answer.trim().strip_prefix(prompts::FAILED) {
        Some(reason) => Err(reason.trim().to_owned()),
        None => Ok(answer.trim().to_owned()),
    });
    change_step(attempt, number, |step| match outcome {
        Ok(result) => {
            (step.status, step.result) = (StepStatus::Completed, Some(excerpt::chars(&result, RESULT_CHARS)));
        }
        Err(error) => {
            (step.status, step.error) = (StepStatus::Failed, Some(excerpt::chars(&storable(error), RESULT_CHARS)));
        }
    });
    let (plan_id, step) = current(attempt, number);
    let body = PlanStepCompleted { plan_id, step: Box::new(step.clone()) };
    attempt.recorder.emit(&EventBody::PlanStepCompleted(body));
    let plan_steps = vec![StepState { plan_id, step }];
    attempt.checkpoint(Node::Tools, Progress { plan_steps, ..Progress::default() });
}

/// Begins all steps that can begin. A step whose child cannot be started has failed, and others may begin instead. Returns
/// whether children were started.
async fn begin_steps(attempt: &mut Attempt<'_>) -> Result<bool, Stop> {
    let most = attempt.shared.worker.planner.plan_concurrency;
    let children = attempt.memory.children;
    loop {
        let ready = attempt.memory.plan.as_deref().expect("a plan is executed").ready(most);
        if ready.is_empty() {
            return Ok(attempt.memory.children > children);
        }
        // The planner's own step comes last, because it is part of the run's own work.
        let (own, executors): (Vec<u32>, Vec<u32>) =
            ready.into_iter().partition(|number| !current(attempt, *number).1.executor_required);
        for number in executors {
            begin_executor(attempt, number).await?;
        }
        for number in own {
            begin_own_step(attempt, number);
        }
    }
}

async fn begin_executor(attempt: &mut Attempt<'_>, number: u32) -> Result<(), Stop> {
    let (plan_id, step) = current(attempt, number);
    let context = prompts::context(attempt.memory.plan.as_deref().expect("a plan is executed"), &step);
    let task = format!("{}\n\n{context}", step.description);
    let input = json!({"plan_id": plan_id, "step_number": number});
    let place = (plan_id, Some(number));
    if let Err(error) = start_child(attempt, ModelRole::Executor, place, input, task, step.tools).await? {
        end_step(attempt, number, Err(error.message));
    }
    Ok(())
}

/// Begins a step with a message that the planner's model answers.
fn begin_own_step(attempt: &mut Attempt<'_>, number: u32) {
    change_step(attempt, number, |step| step.status = StepStatus::Executing);
    let (plan_id, step) = current(attempt, number);
    let plan = attempt.memory.plan.as_deref().expect("a plan is executed");
    let (task, of) = (prompts::own_step(plan, &step), plan.steps.len());
    attempt.recorder.emit(&EventBody::PlanStepStarted(PlanStepStarted { plan_id, step: Box::new(step.clone()), of }));
    let at = attempt.memory.step.max(1);
    let message = push_task(attempt, task, at);
    let progress =
        Progress { messages: vec![message], plan_steps: vec![StepState { plan_id, step }], ..Progress::default() };
    attempt.checkpoint(Node::Tools, progress);
}

/// Starts a child for a plan: an executor for a step, or a reviewer. Fails if the run may have no more children.
pub async fn start_child(
    attempt: &mut Attempt<'_>,
    role: ModelRole,
    (plan_id, step_number): (Uuid, Option<u32>),
    input: Value,
    task: String,
    tools: Vec<String>,
) -> Result<Result<(), ToolError>, Stop> {
    let (worker, owner) = (&attempt.shared.worker, &attempt.claim.owner_id);
    if let Some(error) = too_many_children(attempt) {
        return Ok(Err(error));
    }
    let room = || worker.storage.room_for_runs(owner, worker.quotas);
    if retry_query(attempt.lease, attempt.recorder, room).await? == Some(0) {
        return Ok(Err(no_room()));
    }
    if room_in_tree(attempt).await? == 0 {
        return Ok(Err(no_room_in_tree(attempt)));
    }
    let Some((agent_id, _)) = attempt.claim.agent else {
        return Ok(Err(ToolError::new("no_agent", "a run without an agent has no executors")));
    };
    let (of_child, name, budget) = match role {
        ModelRole::Reviewer => (SubagentRole::Reviewer, plan::REVIEW_CALL, worker.planner.reviewer_context_tokens),
        _ => (SubagentRole::Executor, plan::EXECUTE_CALL, worker.planner.executor_context_tokens),
    };
    let state = CallState {
        call_id: format!("call_{}", Uuid::now_v7().simple()),
        step: attempt.memory.step.max(1),
        position: FIRST_POSITION + attempt.memory.plan_calls.len(),
        name: name.to_owned(),
        by: None,
        input,
        effect: Effect::Once,
        status: ToolCallStatus::Called,
        schema: None,
        expires_at: None,
        child_run_id: None,
        output: None,
        error: None,
        files: Vec::new(),
        duration_ms: None,
    };
    // An executor's tools are about the project of the turn.
    let metadata = AgentContext::of(&attempt.memory.metadata).map(|context| context.within(None));
    let mut child = NewChild::new(state.call_id.clone(), of_child, agent_id, storable(task));
    (child.metadata, child.most_runs) = (metadata, attempt.shared.worker.tools.max_tree_runs);
    let state = CallState { child_run_id: Some(child.child_run_id), ..state };
    let new_role = NewRole {
        id: Uuid::now_v7(),
        of_run: child.child_run_id,
        role,
        profile: None,
        model: None,
        token_budget: budget,
        tools: Some(tools),
    };
    let mut plan_steps = Vec::new();
    if let Some(number) = step_number {
        change_step(attempt, number, |step| {
            (step.status, step.child_run_id) = (StepStatus::Executing, Some(child.child_run_id));
        });
        let (plan_id, step) = current(attempt, number);
        let of = attempt.memory.plan.as_deref().map_or(0, |plan| plan.steps.len());
        let body = PlanStepStarted { plan_id, step: Box::new(step.clone()), of };
        attempt.recorder.emit_on_release(&EventBody::PlanStepStarted(body));
        plan_steps.push(StepState { plan_id, step });
    }
    attempt.recorder.emit_on_release(&EventBody::SubagentStarted(SubagentStarted {
        call_id: state.call_id.as_str().into(),
        child_run_id: child.child_run_id,
        agent: attempt.definition.name.as_str().into(),
        role: of_child,
        task: child.task.as_str().into(),
        plan_id: Some(plan_id),
        step_number,
    }));
    attempt.memory.children += 1;
    attempt.memory.plan_calls.push(state.clone());
    let resume_at = Some(attempt.recorder.last());
    attempt.recorder.note(Progress {
        calls: vec![state],
        children: vec![child],
        plan_steps,
        roles: vec![new_role],
        resume_at,
        ..Progress::default()
    });
    Ok(Ok(()))
}

/// Ends the plan, and asks the model for the answer.
fn end_plan(attempt: &mut Attempt<'_>) {
    let plan = attempt.memory.plan.as_deref().expect("a plan is executed");
    let plan_id = plan.id;
    let mut plan_steps = Vec::new();
    for (number, needed) in plan.blocked() {
        change_step(attempt, number, |step| step.error = Some(format!("needs step {needed}, which failed")));
        plan_steps.push(StepState { plan_id, step: current(attempt, number).1 });
    }
    let plan = attempt.memory.plan.as_deref().expect("a plan is executed");
    let is_completed = plan.count(StepStatus::Completed) == plan.steps.len();
    set_status(attempt, if is_completed { PlanStatus::Completed } else { PlanStatus::Failed });
    let task = prompts::ended(attempt.memory.plan.as_deref().expect("a plan is executed"));
    let at = attempt.memory.step.max(1);
    let message = push_task(attempt, task, at);
    attempt.checkpoint(Node::Tools, Progress { messages: vec![message], plan_steps, ..Progress::default() });
}

/// Gives the model a task of the plan.
fn push_task(attempt: &mut Attempt<'_>, task: String, step: u32) -> NewTraceMessage {
    let call_id = attempt.memory.plan.as_deref().map(|plan| plan.call_id.clone());
    let message = attempt.memory.push(TraceRole::User, task, step);
    message.call_id = call_id;
    message.clone()
}

fn change_step(attempt: &mut Attempt<'_>, number: u32, change: impl FnOnce(&mut PlanStep)) {
    let plan = attempt.memory.plan.as_deref_mut().expect("a plan is executed");
    change(plan.steps.iter_mut().find(|step| step.step_number == number).expect("the step is one of the plan"));
}

fn current(attempt: &Attempt<'_>, number: u32) -> (Uuid, PlanStep) {
    let plan = attempt.memory.plan.as_deref().expect("a plan is executed");
    (plan.id, plan.step(number).expect("the step is one of the plan").clone())
}
