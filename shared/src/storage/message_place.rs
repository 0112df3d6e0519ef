//! The place of a message in its conversation, before which a page of the history ends.

use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{args, statements},
};

/// A place among the messages of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct MessagePlace {
    pub(super) turn: i64,
    pub(super) position: i64,
}

impl MessagePlace {
    /// The place after all messages.
    pub const END: Self = Self { turn: i64::MAX, position: i64::MAX };
}

statements! {
    /// Returns the place of a message of an owner's conversation, also of a superseded one.
    PLACE = "
        select turn, position
        from chat_messages
        where conversation_id = $1 and owner_id = $2 and id = $3
    ",
}

impl Storage {
    /// Returns the place of a message of the owner's conversation, also of a superseded one.
    pub async fn place_of_message(
        &self,
        owner: &str,
        conversation_id: Uuid,
        id: Uuid,
    ) -> Result<Option<MessagePlace>, Error> {
        let args = args![conversation_id, owner, id];
        self.database.fetch_optional("find the place of a message", PLACE, args).await
    }
}
