//! The limits of a run's tree: all runs that one message has started.

use holdfast_shared::{
    run::RunError,
    storage::{FoundAgent, Tree, tree_is_full},
    tool::ToolError,
    usage::Usage,
};

use super::{Stop, attempt::Attempt, retry_query::retry_query};

/// Fails the run if its tree has used all of its tokens. Order matters: this precedes each step, so that a tree exceeds its
/// tokens by the steps under way at most.
pub async fn expect_tokens(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let most = attempt.shared.worker.tools.max_tree_tokens;
    let is_alone = attempt.claim.depth == 0 && attempt.memory.children == 0;
    let others = if is_alone { 0 } else { tree_of(attempt).await?.tokens };
    let used = others.saturating_add(tokens(attempt.memory.usage));
    if used < most {
        return Ok(());
    }
    let problem = format!(
        "the runs that one message has started have read and written {used} tokens; HOLDFAST_MAX_TREE_TOKENS is {most}"
    );
    Err(Stop::Failed(RunError::new("limit_exceeded", problem)))
}

/// Returns how many further runs the tree may have.
pub async fn room_in_tree(attempt: &mut Attempt<'_>) -> Result<usize, Stop> {
    let most = attempt.shared.worker.tools.max_tree_runs;
    Ok(most.saturating_sub(tree_of(attempt).await?.runs))
}

/// Returns the error of a run whose tree may have no more runs.
pub fn no_room_in_tree(attempt: &Attempt<'_>) -> ToolError {
    tree_is_full(attempt.shared.worker.tools.max_tree_runs)
}

/// Returns the error of a call to an agent that is in the chain of runs as often as its definition allows.
pub async fn too_often_in_chain(attempt: &mut Attempt<'_>, agent: &FoundAgent) -> Result<Option<ToolError>, Stop> {
    let Some(most) = agent.recursive else { return Ok(None) };
    let (storage, run_id) = (&attempt.shared.worker.storage, attempt.claim.run_id);
    let times = || storage.times_in_chain(run_id, agent.id);
    let times = retry_query(attempt.lease, attempt.recorder, times).await?;
    let problem = || {
        let name = &agent.name;
        format!("this call was not made: {name} may appear {most} times in one chain of subagents (recursive)")
    };
    Ok((times >= most as usize).then(|| ToolError::new("limit_reached", problem())))
}

async fn tree_of(attempt: &mut Attempt<'_>) -> Result<Tree, Stop> {
    let (storage, run_id) = (&attempt.shared.worker.storage, attempt.claim.run_id);
    retry_query(attempt.lease, attempt.recorder, || storage.tree(run_id)).await
}

const fn tokens(usage: Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}
