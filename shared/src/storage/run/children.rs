//! The start of children: a child is stored with the intent of its parent's call.

use chrono::Utc;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::round::next_round;
use crate::storage::sql::{Sql, Statement, args, id_text, statements};
use crate::{
    event::{Event, EventBody, RunQueued},
    event_id::EventId,
    subagent::SubagentRole,
};

/// A child that its parent's holder starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewChild {
    /// The child. Its ids are chosen before the write, so that a repeated write is the same.
    #[serde(serialize_with = "id_text")]
    pub child_run_id: Uuid,
    /// The call of the parent that the child answers.
    pub call_id: String,
    /// The child's part in the work of its parent.
    pub role: &'static str,
    /// The agent that executes the child.
    #[serde(serialize_with = "id_text")]
    pub agent_id: Uuid,
    /// The child's input.
    pub task: String,
    /// Most runs of the tree, with this one. In a larger tree the call ends with `limit_reached`, and no child starts.
    #[serde(skip)]
    pub most_runs: usize,
    /// The run's metadata, such as its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    #[serde(serialize_with = "id_text")]
    conversation_id: Uuid,
    #[serde(serialize_with = "id_text")]
    message_id: Uuid,
    #[serde(serialize_with = "id_text")]
    output_message_id: Uuid,
    queued_id: i64,
    queued: String,
}

impl NewChild {
    /// Returns a child with new ids, for a tree without a limit.
    pub fn new(call_id: String, role: SubagentRole, agent_id: Uuid, task: String) -> Self {
        let (child_run_id, conversation_id) = (Uuid::now_v7(), Uuid::now_v7());
        let (message_id, output_message_id) = (Uuid::now_v7(), Uuid::now_v7());
        let body = EventBody::RunQueued(RunQueued {
            base: EventId::ORIGIN,
            conversation_id,
            input_message_id: message_id,
            message_id: output_message_id,
            agent_id: Some(agent_id),
        });
        let event = Event::new(EventId::first_of(0), Utc::now(), &body);
        Self {
            child_run_id,
            call_id,
            role: role.as_str(),
            agent_id,
            task,
            most_runs: usize::MAX,
            metadata: None,
            conversation_id,
            message_id,
            output_message_id,
            queued_id: event.id.packed(),
            queued: Event::lines(&[event]),
        }
    }

    /// Returns the child for a tree of at most so many runs.
    pub fn within(self, most_runs: usize) -> Self {
        Self { most_runs, ..self }
    }
}

/// Adds the parent of each element of `$1`, behind the fence of that parent.
macro_rules! from_parents {
    () => {
        "
        from {each:$1}
        join agent_runs p on p.id {is uuid:value->>'run_id'}
        where {fenced:cast(value->>'run_id' as uuid)}
    "
    };
}

statements! {
    /// Creates the conversations of children.
    INSERT_CONVERSATIONS = concat!("
        insert into chat_conversations (
            id, owner_id, agent_definition_id, parent_run_id, last_position, created_at,
            last_message_at, activity_at, bytes
        )
        select {uuid:value->>'conversation_id'}, p.owner_id, {uuid:value->>'agent_id'}, p.id, 1,
            {now}, {now}, {now},
            4352 + octet_length(value->>'task') + coalesce(octet_length(value->>'metadata'), 0)",
        from_parents!()),
    /// Queues the children. Their traces continue their parents'.
    INSERT_RUNS = concat!("
        insert into agent_runs (
            id, owner_id, conversation_id, agent_definition_id, position, status, input_message_id,
            output_message_id, archived_to, checkpoint, created_at, stream, traceparent,
            agent_version, queue_round, parent_run_id, parent_call_id, subagent_role, top_run_id,
            depth, metadata, caller_group, time_zone
        )
        select {uuid:value->>'child_run_id'}, p.owner_id, {uuid:value->>'conversation_id'},
            {uuid:value->>'agent_id'}, 1, 'queued', {uuid:value->>'message_id'},
            {uuid:value->>'output_message_id'}, cast(value->>'queued_id' as bigint),
            cast(value->>'queued_id' as bigint), {now}, p.stream, p.traceparent,
            case
                when value->>'role' in ('executor', 'reviewer') then p.agent_version
                else (
                    select version
                    from agent_definitions
                    where id = {uuid:value->>'agent_id'}
                )
            end,
            ", next_round!("p.owner_id", "p.caller_group"), ",
            p.id, value->>'call_id', value->>'role', coalesce(p.top_run_id, p.id), p.depth + 1,
            value->'metadata', p.caller_group, p.time_zone", from_parents!()),
    /// Stores the children's inputs.
    INSERT_MESSAGES = concat!("
        insert into chat_messages (
            id, conversation_id, owner_id, run_id, position, turn, role, content, status,
            created_at
        )
        select {uuid:value->>'message_id'}, {uuid:value->>'conversation_id'}, p.owner_id,
            {uuid:value->>'child_run_id'}, 1, 1, 'user', value->>'task', 'complete', {now}",
        from_parents!()),
    /// Archives the children's first events.
    INSERT_FIRST_EVENTS = "
        insert into run_events (run_id, last_id, body)
        select {uuid:value->>'child_run_id'}, cast(value->>'queued_id' as bigint),
            {bytes:value->>'queued'}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
    ",
}

/// The writes that start children, in this order.
const SPAWNS: [Sql; 4] = [INSERT_CONVERSATIONS, INSERT_RUNS, INSERT_MESSAGES, INSERT_FIRST_EVENTS];

/// Returns the writes that start children, for elements with the `run_id` of their parent.
pub fn spawns(children: Vec<Value>) -> Vec<Statement> {
    if children.is_empty() {
        return Vec::new();
    }
    SPAWNS.map(|sql| Statement::new(sql, args![Value::from(children.clone())])).into()
}
