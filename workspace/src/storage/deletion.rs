//! The deletion of entities with all that cannot be without them, and its reversal within 30 days.

use std::collections::BTreeSet;

use holdfast_shared::database::{Error, Tx, args};

use super::{
    Outcome, Workspace,
    change_set::ChangeSet,
    existing,
    kept::live_among,
    live,
    references::no_such,
    rows::{EntityRow, entity, read_in},
    tables::{EDGES_OF_ENTITY, Table, table},
    the_entity, too_much,
};
use crate::{
    author::Author,
    entity::Entity,
    input::{InvalidField, invalid},
    kind::Kind,
};
use uuid::Uuid;

impl Workspace {
    /// Deletes an entity with its relations; a project with everything in it. It can be restored for 30 days.
    pub async fn delete(&self, author: Author<'_>, kind: Kind, id: Uuid) -> Result<Outcome<()>, Error> {
        self.change("delete an entity", author, drop, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let Some(entity) = live(read_in(tx, author.owner, kind, id).await?) else { return Ok(Outcome::NotFound) };
            if entity.is_published() && !author.is_operator {
                return Ok(Outcome::Invalid(published()));
            }
            let now = Some(set.now);
            let dependents = match dependents(tx, author.owner, &entity, self.most_at_once()).await? {
                Ok(dependents) => dependents,
                Err(limit) => return Ok(Outcome::Full(limit)),
            };
            for before in dependents.into_iter().filter(Entity::is_live).chain([entity]) {
                let after = Entity { deleted_at: now, ..before.clone() };
                set.change(Some(before), Some(after));
            }
            Ok(Outcome::Changed(()))
        })
        .await
    }

    /// Restores a deleted entity with all that was deleted with it, as far as it can be.
    pub async fn restore(&self, author: Author<'_>, kind: Kind, id: Uuid) -> Result<Outcome<Entity>, Error> {
        self.change("restore an entity", author, the_entity, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let stored = read_in(tx, author.owner, kind, id).await?;
            let Some(entity) = stored.filter(|entity| entity.is_live() || entity.updated_at >= set.horizon()) else {
                return Ok(Outcome::NotFound);
            };
            if entity.is_live() {
                return Ok(Outcome::Changed(Some(entity)));
            }
            if entity.is_published() && !author.is_operator {
                return Ok(Outcome::Invalid(published()));
            }
            for (kind, id) in entity.needs() {
                if live(read_in(tx, author.owner, kind, id).await?).is_none() {
                    return Ok(Outcome::Invalid(match kind {
                        Kind::Project => no_such("project_id", kind),
                        _ => invalid("id", format!("the relation had the {} {id}, which is deleted", kind.as_str())),
                    }));
                }
            }
            let deleted_at = entity.deleted_at;
            let dependents = match dependents(tx, author.owner, &entity, self.most_at_once()).await? {
                Ok(dependents) => dependents,
                Err(limit) => return Ok(Outcome::Full(limit)),
            };
            let mut back: Vec<Entity> =
                dependents.into_iter().filter(|entity| entity.deleted_at == deleted_at).collect();
            // A relation needs both ends.
            let returning: BTreeSet<Uuid> = back.iter().map(|entity| entity.id).chain([id]).collect();
            let ends = back.iter().filter(|entity| entity.kind == Kind::Edge).flat_map(Entity::needs);
            let live = live_among(tx, author.owner, ends.filter(|(_, end)| !returning.contains(end))).await?;
            let is_there = |(_, needed): &(Kind, Uuid)| returning.contains(needed) || live.contains(needed);
            back.retain(|entity| entity.kind != Kind::Edge || entity.needs().iter().all(is_there));
            for before in back {
                let after = Entity { deleted_at: None, ..before.clone() };
                set.change(Some(before), Some(after));
            }
            let after = Entity { deleted_at: None, ..entity.clone() };
            Ok(Outcome::Changed(set.change(Some(entity), Some(after))))
        })
        .await
        .map(existing)
    }
}

/// Returns the tables with the dependents of an entity: those within a project, and the relations of other entities.
pub fn tables_of_dependents(entity: Kind) -> Vec<(Kind, &'static Table)> {
    match entity {
        Kind::Project => {
            let kinds = Kind::ALL.iter().filter(|kind| kind.is_within_project());
            kinds.map(|kind| (*kind, table(*kind))).collect()
        }
        Kind::Edge | Kind::Template => Vec::new(),
        _ => vec![(Kind::Edge, EDGES_OF_ENTITY)],
    }
}

/// Returns the entities that cannot be without this one, deleted or not. Returns the limit if they have more bytes.
async fn dependents(
    tx: &mut Tx,
    owner: &str,
    entity_of: &Entity,
    most: usize,
) -> Result<Result<Vec<Entity>, String>, Error> {
    let tables = tables_of_dependents(entity_of.kind);
    let mut bytes = 0;
    for (_, table) in &tables {
        bytes += tx.fetch_one::<(i64,)>(table.bytes_within, args![owner, entity_of.id]).await?.0;
    }
    if bytes > most as i64 {
        return Ok(Err(too_much(most)));
    }
    let mut dependents = Vec::new();
    for (kind, table) in tables {
        let rows = tx.fetch_all::<EntityRow>(table.within, args![owner, entity_of.id]).await?;
        dependents.extend(rows.into_iter().map(|row| entity(kind, row)));
    }
    Ok(Ok(dependents))
}

/// Returns the refusal of a change of a published template by its owner.
pub fn published() -> InvalidField {
    invalid("state", "an operator has published this template, and only an operator changes it")
}
