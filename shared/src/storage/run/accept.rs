//! The writes of SUBMIT for an accepted message: the message, its run, and the run's first event.

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::{
    ArchiveChunk, MessageInput, NewRun, blocked::priority_behind, chunk::writes_of, delayed::if_delayed,
    round::next_round, zone::zone_of,
};
use crate::storage::sql::{FencedWrites, Sql, Statement, args, statements};
use crate::{
    event::{Event, EventBody, RunQueued},
    event_id::EventId,
    file::UserContent,
    message::{Content, Message, MessageStatus, Role},
    run::{Run, RunStatus, SubmitMode},
    telemetry::Traceparent,
};

/// An accepted message before the write.
pub struct Acceptance<'a> {
    pub owner: &'a str,
    pub new: &'a NewRun,
    pub conversation_id: Uuid,
    pub agent_id: Option<Uuid>,
    pub position: i64,
    pub input: RunInput<'a>,
    /// The first version of the replaced message, or of the replaced answer if the message existed before.
    pub version_of: Option<Uuid>,
    pub branch: Option<Uuid>,
    pub message_id: Uuid,
    pub output_message_id: Uuid,
    pub queued: Event,
}

/// The message that the run answers.
pub enum RunInput<'a> {
    New(&'a UserContent),
    /// A message of the conversation, which the run answers again.
    Earlier(Box<Message>),
}

/// The collections of the conversation of a run.
macro_rules! knowledge_of {
    ($conversation:literal) => {
        concat!("(select c.knowledge from chat_conversations c where c.id = ", $conversation, ")")
    };
}

/// `$created_at` and `$priority` are columns of the row that `$from` selects at the end of the text, or constants.
macro_rules! insert_run {
    ($created_at:literal, $priority:expr, $knowledge:expr, $from:literal) => {
        concat!(
            "
        insert into agent_runs (
            id, owner_id, conversation_id, agent_definition_id, position, status, input_message_id,
            output_message_id, archived_to, checkpoint, idempotency_key, idempotency_fingerprint,
            created_at, stream, client_tools, metadata, max_duration_ms, traceparent, version_of,
            branch, not_before, priority, agent_version, ingests, steers, knowledge, queue_round,
            caller_group, time_zone
        )
        select $1, $2, $3, $4, $5, 'queued', $6, $7, $8, $8, $9, $10, ",
            $created_at,
            ", $11, $12, $13, $14, $15, $16, $17, {after:$20},
            ",
            if_delayed!("$20", "-2", $priority),
            ",
            (select version from agent_definitions where id = $4),
            $19, $18, ",
            $knowledge,
            ", ",
            if_delayed!("$20", "0", next_round!("$2", "$21")),
            ", $21,
            ",
            zone_of!("$2", "$22", "$23"),
            $from
        )
    };
}

/// `$created_at` is a column of the row that `$from` selects at the end of the text.
macro_rules! insert_message {
    ($created_at:literal, $from:literal) => {
        concat!(
            "
        insert into chat_messages (
            id, conversation_id, owner_id, run_id, position, turn, role, content, client_id,
            version_of, attachments, status, created_at
        )
        select $1, $2, $3, $4, $5, $5, 'user', $6, $7, $8, $9, 'complete', ",
            $created_at,
            "
        from ",
            $from
        )
    };
}

