//! Calls that delegate: a child run answers each of them.
//!
//! Order matters: the child and the intent of its call are committed together, and clients see both after that.

use std::time::Duration;

use holdfast_shared::{
    event::{EventBody, SubagentStarted},
    storable::storable,
    storage::{NewChild, Progress},
    subagent::{Delegation, SubagentRole},
    tool::{Effect, ToolCallStatus, ToolError},
};
use serde_json::Value;

use super::{
    Stop,
    attempt::Attempt,
    outcome::{complete, intent},
    retry_query::retry_query,
    tree::{no_room_in_tree, room_in_tree, too_often_in_chain},
};

/// Starts a child for each call, or refuses the call. Returns whether a child was started.
pub async fn delegate(attempt: &mut Attempt<'_>, calls: Vec<(usize, Value)>) -> Result<bool, Stop> {
    if calls.is_empty() {
        return Ok(false);
    }
    let (worker, owner) = (&attempt.shared.worker, &attempt.claim.owner_id);
    let room = || worker.storage.room_for_runs(owner, worker.quotas);
    let mut room = retry_query(attempt.lease, attempt.recorder, room).await?;
    let mut room_in_tree = room_in_tree(attempt).await?;
    let mut is_started = false;
    for (index, input) in calls {
        let child = match (room, room_in_tree) {
            (Some(0), _) => Err(no_room()),
            (_, 0) => Err(no_room_in_tree(attempt)),
            _ => new_child(attempt, index, &input).await?,
        };
        match child {
            Ok((child, agent)) => {
                start(attempt, index, child, &agent);
                is_started = true;
                room = room.map(|runs| runs - 1);
                room_in_tree -= 1;
            }
            Err(error) => complete(attempt, (index, Err(error), Duration::ZERO)),
        }
    }
    Ok(is_started)
}

pub(super) fn no_room() -> ToolError {
    let problem = "this call was not made: the user has as many unfinished runs as HOLDFAST_RUNS_PER_OWNER allows, or keeps as many bytes as HOLDFAST_OWNER_BYTES allows";
    ToolError::new("limit_reached", problem)
}

/// Returns the error of a run that may have no more children.
pub(super) fn too_many_children(attempt: &Attempt<'_>) -> Option<ToolError> {
    let limits = &attempt.shared.worker.tools;
    let problem = if attempt.claim.depth >= limits.max_subagent_depth {
        let most = limits.max_subagent_depth;
        format!("this call was not made: subagents may be {most} deep (HOLDFAST_MAX_SUBAGENT_DEPTH)")
    } else if attempt.memory.children >= limits.max_subagents {
        let most = limits.max_subagents;
        format!("this call was not made: a run may have {most} subagents (HOLDFAST_MAX_SUBAGENTS)")
    } else {
        return None;
    };
    Some(ToolError::new("limit_reached", problem))
}

/// Returns the child that answers the call, and the name of its agent.
async fn new_child(
    attempt: &mut Attempt<'_>,
    index: usize,
    input: &Value,
) -> Result<Result<(NewChild, String), ToolError>, Stop> {
    let state = &attempt.memory.calls[index].state;
    let call_id = state.call_id.clone();
    let tool = attempt.toolbox.get(&state.name).and_then(|tool| tool.subagent());
    let agent = tool.expect("only a call of a tool that delegates is delegated").clone();
    if let Some(error) = too_many_children(attempt) {
        return Ok(Err(error));
    }
    if let Some(error) = too_often_in_chain(attempt, &agent).await? {
        return Ok(Err(error));
    }
    let child = |delegation: Delegation| {
        let task = storable(delegation.message());
        let child = NewChild::new(call_id, SubagentRole::Subagent, agent.id, task);
        (child.within(attempt.shared.worker.tools.max_tree_runs), agent.name)
    };
    Ok(Delegation::of(input).map(child))
}

/// Records the intent of the call and the start of its child.
fn start(attempt: &mut Attempt<'_>, index: usize, child: NewChild, agent: &str) {
    attempt.memory.children += 1;
    let state = &mut attempt.memory.calls[index].state;
    (state.status, state.effect, state.child_run_id) = (ToolCallStatus::Called, Effect::Once, Some(child.child_run_id));
    let state = state.clone();
    attempt.recorder.emit_on_release(&intent(&state));
    attempt.recorder.emit_on_release(&EventBody::SubagentStarted(SubagentStarted {
        call_id: state.call_id.as_str().into(),
        child_run_id: child.child_run_id,
        agent: agent.into(),
        role: SubagentRole::Subagent,
        task: child.task.as_str().into(),
        plan_id: None,
        step_number: None,
    }));
    let resume_at = Some(attempt.recorder.last());
    attempt.recorder.note(Progress { calls: vec![state], children: vec![child], resume_at, ..Progress::default() });
}
