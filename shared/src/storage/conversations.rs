//! Conversations: create, list, read, rename, delete.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    EndedRun, Error, Storage,
    database::args,
    rows::{ConversationRow, conversation_columns},
    submit::{cancel_all, unfinished_runs},
};
use crate::{approval::ApprovalStatus, conversation::Conversation, page::Page};

impl Storage {
    /// Creates an empty conversation; `None` if there is no such agent.
    pub async fn create_conversation(
        &self,
        owner: &str,
        id: Uuid,
        title: Option<String>,
        agent_id: Option<Uuid>,
    ) -> Result<Option<Conversation>, Error> {
        let created = self.database.write::<ConversationRow>(
            "insert into chat_conversations (id, owner_id, title, agent_definition_id, created_at, activity_at) \
             select $1, $2, $3, $4, {now}, {now} where $4 is null or exists (select 1 from agent_definitions where id = $4 and deleted_at is null) \
             returning id, title, agent_definition_id as agent_id, forked_from, created_at, last_message_at, activity_at, null as live_run_id",
            args![id, owner, title, agent_id],
        );
        let rows = created.await.map_err(Error::doing("create a conversation"))?;
        Ok(rows.into_iter().next().map(Conversation::from))
    }

    /// The owner's conversation of that id.
    pub async fn conversation(&self, owner: &str, id: Uuid) -> Result<Option<Conversation>, Error> {
        let sql = concat!(
            "select ",
            conversation_columns!(),
            " from chat_conversations c where c.id = $1 and c.owner_id = $2 and c.deleted_at is null"
        );
        let row = self.database.fetch_optional::<ConversationRow>(sql, args![id, owner]).await;
        Ok(row.map_err(Error::doing("read a conversation"))?.map(Conversation::from))
    }

    /// The owner's conversations, those with the newest activity first. `None` for a cursor that no page gave out.
    pub async fn conversations(
        &self,
        owner: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Conversation>>, Error> {
        let after = match cursor.map(ActivityCursor::parse) {
            None => None,
            Some(Some(after)) => Some(after),
            Some(None) => return Ok(None),
        };
        let (before_at, before_id) = after.map_or((None, None), |after| (Some(after.at), Some(after.id)));
        let rows = self.database.fetch_all::<ConversationRow>(
            concat!(
                "select ",
                conversation_columns!(),
                " from chat_conversations c ",
                "where c.owner_id = $1 and c.deleted_at is null and ($2 is null or (c.activity_at, c.id) < ($2, $3)) ",
                "order by c.activity_at desc, c.id desc limit $4"
            ),
            args![owner, before_at, before_id, limit + 1],
        );
        let rows = rows.await.map_err(Error::doing("list conversations"))?;
        let page = Page::of(rows, limit, |last| ActivityCursor { at: last.activity_at, id: last.id }.to_string());
        Ok(Some(Page { items: page.items.into_iter().map(Conversation::from).collect(), next: page.next }))
    }

    /// Gives the conversation another title; `None` takes it away.
    pub async fn rename_conversation(
        &self,
        owner: &str,
        id: Uuid,
        title: Option<String>,
    ) -> Result<Option<Conversation>, Error> {
        let sql = "update chat_conversations set title = $3 where id = $1 and owner_id = $2 and deleted_at is null returning id";
        let renamed = self
            .database
            .write::<(Uuid,)>(sql, args![id, owner, title])
            .await
            .map_err(Error::doing("rename a conversation"))?;
        if renamed.is_empty() { Ok(None) } else { self.conversation(owner, id).await }
    }

    /// Hides the conversation and cancels its unfinished runs: answers those that have ended, and those whose workers are to
    /// be told; `None` if there is no such conversation.
    pub async fn delete_conversation(
        &self,
        owner: &str,
        id: Uuid,
    ) -> Result<Option<(Vec<EndedRun>, Vec<Uuid>)>, Error> {
        let doing = || Error::doing("delete a conversation");
        let mut tx = self.database.begin().await.map_err(doing())?;
        let sql =
            "update chat_conversations set deleted_at = {now} where id = $1 and owner_id = $2 and deleted_at is null";
        if tx.execute(sql, args![id, owner]).await.map_err(doing())? == 0 {
            return Ok(None);
        }
        let unfinished = unfinished_runs(&mut tx, id).await.map_err(doing())?;
        let cancelled = cancel_all(&mut tx, unfinished, ApprovalStatus::Cancelled).await?;
        tx.commit().await.map_err(doing())?;
        Ok(Some(cancelled))
    }
}

/// Where a page of conversations ended: `<unix ms>.<id>`.
struct ActivityCursor {
    at: DateTime<Utc>,
    id: Uuid,
}

impl ActivityCursor {
    fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        let at = DateTime::from_timestamp_millis(at.parse().ok()?)?;
        // No page ends outside the years that both databases know.
        let known = DateTime::UNIX_EPOCH..DateTime::from_timestamp_millis(i64::from(u32::MAX) * 1000)?;
        known.contains(&at).then_some(Self { at, id: id.parse().ok()? })
    }
}

impl std::fmt::Display for ActivityCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.at.timestamp_millis(), self.id.simple())
    }
}
