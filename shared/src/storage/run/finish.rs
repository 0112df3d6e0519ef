//! FINISH: how the holder of a claim ends its run.
//!
//! Each ending locks the conversation before the run. Completed runs end in groups where the database gains by it
//! (`completion`), and any other run in a transaction.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    ArchiveChunk, Claim,
    chunk::chunk_of,
    closing::{Answer, Closed, RunEnd, leaves_message, write_closing},
    completion::Completion,
    group::MAX_BYTES,
};
use crate::{
    approval::ApprovalStatus,
    citation::AnswerSources,
    ending::Ending,
    event::{ApprovalResolved, Event, EventBody},
    event_id::EventId,
    message::{Content, Message, Role},
    storage::{
        Error, Storage,
        position::{lock_conversation, take_position},
        sql::{Commit, RollBack, Spare, Tx},
    },
};

/// The outcome of a finish.
#[derive(Debug)]
pub enum FinishOutcome {
    /// The run has ended. The caller publishes its last events, because they are committed.
    Ended(Box<Closed>),
    /// Another attempt holds the run, or it has ended.
    Fenced,
}

impl Storage {
    /// Ends the run: archives the tail and the closing events, and stores the answer. `last` is the attempt's newest
    /// event, and `tail` its events that are not archived yet.
    pub async fn finish(
        &self,
        claim: &Claim,
        tail: Option<&ArchiveChunk>,
        last: EventId,
        answer: &Answer,
        ending: &Ending,
    ) -> Result<FinishOutcome, Error> {
        const DOING: &str = "finish a run";
        let closing = RunEnd {
            run_id: claim.run_id,
            conversation_id: claim.conversation_id,
            output_message_id: claim.output_message_id,
            first: last.next(),
            base: None,
            before: tail.map(withdrawn_questions).unwrap_or_default(),
            tail,
            position: None,
            answer,
            ending,
        };
        if let Some(events) = self.complete(claim, &closing).await? {
            return Ok(FinishOutcome::Ended(Box::new(Closed { events, ..Closed::default() })));
        }
        let closed = match self.close(DOING, &closing, Spare::Together).await {
            Err(error) if error.refuses_row() && tail.is_some() => self.close(DOING, &closing, Spare::Apart).await,
            closed => closed,
        };
        if let Some(closed) = closed? {
            return Ok(FinishOutcome::Ended(Box::new(closed)));
        }
        let row = self.look(DOING, claim.run_id).await?;
        if row.is_some_and(|row| row.status.is_terminal() && row.has_written(claim, last.next())) {
            // The repeated call cannot tell whether a run waits, or has children. An unneeded wake-up or search does no harm.
            let events = self.events_after(claim.run_id, last).await?;
            Ok(FinishOutcome::Ended(Box::new(Closed {
                events,
                next_waits: true,
                answered: Vec::new(),
                has_children: true,
            })))
        } else {
            Ok(FinishOutcome::Fenced)
        }
    }

    /// Ends the run in a transaction that reads the conversation too.
    async fn close(&self, doing: &'static str, closing: &RunEnd<'_>, spare: Spare) -> Result<Option<Closed>, Error> {
        let close = async |tx: &mut Tx| {
            let position = if leaves_message(closing.ending, &closing.answer.text) {
                let (run_id, bytes) = (Some(closing.run_id), closing.answer.bytes());
                let position = take_position(tx, closing.conversation_id, run_id, bytes).await?;
                if position.is_none() {
                    // The conversation is gone, and so is the run.
                    return Ok(RollBack(None));
                }
                position
            } else {
                lock_conversation(tx, closing.conversation_id).await?;
                None
            };
            let closed = write_closing(tx, RunEnd { position, ..closing.clone() }, spare).await?;
            Ok(if closed.is_some() { Commit(closed) } else { RollBack(None) })
        };
        // Boxed, because a run that ends in a group needs no memory for the transaction.
        Box::pin(self.database.transact(doing, close)).await
    }

    pub(super) async fn events_after(&self, run_id: Uuid, after: EventId) -> Result<Vec<Event>, Error> {
        let (mut cursor, mut events) = (after, Vec::new());
        // One read returns one row of the archive, and the closing events may be in two.
        while let Some(archived) = self.read_archive(run_id, cursor).await? {
            let fresh = archived.events.into_iter().filter(|event| event.id > cursor);
            events.extend(fresh);
            match events.last().map(|event: &Event| event.id) {
                Some(last) if last > cursor => cursor = last,
                _ => break,
            }
        }
        Ok(events)
    }

    /// Ends the run with others, and returns its last events; `None` if the run needs a transaction. No other run waits for
    /// this end, and no parent.
    async fn complete(&self, claim: &Claim, closing: &RunEnd<'_>) -> Result<Option<Vec<Event>>, Error> {
        let (Some(groups), Ending::Completed) = (&self.groups, closing.ending) else { return Ok(None) };
        if claim.is_child {
            return Ok(None);
        }
        // The event carries the answer's time, so the statement cannot choose it.
        let created_at = claim.clock.now();
        let events = closing.events(Some(answer_of(closing, created_at)));
        let (chunk, parts) = (chunk_of(closing.tail, &events), closing.parts(&events));
        // The statement of a group stores no documents.
        if chunk.body.len() > MAX_BYTES || closing.sources() != AnswerSources::default() {
            return Ok(None);
        }
        let completion = Completion::new(claim, closing, created_at, parts, chunk);
        Ok(groups.completions.write(completion).await?.map(|()| events))
    }
}

/// Returns events that settle the tail's questions, because no caller can answer them after the end.
fn withdrawn_questions(tail: &ArchiveChunk) -> Vec<EventBody<'static>> {
    let settled = tail.progress.approvals.iter().map(|approval| {
        EventBody::ApprovalResolved(ApprovalResolved {
            base: None,
            approval_id: approval.id,
            call_id: approval.call_id.clone().into(),
            child_run_id: None,
            decision: ApprovalStatus::Cancelled,
            reason: None,
            edited_input: None,
        })
    });
    settled.collect()
}

/// Returns the stored answer, without its position.
fn answer_of(closing: &RunEnd<'_>, now: DateTime<Utc>) -> Message {
    Message {
        id: closing.output_message_id,
        client_id: None,
        conversation_id: closing.conversation_id,
        run_id: Some(closing.run_id),
        given: false,
        role: Role::Assistant,
        content: Content::Text(closing.answer.text.clone()),
        attachments: Vec::new(),
        status: closing.ending.message_status(),
        finish_reason: closing.finish_reason(),
        retrieval_context: closing.sources().context(Some(closing.run_id)),
        superseded_at: None,
        version: None,
        created_at: now,
    }
}
