//! The tree of a top run: all runs below it, with limits that they share.
//!
//! Order matters: a transaction that starts children locks its run and then the top run, so it counts after each transaction
//! that has started others. It keeps to the order of `ancestor`.

use std::borrow::Cow;

use uuid::Uuid;

use super::{
    ArchiveChunk, CallState, NewChild,
    outcomes::{LoggedOutcome, SET_OUTCOME},
};
use crate::storage::{
    Error, Storage,
    sql::{Tx, args, statements},
};
use crate::tool::{ToolCallStatus, ToolError};

/// Selects the top run of the run `$1`.
macro_rules! top {
    () => {
        "(select coalesce(own.top_run_id, own.id) from agent_runs own where own.id = $1)"
    };
}

statements! {
    /// Locks the top run of a run.
    LOCK_TOP = concat!("
        select id
        from agent_runs
        where id = ", top!(), "
        {for update}
    "),
    /// Counts the runs below a top run.
    COUNT_BELOW = "
        select count(*)
        from agent_runs
        where top_run_id = $1
    ",
    /// Returns the number of runs of the run's tree, and the tokens that its other runs have used.
    TREE = concat!("
        select count(*) as runs,
            cast(
                coalesce(
                    sum(
                        case
                            when r.id = $1 then 0
                            else coalesce(cast(r.usage->>'input_tokens' as bigint), 0)
                                + coalesce(cast(r.usage->>'output_tokens' as bigint), 0)
                        end
                    ),
                    0
                ) as bigint
            ) as tokens
        from (
            select id, usage from agent_runs where top_run_id = ", top!(), "
            union all
            select id, usage from agent_runs where id = ", top!(), "
        ) r
    "),
    /// Counts how often an agent is in the chain that ends with this run. A child that works for a plan is a part of its parent.
    TIMES_IN_CHAIN = "
        with recursive chain as (
            select parent_run_id, agent_definition_id, subagent_role
            from agent_runs
            where id = $1
            union all
            select above.parent_run_id, above.agent_definition_id, above.subagent_role
            from chain
            join agent_runs above on above.id = chain.parent_run_id
        )
        select count(*)
        from chain
        where agent_definition_id = $2 and coalesce(subagent_role, 'subagent') = 'subagent'
    ",
}

/// The tree of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tree {
    /// Its runs, with the top run.
    pub runs: usize,
    /// Tokens that all runs but the asking one have read and written, as far as their rows say so.
    pub tokens: u64,
}

/// A child that its tree has no room for.
pub struct RefusedChild {
    call: CallState,
    child: NewChild,
}

impl Storage {
    /// Returns the tree of a run.
    pub async fn tree(&self, run_id: Uuid) -> Result<Tree, Error> {
        let tree = self.database.fetch_optional::<(i64, i64)>("look at the tree of a run", TREE, args![run_id]).await?;
        Ok(tree.map_or_else(Tree::default, |(runs, tokens)| Tree { runs: runs as usize, tokens: tokens.max(0) as u64 }))
    }

    /// Returns how often an agent is in the chain of runs from the top run to this one.
    pub async fn times_in_chain(&self, run_id: Uuid, agent_id: Uuid) -> Result<usize, Error> {
        let doing = "count an agent in a chain of subagents";
        let times = self.database.fetch_optional::<(i64,)>(doing, TIMES_IN_CHAIN, args![run_id, agent_id]).await?;
        Ok(times.map_or(0, |row| row.0 as usize))
    }
}

/// Returns the chunk with those of its children that fit into the tree, and the others. The transaction has locked the run.
pub async fn fit<'a>(
    tx: &mut Tx,
    run_id: Uuid,
    chunk: &'a ArchiveChunk,
) -> Result<(Cow<'a, ArchiveChunk>, Vec<RefusedChild>), Error> {
    let most = chunk.progress.children.iter().map(|child| child.most_runs).min().unwrap_or(usize::MAX);
    if most == usize::MAX {
        return Ok((Cow::Borrowed(chunk), Vec::new()));
    }
    let Some((top,)) = tx.fetch_optional::<(Uuid,)>(LOCK_TOP, args![run_id]).await? else {
        return Ok((Cow::Borrowed(chunk), Vec::new()));
    };
    let (below,) = tx.fetch_one::<(i64,)>(COUNT_BELOW, args![top]).await?;
    let room = most.saturating_sub(below as usize + 1).min(chunk.progress.children.len());
    let mut chunk = chunk.clone();
    let surplus = chunk.progress.children.split_off(room);
    let is_surplus = |id: Uuid| surplus.iter().any(|child| child.child_run_id == id);
    chunk.progress.roles.retain(|role| !is_surplus(role.of_run));
    let calls = &chunk.progress.calls;
    let call_of = |child: &NewChild| calls.iter().find(|call| call.call_id == child.call_id).cloned();
    let refused = surplus.iter().filter_map(|child| Some(RefusedChild { call: call_of(child)?, child: child.clone() }));
    let refused = refused.collect();
    Ok((Cow::Owned(chunk), refused))
}

impl RefusedChild {
    /// Returns the outcome of the call, for the log.
    pub fn outcome(&self) -> LoggedOutcome {
        LoggedOutcome::refused(&self.call, &self.child, self.error())
    }

    /// Stores the outcome of the call, after the call. `is_logged` tells whether an event reports it already.
    pub async fn store(&self, tx: &mut Tx, run_id: Uuid, is_logged: bool) -> Result<(), Error> {
        let status = if is_logged { ToolCallStatus::Completed } else { ToolCallStatus::Called };
        let error = Some(serde_json::json!(self.error()));
        let args = args![run_id, self.call.call_id.as_str(), status.as_str(), None::<String>, error, 0_i64];
        tx.execute(SET_OUTCOME, args).await.map(drop)
    }

    fn error(&self) -> ToolError {
        tree_is_full(self.child.most_runs)
    }
}

/// Returns the error of a call whose child would exceed the runs of a tree.
pub fn tree_is_full(most: usize) -> ToolError {
    let problem =
        format!("this call was not made: the runs that one message starts may be {most} (HOLDFAST_MAX_TREE_RUNS)");
    ToolError::new("limit_reached", problem)
}
