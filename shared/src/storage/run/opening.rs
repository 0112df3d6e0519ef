//! SUBMIT of messages that open a conversation, which most messages of short chats do: one statement for all of a group.
//!
//! Only PostgreSQL has this statement. It stores a message whose agent exists and whose owner is far below its quotas. A
//! message that finds no write under way has a statement of its own, and a transaction stores any other message, or refuses
//! it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Groups,
    accept::{Acceptance, RunInput},
    group::{Group, MAX_BYTES},
    locked_conversation::{LockedConversation, LockedConversationRow},
    round::next_round,
    zone::zone_of,
};
use crate::conversation::Conversation;
use crate::storage::{
    Error,
    quota::{Share, kept_bytes},
    sql::{Database, FencedWrites, Statement, args, statements},
};

/// A message that opens a conversation, before its write.
#[derive(Serialize)]
pub struct Opening {
    /// Its place in the group.
    n: usize,
    conversation_id: Uuid,
    owner_id: String,
    agent_id: Option<Uuid>,
    #[serde(flatten)]
    share: Share,
    run_id: Uuid,
    message_id: Uuid,
    output_message_id: Uuid,
    client_id: Option<String>,
    content: String,
    stream: bool,
    client_tools: Option<Value>,
    metadata: Option<Value>,
    max_duration_ms: Option<i64>,
    traceparent: Option<String>,
    caller_group: Option<String>,
    /// The zone of the request, and that of a run without another.
    named_zone: Option<String>,
    other_zone: String,
    /// The id of the run's first event, packed.
    queued_id: i64,
    /// The line of that event.
    queued: String,
}

impl Opening {
    /// Returns the message of a new conversation; `None` if the run answers an earlier message, if the message has
    /// files, or if it is too large for a group.
    pub fn of(acceptance: &Acceptance<'_>, share: Share) -> Option<Self> {
        let (new, RunInput::New(content)) = (acceptance.new, &acceptance.input) else { return None };
        // The statement knows no delay and no files.
        if share.brings > MAX_BYTES || !content.attachments.is_empty() || new.options.delay.is_some() {
            return None;
        }
        let options = &new.options;
        Some(Self {
            n: 0,
            conversation_id: acceptance.conversation_id,
            owner_id: acceptance.owner.to_owned(),
            agent_id: acceptance.agent_id,
            share,
            run_id: new.run_id,
            message_id: acceptance.message_id,
            output_message_id: acceptance.output_message_id,
            client_id: new.client_message_id.clone(),
            content: content.text.clone(),
            stream: options.stream,
            client_tools: options.client_parts(),
            metadata: options.metadata.clone(),
            max_duration_ms: options.max_silence.map(|limit| limit.as_millis() as i64),
            traceparent: new.traceparent.map(|parent| parent.to_string()),
            caller_group: new.caller_group.clone(),
            named_zone: options.zone.named.as_ref().map(|zone| zone.name().to_owned()),
            other_zone: options.zone.otherwise.name().to_owned(),
            queued_id: acceptance.queued.id.packed(),
            queued: format!("{}\n", str::from_utf8(acceptance.queued.line()).expect("an event is a line of text")),
        })
    }
}

