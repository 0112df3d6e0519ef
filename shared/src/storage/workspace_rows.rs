//! The rows of owners' workspaces, which go and move with their owners. The crate of the workspace has all else about them.

use super::{
    Error,
    removals::remove_some,
    sql::{Piece, Sql, Tx, args, statements},
};
use crate::quotas::{QuotaExceeded, WorkspaceLimits};

statements! {
    /// Locks an owner.
    LOCK = "
        select owner_id
        from onto_owners
        where owner_id = $1
        {for update}
    ",
    /// Removes some tasks of an owner.
    ERASE_TASKS = remove_some!(
        "onto_tasks", "id", "owner_id = $1",
        "octet_length(cast(props as text)) + coalesce(octet_length(description), 0)"
    ),
    /// Removes some plans of an owner.
    ERASE_PLANS = remove_some!(
        "onto_plans", "id", "owner_id = $1",
        "octet_length(cast(props as text)) + coalesce(octet_length(description), 0)"
    ),
    /// Removes some goals of an owner.
    ERASE_GOALS = remove_some!(
        "onto_goals", "id", "owner_id = $1",
        "octet_length(cast(props as text)) + coalesce(octet_length(description), 0)"
    ),
    /// Removes some documents of an owner.
    ERASE_DOCUMENTS = remove_some!(
        "onto_documents", "id", "owner_id = $1",
        "octet_length(cast(props as text)) + coalesce(octet_length(body), 0)"
    ),
    /// Removes some outputs of an owner.
    ERASE_OUTPUTS = remove_some!(
        "onto_outputs", "id", "owner_id = $1",
        "octet_length(cast(props as text)) + coalesce(octet_length(body), 0)"
    ),
    /// Removes some projects of an owner.
    ERASE_PROJECTS = remove_some!(
        "onto_projects", "id", "owner_id = $1",
        "octet_length(cast(props as text)) + coalesce(octet_length(description), 0)"
    ),
    /// Removes some relations of an owner.
    ERASE_EDGES = remove_some!(
        "onto_edges", "id", "owner_id = $1",
        "octet_length(cast(props as text))"
    ),
    /// Removes some templates of an owner.
    ERASE_TEMPLATES = remove_some!(
        "onto_templates", "id", "owner_id = $1",
        "octet_length(cast(props as text)) + coalesce(octet_length(cast(body as text)), 0)"
    ),
    /// Removes some changes of an owner.
    ERASE_CHANGES = remove_some!(
        "onto_changes", "id", "owner_id = $1",
        "bytes"
    ),
    /// Removes the row of an owner.
    ERASE_OWNER = "
        delete from onto_owners
        where owner_id = $1
    ",
    /// Moves the tasks of an owner.
    MOVE_TASKS = "
        update onto_tasks
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the plans of an owner.
    MOVE_PLANS = "
        update onto_plans
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the goals of an owner.
    MOVE_GOALS = "
        update onto_goals
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the documents of an owner.
    MOVE_DOCUMENTS = "
        update onto_documents
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the outputs of an owner.
    MOVE_OUTPUTS = "
        update onto_outputs
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the projects of an owner.
    MOVE_PROJECTS = "
        update onto_projects
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the relations of an owner.
    MOVE_EDGES = "
        update onto_edges
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the templates of an owner.
    MOVE_TEMPLATES = "
        update onto_templates
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the changes of an owner.
    MOVE_CHANGES = "
        update onto_changes
        set owner_id = $2,
            user_id = case when user_id = $1 then $2 else user_id end
        where owner_id = $1
    ",
    /// Adds the counts of an owner, if it has any, to those of another one. Returns the sums.
    MOVE_COUNT = "
        insert into onto_owners (owner_id, entities, bytes)
        select $2, entities, bytes
        from onto_owners
        where owner_id = $1 and entities + bytes > 0
        on conflict (owner_id) do update
        set entities = onto_owners.entities + excluded.entities,
            bytes = onto_owners.bytes + excluded.bytes
        returning entities, bytes
    ",
}

const ERASE: [Sql; 9] = [
    ERASE_EDGES,
    ERASE_TEMPLATES,
    ERASE_TASKS,
    ERASE_PLANS,
    ERASE_GOALS,
    ERASE_DOCUMENTS,
    ERASE_OUTPUTS,
    ERASE_PROJECTS,
    ERASE_CHANGES,
];

const MOVE: [Sql; 9] = [
    MOVE_EDGES,
    MOVE_TEMPLATES,
    MOVE_TASKS,
    MOVE_PLANS,
    MOVE_GOALS,
    MOVE_DOCUMENTS,
    MOVE_OUTPUTS,
    MOVE_PROJECTS,
    MOVE_CHANGES,
];

/// Locks the workspaces of owners, in the order of their names. Order matters: a change of a workspace also locks its owner
/// before a run, so the two cannot deadlock.
pub async fn lock_workspaces(tx: &mut Tx, mut owners: Vec<&str>) -> Result<(), Error> {
    owners.sort_unstable();
    for owner in owners {
        tx.fetch_optional::<(String,)>(LOCK, args![owner]).await?;
    }
    Ok(())
}

/// Removes a piece of what an owner has in the workspace, without a trace. Returns whether there was anything.
pub async fn delete_some_of_workspace(tx: &mut Tx, piece: &mut Piece, owner: &str) -> Result<bool, Error> {
    for sql in ERASE {
        if piece.write_bytes(tx, sql, args![owner]).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the row of an owner, whose workspace is empty.
pub async fn forget_workspace(tx: &mut Tx, owner: &str) -> Result<(), Error> {
    tx.execute(ERASE_OWNER, args![owner]).await.map(drop)
}

/// Gives all that an owner has in the workspace to another one. Fails if the other one's limits refuse it.
pub async fn move_workspace(tx: &mut Tx, from: &str, to: &str, limits: Option<WorkspaceLimits>) -> Result<(), Error> {
    for sql in MOVE {
        tx.execute(sql, args![from, to]).await?;
    }
    let sums = tx.fetch_optional::<(i64, i64)>(MOVE_COUNT, args![from, to]).await?;
    tx.execute(ERASE_OWNER, args![from]).await?;
    let (Some(WorkspaceLimits { max_entities, max_bytes, .. }), Some((entities, bytes))) = (limits, sums) else {
        return Ok(());
    };
    if entities > max_entities as i64 {
        return Err(tx.refused_by(QuotaExceeded::Entities(max_entities)));
    }
    if bytes > max_bytes as i64 {
        return Err(tx.refused_by(QuotaExceeded::WorkspaceBytes(max_bytes)));
    }
    Ok(())
}
