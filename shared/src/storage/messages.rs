//! Messages of a conversation, in order.

use uuid::Uuid;

use super::{
    Error, Storage,
    pages::{PageRow, items_of, page_of, page_query},
    rows::{MessageRow, message_columns},
    sql::{args, statements},
};
use crate::{
    message::Message,
    page::{Page, PageSize},
};

/// Columns of messages, with the approximate size of their JSON.
macro_rules! sized_message_columns {
    () => {
        concat!(
            message_columns!(),
            ",
                m.turn,
                octet_length(m.content)
                + coalesce(octet_length(cast(m.retrieval_context as text)), 0) + 400 as page_bytes"
        )
    };
}

/// The messages of a conversation that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFilter {
    /// Messages that are part of the conversation.
    Current,
    /// Also the messages that an edit or a rollback removed.
    SupersededToo,
}

statements! {
    /// Lists the messages of an owner's conversation, oldest first.
    MESSAGES = page_query!(
        concat!("
            select ", sized_message_columns!(), "
            from chat_messages m
            where m.conversation_id = $1
              and m.owner_id = $2
              and m.position > $3
              and ($4 or m.superseded_at is null)
            order by m.position
            limit $5
        "),
        "position",
        "$6",
    ),
    /// Returns the newest messages of an owner's conversation.
    NEWEST_MESSAGES = page_query!(
        concat!("
            select ", sized_message_columns!(), "
            from chat_messages m
            where m.conversation_id = $1
              and m.owner_id = $2
              and m.superseded_at is null
            order by m.turn desc, m.position desc
            limit $3
        "),
        "turn desc, position desc",
        "$4",
    ),
    /// Returns the current message with a client id, or with an id.
    MESSAGE = concat!("
        select ", message_columns!(), "
        from chat_messages m
        where m.conversation_id = $1
          and m.owner_id = $2
          and m.superseded_at is null
          and (m.client_id = $3 or m.id = $4)
        order by case when m.client_id = $3 then 0 else 1 end
        limit 1
    "),
    /// Returns what follows a message in its conversation: the first later message of a user, or the first later answer that is
    /// complete. The message has a client id or an id; it may be an answer that its run has not finished.
    FOLLOWING = "
        with named as (
            select turn, position, case when client_id = $3 then 0 else 1 end as rank
            from chat_messages
            where conversation_id = $1
              and owner_id = $2
              and superseded_at is null
              and (client_id = $3 or id = $4)
            union all
            select position as turn, position, 2 as rank
            from agent_runs
            where conversation_id = $1
              and owner_id = $2
              and superseded_at is null
              and output_message_id = $4
        ),
        place as (
            select turn, position
            from named
            order by rank
            limit 1
        )
        select m.id
        from chat_messages m
        join place on (m.turn, m.position) > (place.turn, place.position)
        where m.conversation_id = $1
          and m.superseded_at is null
          and (m.role = 'user' or m.role = 'assistant' and m.status = 'complete')
        order by m.turn, m.position
        limit 1
    ",
    /// Returns the first message of the change that superseded a message, which has a client id or an id.
    CHANGE_OF = "
        with named as (
            select coalesce(m.superseded_in, w.superseded_in) as change
            from chat_messages m
            left join agent_runs w on w.id = m.run_id and w.output_message_id = m.id
            where m.conversation_id = $1
              and m.owner_id = $2
              and m.superseded_at is not null
              and (m.client_id = $3 or m.id = $4)
            order by m.superseded_at desc
            limit 1
        )
        select m.id
        from chat_messages m
        join named on m.superseded_in = named.change
        where m.conversation_id = $1
        order by m.turn, m.position
        limit 1
    ",
}

impl Storage {
    /// Returns a page of the conversation's messages of any kind, oldest first. `None` for an unknown cursor.
    pub async fn messages(
        &self,
        owner: &str,
        conversation_id: Uuid,
        which: MessageFilter,
        size: impl Into<PageSize>,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Message>>, Error> {
        let size = size.into();
        let Ok(after) = cursor.map_or(Ok(0), str::parse::<i64>) else { return Ok(None) };
        let superseded_too = which == MessageFilter::SupersededToo;
        let args = args![conversation_id, owner, after, superseded_too, size.items + 1, size.bytes];
        let rows = self.database.fetch_all::<PageRow<MessageRow>>("list messages", MESSAGES, args).await?;
        let mut page: Page<Message> = page_of(rows, size, |last| last.position.to_string());
        let versions = self.versions(conversation_id, page.items.iter().map(|message| message.id).collect()).await?;
        page.items.iter_mut().for_each(|message| message.version = versions.get(&message.id).copied());
        Ok(Some(page))
    }

    /// Returns the newest messages of the conversation that fit into a page, oldest first. Each answer follows its
    /// question.
    pub async fn newest_messages(
        &self,
        owner: &str,
        conversation_id: Uuid,
        size: impl Into<PageSize>,
    ) -> Result<Vec<Message>, Error> {
        let size = size.into();
        let rows = self.database.fetch_all::<PageRow<MessageRow>>(
            "read the newest messages",
            NEWEST_MESSAGES,
            args![conversation_id, owner, size.items, size.bytes],
        );
        let rows = rows.await?;
        Ok(items_of(rows).rev().collect())
    }

    /// Returns the current message of the conversation with this client id, or with this id.
    pub async fn message_called(
        &self,
        owner: &str,
        conversation_id: Uuid,
        name: &str,
    ) -> Result<Option<Message>, Error> {
        let row = self.database.fetch_optional::<MessageRow>(
            "find a message",
            MESSAGE,
            args![conversation_id, owner, name, Uuid::try_parse(name).ok()],
        );
        Ok(row.await?.map(Message::from))
    }

    /// Returns the first of the messages that were superseded together with one, which a client knows by this name. Its restoration
    /// brings all of them back.
    pub async fn superseded_with(&self, owner: &str, conversation_id: Uuid, name: &str) -> Result<Option<Uuid>, Error> {
        let args = args![conversation_id, owner, name, Uuid::try_parse(name).ok()];
        let row = self.database.fetch_optional::<(Uuid,)>("find what a change superseded", CHANGE_OF, args);
        Ok(row.await?.map(|row| row.0))
    }

    /// Returns the message that follows another one, which a client knows by this name, if there is any. An answer that has failed
    /// or was stopped does not count, because its client may not have it.
    pub async fn message_after(&self, owner: &str, conversation_id: Uuid, name: &str) -> Result<Option<Uuid>, Error> {
        let args = args![conversation_id, owner, name, Uuid::try_parse(name).ok()];
        let row = self.database.fetch_optional::<(Uuid,)>("find what follows a message", FOLLOWING, args);
        Ok(row.await?.map(|row| row.0))
    }
}
