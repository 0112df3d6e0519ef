//! The answer of a run as far as its archive has it, for an attempt or a writer that did not see it grow.

use chrono::Utc;
use sqlx::types::Json;
use uuid::Uuid;

use super::{Answer, Claim};
use crate::{
    event::Event,
    event_id::EventId,
    parts::{MessageParts, PartsBuilder},
    storage::{
        Error, Storage,
        sql::{RollBack, Tx, args, statements},
    },
    transcript::Transcript,
    usage::Usage,
};

statements! {
    /// Returns the archived events of a run.
    EVENTS = "
        select body
        from run_events
        where run_id = $1
        order by last_id
    ",
    /// Returns the usage of a run.
    USAGE = "
        select usage
        from agent_runs
        where id = $1
    ",
    /// Returns the texts of a run's steps.
    TEXT_OF_STEPS = "
        select content
        from agent_run_messages
        where run_id = $1 and role = 'assistant'
        order by position
    ",
}

/// Returns the durable text of a run and its parts, for a writer that ends the run without a claim.
pub async fn durable_answer(tx: &mut Tx, run_id: Uuid, streamed: bool) -> Result<(String, MessageParts), Error> {
    let chunks = tx.fetch_all::<(Vec<u8>,)>(EVENTS, args![run_id]).await?;
    let (mut transcript, mut parts) = (Transcript::default(), PartsBuilder::default());
    for (chunk,) in chunks {
        for event in Event::parse_batch(&chunk.into()).map_err(|source| Error::Damaged { run_id, source })? {
            transcript.apply(&event);
            parts.push(&event);
        }
    }
    let text = if streamed { transcript.into_text() } else { text_of_steps(tx, run_id).await? };
    let mut parts = parts.into_parts(Utc::now().timestamp_millis());
    parts.complete_text(&text);
    Ok((text, parts))
}

impl Storage {
    /// Returns the text and the usage of earlier attempts, for a claimed run that ends before it resumes.
    pub async fn earlier_answer(&self, claim: &Claim) -> Result<Answer, Error> {
        let read = async |tx: &mut Tx| {
            let (text, _) = durable_answer(tx, claim.run_id, claim.stream).await?;
            Ok(RollBack((text, tx.fetch_optional::<(Option<Json<Usage>>,)>(USAGE, args![claim.run_id]).await?)))
        };
        let (text, row) = self.database.transact("read a run's text", read).await?;
        let usage = row.and_then(|row| row.0).map(|usage| usage.0).unwrap_or_default();
        // Such a run ends without completion, so it has no finish reason.
        Ok(Answer { text, usage, ..Answer::default() })
    }

    /// Returns the parts of earlier attempts, up to the event with which this claim began.
    pub async fn earlier_parts(&self, claim: &Claim) -> Result<PartsBuilder, Error> {
        let (mut parts, mut cursor) = (PartsBuilder::default(), EventId::ORIGIN);
        while let Some(page) = self.read_archive(claim.run_id, cursor).await? {
            let Some(last) = page.events.last().map(|event| event.id).filter(|last| *last > cursor) else { break };
            let earlier = page.events.iter().filter(|event| event.id > cursor && event.id < claim.started.id);
            earlier.for_each(|event| parts.push(event));
            cursor = last;
        }
        Ok(parts)
    }
}

/// Returns the text of a run whose events have no deltas.
async fn text_of_steps(tx: &mut Tx, run_id: Uuid) -> Result<String, Error> {
    Ok(tx.fetch_all::<(String,)>(TEXT_OF_STEPS, args![run_id]).await?.into_iter().map(|row| row.0).collect())
}
