//! Messages of a conversation, in order.

use uuid::Uuid;

use super::{
    Error, Storage,
    database::args,
    rows::{MessageRow, message_columns},
};
use crate::{message::Message, page::Page};

/// Which messages of a conversation a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What the conversation is.
    Current,
    /// Also what was replaced or rolled back.
    SupersededToo,
}

impl Storage {
    /// The conversation's messages, oldest first, whatever their kind. `None` for a cursor that no page gave out.
    pub async fn messages(
        &self,
        owner: &str,
        conversation_id: Uuid,
        which: Which,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Message>>, Error> {
        let Ok(after) = cursor.map_or(Ok(0), str::parse::<i64>) else { return Ok(None) };
        let rows = self.database.fetch_all::<MessageRow>(
            concat!(
                "select ",
                message_columns!(),
                " from chat_messages m ",
                "where m.conversation_id = $1 and m.owner_id = $2 and m.position > $3 ",
                "and ($4 or m.superseded_at is null) order by m.position limit $5"
            ),
            args![conversation_id, owner, after, which == Which::SupersededToo, limit + 1],
        );
        let rows = rows.await.map_err(Error::doing("list messages"))?;
        let page = Page::of(rows, limit, |last| last.position.to_string());
        Ok(Some(Page { items: page.items.into_iter().map(Message::from).collect(), next: page.next }))
    }

    /// The newest messages of the conversation, at most `limit`, oldest first: each question with its answer behind it.
    pub async fn newest_messages(
        &self,
        owner: &str,
        conversation_id: Uuid,
        limit: usize,
    ) -> Result<Vec<Message>, Error> {
        let rows = self.database.fetch_all::<MessageRow>(
            concat!(
                "select ",
                message_columns!(),
                " from chat_messages m where m.conversation_id = $1 and m.owner_id = $2 and m.superseded_at is null ",
                "order by m.turn desc, m.position desc limit $3"
            ),
            args![conversation_id, owner, limit],
        );
        let rows = rows.await.map_err(Error::doing("read the newest messages"))?;
        Ok(rows.into_iter().rev().map(Message::from).collect())
    }

    /// The message of the conversation that the client calls so, or that has this id.
    pub async fn message_called(
        &self,
        owner: &str,
        conversation_id: Uuid,
        name: &str,
    ) -> Result<Option<Message>, Error> {
        let row = self.database.fetch_optional::<MessageRow>(
            concat!(
                "select ",
                message_columns!(),
                " from chat_messages m where m.conversation_id = $1 and m.owner_id = $2 and m.superseded_at is null ",
                "and (m.client_id = $3 or m.id = $4) order by case when m.client_id = $3 then 0 else 1 end limit 1"
            ),
            args![conversation_id, owner, name, Uuid::try_parse(name).ok()],
        );
        Ok(row.await.map_err(Error::doing("find a message"))?.map(Message::from))
    }
}
