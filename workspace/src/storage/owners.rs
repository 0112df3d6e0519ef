//! Owners whose data is erased, or moves to another owner.

use holdfast_shared::database::{Commit, Error, Sql, Tx, args};
use holdfast_shared::storage::Storage;

holdfast_shared::statements! {
    /// Locks an owner.
    LOCK = "
        select owner_id
        from onto_owners
        where owner_id = $1
        {for update}
    ",
    /// Removes the tasks of an owner.
    ERASE_TASKS = "delete from onto_tasks where owner_id = $1",
    /// Removes the plans of an owner.
    ERASE_PLANS = "delete from onto_plans where owner_id = $1",
    /// Removes the goals of an owner.
    ERASE_GOALS = "delete from onto_goals where owner_id = $1",
    /// Removes the documents of an owner.
    ERASE_DOCUMENTS = "delete from onto_documents where owner_id = $1",
    /// Removes the outputs of an owner.
    ERASE_OUTPUTS = "delete from onto_outputs where owner_id = $1",
    /// Removes the projects of an owner.
    ERASE_PROJECTS = "delete from onto_projects where owner_id = $1",
    /// Removes the changes of an owner.
    ERASE_CHANGES = "delete from onto_changes where owner_id = $1",
    /// Removes the row of an owner.
    ERASE_OWNER = "delete from onto_owners where owner_id = $1",
    /// Moves the tasks of an owner.
    MOVE_TASKS = "update onto_tasks set owner_id = $2 where owner_id = $1",
    /// Moves the plans of an owner.
    MOVE_PLANS = "update onto_plans set owner_id = $2 where owner_id = $1",
    /// Moves the goals of an owner.
    MOVE_GOALS = "update onto_goals set owner_id = $2 where owner_id = $1",
    /// Moves the documents of an owner.
    MOVE_DOCUMENTS = "update onto_documents set owner_id = $2 where owner_id = $1",
    /// Moves the outputs of an owner.
    MOVE_OUTPUTS = "update onto_outputs set owner_id = $2 where owner_id = $1",
    /// Moves the projects of an owner.
    MOVE_PROJECTS = "update onto_projects set owner_id = $2 where owner_id = $1",
    /// Moves the changes of an owner.
    MOVE_CHANGES = "
        update onto_changes
        set owner_id = $2,
            user_id = case when user_id = $1 then $2 else user_id end
        where owner_id = $1
    ",
    /// Adds what an owner keeps to what another one keeps.
    MOVE_COUNT = "
        insert into onto_owners (owner_id, entities, bytes)
        select $2, entities, bytes
        from onto_owners
        where owner_id = $1
        on conflict (owner_id) do update
        set entities = onto_owners.entities + excluded.entities,
            bytes = onto_owners.bytes + excluded.bytes
    ",
}

const ERASE: [Sql; 8] =
    [ERASE_TASKS, ERASE_PLANS, ERASE_GOALS, ERASE_DOCUMENTS, ERASE_OUTPUTS, ERASE_PROJECTS, ERASE_CHANGES, ERASE_OWNER];

const MOVE: [Sql; 8] =
    [MOVE_TASKS, MOVE_PLANS, MOVE_GOALS, MOVE_DOCUMENTS, MOVE_OUTPUTS, MOVE_PROJECTS, MOVE_CHANGES, MOVE_COUNT];

/// Removes all that an owner has, without a trace.
pub async fn erase(storage: &Storage, owner: &str) -> Result<(), Error> {
    let erase = async |tx: &mut Tx| {
        tx.fetch_optional::<(String,)>(LOCK, args![owner]).await?;
        for sql in ERASE {
            tx.execute(sql, args![owner]).await?;
        }
        Ok(Commit(()))
    };
    storage.database().transact("erase a workspace", erase).await
}

/// Gives all that an owner has to another one.
pub async fn move_to(storage: &Storage, from: &str, to: &str) -> Result<(), Error> {
    let move_all = async |tx: &mut Tx| {
        // In the order of their names, so that two moves do not wait for each other.
        for owner in if from < to { [from, to] } else { [to, from] } {
            tx.fetch_optional::<(String,)>(LOCK, args![owner]).await?;
        }
        for sql in MOVE {
            tx.execute(sql, args![from, to]).await?;
        }
        tx.execute(ERASE_OWNER, args![from]).await?;
        Ok(Commit(()))
    };
    storage.database().transact("move a workspace", move_all).await
}
