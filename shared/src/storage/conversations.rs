//! Conversations: create, find by a handle, list and search, read, rename, delete.

use serde_json::{Value, json};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    EndedRun, Error, Storage,
    newest_first::NewestFirst,
    position::HANDLE_TRIES,
    quota,
    rows::{ConversationRow, conversation_columns},
    run::{cancel_all, merged, unfinished_runs},
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    approval::ApprovalStatus,
    conversation::{Conversation, Handle, SearchHit, excerpt_of},
    page::Page,
    quotas::Account,
};

/// The condition that a column has the word of a row of `{each:$n}`.
macro_rules! has_word {
    ($column:literal) => {
        concat!("lower(coalesce(", $column, ", '')) like lower(value->>'like') escape '\\'")
    };
}

#[derive(FromRow)]
struct FoundRow {
    conversation_id: Uuid,
    id: Uuid,
    client_id: Option<String>,
    /// The first 20,000 characters of the message.
    beginning: String,
}

statements! {
    /// Returns the metadata of a conversation's newest checkpoint, and of its newest message that has any, unless a checkpoint of
    /// the message's run has it, perhaps changed.
    METADATA = "
        select
            (
                select c.metadata
                from agent_run_checkpoints c
                where c.conversation_id = $1
                order by c.id desc
                limit 1
            ) as inherited,
            (
                select case
                        when not exists (
                            select 1
                            from agent_run_checkpoints k
                            where k.conversation_id = $1 and k.run_id = r.id
                        ) then r.metadata
                    end
                from agent_runs r
                where r.conversation_id = $1 and r.metadata is not null
                order by r.position desc
                limit 1
            ) as own
    ",
    /// Creates a conversation, whose agent must exist.
    CREATE = "
        insert into chat_conversations (
            id, owner_id, title, agent_definition_id, created_at, activity_at
        )
        select $1, $2, $3, $4, {now}, {now}
        where $4 is null
           or exists (select 1 from agent_definitions where id = $4 and deleted_at is null)
        returning id, title, agent_definition_id as agent_id, forked_from, created_at,
            last_message_at, activity_at, null as live_run_id
    ",
    /// Sets the collections of a conversation.
    SET_KNOWLEDGE = "
        update chat_conversations
        set knowledge = $3
        where id = $1 and owner_id = $2 and deleted_at is null
        returning id
    ",
    /// Creates a conversation with a handle. The second of two requests finds the conversation of the first.
    CREATE_WITH_HANDLE = "
        insert into chat_conversations (
            id, owner_id, handle, agent_definition_id, created_at, activity_at
        )
        select $1, $2, $3, $4, {now}, {now}
        where $4 is null
           or exists (select 1 from agent_definitions where id = $4 and deleted_at is null)
        on conflict (owner_id, handle)
        where handle is not null and deleted_at is null
        do nothing
    ",
    /// Returns an owner's conversation with a handle.
    BY_HANDLE = concat!("
        select ", conversation_columns!(), "
        from chat_conversations c
        where c.owner_id = $1
          and c.handle = $2
          and c.deleted_at is null
    "),
    /// Returns an owner's conversation.
    CONVERSATION = concat!("
        select ", conversation_columns!(), "
        from chat_conversations c
        where c.id = $1
          and c.owner_id = $2
          and c.deleted_at is null
    "),
    /// Lists an owner's conversations, newest activity first. Each word of `$5` must be in the title or in one message.
    CONVERSATIONS = concat!("
        select ", conversation_columns!(), "
        from chat_conversations c
        where c.owner_id = $1
          and c.deleted_at is null
          and c.parent_run_id is null
          and not c.hidden
          and ($2 is null or (c.activity_at, c.id) < ($2, $3))
          and (
              not exists (select 1 from {each:$5} where not ", has_word!("c.title"), ")
              or exists (
                  select 1
                  from chat_messages m
                  where m.conversation_id = c.id
                    and m.superseded_at is null
                    and m.content_type = 'text'
                    and not exists (
                        select 1
                        from {each:$5}
                        where not ", has_word!("m.content"), "
                          and not ", has_word!("c.title"), "
                    )
              )
          )
        order by c.activity_at desc, c.id desc
        limit $4
    "),
    /// Returns the newest message with all words of `$2`, for each conversation whose title lacks one of them.
    FOUND_MESSAGES = concat!("
        select conversation_id, id, client_id, beginning
        from (
            select m.conversation_id, m.id, m.client_id, substr(m.content, 1, 20000) as beginning,
                row_number() over (
                    partition by m.conversation_id order by m.turn desc, m.position desc
                ) as place
            from chat_messages m
            join chat_conversations c on c.id = m.conversation_id
            where m.conversation_id {in:$1}
              and m.superseded_at is null
              and m.content_type = 'text'
              and exists (select 1 from {each:$2} where not ", has_word!("c.title"), ")
              and not exists (
                  select 1
                  from {each:$2}
                  where not ", has_word!("m.content"), "
                    and not ", has_word!("c.title"), "
              )
        ) matching
        where place = 1
    "),
    /// Changes the title of an owner's conversation.
    RENAME = "
        update chat_conversations
        set title = $3
        where id = $1
          and owner_id = $2
          and deleted_at is null
        returning id
    ",
    /// Hides an owner's conversation.
    HIDE = "
        update chat_conversations
        set deleted_at = {now}
        where id = $1
          and owner_id = $2
          and deleted_at is null
    ",
    /// Frees the idempotency keys of a conversation's runs.
    FREE_KEYS = "
        update agent_runs
        set idempotency_key = null, idempotency_fingerprint = null
        where conversation_id = $1 and idempotency_key is not null
    ",
}

impl Storage {
    /// Returns what the next run of a conversation inherits, with the newest message's own metadata.
    pub async fn conversation_metadata(&self, id: Uuid) -> Result<Value, Error> {
        let doing = "read the metadata of a conversation";
        let row =
            self.database.fetch_optional::<(Option<Json<Value>>, Option<Json<Value>>)>(doing, METADATA, args![id]);
        let (inherited, own) = row.await?.unwrap_or_default();
        Ok(merged(inherited.map(|json| json.0), own.map(|json| json.0)))
    }

    /// Creates an empty conversation; `None` if there is no such agent. Fails if the owner's quota has no room.
    pub async fn create_conversation(
        &self,
        account: impl Into<Account<'_>>,
        id: Uuid,
        title: Option<String>,
        agent_id: Option<Uuid>,
    ) -> Result<Option<Conversation>, Error> {
        let account = account.into();
        let create = async |tx: &mut Tx| {
            let args = args![id, account.owner, title, agent_id];
            let created = tx.fetch_optional::<ConversationRow>(CREATE, args).await?;
            quota::keep_within(tx, account.owner, account.quotas()).await?;
            Ok(Commit(created.map(Conversation::from)))
        };
        self.database.transact("create a conversation", create).await
    }

    /// Returns the owner's conversation with this handle, or creates it. `None` if its agent does not exist. Fails if
    /// the owner's quota has no room.
    pub async fn conversation_by_handle(
        &self,
        account: impl Into<Account<'_>>,
        handle: &Handle,
    ) -> Result<Option<Conversation>, Error> {
        let account = account.into();
        let owner = account.owner;
        // Another request may create the conversation meanwhile, or delete it again.
        for _ in 0..HANDLE_TRIES {
            if let Some(found) = self.find_conversation(owner, handle).await? {
                return Ok(Some(found));
            }
            let args = args![Uuid::now_v7(), owner, handle.to_string(), handle.agent_id()];
            let create = async |tx: &mut Tx| {
                tx.execute(CREATE_WITH_HANDLE, args).await?;
                Ok(Commit(quota::keep_within(tx, owner, account.quotas()).await?))
            };
            self.database.transact("create a conversation with a handle", create).await?;
        }
        self.find_conversation(owner, handle).await
    }

    /// Returns the owner's conversation with this handle, if there is one.
    pub async fn find_conversation(&self, owner: &str, handle: &Handle) -> Result<Option<Conversation>, Error> {
        let row = self
            .database
            .fetch_optional::<ConversationRow>(
                "find a conversation by its handle",
                BY_HANDLE,
                args![owner, handle.to_string()],
            )
            .await?;
        Ok(row.map(Conversation::from))
    }

    /// Returns the owner's conversation of this id.
    pub async fn conversation(&self, owner: &str, id: Uuid) -> Result<Option<Conversation>, Error> {
        let row = self
            .database
            .fetch_optional::<ConversationRow>("read a conversation", CONVERSATION, args![id, owner])
            .await?;
        Ok(row.map(Conversation::from))
    }

    /// Returns a page of the owner's conversations, newest activity first. With a text, each word must be in the title
    /// or in one current message; if that finds nothing, a similar word counts too. `None` for an unknown cursor.
    pub async fn conversations(
        &self,
        owner: &str,
        limit: usize,
        cursor: Option<&str>,
        text: Option<&str>,
    ) -> Result<Option<Page<Conversation>>, Error> {
        let Ok(before) = NewestFirst::parse(cursor) else { return Ok(None) };
        let words = text.map(words_of);
        let patterns = patterns_of(words.as_deref().unwrap_or_default());
        let rows = self.database.fetch_all::<ConversationRow>(
            "list conversations",
            CONVERSATIONS,
            args![owner, before.at(), before.id(), limit + 1, patterns],
        );
        let rows = rows.await?;
        let page = Page::of(rows, limit, |last| NewestFirst::cursor_after(last.activity_at, last.id));
        let mut items: Vec<Conversation> = page.items.into_iter().map(Conversation::from).collect();
        if let Some(words) = words.as_deref().filter(|_| items.is_empty() && cursor.is_none()) {
            return Ok(Some(Page { items: self.similar_conversations(owner, limit, words).await?, next: None }));
        }
        if let Some([first, ..]) = words.as_deref() {
            self.show_where_found(&mut items, first, patterns_of(words.as_deref().unwrap_or_default())).await?;
        }
        Ok(Some(Page { items, next: page.next }))
    }

    /// Adds the newest matching message to each conversation whose title lacks a word.
    async fn show_where_found(
        &self,
        items: &mut [Conversation],
        first_word: &str,
        patterns: serde_json::Value,
    ) -> Result<(), Error> {
        let ids: Vec<Uuid> = items.iter().map(|conversation| conversation.id).collect();
        let rows =
            self.database.fetch_all::<FoundRow>("find the messages of a search", FOUND_MESSAGES, args![ids, patterns]);
        for row in rows.await? {
            if let Some(conversation) = items.iter_mut().find(|conversation| conversation.id == row.conversation_id) {
                let excerpt = excerpt_of(&row.beginning, first_word);
                conversation.found = Some(SearchHit { message_id: row.id, client_id: row.client_id, excerpt });
            }
        }
        Ok(())
    }

    /// Sets the collections that later runs of the conversation answer from.
    pub async fn set_knowledge(
        &self,
        owner: &str,
        id: Uuid,
        collections: &[Uuid],
    ) -> Result<Option<Conversation>, Error> {
        let knowledge = (!collections.is_empty()).then(|| serde_json::json!(collections));
        let args = args![id, owner, knowledge];
        let set = self.database.write::<(Uuid,)>("set the collections of a conversation", SET_KNOWLEDGE, args).await?;
        if set.is_empty() { Ok(None) } else { self.conversation(owner, id).await }
    }

    /// Changes the conversation's title; `None` removes it.
    pub async fn rename_conversation(
        &self,
        owner: &str,
        id: Uuid,
        title: Option<String>,
    ) -> Result<Option<Conversation>, Error> {
        let renamed = self.database.write::<(Uuid,)>("rename a conversation", RENAME, args![id, owner, title]).await?;
        if renamed.is_empty() { Ok(None) } else { self.conversation(owner, id).await }
    }

    /// Hides the conversation, frees its runs' idempotency keys and cancels its unfinished runs. Returns the ended
    /// runs, and the ids of those whose workers the caller signals. `None` if there is no such conversation.
    pub async fn delete_conversation(
        &self,
        owner: &str,
        id: Uuid,
    ) -> Result<Option<(Vec<EndedRun>, Vec<Uuid>)>, Error> {
        let delete = async |tx: &mut Tx| {
            if tx.execute(HIDE, args![id, owner]).await? == 0 {
                return Ok(RollBack(None));
            }
            let unfinished = unfinished_runs(tx, id).await?;
            // After a deletion, the keys start new runs.
            tx.execute(FREE_KEYS, args![id]).await?;
            Ok(Commit(Some(cancel_all(tx, unfinished, ApprovalStatus::Cancelled).await?)))
        };
        let deleted = self.database.transact("delete a conversation", delete).await?;
        if deleted.is_some() {
            self.hide_conversations_below().await?;
        }
        Ok(deleted)
    }
}

/// Most words of a search. The last one is the rest of the text.
const MAX_WORDS: usize = 8;

fn words_of(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while words.len() + 1 < MAX_WORDS
        && let Some((word, after)) = rest.split_once(char::is_whitespace)
    {
        words.push(word);
        rest = after.trim_start();
    }
    words.push(rest);
    words
}

/// Returns the words as patterns for `has_word!`.
fn patterns_of(words: &[&str]) -> serde_json::Value {
    words.iter().map(|word| json!({"like": containing(word)})).collect()
}

/// Returns the pattern of `like` for each text that contains this one literally.
pub(super) fn containing(text: &str) -> String {
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