statements! {
    /// Stores the run of a message in a conversation with a locked row.
    INSERT_RUN = insert_run!("{now}", priority_behind!("$3"), knowledge_of!("$3"), "
        returning created_at
    "),
    /// Stores its message.
    INSERT_MESSAGE = insert_message!("created_at", "{fence:agent_runs where id = $4}"),
    /// Notes that the conversation names files of its owner.
    USE_FILES = "
        insert into file_uses (file_id, conversation_id)
        select f.id, $1
        from files f
        where {fenced}
          and f.owner_id = $2
          and f.id {in:$3}
        on conflict (file_id, conversation_id) do nothing
    ",
    /// Stores the run of the message that creates its conversation.
    INSERT_FIRST_RUN = insert_run!("last_message_at", "0", "cast(null as jsonb)", "
        from {fence:chat_conversations where id = $3}
    "),
    /// Stores the message that creates its conversation.
    INSERT_FIRST_MESSAGE = insert_message!(
        "last_message_at",
        "{fence:chat_conversations where id = $2}"
    ),
}

impl<'a> Acceptance<'a> {
    pub fn new(
        owner: &'a str,
        new: &'a NewRun,
        (conversation_id, agent_id): (Uuid, Option<Uuid>),
        position: i64,
        input: RunInput<'a>,
    ) -> Self {
        let message_id = match &input {
            RunInput::New(_) => Uuid::now_v7(),
            RunInput::Earlier(message) => message.id,
        };
        let output_message_id = Uuid::now_v7();
        let body = EventBody::RunQueued(RunQueued {
            base: EventId::ORIGIN,
            conversation_id,
            input_message_id: message_id,
            message_id: output_message_id,
            agent_id,
        });
        let queued = Event::new(EventId::first_of(0), Utc::now(), &body);
        let (version_of, branch) = (None, None);
        Self {
            owner,
            new,
            conversation_id,
            agent_id,
            position,
            input,
            version_of,
            branch,
            message_id,
            output_message_id,
            queued,
        }
    }

    /// Puts the run into a branch of the conversation, and makes its message or its answer a version of another one.
    pub fn in_branch(self, branch: Option<Uuid>, version_of: Option<Uuid>) -> Self {
        Self { branch, version_of, ..self }
    }

    /// Returns the writes for a conversation with a locked row. Their result is the run's time of creation.
    pub fn in_place(&self) -> FencedWrites {
        let run = self.run_row(INSERT_RUN);
        let message = self.message_row(INSERT_MESSAGE);
        FencedWrites::new(run, message.into_iter().chain(self.file_uses()).chain(self.first_event()).collect())
    }

    /// Returns the writes for a new conversation, after the statement that creates it and returns `last_message_at`.
    pub fn after_creation(&self, conversation: Statement) -> FencedWrites {
        let run = self.run_row(INSERT_FIRST_RUN);
        let message = self.message_row(INSERT_FIRST_MESSAGE);
        let rest = message.into_iter().chain(self.file_uses()).chain(self.first_event());
        FencedWrites::new(conversation, [run].into_iter().chain(rest).collect())
    }

    fn run_row(&self, sql: Sql) -> Statement {
        let new = self.new;
        let options = &new.options;
        let (key, fingerprint) = new.key.clone().map(|key| (key.key, key.fingerprint)).unzip();
        let args = args![
            new.run_id,
            self.owner,
            self.conversation_id,
            self.agent_id,
            self.position,
            self.message_id,
            self.output_message_id,
            self.queued.id,
            key,
            fingerprint,
            options.stream,
            options.client_parts(),
            options.metadata.clone(),
            options.max_silence.map(|limit| limit.as_millis() as i64),
            new.traceparent.map(|parent| parent.to_string()),
            self.version_of.filter(|_| matches!(self.input, RunInput::Earlier(_))),
            self.branch,
            new.mode == SubmitMode::Steer
                && options.delay.is_none()
                && matches!(&new.input, MessageInput::New(content) if content.attachments.is_empty()),
            options.ingests,
            options.delay.map(|delay| delay.as_millis() as i64),
            new.caller_group.clone(),
            options.zone.named.as_ref().map(|zone| zone.name().to_owned()),
            options.zone.otherwise.name()
        ];
        Statement::new(sql, args)
    }

    /// `None` if the run answers an earlier message.
    fn message_row(&self, sql: Sql) -> Option<Statement> {
        let RunInput::New(content) = self.input else { return None };
        let args = args![
            self.message_id,
            self.conversation_id,
            self.owner,
            self.new.run_id,
            self.position,
            content.text.as_str(),
            self.new.client_message_id.clone(),
            self.version_of,
            (!content.attachments.is_empty()).then(|| json!(content.attachments))
        ];
        Some(Statement::new(sql, args))
    }

    /// The conversation names the files of its message, unless they were deleted meanwhile.
    fn file_uses(&self) -> Option<Statement> {
        let RunInput::New(content) = self.input else { return None };
        let files: Vec<Uuid> = content.attachments.iter().map(|attachment| attachment.file_id).collect();
        let args = || args![self.conversation_id, self.owner, files.clone()];
        (!files.is_empty()).then(|| Statement::new(USE_FILES, args()))
    }

    fn first_event(&self) -> Vec<Statement> {
        writes_of(self.new.run_id, &ArchiveChunk::of(&self.queued))
    }

    /// Returns the written message, run and first event, for the time that the database gave.
    pub fn into_parts(self, created_at: DateTime<Utc>) -> (Message, Run, Event) {
        let new = self.new;
        let run = Run {
            id: new.run_id,
            conversation_id: self.conversation_id,
            agent_id: self.agent_id,
            status: RunStatus::Queued,
            attempt: 0,
            model: None,
            input_message_id: self.message_id,
            output_message_id: self.output_message_id,
            output_message: None,
            usage: None,
            total_usage: None,
            finish_reason: None,
            error: None,
            error_details: None,
            last_event_id: self.queued.id,
            metadata: new.options.metadata.clone(),
            parent_run_id: None,
            trace_id: new.traceparent.and_then(Traceparent::trace_id),
            created_at,
            started_at: None,
            finished_at: None,
        };
        let message = match self.input {
            RunInput::Earlier(message) => *message,
            RunInput::New(content) => Message {
                id: self.message_id,
                client_id: new.client_message_id.clone(),
                conversation_id: self.conversation_id,
                run_id: Some(new.run_id),
                given: false,
                role: Role::User,
                content: Content::Text(content.text.clone()),
                attachments: content.attachments.clone(),
                status: MessageStatus::Complete,
                finish_reason: None,
                retrieval_context: None,
                superseded_at: None,
                version: None,
                created_at,
            },
        };
        (message, run, self.queued)
    }
}
