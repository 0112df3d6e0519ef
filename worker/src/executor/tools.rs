//! The tools node: every call that the model requests gets an outcome, or the run waits for a human or the client.
//!
//! Order matters: the intent of a call that has effects is committed before the call. So the next attempt after a crash
//! knows: a call without an intent was not made. A call with an intent and without an outcome may have been made.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use holdfast_shared::{
    approval::ApprovalKind,
    event::{AgentState, AgentStateChanged, ApprovalRequested, EventBody, ExecutedBy, StepCompleted, ToolCallStarted},
    finish_reason::FinishReason,
    plan::{self, PlanStatus},
    storage::{CallState, NewApproval, Progress},
    telemetry::Span,
    tool::{Effect, ToolCallStatus, ToolError, any_object},
    trace::{Node, TraceRole},
    usage::Usage,
};
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::Instrument;
use uuid::Uuid;

use super::{
    NextNode, Stop,
    attempt::Attempt,
    call_plan::{CallFacts, CallPlan, ToolFacts, plan as plan_call},
    delegate::delegate,
    knowledge::without_marks,
    mcp_servers::await_named,
    outcome::{CallOutcome, complete, intend},
    planning::{Drafting, ask_questions, make_plan, read_questions},
    results, tool_choice,
    workspace::follow_shift,
};
use crate::{
    lease::Signal,
    tools::{FileKeeper, PlannerTool, Tool, words_of_outcome},
};

/// Brings every call of the step to its outcome. Suspends the run if a human or the client must answer.
pub async fn call_tools(attempt: &mut Attempt<'_>) -> Result<NextNode, Stop> {
    await_named(attempt).await?;
    let mut invalid = check_arguments(attempt).await?;
    let plans: Vec<CallPlan> =
        (0..attempt.memory.calls.len()).map(|index| plan_of(attempt, index, invalid.remove(&index))).collect();
    let (mut to_call, mut to_delegate, mut questions) = (VecDeque::new(), Vec::new(), Vec::new());
    let (mut to_plan, mut asked) = (Vec::new(), Vec::new());
    let mut waits_for_children = false;
    for (index, plan) in plans.into_iter().enumerate() {
        match plan {
            CallPlan::Nothing => {}
            CallPlan::Refuse(error) => complete(attempt, (index, Err(error), Duration::ZERO)),
            CallPlan::RefuseUnknown => {
                let error = no_such_tool(attempt, &attempt.memory.calls[index].state.name);
                complete(attempt, (index, Err(error), Duration::ZERO));
            }
            CallPlan::Call(input) => {
                let tool = attempt.tool(&attempt.memory.calls[index].state.name);
                to_call.push_back((index, Arc::clone(tool.expect("only a call of a tool is planned")), input));
            }
            CallPlan::Delegate(input) => to_delegate.push((index, input)),
            CallPlan::Planner(input) => match planner_tool(attempt, index) {
                PlannerTool::Plan => to_plan.push((index, input)),
                PlannerTool::Questions => asked.push((index, read_questions(&input))),
            },
            CallPlan::WaitForChild => waits_for_children = true,
            question => questions.push((index, question)),
        }
    }
    for (index, input) in to_plan {
        match Box::pin(make_plan(attempt, index, input)).await? {
            Drafting::Complete => {}
            Drafting::AwaitsReviewer => waits_for_children = true,
            Drafting::AsksHuman(question) => questions.push((index, question)),
        }
    }
    waits_for_children |= delegate(attempt, to_delegate).await?;
    if !to_call.is_empty() && attempt.recorder.has_deferred() {
        // The events of the calls would wait behind those of the children, until the run leaves its worker.
        attempt.durable_until(Signal::Yield).await?;
        attempt.recorder.append_deferred();
    }
    call_all(attempt, to_call).await?;
    if !questions.is_empty() {
        // Order matters: questions come last, when the run has no other work, because only a run that waits can be
        // answered.
        questions.into_iter().for_each(|(index, question)| ask(attempt, index, question));
        let (usage, _) = answer_of_step(attempt);
        let waiting = AgentStateChanged { state: AgentState::WaitingOnUser, usage: Some(usage) };
        attempt.recorder.emit_on_release(&EventBody::AgentState(waiting));
        return Err(Stop::Waiting);
    }
    if waits_for_children {
        return Err(Stop::WaitingForChildren);
    }
    let asked = complete_questions(attempt, asked);
    finish_step(attempt);
    follow_shift(attempt).await?;
    if !asked.is_empty() {
        ask_questions(attempt, &asked).await?;
    }
    Ok(attempt.memory.next())
}

