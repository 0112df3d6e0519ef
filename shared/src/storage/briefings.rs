//! Briefings: store, list, read, delete, and add to a conversation as a card.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    newest_first::NewestFirst,
    pages::{PageRow, page_of, page_query},
    position::take_position,
    quota,
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    briefing::{Briefing, BriefingCard},
    idempotency::IdempotencyKey,
    message::Content,
    page::{Page, PageSize},
    quotas::Account,
};

/// A briefing before it is stored.
#[derive(Debug, Clone)]
pub struct NewBriefing {
    /// The agent that the owner can discuss the briefing with.
    pub agent_id: Uuid,
    /// Plain text of one line.
    pub title: String,
    /// Plain text.
    pub summary: String,
    /// A label that the author chose, such as `P1`.
    pub priority: Option<String>,
    /// Any JSON for the front end.
    pub data: Option<Value>,
    /// The briefing's time; the time of storage if absent.
    pub created_at: Option<DateTime<Utc>>,
    /// The author's owner id, and its key for a single storage.
    pub authored: Option<(String, IdempotencyKey)>,
}

/// The outcome of storing a briefing.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredBriefing {
    /// The briefing is stored now.
    Stored(Briefing),
    /// The author stored it before, under the key.
    Repeated(Briefing),
    /// The key belongs to another briefing.
    KeyReused,
    /// There is no such agent.
    AgentNotFound,
}

impl NewBriefing {
    /// Returns the bytes that count for the quota, roughly.
    pub fn bytes(&self) -> usize {
        self.title.len() + self.summary.len() + self.data.as_ref().map_or(0, |data| data.to_string().len())
    }
}

#[derive(FromRow)]
struct KeyedRow {
    idempotency_fingerprint: String,
    #[sqlx(flatten)]
    briefing: BriefingRow,
}

#[derive(FromRow)]
struct BriefingRow {
    id: Uuid,
    agent_id: Uuid,
    title: String,
    summary: String,
    priority: Option<String>,
    data: Option<Json<Value>>,
    created_at: DateTime<Utc>,
}

/// The columns of `BriefingRow`.
macro_rules! briefing_columns {
    () => {
        "id, agent_definition_id as agent_id, title, summary, priority, data, created_at"
    };
}

