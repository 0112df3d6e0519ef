//! Quotas, held inside the write that would exceed them.
//!
//! A conversation's row knows its bytes, which are written with its position; so the sum of an owner's rows costs no write.

use uuid::Uuid;

use super::{
    Error, Storage, Submitted,
    database::{Tx, args},
};
use crate::quotas::Quotas;

/// The bytes that the owner of this parameter keeps.
macro_rules! kept_bytes {
    ($owner:literal) => {
        concat!(
            "(select coalesce(cast(sum(bytes) as bigint), 0) from chat_conversations where owner_id = ",
            $owner,
            " and deleted_at is null) + (select coalesce(cast(sum(bytes) as bigint), 0) from briefings where owner_id = ",
            $owner,
            ")"
        )
    };
}
pub(super) use kept_bytes;

/// The bytes of what the steps of this parameter's run have said, as far as they are stored.
macro_rules! trace_bytes {
    ($run:literal) => {
        concat!("(select coalesce(sum(octet_length(content)), 0) from agent_run_messages where run_id = ", $run, ")")
    };
}
pub(super) use trace_bytes;

/// The bytes of a conversation's first message, and the limits of its owner.
pub(super) struct Share {
    pub brings: usize,
    pub max_runs: Option<usize>,
    pub max_bytes: Option<usize>,
}

impl Share {
    /// For a transaction, which asks for a `refusal` later.
    pub const fn unchecked(brings: usize) -> Self {
        Self { brings, max_runs: None, max_bytes: None }
    }

    /// For a message that is accepted without a lock, because its owner is far below the quota of runs.
    pub fn far_below(quotas: &Quotas, brings: usize) -> Self {
        Self { brings, max_runs: quotas.runs.map(lock_threshold), max_bytes: quotas.bytes }
    }
}

/// Requests of one owner that see each other only after their commits. Beside fewer, an owner far below the quota keeps to it.
const AT_ONCE: usize = 50;

/// The unfinished runs from which an owner is near the quota.
fn lock_threshold(max: usize) -> usize {
    max.saturating_sub(AT_ONCE).min(max / 2)
}

/// Whether a quota speaks against the message that this transaction has begun to store. Runs that the message has asked to
/// stop, `stopping`, make room for it. Near the quota of runs, the owner is locked until the transaction ends, so that its
/// requests are counted one after the other.
pub(super) async fn refusal(
    tx: &mut Tx,
    owner: &str,
    quotas: &Quotas,
    stopping: usize,
) -> Result<Option<Submitted>, sqlx::Error> {
    if *quotas == Quotas::default() {
        return Ok(None);
    }
    let most_runs = quotas.runs.map_or(0, |max| max + stopping);
    let (runs, bytes) = usage(tx, owner, most_runs, quotas.bytes.is_some()).await?;
    if let Some(max) = quotas.bytes.filter(|max| bytes > *max) {
        return Ok(Some(Submitted::QuotaExceeded(max)));
    }
    let Some(max) = quotas.runs.filter(|max| runs >= lock_threshold(*max)) else { return Ok(None) };
    // Order matters: a statement sees what was committed before it began, so the lock is a statement of its own.
    tx.execute("select {lock name:$1}", args![owner]).await?;
    let (runs, _) = usage(tx, owner, most_runs, false).await?;
    Ok((runs >= most_runs).then_some(Submitted::TooManyRuns(max)))
}

/// The unfinished runs of an owner, up to `most_runs`, and the bytes that it keeps, if they are to be added up.
async fn usage(tx: &mut Tx, owner: &str, most_runs: usize, adds_bytes: bool) -> Result<(usize, usize), sqlx::Error> {
    let sql = concat!(
        "select (select count(*) from (select 1 from agent_runs where owner_id = $1 and finished_at is null limit $2) unfinished), ",
        "case when $3 then ",
        kept_bytes!("$1"),
        " else 0 end"
    );
    let (runs, bytes) = tx.fetch_one::<(i64, i64)>(sql, args![owner, most_runs, adds_bytes]).await?;
    Ok((runs as usize, bytes as usize))
}

impl Storage {
    /// The bytes that the owner's conversation keeps, roughly; `None` if there is no such conversation.
    pub async fn conversation_bytes(&self, owner: &str, id: Uuid) -> Result<Option<usize>, Error> {
        let sql = "select bytes from chat_conversations where owner_id = $1 and id = $2 and deleted_at is null";
        let kept = self.database.fetch_optional::<(i64,)>(sql, args![owner, id]).await;
        Ok(kept.map_err(Error::doing("look up what a conversation keeps"))?.map(|(bytes,)| bytes as usize))
    }

    /// The bytes that the owner keeps, roughly.
    pub async fn kept_bytes(&self, owner: &str) -> Result<usize, Error> {
        let kept = self.database.fetch_optional::<(i64,)>(concat!("select ", kept_bytes!("$1")), args![owner]).await;
        Ok(kept.map_err(Error::doing("add up what an owner keeps"))?.map_or(0, |row| row.0 as usize))
    }
}