/// Completes the calls that ask the user, and returns their questions. Order matters: they come last, because a step that
/// waits for something else asks only afterwards.
fn complete_questions(attempt: &mut Attempt<'_>, calls: Vec<(usize, Vec<String>)>) -> Vec<String> {
    let executes = attempt.memory.plan.as_deref().is_some_and(|plan| plan.status == PlanStatus::Executing);
    let mut questions = Vec::new();
    for (index, asked) in calls {
        let outcome = if executes {
            Err(ToolError::new("plan_under_way", "the user was not asked: a plan is executed now; ask afterwards"))
        } else {
            questions.extend(asked);
            Ok("The user was asked.".to_owned().into())
        };
        complete(attempt, (index, outcome, Duration::ZERO));
    }
    questions
}

/// Returns the tool of a planner that a call is for.
fn planner_tool(attempt: &Attempt<'_>, index: usize) -> PlannerTool {
    let tool = attempt.tool(&attempt.memory.calls[index].state.name);
    tool.and_then(|tool| tool.planner()).expect("only a call of such a tool is planned so")
}

/// Checks the arguments of each fresh call. Returns the errors of the invalid ones by the calls' index.
async fn check_arguments(attempt: &mut Attempt<'_>) -> Result<BTreeMap<usize, ToolError>, Stop> {
    let calls = attempt.memory.calls.iter().map(|call| &call.state).enumerate();
    let fresh = calls.filter(|(_, state)| state.status == ToolCallStatus::Requested);
    let checkable =
        fresh.filter_map(|(index, state)| Some((index, Arc::clone(attempt.tool(&state.name)?), state.input.clone())));
    let (checkable, checks) = (checkable.collect::<Vec<_>>(), attempt.shared.schemas.clone());
    let owner = attempt.claim.owner_id.clone();
    let checked = async move {
        let mut invalid = BTreeMap::new();
        for (index, tool, input) in checkable {
            if let Err(error) = tool.check(&checks, &owner, &input).await {
                invalid.insert(index, error);
            }
        }
        invalid
    };
    attempt.alongside(checked).await
}

/// Returns the plan of a call, from the facts that the toolbox and the limits have about it.
fn plan_of(attempt: &Attempt<'_>, index: usize, invalid: Option<ToolError>) -> CallPlan {
    let call = &attempt.memory.calls[index];
    let tool = attempt.tool(&call.state.name);
    let calls_before = (attempt.memory.calls_made() + index as u32).saturating_sub(attempt.memory.calls.len() as u32);
    let facts = CallFacts {
        tool: tool.map(|tool| ToolFacts {
            is_client_tool: tool.is_client_tool(),
            delegates: tool.subagent().is_some(),
            is_planners: tool.planner().is_some(),
            needs_approval: tool.needs_approval,
        }),
        is_allowed: tool_choice::allows(attempt, &call.state.name),
        calls_before,
        most_calls: attempt.limits.tool_calls,
        invalid,
    };
    plan_call(call, facts)
}

