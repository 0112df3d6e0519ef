//! The entities that another one names.

use holdfast_shared::database::{Error, Tx};
use uuid::Uuid;

use super::rows::read_in;
use crate::{
    entity::Entity,
    input::{InvalidField, invalid},
    kind::{Form, Kind},
};

/// Returns the first changed field that names an entity which the project does not have. Entities of the same set of changes
/// need not be stored yet.
pub async fn missing_reference(
    tx: &mut Tx,
    owner: &str,
    before: Option<&Entity>,
    entity: &Entity,
    created: &[Entity],
) -> Result<Option<InvalidField>, Error> {
    for field in entity.kind.fields() {
        let kind = match field.form {
            Form::Id(kind) => Some(kind),
            Form::IdOf(kind) => entity.kind_in(kind),
            _ => None,
        };
        let (Some(kind), Some(id)) = (kind, entity.id_in(field.name)) else { continue };
        if before.is_some_and(|before| before.fields.get(field.name) == entity.fields.get(field.name)) {
            continue;
        }
        let is_there = |named: &Entity| named.kind == kind && named.is_live() && is_within(named, entity.project_id);
        let is_new = created.iter().any(|new| new.id == id && is_there(new));
        if !is_new && !read_in(tx, owner, kind, id).await?.as_ref().is_some_and(is_there) {
            return Ok(Some(no_such(field.name, kind)));
        }
    }
    Ok(None)
}

/// Returns the refusal of an entity that is not there.
pub fn no_such(field: &str, kind: Kind) -> InvalidField {
    let problem = match kind {
        Kind::Project => "there is no such project".to_owned(),
        _ => format!("the project has no such {}", kind.as_str()),
    };
    invalid(field, problem)
}

/// Returns whether an entity belongs to the project, or is it.
fn is_within(named: &Entity, project_id: Option<Uuid>) -> bool {
    let project_of_named = if named.kind == Kind::Project { Some(named.id) } else { named.project_id };
    project_of_named == project_id
}
