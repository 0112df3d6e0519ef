//! Conversations as front ends list them: with their names, the metadata of their clients, and the status of their runs.

use serde_json::{Map, Value, json};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage, quota,
    rows::{ConversationRow, MessageRow, conversation_columns},
    sql::{Commit, Tx, args, statements},
};
use crate::{
    conversation::{Chat, Conversation},
    message::Message,
    quotas::Account,
    run::RunStatus,
};

/// The conversations that a search returns.
#[derive(Debug, Clone, Default)]
pub struct ChatFilter {
    /// Metadata that a conversation must have.
    pub metadata: Map<String, Value>,
    /// Only conversations with this agent.
    pub agent_id: Option<Uuid>,
    /// Only these conversations, unless the list is absent.
    pub ids: Option<Vec<Uuid>>,
    /// Only conversations whose newest run, or whose live one, has one of these statuses; `null` stands for no run.
    pub statuses: Option<Vec<Option<RunStatus>>>,
}

#[derive(FromRow)]
struct ChatRow {
    handle: Option<String>,
    metadata: Option<Json<Map<String, Value>>>,
    run_status: Option<String>,
    #[sqlx(flatten)]
    conversation: ConversationRow,
}

/// The status of the live run of a conversation `c`, else of its newest one.
macro_rules! run_status {
    () => {
        "(
            select r.status
            from agent_runs r
            where r.conversation_id = c.id and r.superseded_at is null
            order by
                case when r.status in ('queued', 'running', 'waiting') then 0 else 1 end,
                case when r.status in ('queued', 'running', 'waiting') then r.position end,
                r.position desc
            limit 1
        )"
    };
}

/// The conversations of a search: `$1` is the owner, `$2` the agent, `$3` names and values of metadata, `$4` ids, `$5` statuses.
macro_rules! matching_chats {
    () => {
        concat!(
            "
            c.owner_id = $1
              and c.deleted_at is null
              and c.parent_run_id is null
              and not c.hidden
              and ($2 is null or c.agent_definition_id = $2)
              and not exists (
                  select 1
                  from {each:$3}
                  where {field:c.metadata, each.value->>'name'}
                      is distinct from (each.value->>'value')
              )
              and ($4 or c.id {in:$5})
              and (
                  $6
                  or exists (
                      select 1
                      from {each:$7}
                      where value->>'status' is not distinct from ",
            run_status!(),
            "
                  )
              )
            "
        )
    };
}

/// The id of the first message of a conversation `c` in an order.
macro_rules! edge {
    ($order:literal) => {
        concat!(
            "(
                select first.id
                from chat_messages first
                where first.conversation_id = c.id and first.superseded_at is null
                order by ",
            $order,
            "
                limit 1
            )"
        )
    };
}

