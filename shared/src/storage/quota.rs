//! Quotas, enforced inside the write that would exceed them.
//!
//! A conversation's row has its bytes, which are written with its position. So the sum of an owner's rows needs no
//! other write.

use super::{
    Error, Storage,
    sql::{Tx, args, statements},
};
use crate::quotas::{Account, QuotaExceeded, Quotas};

/// The bytes that the owner of this parameter keeps.
macro_rules! kept_bytes {
    ($owner:literal) => {
        concat!(
            "(
                select coalesce(cast(sum(bytes) as bigint), 0)
                from chat_conversations
                where owner_id = ",
            $owner,
            " and deleted_at is null
            ) + (
                select coalesce(cast(sum(bytes) as bigint), 0)
                from briefings
                where owner_id = ",
            $owner,
            "
            )"
        )
    };
}
pub(super) use kept_bytes;

/// The bytes of the stored steps and tool calls of this parameter's run.
macro_rules! trace_bytes {
    ($run:literal) => {
        concat!(
            "(
                select coalesce(sum(octet_length(content)), 0)
                from agent_run_messages
                where run_id = ",
            $run,
            "
            ) + (
                select coalesce(
                    sum(octet_length(cast(input as text)) + coalesce(octet_length(output), 0)), 0
                )
                from agent_run_tool_calls
                where run_id = ",
            $run,
            "
            )"
        )
    };
}
pub(super) use trace_bytes;

/// The bytes of a conversation's first message, and the limits of its owner.
#[derive(Clone, Copy, serde::Serialize)]
pub(super) struct Share {
    pub brings: usize,
    pub max_runs: Option<usize>,
    pub max_bytes: Option<usize>,
}

impl Share {
    /// For a transaction, which calls `nearness` later.
    pub const fn unchecked(brings: usize) -> Self {
        Self { brings, max_runs: None, max_bytes: None }
    }

    /// For a message without a lock, whose owner is far below both quotas.
    pub fn far_below(quotas: &Quotas, brings: usize) -> Self {
        let max_bytes = quotas.bytes.map(|max| bytes_without_lock(max, brings));
        Self { brings, max_runs: quotas.runs.map(lock_threshold), max_bytes }
    }
}

/// Concurrent requests of one owner, which see each other only after their commits. With fewer, an owner far below the
/// quota cannot exceed it.
const AT_ONCE: usize = 50;

/// The bytes that a run's rows take beside its texts: events, checkpoints, index entries.
pub(super) const ROWS: usize = 4096;

/// About how many bytes the row of a message without a run takes beside its content.
pub(super) const MESSAGE_ROW: usize = 512;

/// The bytes of a conversation without messages, as in its migration.
const CONVERSATION: usize = 256;

/// Most bytes of a message, with its conversation, that needs no lock.
const SMALL: usize = 64 * 1024;

statements! {
    /// Locks an owner until the transaction ends. SQLite needs no lock, because its transactions run alone.
    LOCK_OWNER {
        postgres = "select pg_advisory_xact_lock(hashtextextended($1, 0))",
        // SQLite refuses a parameter that no text names.
        sqlite = "select length($1)",
    },
    /// Returns an owner's unfinished runs, at most `$2`, and its bytes if `$3` is true.
    USAGE = concat!("
        select (
                select count(*)
                from (
                    select 1
                    from agent_runs
                    where owner_id = $1 and finished_at is null
                    limit $2
                ) unfinished
            ),
            case when $3 then ", kept_bytes!("$1"), " else 0 end
    "),
    /// Returns the bytes that an owner keeps.
    KEPT_BYTES = concat!("
        select ", kept_bytes!("$1")),
}

/// Returns the unfinished runs from which an owner is near the quota.
fn lock_threshold(max: usize) -> usize {
    max.saturating_sub(AT_ONCE).min(max / 2)
}

/// Returns the bytes up to which an owner is far below the quota, for a message of `brings` bytes. `AT_ONCE` small
/// messages fit beside them, and a larger message always needs the lock.
fn bytes_without_lock(max: usize, brings: usize) -> usize {
    let reserve = (AT_ONCE * SMALL).min(max / 2);
    if brings + CONVERSATION > reserve / AT_ONCE { 0 } else { max - reserve }
}

/// The unfinished runs and the bytes of an owner.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnerUsage {
    pub runs: usize,
    pub bytes: usize,
}

/// How near an owner is to its quotas before a message is stored.
pub(super) enum Nearness {
    /// Far below them. No later check is needed.
    Far,
    /// Near them. `expect_room` decides after the message is stored.
    Near,
    Beyond(QuotaExceeded),
}

/// Checks the quotas before a message of `brings` bytes is stored. Its conversation counts the bytes already.
pub(super) async fn nearness(tx: &mut Tx, owner: &str, quotas: Quotas, brings: usize) -> Result<Nearness, Error> {
    if quotas == Quotas::default() {
        return Ok(Nearness::Far);
    }
    let mut owner_usage = usage(tx, owner, quotas).await?;
    let near_runs = quotas.runs.is_some_and(|max| owner_usage.runs >= lock_threshold(max));
    let near_bytes = quotas.bytes.is_some_and(|max| owner_usage.bytes > bytes_without_lock(max, brings));
    // The message's own run.
    owner_usage.runs += 1;
    Ok(match exceeded(quotas, owner_usage) {
        Some(exceeded) => Nearness::Beyond(exceeded),
        None if near_runs || near_bytes => Nearness::Near,
        None => Nearness::Far,
    })
}

/// Returns the quota that the owner exceeds with this transaction's writes. It locks the owner until the transaction
/// ends, so writes of one owner are checked one by one.
///
/// Order matters: this is the last step before the commit, so the holder of the lock waits for no other lock.
pub(super) async fn expect_room(tx: &mut Tx, owner: &str, quotas: Quotas) -> Result<Option<QuotaExceeded>, Error> {
    if quotas == Quotas::default() {
        return Ok(None);
    }
    // Order matters: a statement sees the commits before its start, so the lock is a separate statement.
    tx.execute(LOCK_OWNER, args![owner]).await?;
    Ok(exceeded(quotas, usage(tx, owner, quotas).await?))
}

/// Fails if a quota refuses this transaction's writes for an owner. So two writes never exceed a quota together.
pub(super) async fn keep_within(tx: &mut Tx, owner: &str, quotas: Quotas) -> Result<(), Error> {
    match expect_room(tx, owner, quotas).await? {
        None => Ok(()),
        Some(exceeded) => Err(tx.refused_by(exceeded)),
    }
}

impl Account<'_> {
    /// Returns the quota of bytes alone, for a write that starts no run.
    pub(super) const fn quotas(&self) -> Quotas {
        Quotas { runs: None, bytes: self.max_bytes }
    }
}

