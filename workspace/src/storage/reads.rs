//! Reads of tools beside single entities and lists.

use holdfast_shared::{
    database::{Error, args},
    page::{Page, PageSize},
};
use uuid::Uuid;

use super::{
    Workspace,
    change_set::CHANGES_OF_CALL,
    history::{ChangeReader, ChangeRow, changes_of},
    page_of,
    rows::{EntityRow, NameRow, entity},
    tables::table,
};
use crate::{author::Author, entity::Entity, kind::Kind, tools::EntityReference};

holdfast_shared::statements! {
    /// Lists the open tasks of a project, the most important first, then those that are due first.
    OPEN_TASKS = "
        select e.id, e.project_id,
            {object}('props', {json:e.props}, 'title', e.title, 'description', e.description, 'state', e.state,
                'priority', e.priority, 'due_at', e.due_at, 'plan_id', {id text:e.plan_id},
                'goal_id', {id text:e.goal_id}) as fields,
            e.version, e.created_at, e.updated_at, e.deleted_at
        from onto_tasks e
        where e.owner_id = $1
          and e.project_id = $2
          and e.deleted_at is null
          and e.state in ('todo', 'in_progress', 'blocked')
        order by coalesce(e.priority, 0) desc, e.due_at is null, e.due_at, e.id desc
        limit $3
    ",
}

impl Workspace {
    /// Counts the live entities of a kind in a project, by their states.
    pub async fn count(&self, owner: &str, kind: Kind, project: Uuid) -> Result<Vec<(Option<String>, i64)>, Error> {
        self.database.fetch_all("count entities", table(kind).count, args![owner, project]).await
    }

    /// Lists the open tasks of a project, the most important first, then those that are due first.
    pub async fn open_tasks(&self, owner: &str, project: Uuid, size: PageSize) -> Result<Page<Entity>, Error> {
        let args = args![owner, project, size.items + 1];
        let rows = self.database.fetch_all::<EntityRow>("list open tasks", OPEN_TASKS, args).await?;
        let tasks = rows.into_iter().map(|row| entity(Kind::Task, row)).collect();
        Ok(page_of(tasks, size, |task: &Entity| task.state().to_string().len(), |last| last.id.to_string()))
    }

    /// Returns those of the ids that are live entities of the owner, with their names.
    pub async fn references(&self, owner: &str, ids: &[Uuid]) -> Result<Vec<EntityReference>, Error> {
        let mut found = Vec::new();
        for kind in Kind::SEARCHED {
            let args = args![owner, ids.to_vec()];
            let rows = self.database.fetch_all::<NameRow>("find entities", table(kind).names, args).await?;
            found.extend(rows.into_iter().map(|(id, name, ..)| EntityReference { kind, id, name }));
        }
        Ok(found)
    }

    /// Returns the bytes of both states of a change of these entities, roughly. An id that is no entity of the owner has none.
    pub async fn bytes_of_changes(&self, owner: &str, ids: &[Uuid]) -> Result<u64, Error> {
        let mut bytes = 0;
        for kind in Kind::ALL {
            let args = args![owner, ids.to_vec()];
            let row = self.database.fetch_optional::<(i64,)>("measure entities", table(*kind).bytes, args).await?;
            bytes += row.map_or(0, |(bytes,)| bytes.max(0) as u64);
        }
        Ok(2 * bytes)
    }

    /// Returns the entities that a run's call has changed before, as it has left them; `None` if it has changed none.
    pub async fn changes_of_call(&self, author: Author<'_>) -> Result<Option<Vec<Entity>>, Error> {
        let Some(call) = author.call else { return Ok(None) };
        let args = args![author.owner, call.run_id, call.call_id];
        let rows = self.database.fetch_all::<ChangeRow>("find the changes of a call", CHANGES_OF_CALL, args).await?;
        let changes = changes_of(&mut ChangeReader::Database(&self.database), author.owner, rows).await?;
        let changed: Vec<Entity> =
            changes.into_iter().filter_map(|change| Entity::of_state(change.kind, &change.after?)).collect();
        Ok(Some(changed).filter(|changed| !changed.is_empty()))
    }
}
