//! The places of runs in their conversations, for streams that follow one run after the other.

use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{args, statements},
};

statements! {
    /// Returns the place of a run in its conversation.
    RUN_POSITION = "
        select position
        from agent_runs
        where id = $1
    ",
    /// Returns the first run of a conversation after a position.
    NEXT_RUN = "
        select id, position
        from agent_runs
        where owner_id = $1
          and conversation_id = $2
          and position > $3
          and superseded_at is null
        order by position
        limit 1
    ",
    /// Returns the positions of the newest runs of a conversation.
    NEWEST_POSITIONS = "
        select position
        from agent_runs
        where owner_id = $1
          and conversation_id = $2
          and superseded_at is null
        order by position desc
        limit $3
    ",
    /// Returns the last position of each conversation.
    LAST_POSITIONS = "
        select id, last_position
        from chat_conversations
        where id {in:$1}
    ",
}

impl Storage {
    /// Returns the place of a run in its conversation; later runs have greater ones.
    pub async fn run_position(&self, run_id: Uuid) -> Result<Option<i64>, Error> {
        let row = self.database.fetch_optional::<(i64,)>("find a run's position", RUN_POSITION, args![run_id]).await?;
        Ok(row.map(|(position,)| position))
    }

    /// Returns the first run of the owner's conversation after a position, with its own position.
    pub async fn next_run(&self, owner: &str, conversation_id: Uuid, after: i64) -> Result<Option<(Uuid, i64)>, Error> {
        let args = args![owner, conversation_id, after];
        self.database.fetch_optional::<(Uuid, i64)>("find the next run of a conversation", NEXT_RUN, args).await
    }

    /// Returns the positions of the newest runs of the owner's conversation, newest first.
    pub async fn newest_positions(&self, owner: &str, conversation_id: Uuid, most: usize) -> Result<Vec<i64>, Error> {
        let args = args![owner, conversation_id, most];
        let rows = self.database.fetch_all::<(i64,)>("find the newest runs of a conversation", NEWEST_POSITIONS, args);
        Ok(rows.await?.into_iter().map(|(position,)| position).collect())
    }

    /// Returns the last position of each of these conversations that exists. Each new run or message has a greater one.
    pub async fn last_positions(&self, conversation_ids: Vec<Uuid>) -> Result<Vec<(Uuid, i64)>, Error> {
        let args = args![conversation_ids];
        self.database.fetch_all::<(Uuid, i64)>("look for new runs of conversations", LAST_POSITIONS, args).await
    }
}
