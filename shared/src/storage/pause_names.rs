//! The names that clients give to the part of a run after a pause.

use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{args, statements},
};
use crate::{event_id::EventId, run::Run};

statements! {
    /// Stores the name of the part after a pause, unless it has one.
    NAME_PAUSE = "
        insert into pause_names (run_id, paused_at, conversation_id, name)
        values ($1, $2, $3, $4)
        on conflict (run_id, paused_at) do nothing
        returning run_id
    ",
    /// Returns the newest pause with this name in the runs of an owner, or of one conversation.
    PAUSE_NAMED = "
        select n.run_id, n.paused_at
        from pause_names n
        join agent_runs r on r.id = n.run_id
        where n.name = $1
          and r.owner_id = $2
          and n.conversation_id = coalesce($3, n.conversation_id)
        order by n.run_id desc, n.paused_at desc
        limit 1
    ",
}

impl Storage {
    /// Stores a client's name for the part of a run after a pause. The first name stays, so a run has at most one for each
    /// pause.
    pub async fn name_pause(&self, run: &Run, pause: EventId, name: &str) -> Result<(), Error> {
        let args = args![run.id, pause, run.conversation_id, name];
        self.database.write::<(Uuid,)>("name a part of a run", NAME_PAUSE, args).await.map(drop)
    }

    /// Returns the owner's run and its pause with this name, of one conversation if the caller names one.
    pub async fn pause_named(
        &self,
        owner: &str,
        name: &str,
        conversation_id: Option<Uuid>,
    ) -> Result<Option<(Uuid, EventId)>, Error> {
        let doing = "find a part of a run by its name";
        let row = self
            .database
            .fetch_optional::<(Uuid, i64)>(doing, PAUSE_NAMED, args![name, owner, conversation_id])
            .await?;
        Ok(row.map(|(run_id, pause)| (run_id, EventId::from(pause))))
    }
}
