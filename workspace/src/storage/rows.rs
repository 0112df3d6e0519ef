//! Entities as the tables have them.

use chrono::{DateTime, Utc};
use holdfast_shared::database::{Database, Error, Json, Tx, args};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::tables::table;
use crate::{entity::Entity, kind::Kind};

/// A row: id, project, fields, version, and the times of its creation, its newest change and its deletion.
pub type EntityRow =
    (Uuid, Option<Uuid>, Json<Map<String, Value>>, i64, DateTime<Utc>, DateTime<Utc>, Option<DateTime<Utc>>);

/// The row of an entity by its name: id, name, project and state.
pub type NameRow = (Uuid, String, Option<Uuid>, Option<String>);

/// Returns the entity of a row.
pub fn entity(kind: Kind, row: EntityRow) -> Entity {
    let (id, project_id, Json(fields), version, created_at, updated_at, deleted_at) = row;
    let mut entity = Entity { kind, id, project_id, fields, version, created_at, updated_at, deleted_at };
    entity.normalise();
    entity
}

/// Returns an entity of an owner, deleted or not.
pub async fn read(database: &Database, owner: &str, kind: Kind, id: Uuid) -> Result<Option<Entity>, Error> {
    let row = database.fetch_optional::<EntityRow>("read an entity", table(kind).get, args![owner, vec![id]]).await?;
    Ok(row.map(|row| entity(kind, row)))
}

/// Returns an entity of an owner within a transaction, deleted or not.
pub async fn read_in(tx: &mut Tx, owner: &str, kind: Kind, id: Uuid) -> Result<Option<Entity>, Error> {
    let row = tx.fetch_optional::<EntityRow>(table(kind).get, args![owner, vec![id]]).await?;
    Ok(row.map(|row| entity(kind, row)))
}