statements! {
    /// Returns the briefing that an author stored under a key.
    REPEATED = concat!("
        select idempotency_fingerprint, ", briefing_columns!(), "
        from briefings
        where author_id = $1 and idempotency_key = $2
    "),
    /// Deletes an owner's briefing.
    DELETE = "
        delete from briefings
        where id = $1 and owner_id = $2
        returning id
    ",
    /// Stores a briefing of an agent that is not deleted.
    INSERT = concat!("
        insert into briefings (
            id, owner_id, agent_definition_id, title, summary, priority, data, created_at, bytes,
            author_id, idempotency_key, idempotency_fingerprint
        )
        select $1, $2, $3, $4, $5, $6, $7, coalesce($8, {now}), $9, $10, $11, $12
        where exists (select 1 from agent_definitions where id = $3 and deleted_at is null)
        returning ", briefing_columns!()),
    /// Returns an owner's briefing.
    BRIEFING = concat!("
        select ", briefing_columns!(), "
        from briefings
        where id = $1 and owner_id = $2
    "),
    /// Lists an owner's briefings, newest first.
    BRIEFINGS = page_query!(
        concat!("
            select ", briefing_columns!(), ",
                octet_length(title) + octet_length(summary)
                + coalesce(octet_length(cast(data as text)), 0) + 300 as page_bytes
            from briefings
            where owner_id = $1
              and ($2 is null or (created_at, id) < ($2, $3))
            order by created_at desc, id desc
            limit $4
        "),
        "created_at desc, id desc",
        "$5",
    ),
    /// Locks an owner's conversation.
    LOCK_CONVERSATION = "
        select id
        from chat_conversations
        where id = $1
          and owner_id = $2
          and deleted_at is null
        {for update}
    ",
    /// Returns the card of a briefing in a conversation.
    CARD = "
        select id
        from chat_messages
        where conversation_id = $1
          and briefing_id = $2
          and superseded_at is null
    ",
    /// Adds a card to a conversation.
    INSERT_CARD = "
        insert into chat_messages (
            id, conversation_id, owner_id, position, turn, briefing_id, role, content_type, content,
            status, branch, created_at
        )
        select $1, id, $3, $4, $4, $5, 'system', $6, $7, 'complete', branch, {now}
        from chat_conversations
        where id = $2
    ",
}

impl Storage {
    /// Stores a briefing, once per key of its author. Fails if the owner's quota has no room.
    pub async fn create_briefing(
        &self,
        account: impl Into<Account<'_>>,
        new: NewBriefing,
    ) -> Result<StoredBriefing, Error> {
        let authored = new.authored.clone();
        if let Some(earlier) = self.repeated_briefing(authored.as_ref()).await? {
            return Ok(earlier);
        }
        match self.insert_briefing(account.into(), new).await {
            Ok(Some(briefing)) => Ok(StoredBriefing::Stored(briefing)),
            Ok(None) => Ok(StoredBriefing::AgentNotFound),
            // Another request with this key was faster by a moment, and its briefing is visible now.
            Err(error) if error.is_unique_violation() => self.repeated_briefing(authored.as_ref()).await?.ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// Returns the outcome of an earlier request of this author with this key, if there was one.
    pub async fn repeated_briefing(
        &self,
        authored: Option<&(String, IdempotencyKey)>,
    ) -> Result<Option<StoredBriefing>, Error> {
        let Some((author, key)) = authored else { return Ok(None) };
        let found = self
            .database
            .fetch_optional::<KeyedRow>(
                "look up the key of a briefing",
                REPEATED,
                args![author.as_str(), key.key.as_str()],
            )
            .await?;
        Ok(found.map(|row| {
            if row.idempotency_fingerprint == key.fingerprint {
                StoredBriefing::Repeated(row.briefing.into())
            } else {
                StoredBriefing::KeyReused
            }
        }))
    }

    /// Deletes the owner's briefing of this id, and returns whether there was one. Its cards stay.
    pub async fn delete_briefing(&self, owner: &str, id: Uuid) -> Result<bool, Error> {
        let deleted = self.database.write::<(Uuid,)>("delete a briefing", DELETE, args![id, owner]).await?;
        Ok(!deleted.is_empty())
    }

    async fn insert_briefing(&self, account: Account<'_>, new: NewBriefing) -> Result<Option<Briefing>, Error> {
        let bytes = new.bytes();
        let NewBriefing { agent_id, title, summary, priority, data, created_at, authored } = new;
        let (author, key) = authored.unzip();
        let (key, fingerprint) = key.map(|key| (key.key, key.fingerprint)).unzip();
        let insert = async |tx: &mut Tx| {
            let created = tx.fetch_optional::<BriefingRow>(
                INSERT,
                args![
                    Uuid::now_v7(),
                    account.owner,
                    agent_id,
                    title,
                    summary,
                    priority,
                    data,
                    created_at.map(in_milliseconds),
                    bytes,
                    author,
                    key,
                    fingerprint
                ],
            );
            let created = created.await?;
            quota::keep_within(tx, account.owner, account.quotas()).await?;
            Ok(Commit(created.map(Briefing::from)))
        };
        self.database.transact("store a briefing", insert).await
    }

    /// Returns the owner's briefing of this id.
    pub async fn briefing(&self, owner: &str, id: Uuid) -> Result<Option<Briefing>, Error> {
        let row = self.database.fetch_optional::<BriefingRow>("read a briefing", BRIEFING, args![id, owner]).await?;
        Ok(row.map(Briefing::from))
    }

    /// Returns a page of the owner's briefings, newest first. `None` for an unknown cursor.
    pub async fn briefings(
        &self,
        owner: &str,
        size: impl Into<PageSize>,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Briefing>>, Error> {
        let size = size.into();
        let Ok(before) = NewestFirst::parse(cursor) else { return Ok(None) };
        let args = args![owner, before.at(), before.id(), size.items + 1, size.bytes];
        let rows = self.database.fetch_all::<PageRow<BriefingRow>>("list briefings", BRIEFINGS, args).await?;
        Ok(Some(page_of(rows, size, |last| NewestFirst::cursor_after(last.created_at, last.id))))
    }

    /// Adds the briefing to the owner's conversation once, and returns the card's message id. `None` if there is no
    /// such conversation. Fails if the owner's quota has no room.
    pub async fn add_card(
        &self,
        account: impl Into<Account<'_>>,
        conversation_id: Uuid,
        briefing: Briefing,
    ) -> Result<Option<Uuid>, Error> {
        let account = account.into();
        let owner = account.owner;
        let add = async |tx: &mut Tx| {
            if tx.fetch_optional::<(Uuid,)>(LOCK_CONVERSATION, args![conversation_id, owner]).await?.is_none() {
                return Ok(RollBack(None));
            }
            if let Some((id,)) = tx.fetch_optional::<(Uuid,)>(CARD, args![conversation_id, briefing.id]).await? {
                return Ok(RollBack(Some(id)));
            }
            let (id, briefing_id) = (Uuid::now_v7(), briefing.id);
            let card = Content::BriefingCard(BriefingCard::from(briefing));
            let position = take_position(tx, conversation_id, None, card.to_stored().len()).await?;
            tx.execute(
                INSERT_CARD,
                args![id, conversation_id, owner, position, briefing_id, card.kind(), card.to_stored()],
            )
            .await?;
            quota::keep_within(tx, owner, account.quotas()).await?;
            Ok(Commit(Some(id)))
        };
        self.database.transact("add a briefing to a conversation", add).await
    }
}

/// Returns the time as both databases store it. A leap second becomes the second after it.
fn in_milliseconds(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at)
}

impl From<BriefingRow> for Briefing {
    fn from(row: BriefingRow) -> Self {
        let BriefingRow { id, agent_id, title, summary, priority, data, created_at } = row;
        Self { id, agent_id, title, summary, priority, data: data.map(|data| data.0), created_at }
    }
}