/// Makes the calls, a few at a time.
async fn call_all(attempt: &mut Attempt<'_>, mut to_call: VecDeque<(usize, Arc<Tool>, Value)>) -> Result<(), Stop> {
    let most = attempt.shared.worker.tools.tool_concurrency;
    // Dropping the set cancels the calls in flight.
    let mut under_way: JoinSet<CallOutcome> = JoinSet::new();
    let files = Arc::new(FileKeeper::new(&attempt.shared.worker, attempt.claim));
    loop {
        let free =
            if attempt.lease.should_yield() { 0 } else { most.saturating_sub(under_way.len()).min(to_call.len()) };
        let signal = signal_while(attempt, &under_way);
        let next: Vec<_> = to_call.drain(..free).collect();
        let previous: Vec<CallState> =
            next.iter().map(|(index, ..)| attempt.memory.calls[*index].state.clone()).collect();
        for (index, tool, input) in &next {
            intend(attempt, *index, tool, input.clone());
        }
        if next.iter().any(|(_, tool, _)| tool.effect != Effect::ReadOnly || tool.reads_results())
            && let Err(stop) = attempt.durable_until(signal).await
        {
            // None of these calls was made, so the earlier states are restored.
            attempt.recorder.note(Progress { calls: previous, ..Progress::default() });
            return Err(stop);
        }
        let spans = attempt.spans_of_step();
        for (index, tool, input) in next {
            let key = attempt.memory.calls[index].state.call_id.clone();
            let mut span = spans.tool(&tool.spec.name, &key);
            let workspace = attempt.toolbox.workspace().filter(|_| !tool.is_of_workspace()).cloned();
            let files = Arc::clone(&files);
            let calling = async move {
                let (mut outcome, duration) = tool.call(input, key, files).await;
                if let (Some(workspace), Ok(result)) = (workspace, &mut outcome) {
                    result.entities = workspace.entities_in(&result.output).await;
                }
                if let Err(error) = &outcome {
                    span.fail(&error.code);
                }
                drop(span);
                metrics::histogram!("holdfast_tool_call_seconds").record(duration.as_secs_f64());
                (index, outcome, duration)
            };
            under_way.spawn(calling.in_current_span());
        }
        match attempt.alongside_until(signal_while(attempt, &under_way), under_way.join_next()).await? {
            None => return Ok(()),
            Some(Ok(outcome)) => complete(attempt, outcome),
            Some(Err(panicked)) => {
                tracing::error!(error = %panicked, "calling a tool panicked");
                std::panic::resume_unwind(panicked.into_panic());
            }
        }
    }
}

/// Returns the least signal that stops the run while these calls are in flight. A call of a `once` tool may complete,
/// unless the process ends.
fn signal_while(attempt: &Attempt<'_>, under_way: &JoinSet<CallOutcome>) -> Signal {
    let is_once = |state: &CallState| state.status == ToolCallStatus::Called && state.effect == Effect::Once;
    if !under_way.is_empty() && attempt.memory.calls.iter().any(|call| is_once(&call.state)) {
        Signal::Drain
    } else {
        Signal::Yield
    }
}

/// Asks the human or the client whose answer the call needs.
fn ask(attempt: &mut Attempt<'_>, index: usize, question: CallPlan) {
    let expires_at = attempt.claim.clock.now() + attempt.shared.worker.tools.approval_ttl;
    let tool = attempt.tool(&attempt.memory.calls[index].state.name).cloned();
    let schema = match question {
        CallPlan::Ask(ApprovalKind::Plan, _) => plan::edit_schema(),
        _ => tool.as_ref().map_or_else(any_object, |tool| tool.spec.input_schema.clone()),
    };
    let state = &mut attempt.memory.calls[index].state;
    state.effect = tool.map_or(state.effect, |tool| tool.effect);
    let (call_id, name) = (state.call_id.clone(), state.name.clone());
    let mut approvals = Vec::new();
    let body = match question {
        CallPlan::Ask(kind, input) => {
            state.status = ToolCallStatus::Waiting;
            let id = Uuid::now_v7();
            let (call_id, name) = (call_id.clone(), name.clone());
            approvals.push(NewApproval { id, call_id, kind, name, input: input.clone(), schema, expires_at });
            let (call_id, name) = (state.call_id.clone(), state.name.clone());
            EventBody::ApprovalRequested(ApprovalRequested {
                base: None,
                approval_id: id,
                call_id: call_id.into(),
                child_run_id: None,
                kind,
                name: name.into(),
                input: input.into(),
                expires_at,
            })
        }
        CallPlan::Client(input) => {
            state.status = ToolCallStatus::Client;
            state.schema = Some(schema);
            state.expires_at = Some(expires_at);
            let (by, step) = (ExecutedBy::Client, state.step);
            EventBody::ToolCallStarted(ToolCallStarted {
                call_id: call_id.into(),
                step,
                name: name.into(),
                input: input.into(),
                by,
                expires_at: Some(expires_at),
            })
        }
        // An earlier question is still open.
        _ => return,
    };
    let state = state.clone();
    attempt.recorder.emit_on_release(&body);
    let resume_at = Some(attempt.recorder.last());
    attempt.recorder.note(Progress { calls: vec![state], approvals, resume_at, ..Progress::default() });
}

