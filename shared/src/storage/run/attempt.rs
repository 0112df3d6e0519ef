//! The fence of every write, and the write rule.
//!
//! Invariant: the holder of an attempt writes a run only where `held!` is true; in a group, where that holds for the member
//! (`completion`, `plain_flush`). A writer without a claim takes an attempt
//! in its transaction, under the locks of the conversation and the run; after that, the old holder matches no row.

use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use crate::{
    event_id::EventId,
    run::RunStatus,
    storage::{
        Error,
        position::lock_conversation,
        sql::{Tx, args, statements},
    },
    usage::Usage,
};

/// The status of a run, in a condition of a statement that finds the run by its id. For the bare column, PostgreSQL may
/// choose a partial index of the runs with this status, and read all of it, because that was empty when it planned.
macro_rules! status {
    ($run:literal) => {
        concat!("coalesce(", $run, "status, '')")
    };
}
pub(in crate::storage) use status;

/// The condition that the attempt `$2` holds the run `$1`.
macro_rules! held {
    () => {
        "id = $1 and attempt = $2 and coalesce(status, '') = 'running'"
    };
}
pub(in crate::storage) use held;

/// A run's locked row, for a writer without a claim.
#[derive(Debug, FromRow)]
pub struct LockedRun {
    pub id: Uuid,
    pub conversation_id: Uuid,
    pub output_message_id: Uuid,
    #[sqlx(try_from = "String")]
    pub status: RunStatus,
    pub attempt: i64,
    #[sqlx(try_from = "i64")]
    pub archived_to: EventId,
    pub crashes: i64,
    pub stream: bool,
    pub usage: Option<Json<Usage>>,
    pub cancel_requested: bool,
    /// True if the holder has not ended the run within 1.5 s of the request.
    pub cancel_overdue: bool,
    /// True if the lease of a running run has expired.
    pub expired: bool,
}

/// An attempt that a writer without a claim has taken.
pub struct TakenAttempt {
    pub run: LockedRun,
    pub number: u32,
}

impl TakenAttempt {
    /// Returns the id of its first event, whose base is the newest durable event.
    pub const fn first_event(&self) -> EventId {
        EventId::first_of(self.number)
    }
}

statements! {
    /// Returns the conversation of a run.
    CONVERSATION_OF_RUN = "
        select conversation_id
        from agent_runs
        where id = $1
    ",
    /// Locks a run's row.
    LOCK_RUN = "
        select id, conversation_id, output_message_id, status, attempt, archived_to, crashes,
            stream, usage, cancel_requested_at is not null as cancel_requested,
            coalesce({ms since:cancel_requested_at} > 1500, false) as cancel_overdue,
            coalesce(lease_until < {now}, false) as expired
        from agent_runs
        where id = $1
        {for update}
    ",
    /// Takes the next attempt of a locked run.
    TAKE_ATTEMPT = "
        update agent_runs
        set attempt = attempt + 1
        where id = $1
    ",
}

/// Locks the run and its conversation; `None` if there is no such run.
pub async fn lock_run(tx: &mut Tx, run_id: Uuid) -> Result<Option<LockedRun>, Error> {
    let Some((conversation_id,)) = tx.fetch_optional::<(Uuid,)>(CONVERSATION_OF_RUN, args![run_id]).await? else {
        return Ok(None);
    };
    lock_conversation(tx, conversation_id).await?;
    lock_run_in_conversation(tx, run_id).await
}

/// Locks the run, in a transaction that has locked the conversation.
pub async fn lock_run_in_conversation(tx: &mut Tx, run_id: Uuid) -> Result<Option<LockedRun>, Error> {
    tx.fetch_optional(LOCK_RUN, args![run_id]).await
}

/// The write rule: takes the run's next attempt for the writes of `body`.
pub async fn take_attempt<T>(
    tx: &mut Tx,
    run: LockedRun,
    body: impl AsyncFnOnce(&mut Tx, TakenAttempt) -> Result<T, Error>,
) -> Result<T, Error> {
    tx.execute(TAKE_ATTEMPT, args![run.id]).await?;
    let number = run.attempt as u32 + 1;
    body(tx, TakenAttempt { run, number }).await
}
