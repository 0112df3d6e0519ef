//! The effects of a set of changes, as an undo needs them: facts of every entity, and whole states of a piece at a time.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use holdfast_shared::database::{Error, Tx, args};
use uuid::Uuid;

use super::{
    change_set::PIECE,
    history::{CHANGES, ChangeReader, ChangeRow, changes_of},
    rows::{EntityRow, entity},
    tables::table,
};
use crate::{
    entity::{Entity, time_of},
    kind::{Form, Kind},
};

holdfast_shared::statements! {
    /// Returns the entities of these changes that have a later change with whole states.
    CHANGED_SINCE = "
        select c.entity_id
        from onto_changes c
        where c.owner_id = $1
          and c.id {in:$2}
          and exists (
              select 1
              from onto_changes n
              where n.entity_id = c.entity_id
                and n.id > c.id
                and n.size is null
          )
    ",
}

/// A change without its states: id, kind, entity, time, bytes, the bytes of whole states if it is a mark, and the times of
/// the entity's deletion before and after a mark.
pub type OutlineRow = (Uuid, String, Uuid, DateTime<Utc>, i64, Option<i64>, Option<String>, Option<String>);

/// The effects of a set by entity.
pub type Effects = BTreeMap<Uuid, EntityEffect>;

/// The effect of a set on one entity. States have no texts.
pub struct EntityEffect {
    pub kind: Kind,
    /// The first and the last change.
    first: Uuid,
    last: Uuid,
    /// The bytes of their states.
    bytes: usize,
    /// The times of the deletion before and after the set, if nothing else has changed before, within and after it.
    pub marks: Option<[Option<DateTime<Utc>>; 2]>,
    /// The state before the first change.
    pub before: Option<Entity>,
    /// The present state.
    pub current: Option<Entity>,
    /// Whether the present state is the one after the last change, but for what each change makes new.
    pub is_current: bool,
}

/// The whole states of one entity.
pub struct States {
    pub before: Option<Entity>,
    pub after: Option<Entity>,
    pub current: Option<Entity>,
}

/// Returns the effects of changes, which are in order.
pub async fn effects_of(tx: &mut Tx, owner: &str, outlines: Vec<OutlineRow>) -> Result<Effects, Error> {
    let mut effects = Effects::new();
    for outline in outlines {
        add(&mut effects, outline);
    }
    let marked = |(_, effect): &(&Uuid, &EntityEffect)| effect.marks.is_some();
    let last: Vec<Uuid> = effects.iter().filter(marked).map(|(_, effect)| effect.last).collect();
    for (id,) in tx.fetch_all::<(Uuid,)>(CHANGED_SINCE, args![owner, last]).await? {
        effects.entry(id).and_modify(|effect| effect.marks = None);
    }
    for kind in Kind::ALL {
        let of_kind = effects.iter().filter(marked).filter(|(_, effect)| effect.kind == *kind);
        let ids: Vec<Uuid> = of_kind.map(|(id, _)| *id).collect();
        if ids.is_empty() {
            continue;
        }
        for row in tx.fetch_all::<EntityRow>(table(*kind).facts, args![owner, ids]).await? {
            let current = entity(*kind, row);
            effects.entry(current.id).and_modify(|effect| effect.become_marked(current));
        }
    }
    let whole: BTreeSet<Uuid> = effects.iter().filter(|effect| !marked(effect)).map(|(id, _)| *id).collect();
    for piece in pieces(&effects, &whole) {
        for (id, States { before, after, current }) in states_of(tx, owner, &effects, &piece).await? {
            let effect = effects.get_mut(&id).expect("the piece is of these effects");
            effect.is_current = is_same(current.as_ref(), after.as_ref());
            (effect.before, effect.current) = (before.map(without_texts), current.map(without_texts));
        }
    }
    Ok(effects)
}

