//! Messages of a conversation, in order.

use uuid::Uuid;

use super::{
    Error, Storage,
    database::args,
    rows::{MessageRow, message_columns},
};
use crate::{message::Message, page::Page};

impl Storage {
    /// The conversation's messages, oldest first. `None` for a cursor that no page gave out.
    pub async fn messages(
        &self,
        owner: &str,
        conversation_id: Uuid,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Message>>, Error> {
        let Ok(after) = cursor.map_or(Ok(0), str::parse::<i64>) else { return Ok(None) };
        let rows = self.database.fetch_all::<MessageRow>(
            concat!(
                "select ",
                message_columns!(),
                " from chat_messages m ",
                "where m.conversation_id = $1 and m.owner_id = $2 and m.position > $3 order by m.position limit $4"
            ),
            args![conversation_id, owner, after, limit + 1],
        );
        let rows = rows.await.map_err(Error::doing("list messages"))?;
        let page = Page::of(rows, limit, |last| last.position.to_string());
        Ok(Some(Page { items: page.items.into_iter().map(Message::from).collect(), next: page.next }))
    }
}
