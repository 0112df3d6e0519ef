//! The deletion of entities with all that cannot be without them, and its reversal within 30 days. The database marks the
//! dependents; the process has only their ids, and the facts of relations.

use std::collections::BTreeSet;

use holdfast_shared::{
    database::{Error, Tx, args},
    quotas::WorkspaceLimits,
};
use uuid::Uuid;

use super::{
    Outcome, Workspace,
    change_set::{ChangeSet, DeletionMark},
    existing,
    kept::live_among,
    live,
    references::no_such,
    rows::{EntityRow, entity, read_in},
    tables::{EDGES_OF_ENTITY, Table, table},
    the_entity,
};
use crate::{
    author::Author,
    entity::{Entity, text_of},
    input::{InvalidField, invalid},
    kind::Kind,
};

/// The ids of dependents, by their kinds.
type Dependents = Vec<(Kind, Vec<Uuid>)>;

impl Workspace {
    /// Deletes an entity with its relations; a project with everything in it. It can be restored for 30 days.
    pub async fn delete(&self, author: Author<'_>, kind: Kind, id: Uuid) -> Result<Outcome<()>, Error> {
        let _permit = self.long_change().await;
        self.change("delete an entity", author, drop, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let Some(entity) = live(read_in(tx, author.owner, kind, id).await?) else { return Ok(Outcome::NotFound) };
            if entity.is_published() && !author.is_operator {
                return Ok(Outcome::Invalid(published()));
            }
            let dependents = match dependents(tx, author.owner, &entity, self.limits).await? {
                Ok(dependents) => dependents,
                Err(limit) => return Ok(Outcome::TooLarge(limit)),
            };
            let deleted_at = Some(set.now);
            let mark = |id: Uuid| DeletionMark { id, was_deleted: false, deleted_at };
            for (kind, ids) in dependents.into_iter().chain([(kind, vec![id])]) {
                set.mark(tx, kind, &ids.into_iter().map(mark).collect::<Vec<_>>()).await?;
            }
            Ok(Outcome::Changed(()))
        })
        .await
    }

    /// Restores a deleted entity with all that was deleted with it, as far as it can be.
    pub async fn restore(&self, author: Author<'_>, kind: Kind, id: Uuid) -> Result<Outcome<Entity>, Error> {
        let _permit = self.long_change().await;
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
            let mut back = match dependents(tx, author.owner, &entity, self.limits).await? {
                Ok(dependents) => dependents,
                Err(limit) => return Ok(Outcome::TooLarge(limit)),
            };
            keep_whole_edges(tx, author.owner, id, &mut back).await?;
            let mark = |id: Uuid| DeletionMark { id, was_deleted: true, deleted_at: None };
            for (kind, ids) in back.into_iter().chain([(kind, vec![id])]) {
                set.mark(tx, kind, &ids.into_iter().map(mark).collect::<Vec<_>>()).await?;
            }
            let version = entity.version + 1;
            Ok(Outcome::Changed(Some(Entity { version, updated_at: set.now, deleted_at: None, ..entity })))
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

/// Returns the live entities that cannot be without a live one, or those that were deleted with a deleted one. Returns the limit
/// that they exceed.
async fn dependents(
    tx: &mut Tx,
    owner: &str,
    of: &Entity,
    limits: WorkspaceLimits,
) -> Result<Result<Dependents, String>, Error> {
    // The entity itself is one of those that change.
    let mut room = limits.max_change_entities.saturating_sub(1);
    let mut bytes = 0;
    let mut dependents = Vec::new();
    for (kind, table) in tables_of_dependents(of.kind) {
        let ids = dependents_in(tx, owner, table, of, room + 1).await?;
        if ids.is_empty() {
            continue;
        }
        bytes += tx.fetch_one::<(i64,)>(table.bytes, args![owner, ids.clone()]).await?.0;
        if ids.len() > room || bytes > limits.max_change_bytes as i64 {
            return Ok(Err(too_large(limits)));
        }
        room -= ids.len();
        dependents.push((kind, ids));
    }
    Ok(Ok(dependents))
}

/// Returns the ids of at most so many dependents in a table.
async fn dependents_in(tx: &mut Tx, owner: &str, table: &Table, of: &Entity, most: usize) -> Result<Vec<Uuid>, Error> {
    let rows = match of.deleted_at {
        None => tx.fetch_all::<(Uuid,)>(table.live_ids, args![owner, of.id, most]).await?,
        Some(at) => tx.fetch_all::<(Uuid,)>(table.deleted_ids, args![owner, of.id, most, text_of(at)]).await?,
    };
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Keeps those relations among the returning entities whose ends are there, or return too.
async fn keep_whole_edges(tx: &mut Tx, owner: &str, root: Uuid, back: &mut Dependents) -> Result<(), Error> {
    let returning: BTreeSet<Uuid> = back.iter().flat_map(|(_, ids)| ids.iter().copied()).chain([root]).collect();
    for (_, ids) in back.iter_mut().filter(|(kind, _)| *kind == Kind::Edge) {
        let rows = tx.fetch_all::<EntityRow>(table(Kind::Edge).facts, args![owner, ids.clone()]).await?;
        let edges: Vec<Entity> = rows.into_iter().map(|row| entity(Kind::Edge, row)).collect();
        let ends = edges.iter().flat_map(Entity::needs).filter(|(_, end)| !returning.contains(end));
        let live = live_among(tx, owner, ends).await?;
        let is_there = |(_, needed): &(Kind, Uuid)| returning.contains(needed) || live.contains(needed);
        *ids = edges.iter().filter(|edge| edge.needs().iter().all(is_there)).map(|edge| edge.id).collect();
    }
    Ok(())
}

/// Words the limits of one deletion, restoration or undo.
pub fn too_large(limits: WorkspaceLimits) -> String {
    let WorkspaceLimits { max_change_entities, max_change_bytes, .. } = limits;
    format!(
        "one deletion, restoration or undo is about at most {max_change_entities} entities and {max_change_bytes} bytes \
         of their texts; first delete or undo parts of it, such as single documents and tasks"
    )
}

/// Returns the refusal of a change of a published template by its owner.
pub fn published() -> InvalidField {
    invalid("state", "an operator has published this template, and only an operator changes it")
}
