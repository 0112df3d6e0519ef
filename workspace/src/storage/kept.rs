//! The entities that an undo must leave as they are.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_shared::database::{Error, Tx, args};
use uuid::Uuid;

use super::{
    deletion::tables_of_dependents,
    effects::{Effects, EntityEffect},
    rows::NameRow,
    tables::table,
};
use crate::{author::Author, entity::Entity, kind::Kind};

holdfast_shared::statements! {
    /// Returns the live relations from and to entities: the relation, and its ends.
    EDGES_AT = "
        select e.id, e.from_id, e.to_id
        from onto_edges e
        where e.owner_id = $1
          and e.deleted_at is null
          and (e.from_id {in:$2} or e.to_id {in:$2})
    ",
}

/// The entities around those of the undo.
struct Surroundings {
    /// The live entities that cannot be without one that would vanish.
    dependents: BTreeMap<Uuid, Vec<Uuid>>,
    /// The live entities that others need, and that the undo does not change.
    live: BTreeSet<Uuid>,
}

/// Returns the entities that the undo must leave as they are: those that were changed again since, and those that would be
/// without their project or an end, or leave others without theirs.
pub async fn kept_entities(tx: &mut Tx, author: Author<'_>, effects: &Effects) -> Result<BTreeSet<Uuid>, Error> {
    // Only an operator changes what all users may use.
    let is_published = |entity: Option<&Entity>| entity.is_some_and(Entity::is_published);
    let is_kept = |(_, effect): &(&Uuid, &EntityEffect)| {
        let concerns_all = is_published(effect.current.as_ref()) || is_published(effect.before.as_ref());
        (concerns_all && !author.is_operator) || !effect.is_current
    };
    let mut kept: BTreeSet<Uuid> = effects.iter().filter(is_kept).map(|(id, _)| *id).collect();
    let surroundings = Surroundings::read(tx, author.owner, effects).await?;
    // A kept entity may need its project, so this is repeated until nothing more is kept.
    loop {
        let is_free = |(id, _): &(&Uuid, &EntityEffect)| !kept.contains(*id);
        let stays = |(id, _): &(&Uuid, &EntityEffect)| surroundings.keep(**id, effects, &kept);
        let more: Vec<Uuid> = effects.iter().filter(is_free).filter(stays).map(|(id, _)| *id).collect();
        if more.is_empty() {
            return Ok(kept);
        }
        kept.extend(more);
    }
}

impl Surroundings {
    /// Reads them with a few statements, however many entities the undo has.
    async fn read(tx: &mut Tx, owner: &str, effects: &Effects) -> Result<Self, Error> {
        let mut dependents = BTreeMap::<Uuid, Vec<Uuid>>::new();
        let vanishes =
            |(_, effect): &(&Uuid, &EntityEffect)| is_live(effect.current.as_ref()) && !is_live(effect.before.as_ref());
        let (projects, others): (Vec<_>, Vec<_>) =
            effects.iter().filter(vanishes).partition(|(_, effect)| effect.kind == Kind::Project);
        for (project, _) in projects {
            for (_, table) in tables_of_dependents(Kind::Project) {
                let live = tx.fetch_all::<(Uuid,)>(table.live_ids, args![owner, *project, i64::MAX]).await?;
                dependents.entry(*project).or_default().extend(live.into_iter().map(|row| row.0));
            }
        }
        let others: Vec<Uuid> = others.into_iter().map(|(id, _)| *id).collect();
        if !others.is_empty() {
            for (edge, from, to) in tx.fetch_all::<(Uuid, Uuid, Uuid)>(EDGES_AT, args![owner, others]).await? {
                for end in [from, to] {
                    dependents.entry(end).or_default().push(edge);
                }
            }
        }
        let appears = effects.values().filter_map(|effect| effect.before.as_ref()).filter(|entity| entity.is_live());
        let needed = appears.flat_map(Entity::needs).filter(|(_, id)| !effects.contains_key(id));
        let live = live_among(tx, owner, needed).await?;
        Ok(Self { dependents, live })
    }

    /// Returns whether an entity must stay as it is while these are kept.
    fn keep(&self, id: Uuid, effects: &Effects, kept: &BTreeSet<Uuid>) -> bool {
        let will_live = |id: &Uuid| {
            let state = |effect: &EntityEffect| {
                is_live(if kept.contains(id) { effect.current.as_ref() } else { effect.before.as_ref() })
            };
            effects.get(id).map(state)
        };
        match effects[&id].before.as_ref().filter(|before| before.is_live()) {
            Some(before) => {
                let will_be_there =
                    |(_, needed): &(Kind, Uuid)| will_live(needed).unwrap_or(self.live.contains(needed));
                !before.needs().iter().all(will_be_there)
            }
            None => {
                let dependents = self.dependents.get(&id).into_iter().flatten();
                is_live(effects[&id].current.as_ref()) && dependents.into_iter().any(|of| will_live(of).unwrap_or(true))
            }
        }
    }
}

/// Returns those of the entities that are live.
pub async fn live_among(
    tx: &mut Tx,
    owner: &str,
    entities: impl Iterator<Item = (Kind, Uuid)>,
) -> Result<BTreeSet<Uuid>, Error> {
    let mut by_kind = BTreeMap::<Kind, BTreeSet<Uuid>>::new();
    for (kind, id) in entities {
        by_kind.entry(kind).or_default().insert(id);
    }
    let mut live = BTreeSet::new();
    for (kind, ids) in by_kind {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let rows = tx.fetch_all::<NameRow>(table(kind).names, args![owner, ids]).await?;
        live.extend(rows.into_iter().map(|row| row.0));
    }
    Ok(live)
}

fn is_live(entity: Option<&Entity>) -> bool {
    entity.is_some_and(Entity::is_live)
}
