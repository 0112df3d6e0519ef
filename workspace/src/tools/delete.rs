//! `delete_onto_…`.

use serde_json::{Map, Value, json};

use super::{
    Call, EntityReference, ToolFailure, ToolOutput, data,
    declaration::{self, Category, Declaration, id_field},
    not_found, result,
};
use crate::{entity::Entity, kind::Kind};

pub fn declare(kind: Kind) -> Declaration {
    let (name, field) = (kind.as_str(), id_field(kind));
    let summary = format!("Deletes a {name}; it can be restored for 30 days.");
    Declaration::new(Category::Write, format!("delete_onto_{name}"), summary, json!({}))
        .with(Map::from_iter([(field.clone(), declaration::text())]))
        .requires(&[&field])
}

pub async fn call(call: Call<'_>, kind: Kind, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let id = call.id(kind, input)?;
    let entity = call.workspace.get(call.author.owner, kind, id).await?.ok_or_else(|| not_found(kind, id))?;
    result(call.workspace.delete(call.author, kind, id).await, kind, id)?;
    Ok(deleted(&entity))
}

/// Words a deletion.
pub fn deleted(entity: &Entity) -> ToolOutput {
    let note = "It can be restored for 30 days.";
    let text = format!("Deleted the {} {}. {note}", entity.kind.as_str(), entity.id);
    let mut data = data::of_change("Deleted", std::slice::from_ref(entity));
    data["note"] = json!(note);
    ToolOutput { text, entities: vec![EntityReference::of(entity)], notice: None, data: Some(data) }
}