statements! {
    /// Lists an owner's conversations that match, newest activity first.
    CHATS = concat!("
        select c.handle, c.metadata, ", run_status!(), " as run_status,
            ", conversation_columns!(), "
        from chat_conversations c
        where ", matching_chats!(), "
        order by c.activity_at desc, c.id desc
        limit $8 offset $9
    "),
    /// Counts an owner's conversations that match.
    COUNT_CHATS = concat!("
        select count(*)
        from chat_conversations c
        where ", matching_chats!(), "
    "),
    /// Returns the metadata of an owner's conversation, and the status of its run.
    CHAT = concat!("
        select c.handle, c.metadata, ", run_status!(), " as run_status,
            ", conversation_columns!(), "
        from chat_conversations c
        where c.id = $1
          and c.owner_id = $2
          and c.deleted_at is null
    "),
    /// Returns the first and the newest message of some conversations of an owner, each with the beginning of its text.
    EDGE_MESSAGES = concat!("
        with edges as (
            select ", edge!("first.turn, first.position"), " as id
            from chat_conversations c
            where c.id {in:$2} and c.owner_id = $1 and c.deleted_at is null
            union
            select ", edge!("first.turn desc, first.position desc"), " as id
            from chat_conversations c
            where c.id {in:$2} and c.owner_id = $1 and c.deleted_at is null
        )
        select m.id, m.client_id, m.conversation_id, m.run_id, m.position, m.role, m.content_type,
            case
                when m.content_type = 'text' then substr(m.content, 1, 1000)
                else m.content
            end as content,
            m.attachments, m.status, m.finish_reason,
            case when m.id is null then m.retrieval_context end as retrieval_context,
            m.superseded_at, m.created_at
        from edges
        join chat_messages m on m.id {is:edges.id}
        order by m.turn, m.position
    "),
    /// Replaces the metadata of an owner's conversation, and no longer counts the bytes of the old one.
    SET_CHAT_METADATA = "
        update chat_conversations
        set metadata = $3,
            bytes = bytes - coalesce(octet_length(cast(metadata as text)), 0)
        where id = $1 and owner_id = $2 and deleted_at is null
    ",
    /// Counts the bytes of the metadata of an owner's conversation.
    COUNT_METADATA = "
        update chat_conversations
        set bytes = bytes + coalesce(octet_length(cast(metadata as text)), 0)
        where id = $1 and owner_id = $2 and deleted_at is null
    ",
    /// Gives a conversation without any run its agent.
    ASSIGN_AGENT = "
        update chat_conversations
        set agent_definition_id = $3
        where id = $1
          and owner_id = $2
          and deleted_at is null
          and agent_definition_id is null
          and not exists (select 1 from agent_runs where conversation_id = $1)
          and exists (select 1 from agent_definitions where id = $3 and deleted_at is null)
        returning id
    ",
}

impl Storage {
    /// Returns some of the owner's conversations that match, newest activity first, after `offset` others.
    pub async fn chats(
        &self,
        owner: &str,
        filter: ChatFilter,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<Chat>, Error> {
        let ChatFilter { metadata, agent_id, ids, statuses } = filter;
        let (any_id, any_status) = (ids.is_none(), statuses.is_none());
        let (pairs, statuses) = (pairs_of(metadata), statuses_of(statuses));
        let ids = ids.unwrap_or_default();
        let args = args![owner, agent_id, pairs, any_id, ids, any_status, statuses, limit, offset];
        let rows = self.database.fetch_all::<ChatRow>("search conversations", CHATS, args).await?;
        Ok(rows.into_iter().map(Chat::from).collect())
    }

    /// Returns the number of the owner's conversations that match.
    pub async fn count_chats(&self, owner: &str, filter: ChatFilter) -> Result<usize, Error> {
        let ChatFilter { metadata, agent_id, ids, statuses } = filter;
        let (any_id, any_status) = (ids.is_none(), statuses.is_none());
        let (pairs, statuses) = (pairs_of(metadata), statuses_of(statuses));
        let ids = ids.unwrap_or_default();
        let args = args![owner, agent_id, pairs, any_id, ids, any_status, statuses];
        let row = self.database.fetch_optional::<(i64,)>("count conversations", COUNT_CHATS, args).await?;
        Ok(row.map_or(0, |row| row.0 as usize))
    }

    /// Returns the owner's conversation as a front end lists it, if there is one.
    pub async fn chat(&self, owner: &str, id: Uuid) -> Result<Option<Chat>, Error> {
        let row = self.database.fetch_optional::<ChatRow>("read a conversation", CHAT, args![id, owner]).await?;
        Ok(row.map(Chat::from))
    }

    /// Returns the first and the newest message of some of the owner's conversations, the first one first. Each has at most the
    /// first 1,000 characters of its text.
    pub async fn edge_messages(&self, owner: &str, ids: Vec<Uuid>) -> Result<Vec<Message>, Error> {
        let args = args![owner, ids];
        let rows = self.database.fetch_all::<MessageRow>("read the first and newest messages", EDGE_MESSAGES, args);
        Ok(rows.await?.into_iter().map(Message::from).collect())
    }

    /// Replaces the metadata of the owner's conversation. Fails if the owner's quota has no room.
    pub async fn set_chat_metadata(
        &self,
        account: impl Into<Account<'_>>,
        id: Uuid,
        metadata: Map<String, Value>,
    ) -> Result<(), Error> {
        let account = account.into();
        let args = args![id, account.owner, Some(Value::Object(metadata))];
        let set = async |tx: &mut Tx| {
            tx.execute(SET_CHAT_METADATA, args).await?;
            tx.execute(COUNT_METADATA, args![id, account.owner]).await?;
            Ok(Commit(quota::keep_within(tx, account.owner, account.quotas()).await?))
        };
        self.database.transact("set the metadata of a conversation", set).await
    }

    /// Gives the owner's conversation its agent if it has neither an agent nor a run. Returns whether it now has this agent.
    pub async fn assign_agent(&self, owner: &str, id: Uuid, agent_id: Uuid) -> Result<bool, Error> {
        let args = args![id, owner, agent_id];
        self.database.write::<(Uuid,)>("give a conversation its agent", ASSIGN_AGENT, args).await?;
        let conversation: Option<Conversation> = self.conversation(owner, id).await?;
        Ok(conversation.is_some_and(|conversation| conversation.agent_id == Some(agent_id)))
    }
}

fn pairs_of(metadata: Map<String, Value>) -> Value {
    metadata.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

fn statuses_of(statuses: Option<Vec<Option<RunStatus>>>) -> Value {
    let statuses = statuses.unwrap_or_default().into_iter();
    statuses.map(|status| json!({"status": status.map(RunStatus::as_str)})).collect()
}

impl From<ChatRow> for Chat {
    fn from(row: ChatRow) -> Self {
        Self {
            name: row.handle.and_then(|handle| handle.strip_prefix("chat:").map(str::to_owned)),
            metadata: row.metadata.map(|json| json.0).unwrap_or_default(),
            run_status: row.run_status.and_then(|status| status.parse().ok()),
            conversation: row.conversation.into(),
        }
    }
}
