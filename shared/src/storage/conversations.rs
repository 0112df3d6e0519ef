//! Conversations: create, find by a handle, list and search, read, rename, delete.

use uuid::Uuid;

use super::{
    EndedRun, Error, Storage,
    database::args,
    newest::NewestFirst,
    rows::{ConversationRow, conversation_columns},
    submit::{HANDLE_TRIES, cancel_all, unfinished_runs},
};
use crate::{
    approval::ApprovalStatus,
    conversation::{Conversation, Handle},
    page::Page,
};

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

    /// The owner's conversation with this handle, made if there is none; `None` if it would need an agent that there is not.
    pub async fn conversation_by_handle(&self, owner: &str, handle: &Handle) -> Result<Option<Conversation>, Error> {
        let doing = || Error::doing("find a conversation by its handle");
        // Whoever is second finds what the first has made.
        let sql = "insert into chat_conversations (id, owner_id, handle, agent_definition_id, created_at, activity_at) \
                   select $1, $2, $3, $4, {now}, {now} where $4 is null or exists (select 1 from agent_definitions where id = $4 and deleted_at is null) \
                   on conflict (owner_id, handle) where handle is not null and deleted_at is null do nothing";
        // Somebody else may make it meanwhile, or delete it again.
        for _ in 0..HANDLE_TRIES {
            if let Some(found) = self.find_conversation(owner, handle).await? {
                return Ok(Some(found));
            }
            let args = args![Uuid::now_v7(), owner, handle.to_string(), handle.agent_id()];
            let mut tx = self.database.begin().await.map_err(doing())?;
            tx.execute(sql, args).await.map_err(doing())?;
            tx.commit().await.map_err(doing())?;
        }
        self.find_conversation(owner, handle).await
    }

    /// The owner's conversation with this handle, if there is one.
    pub async fn find_conversation(&self, owner: &str, handle: &Handle) -> Result<Option<Conversation>, Error> {
        let sql = concat!(
            "select ",
            conversation_columns!(),
            " from chat_conversations c where c.owner_id = $1 and c.handle = $2 and c.deleted_at is null"
        );
        let row = self.database.fetch_optional::<ConversationRow>(sql, args![owner, handle.to_string()]).await;
        Ok(row.map_err(Error::doing("find a conversation by its handle"))?.map(Conversation::from))
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

    /// The owner's conversations, those with the newest activity first; all, or those that have a text in their title or in
    /// a current message. `None` for a cursor that no page gave out.
    pub async fn conversations(
        &self,
        owner: &str,
        limit: usize,
        cursor: Option<&str>,
        text: Option<&str>,
    ) -> Result<Option<Page<Conversation>>, Error> {
        let Ok(before) = NewestFirst::parse(cursor) else { return Ok(None) };
        let rows = self.database.fetch_all::<ConversationRow>(
            concat!(
                "select ",
                conversation_columns!(),
                " from chat_conversations c ",
                "where c.owner_id = $1 and c.deleted_at is null and ($2 is null or (c.activity_at, c.id) < ($2, $3)) ",
                "and ($5 is null or lower(c.title) like lower($5) escape '\\' or exists (select 1 from chat_messages m ",
                "where m.conversation_id = c.id and m.superseded_at is null and m.content_type = 'text' and lower(m.content) like lower($5) escape '\\')) ",
                "order by c.activity_at desc, c.id desc limit $4"
            ),
            args![owner, before.at(), before.id(), limit + 1, text.map(containing)],
        );
        let rows = rows.await.map_err(Error::doing("list conversations"))?;
        let page = Page::of(rows, limit, |last| NewestFirst::behind(last.activity_at, last.id));
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

/// The pattern of `like` for whatever has this text in it, taken literally.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}