fn add(effects: &mut Effects, outline: OutlineRow) {
    let (id, kind, entity_id, _, bytes, size, before, after) = outline;
    let Ok(kind) = kind.parse() else { return };
    let time = |text: Option<String>| text.and_then(|text| time_of(&text.into()));
    let (before, after) = (time(before), time(after));
    let effect = effects.entry(entity_id).or_insert(EntityEffect {
        kind,
        first: id,
        last: id,
        bytes: 0,
        marks: Some([before, after]),
        before: None,
        current: None,
        is_current: false,
    });
    effect.last = id;
    effect.bytes += size.unwrap_or(bytes) as usize;
    effect.marks = effect.marks.filter(|_| size.is_some()).map(|[first, _]| [first, after]);
}

impl EntityEffect {
    /// Stores the facts of an entity of which nothing but its deletion has changed.
    fn become_marked(&mut self, current: Entity) {
        let Some([before, after]) = self.marks else { return };
        self.is_current = current.deleted_at == after;
        self.before = Some(Entity { deleted_at: before, ..current.clone() });
        self.current = Some(current);
    }
}

/// Returns these entities in pieces whose states fit into the memory of a change.
pub fn pieces(effects: &Effects, ids: &BTreeSet<Uuid>) -> Vec<Vec<Uuid>> {
    let mut pieces: Vec<Vec<Uuid>> = Vec::new();
    let mut room = 0;
    for id in ids {
        let bytes = effects[id].bytes.max(1);
        match pieces.last_mut().filter(|_| bytes <= room) {
            Some(piece) => piece.push(*id),
            None => {
                pieces.push(vec![*id]);
                room = PIECE;
            }
        }
        room = room.saturating_sub(bytes);
    }
    pieces
}

/// Returns the whole states of a piece.
pub async fn states_of(
    tx: &mut Tx,
    owner: &str,
    effects: &Effects,
    piece: &[Uuid],
) -> Result<BTreeMap<Uuid, States>, Error> {
    let changes: BTreeSet<Uuid> = piece.iter().flat_map(|id| [effects[id].first, effects[id].last]).collect();
    let args = args![owner, changes.into_iter().collect::<Vec<_>>()];
    let rows = tx.fetch_all::<ChangeRow>(CHANGES, args).await?;
    let changes = changes_of(&mut ChangeReader::Tx(tx), owner, rows).await?;
    let mut states: BTreeMap<Uuid, States> =
        piece.iter().map(|id| (*id, States { before: None, after: None, current: None })).collect();
    for change in changes {
        let (Some(states), effect) = (states.get_mut(&change.entity_id), &effects[&change.entity_id]) else { continue };
        let read = |state: Option<serde_json::Value>| Entity::of_state(change.kind, &state?);
        if change.id == effect.first {
            states.before = read(change.before);
        }
        if change.id == effect.last {
            states.after = read(change.after);
        }
    }
    for kind in Kind::ALL {
        let ids: Vec<Uuid> = piece.iter().copied().filter(|id| effects[id].kind == *kind).collect();
        if ids.is_empty() {
            continue;
        }
        for row in tx.fetch_all::<EntityRow>(table(*kind).get, args![owner, ids]).await? {
            let current = entity(*kind, row);
            states.entry(current.id).and_modify(|states| states.current = Some(current));
        }
    }
    Ok(states)
}

/// Returns whether two states of an entity differ only in what each change makes new.
fn is_same(one: Option<&Entity>, other: Option<&Entity>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            one.kind == other.kind
                && one.id == other.id
                && one.project_id == other.project_id
                && one.fields == other.fields
                && one.created_at == other.created_at
                && one.deleted_at == other.deleted_at
        }
        _ => false,
    }
}

/// Returns the state without texts: what it needs, and whether it is deleted or published.
fn without_texts(entity: Entity) -> Entity {
    let is_fact = |form: Form| matches!(form, Form::Word(_) | Form::State(_) | Form::Id(_) | Form::IdOf(_));
    let fields = entity.kind.fields().iter().filter(|field| is_fact(field.form));
    let facts = fields.filter_map(|field| Some((field.name.to_owned(), entity.fields.get(field.name)?.clone())));
    Entity { fields: facts.collect(), ..entity }
}
