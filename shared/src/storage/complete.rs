//! COMPLETE: how nearly every run ends, as one statement.
//!
//! Like any ending it locks the conversation before the run. But a statement sees what was committed before it began, not
//! before it got its lock; only the rows that it writes are as they are now. So it ends a run by its own row alone: one
//! that is executed, has completed, and was not superseded. Whatever it does not end is for FINISH to look at.

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::{
    Error, Storage,
    archive::{chunk_of, writes_of},
    database::args,
    end::Closing,
    fenced::{Fenced, Statement},
};
use crate::{
    ending::Ending,
    event::Event,
    message::{Content, Message, Role},
};

impl Storage {
    /// Ends the run, unless there is more to it. Answers its last events, and whether a queued run of the conversation has
    /// waited. The answer's time is in its event, so it cannot be the statement's: it is `now`.
    pub(super) async fn complete(
        &self,
        closing: &Closing<'_>,
        now: DateTime<Utc>,
    ) -> Result<Option<(Vec<Event>, bool)>, Error> {
        if *closing.ending != Ending::Completed {
            return Ok(None);
        }
        let message = answer_of(closing, now);
        let context = message.retrieval_context.clone();
        let events = closing.events(Some(message));
        let chunk = chunk_of(closing.tail, &events);
        let position = Statement::new(
            "update chat_conversations set last_position = last_position + 1, last_message_at = {now}, activity_at = {now} where id = $1 \
             and exists (select 1 from agent_runs where id = $2 and attempt = $3 and status = 'running' and superseded_at is null) \
             returning last_position",
            args![closing.conversation_id, closing.run_id, closing.first.attempt],
        );
        let end = Statement::new(
            "update agent_runs set status = 'completed', archived_to = $3, usage = coalesce($4, usage), finished_at = {now}, \
             holder = null, lease_until = null, executing = false \
             where id = $1 and attempt = $2 and status = 'running' and superseded_at is null \
             and exists (select 1 from {locked:chat_conversations where id = $5}) \
             returning (select last_position from {locked:chat_conversations where id = $5}) > position + 1 as is_followed, id, position",
            args![closing.run_id, closing.first.attempt, chunk.last, closing.used(), closing.conversation_id],
        );
        let answer = Statement::new(
            "insert into chat_messages (id, conversation_id, owner_id, run_id, position, turn, role, content, status, retrieval_context, created_at) \
             select $1, $2, $3, $4, (select last_position from {locked:chat_conversations where id = $2}), position, 'assistant', $5, $6, $7, $8 \
             from {fence:agent_runs where id = $4}",
            args![
                closing.output_message_id,
                closing.conversation_id,
                closing.owner_id,
                closing.run_id,
                closing.answer.text.as_str(),
                closing.ending.message_status().as_str(),
                context,
                Some(now)
            ],
        );
        let writes = [answer].into_iter().chain(writes_of(closing.run_id, &chunk)).collect();
        let ended = self.database.write_fenced::<(bool,)>(Fenced::behind(position, end, writes)).await;
        let Some((is_followed,)) = ended.map_err(Error::doing("complete a run"))?.into_iter().next() else {
            return Ok(None);
        };
        Ok(Some((events, is_followed && self.has_queued_run(closing).await)))
    }

    async fn has_queued_run(&self, closing: &Closing<'_>) -> bool {
        let sql = "select id from agent_runs where conversation_id = $1 and status = 'queued' limit 1";
        let queued = self.database.fetch_optional::<(Uuid,)>(sql, args![closing.conversation_id]).await;
        // One wake-up too many does no harm.
        queued.map_or(true, |queued| queued.is_some())
    }
}

/// The answer as it is stored, but for its position.
fn answer_of(closing: &Closing<'_>, now: DateTime<Utc>) -> Message {
    Message {
        id: closing.output_message_id,
        client_id: None,
        conversation_id: closing.conversation_id,
        run_id: Some(closing.run_id),
        role: Role::Assistant,
        content: Content::Text(closing.answer.text.clone()),
        status: closing.ending.message_status(),
        retrieval_context: Some(json!({"agent_run_id": closing.run_id})),
        superseded_at: None,
        created_at: now,
    }
}
