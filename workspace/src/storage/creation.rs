//! New entities.

use holdfast_shared::database::{Error, Tx};

use super::{
    Outcome, Workspace,
    change_set::ChangeSet,
    deletion::published,
    live,
    references::{missing_reference, no_such},
    rows::read_in,
};
use crate::{author::Author, change::Change, entity::Entity, input::NewEntity, kind::Kind};

impl Workspace {
    /// Creates an entity.
    pub async fn create(&self, author: Author<'_>, new: NewEntity) -> Result<Outcome<Entity>, Error> {
        let created = self.create_all(author, vec![new]).await?;
        Ok(created.map(|mut entities| entities.pop().expect("one was created")))
    }

    /// Creates entities in one transaction, in this order. One that names no project belongs to the first entity, which is a
    /// project then.
    pub async fn create_all(&self, author: Author<'_>, new: Vec<NewEntity>) -> Result<Outcome<Vec<Entity>>, Error> {
        let repeated = |changes: Vec<Change>| {
            let state = |change: Change| Entity::of_state(change.kind, &change.after?);
            changes.into_iter().filter_map(state).collect()
        };
        self.change("create entities", author, repeated, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let mut created = Vec::<Entity>::new();
            for NewEntity { id, kind, project_id, fields } in new {
                let first = created.first().map(|project| project.id);
                let project_id = project_id.or(first.filter(|_| kind.is_within_project()));
                if let Some(project_id) = project_id.filter(|id| Some(*id) != first)
                    && live(read_in(tx, author.owner, Kind::Project, project_id).await?).is_none()
                {
                    return Ok(Outcome::Invalid(no_such("project_id", Kind::Project)));
                }
                let (created_at, updated_at) = (set.now, set.now);
                let entity =
                    Entity { kind, id, project_id, fields, version: 0, created_at, updated_at, deleted_at: None };
                if entity.is_published() && !author.is_operator {
                    return Ok(Outcome::Invalid(published()));
                }
                if let Some(missing) = missing_reference(tx, author.owner, None, &entity, &created).await? {
                    return Ok(Outcome::Invalid(missing));
                }
                created.extend(set.change(None, Some(entity)));
            }
            Ok(Outcome::Changed(created))
        })
        .await
    }
}
