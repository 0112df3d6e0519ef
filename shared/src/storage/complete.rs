//! FINISH as nearly every run needs it: one statement.
//!
//! Like any ending it locks the conversation before the run. But a statement sees what was committed before it began, not
//! before it got its lock; only the rows that it writes are as they are now. So it ends a run by these two rows alone: one
//! that is executed, has completed, was not superseded, and whose conversation has gone nowhere since its question.
//! Whatever it does not end is looked at in a transaction (`flush.rs`).

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::{
    Claim, Error, Storage,
    archive::{chunk_of, writes_of},
    database::args,
    end::RunEnd,
    fenced::{FencedWrites, Statement},
    flush::log_refused_checkpoint,
    quota::trace_bytes,
};
use crate::{
    ending::Ending,
    event::Event,
    message::{Content, Message, Role},
};

impl Storage {
    /// Ends the run, unless there is more to it; answers its last events. No run of the conversation waits for this end.
    pub(super) async fn complete(&self, claim: &Claim, closing: &RunEnd<'_>) -> Result<Option<Vec<Event>>, Error> {
        if *closing.ending != Ending::Completed {
            return Ok(None);
        }
        // The answer's time is in its event, so it cannot be the statement's.
        let message = answer_of(closing, claim.clock.now());
        let (context, created_at) = (message.retrieval_context.clone(), message.created_at);
        let events = closing.events(Some(message));
        let chunk = chunk_of(closing.tail, &events);
        let fenced = || {
            let lock = Statement::new(
                concat!(
                    "update chat_conversations set last_position = last_position + 1, last_message_at = {now}, activity_at = {now}, ",
                    "bytes = bytes + $5 + ",
                    trace_bytes!("$3"),
                    " where id = $1 and last_position = $2 and exists (select 1 from agent_runs ",
                    "where id = $3 and attempt = $4 and status = 'running' and superseded_at is null) returning last_position"
                ),
                args![
                    closing.conversation_id,
                    claim.position,
                    closing.run_id,
                    claim.attempt,
                    closing.answer.text.len()
                ],
            );
            let end = Statement::new(
                "update agent_runs set status = 'completed', archived_to = $3, usage = coalesce($4, usage), \
                 finish_reason = coalesce($6, finish_reason), finished_at = {now}, \
                 holder = null, lease_until = null, executing = false \
                 where id = $1 and attempt = $2 and status = 'running' and superseded_at is null \
                 and exists (select 1 from {locked:chat_conversations where id = $5}) returning id, position, owner_id, version_of",
                args![
                    closing.run_id,
                    claim.attempt,
                    chunk.last,
                    closing.used(),
                    closing.conversation_id,
                    closing.finish_text()
                ],
            );
            let answer = Statement::new(
                "insert into chat_messages (id, conversation_id, owner_id, run_id, position, turn, role, content, status, \
                 retrieval_context, created_at, finish_reason, version_of) \
                 select $1, $2, owner_id, $3, position + 1, position, 'assistant', $4, $5, $6, $7, $8, version_of \
                 from {fence:agent_runs where id = $3}",
                args![
                    closing.output_message_id,
                    closing.conversation_id,
                    closing.run_id,
                    closing.answer.text.as_str(),
                    closing.ending.message_status().as_str(),
                    context.clone(),
                    Some(created_at),
                    closing.finish_text()
                ],
            );
            let writes = [answer].into_iter().chain(writes_of(closing.run_id, &chunk)).collect();
            FencedWrites::after_lock(lock, end, writes)
        };
        let written = self
            .database
            .write_without_refused_spares::<(Uuid,)>(fenced)
            .await
            .map_err(Error::doing("complete a run"))?;
        if let Some(refusal) = &written.refused {
            log_refused_checkpoint(closing.run_id, refusal);
        }
        Ok((!written.rows.is_empty()).then_some(events))
    }
}

/// The answer as it is stored, but for its position.
fn answer_of(closing: &RunEnd<'_>, now: DateTime<Utc>) -> Message {
    Message {
        id: closing.output_message_id,
        client_id: None,
        conversation_id: closing.conversation_id,
        run_id: Some(closing.run_id),
        role: Role::Assistant,
        content: Content::Text(closing.answer.text.clone()),
        status: closing.ending.message_status(),
        finish_reason: closing.finish_reason(),
        retrieval_context: Some(json!({"agent_run_id": closing.run_id})),
        superseded_at: None,
        version: None,
        created_at: now,
    }
}
