//! The rows of owners' workspaces, which go and move with their owners. The crate of the workspace has all else about them.

use super::{
    Error,
    sql::{Sql, Tx, args, statements},
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
    /// Removes the tasks of an owner.
    ERASE_TASKS = "
        delete from onto_tasks
        where owner_id = $1
    ",
    /// Removes the plans of an owner.
    ERASE_PLANS = "
        delete from onto_plans
        where owner_id = $1
    ",
    /// Removes the goals of an owner.
    ERASE_GOALS = "
        delete from onto_goals
        where owner_id = $1
    ",
    /// Removes the documents of an owner.
    ERASE_DOCUMENTS = "
        delete from onto_documents
        where owner_id = $1
    ",
    /// Removes the outputs of an owner.
    ERASE_OUTPUTS = "
        delete from onto_outputs
        where owner_id = $1
    ",
    /// Removes the projects of an owner.
    ERASE_PROJECTS = "
        delete from onto_projects
        where owner_id = $1
    ",
    /// Removes the relations of an owner.
    ERASE_EDGES = "
        delete from onto_edges
        where owner_id = $1
    ",
    /// Removes the templates of an owner.
    ERASE_TEMPLATES = "
        delete from onto_templates
        where owner_id = $1
    ",
    /// Removes the changes of an owner.
    ERASE_CHANGES = "
        delete from onto_changes
        where owner_id = $1
    ",
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

const ERASE: [Sql; 10] = [
    ERASE_EDGES,
    ERASE_TEMPLATES,
    ERASE_TASKS,
    ERASE_PLANS,
    ERASE_GOALS,
    ERASE_DOCUMENTS,
    ERASE_OUTPUTS,
    ERASE_PROJECTS,
    ERASE_CHANGES,
    ERASE_OWNER,
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

/// Removes all that an owner has in the workspace, without a trace.
pub async fn delete_workspace(tx: &mut Tx, owner: &str) -> Result<(), Error> {
    for sql in ERASE {
        tx.execute(sql, args![owner]).await?;
    }
    Ok(())
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