/// Adds the outcomes to the trace, in the order of the model's requests.
fn finish_step(attempt: &mut Attempt<'_>) {
    let step = attempt.memory.step;
    let mut messages = Vec::new();
    for index in 0..attempt.memory.calls.len() {
        let state = attempt.memory.calls[index].state.clone();
        let text = words_of_outcome(state.output.as_deref(), state.error.as_ref());
        // The marks of a child have the numbers of its own run.
        let is_of_child = state.child_run_id.is_some() && attempt.memory.has_knowledge;
        let text = if is_of_child { without_marks(&text) } else { text };
        let edit_notice = match attempt.memory.requested_input(&state.call_id) {
            Some(requested) if *requested != state.input => {
                format!("[a human has changed the arguments to {}]\n", state.input)
            }
            _ => String::new(),
        };
        // The texts that a reference names have a limit of their own.
        let is_reference = attempt.tool(&state.name).is_some_and(|tool| tool.recalls() || tool.finds_passages());
        let text = if is_reference { text } else { results::room(attempt, &state.name).cut(&text, &state.call_id) };
        let text = edit_notice + &text;
        let message = attempt.memory.push(TraceRole::Tool, text, step);
        (message.call_id, message.is_error) = (Some(state.call_id), state.error.is_some());
        messages.push(message.clone());
    }
    let (usage, model) = answer_of_step(attempt);
    let tool_calls = attempt.memory.calls.len();
    let finish_reason = attempt.memory.finish_reason.unwrap_or(FinishReason::ToolCalls);
    attempt.recorder.emit(&EventBody::StepCompleted(StepCompleted { step, tool_calls, usage, finish_reason, model }));
    attempt.step = Span::default();
    attempt.checkpoint(Node::Tools, Progress { messages, step_completed: true, ..Progress::default() });
}

/// Returns the tokens of the step's model call, and the model that has answered it.
fn answer_of_step(attempt: &Attempt<'_>) -> (Usage, Option<String>) {
    let answer = attempt.memory.trace.iter().rev().find(|message| message.role == TraceRole::Assistant);
    let usage = answer.and_then(|message| message.usage).unwrap_or_default();
    (usage, answer.and_then(|message| message.model.clone()))
}

/// Returns the error of a call whose tool was available when the model requested it.
fn no_such_tool(attempt: &Attempt<'_>, name: &str) -> ToolError {
    if attempt.toolbox.server_starting_with(name).is_some() {
        return ToolError::new(
            "tool_unavailable",
            format!("this call was not made: the server of {name} is still starting; try again later"),
        );
    }
    if attempt.toolbox.is_unavailable(name) {
        return ToolError::new(
            "tool_unavailable",
            format!("this call was not made: the server of {name} cannot be reached now"),
        );
    }
    let names: Vec<String> = attempt
        .tool_specs()
        .into_iter()
        .map(|spec| spec.name)
        .filter(|name| tool_choice::allows(attempt, name))
        .collect();
    ToolError::new("unknown_tool", format!("there is no tool {name:?}; there are: {}", names.join(", ")))
}
