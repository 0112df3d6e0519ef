//! Quotas, held inside the write that would exceed them.

use super::{
    Submitted,
    database::{Tx, args},
};
use crate::quotas::Quotas;

/// The unfinished runs up to which an owner is so far below its quota that a message is accepted without a lock. Requests that
/// see each other only after their commits would have to be as many again to exceed the quota.
pub(super) fn far_below(quotas: &Quotas) -> Option<usize> {
    quotas.runs.map(|max| max / 2)
}

/// Whether a quota speaks against one more run of the owner. Runs that this very message has asked to stop, `stopping`, make
/// room for it. The owner is locked until the transaction ends, so that its requests are counted one after the other.
pub(super) async fn refusal(
    tx: &mut Tx,
    owner: &str,
    quotas: &Quotas,
    stopping: usize,
) -> Result<Option<Submitted>, sqlx::Error> {
    let Some(max) = quotas.runs else { return Ok(None) };
    // Order matters: a statement sees what was committed before it began, so the lock is a statement of its own.
    tx.execute("select {lock name:$1}", args![owner]).await?;
    let sql = "select count(*) from (select 1 from agent_runs where owner_id = $1 and finished_at is null limit $2) unfinished";
    let (unfinished,) = tx.fetch_one::<(i64,)>(sql, args![owner, max + stopping]).await?;
    Ok((unfinished as usize >= max + stopping).then_some(Submitted::TooManyRuns(max)))
}