pub(super) fn exceeded(quotas: Quotas, usage: OwnerUsage) -> Option<QuotaExceeded> {
    let bytes = quotas.bytes.filter(|max| usage.bytes > *max).map(QuotaExceeded::Bytes);
    bytes.or_else(|| quotas.runs.filter(|max| usage.runs > *max).map(QuotaExceeded::Runs))
}

/// Returns an owner's unfinished runs, up to one more than its quota, and its bytes. A value without a quota is 0.
pub(super) async fn usage(tx: &mut Tx, owner: &str, quotas: Quotas) -> Result<OwnerUsage, Error> {
    let most_runs = quotas.runs.map_or(0, |max| max + 1);
    let (runs, bytes) = tx.fetch_one::<(i64, i64)>(USAGE, args![owner, most_runs, quotas.bytes.is_some()]).await?;
    Ok(OwnerUsage { runs: runs as usize, bytes: bytes as usize })
}

impl Storage {
    /// Returns how many further runs the owner's quotas allow; `None` without quotas. Writes of the same moment do not count.
    pub async fn room_for_runs(&self, owner: &str, quotas: Quotas) -> Result<Option<usize>, Error> {
        if quotas == Quotas::default() {
            return Ok(None);
        }
        let most_runs = quotas.runs.unwrap_or(0);
        let args = args![owner, most_runs, quotas.bytes.is_some()];
        let row = self.database.fetch_optional::<(i64, i64)>("look for room in an owner's quotas", USAGE, args).await?;
        let (runs, bytes) = row.unwrap_or_default();
        if quotas.bytes.is_some_and(|max| bytes as usize >= max) {
            return Ok(Some(0));
        }
        Ok(quotas.runs.map(|max| max.saturating_sub(runs as usize)))
    }

    /// Returns the bytes that the owner keeps, roughly.
    pub async fn kept_bytes(&self, owner: &str) -> Result<usize, Error> {
        let kept =
            self.database.fetch_optional::<(i64,)>("count the bytes of an owner", KEPT_BYTES, args![owner]).await?;
        Ok(kept.map_or(0, |row| row.0 as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_small_messages_fit_above_the_bytes_that_need_no_lock() {
        for max in [0, 1_000, 1_000_000, 268_435_456] {
            let unlocked = (0..=SMALL).rev().find(|brings| bytes_without_lock(max, *brings) > 0);
            let most = unlocked.map_or(0, |brings| AT_ONCE * (brings + CONVERSATION));
            assert!(bytes_without_lock(max, 0) + most <= max, "of {max}");
        }
        assert_eq!(bytes_without_lock(268_435_456, SMALL - CONVERSATION), 268_435_456 - AT_ONCE * SMALL);
        assert_eq!(bytes_without_lock(268_435_456, SMALL - CONVERSATION + 1), 0, "a larger message needs the lock");
    }
}
