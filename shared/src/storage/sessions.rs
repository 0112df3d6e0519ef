//! Sessions: an owner's conversations with a client's own name.

use std::collections::HashMap;

use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error, Storage,
    newest_first::NewestFirst,
    rows::{ConversationRow, conversation_columns},
    sql::{args, statements},
};
use crate::{
    conversation::{Session, chat_name},
    page::Page,
};

#[derive(FromRow)]
struct SessionRow {
    handle: String,
    #[sqlx(flatten)]
    conversation: ConversationRow,
}

statements! {
    /// Lists an owner's sessions, newest activity first.
    SESSIONS = concat!("
        select c.handle, ", conversation_columns!(), "
        from chat_conversations c
        where c.owner_id = $1
          and c.deleted_at is null
          and c.handle like 'session:%'
          and ($2 is null or (c.activity_at, c.id) < ($2, $3))
        order by c.activity_at desc, c.id desc
        limit $4
    "),
    /// Returns the handles of an owner's conversations that clients have named as chats.
    CHATS = "
        select id, handle
        from chat_conversations
        where owner_id = $1
          and id {in:$2}
          and handle like 'chat:%'
    ",
}

impl Storage {
    /// Returns a page of the owner's sessions, newest activity first. `None` for an unknown cursor.
    pub async fn sessions(
        &self,
        owner: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Session>>, Error> {
        let Ok(before) = NewestFirst::parse(cursor) else { return Ok(None) };
        let rows = self.database.fetch_all::<SessionRow>(
            "list sessions",
            SESSIONS,
            args![owner, before.at(), before.id(), limit + 1],
        );
        let rows = rows.await?;
        let page = Page::of(rows, limit, |last| {
            NewestFirst::cursor_after(last.conversation.activity_at, last.conversation.id)
        });
        let sessions = page.items.into_iter().filter_map(|row| Session::of(&row.handle, row.conversation.into()));
        Ok(Some(Page { items: sessions.collect(), next: page.next }))
    }

    /// Returns the names that clients gave to some conversations of the owner, by the ids of those that have one.
    pub async fn chat_names(&self, owner: &str, ids: Vec<Uuid>) -> Result<HashMap<Uuid, String>, Error> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let doing = "read the names of chats";
        let rows = self.database.fetch_all::<(Uuid, String)>(doing, CHATS, args![owner, ids]).await?;
        let name = |(id, handle): (Uuid, String)| Some((id, chat_name(&handle)?.to_owned()));
        Ok(rows.into_iter().filter_map(name).collect())
    }
}
