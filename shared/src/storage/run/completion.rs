//! FINISH of completed runs, which are nearly all: one statement for all runs of a group.
//!
//! Only PostgreSQL has this statement, because it has a round trip to save. It ends running, completed runs that are not
//! superseded, in conversations without later positions. A statement sees the state before its start, and only the rows
//! that it locks are current, so it decides by the rows of the conversation and the run alone. Any other run ends in a
//! transaction.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::{
    ArchiveChunk, Claim, attempt::status, chunk::insert_chunks, closing::RunEnd, group::Group, progress::rows_of,
};
use crate::storage::{
    quota::trace_bytes,
    sql::{Database, FencedWrites, Statement, args, statements},
};

/// A completed run before the write of its end.
pub struct Completion {
    run_id: Uuid,
    attempt: u32,
    conversation_id: Uuid,
    /// The run's number in its conversation's queue.
    position: i64,
    message_id: Uuid,
    text: String,
    bytes: usize,
    created_at: DateTime<Utc>,
    usage: Option<Value>,
    finish_reason: Option<String>,
    parts: Value,
    chunk: ArchiveChunk,
}

impl Completion {
    /// Returns the completion of the claimed run, with its last chunk of events.
    pub fn new(
        claim: &Claim,
        closing: &RunEnd<'_>,
        created_at: DateTime<Utc>,
        parts: Value,
        chunk: ArchiveChunk,
    ) -> Self {
        Self {
            run_id: claim.run_id,
            attempt: claim.attempt,
            conversation_id: claim.conversation_id,
            position: claim.position,
            message_id: closing.output_message_id,
            text: closing.answer.text.clone(),
            bytes: closing.answer.bytes(),
            created_at,
            usage: closing.used(),
            finish_reason: closing.finish_text(),
            parts,
            chunk,
        }
    }
}

statements! {
    /// Returns a row for each member of the group.
    ENDING {
        postgres = "
            select *
            from unnest(
                {array uuid:$1}, {array bigint:$2}, {array uuid:$3}, {array bigint:$4},
                {array uuid:$5}, {array text:$6}, {array bigint:$7}, {array timestamptz:$8},
                {array jsonb:$9}, {array text:$10}, {array jsonb:$11}, {array bigint:$12},
                {array text:$13}
            ) as ending (
                run_id, attempt, conversation_id, position, message_id, text, bytes, created_at,
                usage, finish_reason, parts, last_id, model
            )
        ",
    },
    /// Locks the members whose rows are free, and selects these members. A locked row would make all members wait, and
    /// perhaps for each other. PostgreSQL checks a row again when it locks it, if another transaction wrote the row since the
    /// statement began. Order matters: the conversation is locked before the run.
    ///
    /// The lateral query finds the rows of each member by their ids. In a plain join, PostgreSQL expects few running runs,
    /// and reads all of them for each group.
    FREE {
        postgres = concat!("
            select e.*
            from ending e
            cross join lateral (
                select r.id
                from chat_conversations c, agent_runs r
                where c.id = e.conversation_id
                  and c.last_position = e.position
                  and r.id = e.run_id
                  and r.attempt = e.attempt
                  and ", status!("r."), " = 'running'
                  and r.superseded_at is null
                for no key update of c, r skip locked
            ) locked
        "),
    },
    /// Takes a position for each answer. Each of these statements returns its members, so that none joins two lists of
    /// them, which would cost the square of their number.
    COUNTED {
        postgres = concat!("
            update chat_conversations c
            set last_position = c.last_position + 1,
                last_message_at = {now},
                activity_at = {now},
                bytes = c.bytes + e.bytes + ", trace_bytes!("e.run_id"), "
            from free e
            where c.id {is:e.conversation_id}
            returning e.*
        "),
    },
    /// Ends the runs.
    COMPLETE {
        postgres = "
            update agent_runs r
            set status = 'completed',
                archived_to = e.last_id,
                usage = coalesce(e.usage, r.usage),
                finish_reason = coalesce(e.finish_reason, r.finish_reason),
                model = coalesce(e.model, r.model),
                parts = e.parts,
                finished_at = {now},
                holder = null,
                lease_until = null,
                executing = false,
                caller_group = null
            from counted e
            where r.id {is:e.run_id}
            returning r.id, r.position as turn, r.owner_id, e.message_id, e.conversation_id, e.text,
                e.created_at, e.finish_reason
        ",
    },
    /// Returns the ended runs.
    ENDED {
        postgres = "
            select id
            from completed
        ",
    },
    /// Stores the answers.
    INSERT_ANSWERS {
        postgres = "
            insert into chat_messages (
                id, conversation_id, owner_id, run_id, position, turn, role, content, status,
                retrieval_context, created_at, finish_reason
            )
            select message_id, conversation_id, owner_id, id, turn + 1, turn, 'assistant', text,
                'complete', jsonb_build_object('agent_run_id', id), created_at, finish_reason
            from completed
        ",
    },
}

/// Starts the group of this process's completions. Its statements run on a connection of their own.
pub fn start(database: Database) -> Group<Completion, ()> {
    Group::start(move |completions: Vec<Completion>| {
        let database = database.clone();
        async move {
            let ended: Vec<(Uuid,)> = database.write_fenced("complete runs", statement(&completions)).await?;
            let ended: HashSet<Uuid> = ended.into_iter().map(|(id,)| id).collect();
            Ok(completions.iter().map(|completion| ended.contains(&completion.run_id).then_some(())).collect())
        }
    })
}

/// Returns the statement, whose fence returns the ids of the ended runs.
fn statement(completions: &[Completion]) -> FencedWrites {
    let ending = Statement::new(ENDING, columns(completions));
    let chunks: Vec<_> = completions.iter().map(|completion| (completion.run_id, &completion.chunk)).collect();
    let rows = chunks.iter().map(|(run_id, chunk)| (*run_id, &chunk.progress)).collect::<Vec<_>>();
    let mut writes = vec![Statement::new(INSERT_ANSWERS, args![]), insert_chunks(&chunks)];
    writes.extend(rows_of(&rows));
    FencedWrites::new(Statement::new(ENDED, args![]), writes)
        .after("ending", ending)
        .after("free", Statement::new(FREE, args![]))
        .after("counted", Statement::new(COUNTED, args![]))
        .after("completed", Statement::new(COMPLETE, args![]))
}

/// Returns the columns of `ending`, an array each.
fn columns(completions: &[Completion]) -> Vec<crate::storage::sql::Value> {
    fn column<T>(completions: &[Completion], value: impl Fn(&Completion) -> T) -> Vec<T> {
        completions.iter().map(value).collect()
    }
    args![
        column(completions, |run| run.run_id),
        column(completions, |run| i64::from(run.attempt)),
        column(completions, |run| run.conversation_id),
        column(completions, |run| run.position),
        column(completions, |run| run.message_id),
        column(completions, |run| Some(run.text.clone())),
        column(completions, |run| run.bytes as i64),
        column(completions, |run| run.created_at),
        column(completions, |run| run.usage.clone()),
        column(completions, |run| run.finish_reason.clone()),
        column(completions, |run| Some(run.parts.clone())),
        column(completions, |run| run.chunk.last.packed()),
        column(completions, |run| run.chunk.progress.model.clone())
    ]
}
