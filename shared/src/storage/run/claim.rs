//! The right to write an attempt of a run, and the terms under which a worker gets it (see [`super::take`]).

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::{clock::DatabaseClock, holder::Holder};
use crate::{
    config::counted_owner,
    event::{AttemptReason, Event},
    event_id::EventId,
    ingestion_places::IngestionPlace,
    message::Message,
    telemetry::Traceparent,
    time_zone::RunDate,
};

/// The right to write one attempt of one run. Only storage creates claims, so no other code can write a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claim {
    /// The claimed run.
    pub run_id: Uuid,
    /// Owner id of the run.
    pub owner_id: String,
    /// The group of an anonymous caller's address, under which limits count the run.
    pub caller_group: Option<String>,
    /// The run's conversation.
    pub conversation_id: Uuid,
    /// The fence, which each write carries.
    pub attempt: u32,
    /// Reserved id of the answer's message.
    pub output_message_id: Uuid,
    /// The run's number in its conversation's queue.
    pub position: i64,
    /// Time of the run's submission.
    pub created_at: DateTime<Utc>,
    /// Time from which on a worker could begin the run; later than the submission of a delayed run.
    pub due_at: DateTime<Utc>,
    /// True if the run answers a call of another run.
    pub is_child: bool,
    /// True if messages were waiting for the run at the time of the claim.
    pub is_steered: bool,
    /// The number of runs above this one.
    pub depth: u32,
    /// The agent's id and the version of its definition; `None` for a plain conversation.
    pub agent: Option<(Uuid, u32)>,
    /// True if the run writes pieces of the answer as events.
    pub stream: bool,
    /// Longest time without a sign of life, where the run's agent sets no time for the whole run.
    pub max_silence: Option<Duration>,
    /// The event that this attempt resumes from.
    pub checkpoint: EventId,
    /// The reason why this attempt began.
    pub reason: AttemptReason,
    /// Time since the first attempt, without the time of waiting for people.
    pub worked: Duration,
    /// The date that the run's model reads.
    pub date: RunDate,
    /// The span of the run's submission, if it was recorded.
    pub traceparent: Option<Traceparent>,
    /// Time of the request for the claim, by this host's clock.
    pub asked_at: SystemTime,
    /// The database's clock at the time of the claim.
    pub clock: DatabaseClock,
    /// The attempt's first event, `attempt.started`, which is archived already.
    pub started: Event,
    /// The run's input, if it opens its conversation and this attempt is the first.
    pub first_input: Option<Arc<FirstInput>>,
    /// The work of a run that asks no model.
    pub ingestion: Option<Ingestion>,
    /// The collections that the conversation had at the time of the run's submission.
    pub knowledge: Vec<Uuid>,
    /// The worker's place that an ingestion has, until the last clone of the claim is gone.
    pub place: Option<Arc<IngestionPlace>>,
}

/// The work of a run that makes a document ready for searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ingestion {
    /// The document; `None` if it was deleted.
    pub document_id: Option<Uuid>,
}

impl Claim {
    /// Returns whether no earlier attempt left a state to resume from.
    pub fn is_fresh(&self) -> bool {
        self.checkpoint.attempt == 0
    }

    /// Returns the name under which limits count the owner: anonymous users of one address are one.
    pub fn counted_as(&self) -> &str {
        self.caller_group.as_deref().unwrap_or_else(|| counted_owner(&self.owner_id))
    }
}

/// The message that opens a conversation, and the options of its run. The claim has them, so that such a run begins
/// without a read. A long message, one with files and tools of the client come with BEGIN, because a worker claims many runs at once.
#[derive(Debug, Clone)]
pub struct FirstInput {
    /// The message.
    pub message: Message,
    /// Its own metadata.
    pub metadata: Option<Value>,
}

/// The terms of claims, set by the configuration.
#[derive(Debug, Clone)]
pub struct ClaimTerms {
    /// The worker that claims.
    pub holder: Holder,
    /// Time until the claim expires without a renewal.
    pub lease: Duration,
    /// Crashes at which a run fails.
    pub max_crashes: usize,
    /// The worker's free places for ingestions of documents.
    pub ingestions: usize,
    /// The last free slots of the worker, which only shares without a run at work get.
    pub reserved: usize,
}

impl ClaimTerms {
    /// Returns the crashes from which a run is a suspect: one more would fail it.
    pub fn suspicious(&self) -> usize {
        self.max_crashes.saturating_sub(1).max(1)
    }
}
