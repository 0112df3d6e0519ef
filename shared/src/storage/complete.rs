//! FINISH in one statement, for nearly every run.
//!
//! Each ending locks the conversation before the run. But a statement sees the state before its own start, and only the
//! rows that it writes are current. So this statement decides by these two rows alone. It ends a running, completed run
//! that is not superseded, in a conversation without later positions. `flush.rs` ends each other run in a transaction.

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::{
    Claim, Error, Storage,
    archive::{chunk_of, writes_of},
    end::RunEnd,
    flush::log_refused_checkpoint,
    quota::trace_bytes,
    sql::args,
    sql::{FencedWrites, Statement},
};
use crate::{
    ending::Ending,
    event::Event,
    message::{Content, Message, Role},
};

impl Storage {
    /// Ends the run and returns its last events, or `None` if the run needs a transaction. No other run waits for this
    /// end.
    pub(super) async fn complete(&self, claim: &Claim, closing: &RunEnd<'_>) -> Result<Option<Vec<Event>>, Error> {
        if *closing.ending != Ending::Completed {
            return Ok(None);
        }
        // The event carries the answer's time, so the statement cannot choose it.
        let message = answer_of(closing, claim.clock.now());
        let (context, created_at) = (message.retrieval_context.clone(), message.created_at);
        let events = closing.events(Some(message));
        let (chunk, parts) = (chunk_of(closing.tail, &events), closing.parts(&events));
        let fenced = || {
            let lock = Statement::new(
                concat!(
                    "update chat_conversations set last_position = last_position + 1, last_message_at = {now}, activity_at = {now}, ",
                    "bytes = bytes + $5 + ",
                    trace_bytes!("$3"),
                    " where id = $1 and last_position = $2 and exists (select 1 from agent_runs ",
                    "where id = $3 and attempt = $4 and status = 'running' and superseded_at is null) returning last_position"
                ),
                args![closing.conversation_id, claim.position, closing.run_id, claim.attempt, closing.answer.bytes()],
            );
            let end = Statement::new(
                "update agent_runs set status = 'completed', archived_to = $3, usage = coalesce($4, usage), \
                 finish_reason = coalesce($6, finish_reason), parts = $7, finished_at = {now}, \
                 holder = null, lease_until = null, executing = false \
                 where id = $1 and attempt = $2 and status = 'running' and superseded_at is null \
                 and exists (select 1 from {locked:chat_conversations where id = $5}) returning id, position, owner_id",
                args![
                    closing.run_id,
                    claim.attempt,
                    chunk.last,
                    closing.used(),
                    closing.conversation_id,
                    closing.finish_text(),
                    parts.clone()
                ],
            );
            let answer = Statement::new(
                "insert into chat_messages (id, conversation_id, owner_id, run_id, position, turn, role, content, status, \
                 retrieval_context, created_at, finish_reason) \
                 select $1, $2, owner_id, $3, position + 1, position, 'assistant', $4, $5, $6, $7, $8 \
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
        let written = self.database.write_without_refused_spares::<(Uuid,)>("complete a run", fenced).await?;
        if let Some(refusal) = &written.refused {
            log_refused_checkpoint(closing.run_id, refusal);
        }
        Ok((!written.rows.is_empty()).then_some(events))
    }
}

/// Returns the stored answer, without its position.
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
