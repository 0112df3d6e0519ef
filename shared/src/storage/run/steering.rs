//! Steering: a message that joins a live run before a model call, instead of waiting for its turn.
//!
//! Such a message has a run of its own, which is queued behind the live one. Before its next model call, the holder of
//! the live run takes the message and ends the message's run in one write; if there is no such call, the message's run
//! becomes the live one. So the message is read once, and such messages are read in the order of their posting.

use chrono::Utc;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::{Claim, attempt::status};
use crate::storage::{
    Error, Storage,
    sql::{Statement, args, id_text, statements},
};
use crate::{
    event::{Event, EventBody, MessageSteered, RunCancelled},
    event_id::EventId,
    usage::Usage,
};

/// A message that the holder of a live run takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SteeringMessage {
    /// The message.
    #[serde(serialize_with = "id_text")]
    pub message_id: Uuid,
    /// Its text.
    #[serde(skip)]
    pub content: String,
    /// The run that the message had until now.
    #[serde(serialize_with = "id_text")]
    pub own_run_id: Uuid,
    last_id: i64,
    lines: String,
    /// The last events of that run.
    #[serde(skip)]
    pub events: Vec<Event>,
}

#[derive(FromRow)]
struct SteeringRow {
    id: Uuid,
    message_id: Uuid,
    content: String,
}

statements! {
    /// Returns the messages that wait for the live run of a conversation, in the order of their posting.
    STEERING_MESSAGES = concat!("
        select r.id, m.id as message_id, m.content
        from agent_runs r
        join chat_messages m on m.id = r.input_message_id
        where r.conversation_id = $1
          and r.position > $2
          and r.steers
          and r.status in ('queued', 'running', 'waiting')
          and ", status!("r."), " = 'queued'
          and r.attempt = 0
        order by r.position
        limit $3
    "),
    /// Archives the last events of the runs of messages that join a live one; not of a run that its user has cancelled in the
    /// meantime.
    INSERT_JOINED_EVENTS = concat!("
        insert into run_events (run_id, last_id, body)
        select own.id, cast(each.value->>'last_id' as bigint), {bytes:each.value->>'lines'}
        from {each:$1}
        join agent_runs own on own.id {is uuid:each.value->>'own_run_id'}
            and ", status!("own."), " = 'queued'
            and own.attempt = 0
        where {fenced:cast(each.value->>'run_id' as uuid)}
    "),
    /// Ends those runs, after their events are archived.
    END_JOINED_RUNS = concat!("
        update agent_runs
        set status = 'cancelled',
            attempt = 1,
            archived_to = cast(each.value->>'last_id' as bigint),
            finished_at = {now},
            caller_group = null
        from {each:$1}
        where agent_runs.id {is uuid:each.value->>'own_run_id'}
          and ", status!("agent_runs."), " = 'queued'
          and agent_runs.attempt = 0
          and {fenced:cast(each.value->>'run_id' as uuid)}
    "),
    /// Moves the messages into the turn of the live run, which reads them in any case.
    MOVE_MESSAGES = "
        update chat_messages
        set run_id = live.id, turn = live.position
        from {each:$1}
        join agent_runs live on live.id {is uuid:each.value->>'run_id'}
        where chat_messages.id {is uuid:each.value->>'message_id'}
          and {fenced:cast(each.value->>'run_id' as uuid)}
    ",
}

/// Most messages that join at one border of a step.
const BATCH: i64 = 32;

impl Storage {
    /// Returns the messages that wait for the claimed run, in the order of their posting.
    pub async fn steering_messages(&self, claim: &Claim) -> Result<Vec<SteeringMessage>, Error> {
        let doing = "look for messages that steer a run";
        let args = args![claim.conversation_id, claim.position, BATCH];
        let rows = self.database.fetch_all::<SteeringRow>(doing, STEERING_MESSAGES, args).await?;
        Ok(rows.into_iter().map(|row| SteeringMessage::new(row, claim.run_id)).collect())
    }
}

impl SteeringMessage {
    fn new(row: SteeringRow, live: Uuid) -> Self {
        let (first, now) = (EventId::first_of(1), Utc::now());
        let base = Some(EventId::first_of(0));
        let steered =
            EventBody::MessageSteered(MessageSteered { base, message_id: row.message_id, joined_run_id: Some(live) });
        let ended = EventBody::RunCancelled(RunCancelled { base: None, message_id: None, usage: Usage::default() });
        let events = vec![Event::new(first, now, &steered), Event::new(first.next(), now, &ended)];
        Self {
            message_id: row.message_id,
            content: row.content,
            own_run_id: row.id,
            last_id: first.next().packed(),
            lines: Event::lines(&events),
            events,
        }
    }
}

/// Returns the writes by which messages join the live run of their elements' `run_id`.
pub fn joins(messages: Vec<Value>) -> Vec<Statement> {
    if messages.is_empty() {
        return Vec::new();
    }
    [INSERT_JOINED_EVENTS, END_JOINED_RUNS, MOVE_MESSAGES]
        .map(|sql| Statement::new(sql, args![Value::from(messages.clone())]))
        .into()
}