statements! {
    /// Returns a row for each member of the group. The members of one owner count each other.
    OPENING {
        postgres = "
            select o.*, row_number() over of_owner - 1 as runs_before,
                row_number() over (
                    partition by coalesce(o.caller_group, o.owner_id) order by o.n
                ) - 1 as turns_before,
                coalesce(
                    sum(256 + o.brings) over (
                        of_owner rows between unbounded preceding and 1 preceding
                    ),
                    0
                ) as bytes_before
            from jsonb_to_recordset($1) as o (
                n bigint, conversation_id uuid, owner_id text, agent_id uuid, brings bigint,
                max_runs bigint, max_bytes bigint, run_id uuid, message_id uuid,
                output_message_id uuid, client_id text, content text, stream boolean,
                client_tools jsonb, metadata jsonb, max_duration_ms bigint, traceparent text,
                caller_group text, named_zone text, other_zone text, queued_id bigint,
                queued text
            )
            window of_owner as (partition by o.owner_id order by o.n)
        ",
    },
    /// Returns the round, the unfinished runs and the bytes of each owner. It counts each owner once, because many members
    /// may have one owner.
    OWNER {
        postgres = concat!("
            select o.owner_id,
                case
                    when o.max_runs is null then 0
                    else (
                        select count(*)
                        from (
                            select 1
                            from agent_runs r
                            where r.owner_id = o.owner_id and r.finished_at is null
                            limit o.max_runs
                        ) unfinished
                    )
                end as unfinished,
                case
                    when o.max_bytes is null then 0
                    else ", kept_bytes!("o.owner_id"), "
                end as kept,
                ", next_round!("o.owner_id", "o.caller_group"), " as round
            from (
                select owner_id, max(max_runs) as max_runs, max(max_bytes) as max_bytes,
                    max(caller_group) as caller_group
                from opening
                group by owner_id
            ) o
        "),
    },
    /// Creates the conversations of members whose agents exist and whose owners have room.
    INSERT_CONVERSATIONS {
        postgres = "
            insert into chat_conversations (
                id, owner_id, agent_definition_id, last_position, created_at, last_message_at,
                activity_at, bytes
            )
            select o.conversation_id, o.owner_id, o.agent_id, 1, {now}, {now}, {now}, 256 + o.brings
            from opening o
            join owner w on w.owner_id = o.owner_id
            where (
                o.agent_id is null
                or exists (
                    select 1
                    from agent_definitions a
                    where a.id = o.agent_id and a.deleted_at is null
                )
            )
              and (o.max_runs is null or o.runs_before + w.unfinished < o.max_runs)
              and (o.max_bytes is null or 256 + o.brings + o.bytes_before + w.kept <= o.max_bytes)
            returning id, created_at
        ",
    },
    /// Stores the runs.
    INSERT_RUNS {
        postgres = concat!("
            insert into agent_runs (
                id, owner_id, conversation_id, agent_definition_id, position, status,
                input_message_id, output_message_id, archived_to, checkpoint, created_at, stream,
                client_tools, metadata, max_duration_ms, traceparent, agent_version,
                queue_round, caller_group, time_zone
            )
            select o.run_id, o.owner_id, f.id, o.agent_id, 1, 'queued', o.message_id,
                o.output_message_id, o.queued_id, o.queued_id, f.created_at, o.stream,
                o.client_tools, o.metadata, o.max_duration_ms, o.traceparent,
                (select a.version from agent_definitions a where a.id = o.agent_id),
                o.turns_before + w.round, o.caller_group,
                ", zone_of!("o.owner_id", "o.named_zone", "o.other_zone"), "
            from opening o
            join fence f on f.id = o.conversation_id
            join owner w on w.owner_id = o.owner_id
        "),
    },
    /// Stores the messages.
    INSERT_MESSAGES {
        postgres = "
            insert into chat_messages (
                id, conversation_id, owner_id, run_id, position, turn, role, content, client_id,
                status, created_at
            )
            select o.message_id, f.id, o.owner_id, o.run_id, 1, 1, 'user', o.content, o.client_id,
                'complete', f.created_at
            from opening o
            join fence f on f.id = o.conversation_id
        ",
    },
    /// Archives the first event of each run.
    INSERT_FIRST_EVENTS {
        postgres = "
            insert into run_events (run_id, last_id, body)
            select o.run_id, o.queued_id, {bytes:o.queued}
            from opening o
            join fence f on f.id = o.conversation_id
        ",
    },
}

impl Groups {
    /// Stores the message of a new conversation: alone if no write is under way, else with a group. `None` if only the
    /// transaction can store it or name its refusal.
    pub async fn open(
        &self,
        acceptance: &Acceptance<'_>,
        share: Share,
        creation: Statement,
    ) -> Result<Option<Conversation>, Error> {
        let Some(_write) = self.openings.begin_alone() else {
            let Some(opening) = Opening::of(acceptance, share) else { return Ok(None) };
            let created_at = self.openings.write(opening).await?;
            return Ok(created_at.map(|created_at| opened(acceptance, created_at)));
        };
        match open_alone(&self.database, acceptance, creation).await {
            Err(error) if error.is_rolled_back() => Ok(None),
            opened => opened,
        }
    }
}

/// Stores the message after the statement that creates its conversation. `None` if that creates none.
pub async fn open_alone(
    database: &Database,
    acceptance: &Acceptance<'_>,
    creation: Statement,
) -> Result<Option<Conversation>, Error> {
    let doing = "store a conversation's first message";
    let rows = database.write_fenced::<LockedConversationRow>(doing, acceptance.after_creation(creation)).await?;
    Ok(rows.into_iter().next().map(|row| LockedConversation::from(row).conversation))
}

/// Returns a conversation that its first message has opened in a group.
fn opened(acceptance: &Acceptance<'_>, created_at: DateTime<Utc>) -> Conversation {
    Conversation {
        id: acceptance.conversation_id,
        title: None,
        agent_id: acceptance.agent_id,
        knowledge: Vec::new(),
        live_run_id: None,
        forked_from: None,
        forked_conversation_id: None,
        created_at,
        last_message_at: Some(created_at),
        found: None,
    }
}

/// Starts the group of this process's openings, which returns the time of each conversation. Its statements run on a
/// connection of their own.
pub fn start(database: Database) -> Group<Opening, DateTime<Utc>> {
    Group::start(move |mut openings: Vec<Opening>| {
        let database = database.clone();
        async move {
            openings.iter_mut().enumerate().for_each(|(n, opening)| opening.n = n);
            let opened: Vec<(Uuid, DateTime<Utc>)> =
                database.write_fenced("open conversations", statement(&openings)).await?;
            let opened: HashMap<_, _> = opened.into_iter().collect();
            Ok(openings.iter().map(|opening| opened.get(&opening.conversation_id).copied()).collect())
        }
    })
}

/// Returns the statement, whose fence returns the ids and the times of the conversations.
fn statement(openings: &[Opening]) -> FencedWrites {
    let writes = [INSERT_RUNS, INSERT_MESSAGES, INSERT_FIRST_EVENTS].map(|sql| Statement::new(sql, args![])).into();
    FencedWrites::new(Statement::new(INSERT_CONVERSATIONS, args![]), writes)
        .after("opening", Statement::new(OPENING, args![json!(openings)]))
        .after("owner", Statement::new(OWNER, args![]))
}
