//! `delete_onto_…`.

use serde_json::{Map, Value, json};

use super::{
    Call, EntityReference, ToolFailure, ToolOutput,
    declaration::{self, Category, Declaration, id_field},
    result,
};
use crate::kind::Kind;

pub fn declare(kind: Kind) -> Declaration {
    let (name, field) = (kind.as_str(), id_field(kind));
    let summary = format!("Deletes a {name}; it can be restored for 30 days.");
    Declaration::new(Category::Write, format!("delete_onto_{name}"), summary, json!({}))
        .with(Map::from_iter([(field.clone(), declaration::text())]))
        .requires(&[&field])
}

pub async fn call(call: Call<'_>, kind: Kind, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let id = call.id(kind, input)?;
    result(call.workspace.delete(call.author, kind, id).await, kind, id)?;
    let text = format!("Deleted the {} {id}. It can be restored for 30 days.", kind.as_str());
    let entities = vec![EntityReference { kind, id, name: String::new() }];
    Ok(ToolOutput { text, entities, notice: None })
}
