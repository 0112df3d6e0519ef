//! The results of tools as fields, for programs that do not read [`super::text`]: all that the text says.

use serde_json::{Map, Value, json};

use super::{EntityReference, Operation};
use crate::{
    entity::Entity,
    kind::{Field, Kind},
};

/// The fields that tell the state of an entity in a list.
pub const STATE_FIELDS: [&str; 5] = ["state", "priority", "due_at", "target_date", "end_at"];

/// Returns a list, its next cursor, and how many further items no call can get.
pub fn of_items(items: Vec<Value>, next: Option<String>, left_out: usize) -> Value {
    let mut data = Map::from_iter([("items".to_owned(), json!(items))]);
    data.extend(next.map(|next| ("next".to_owned(), json!(next))));
    if left_out > 0 {
        data.insert("left_out".to_owned(), json!(left_out));
    }
    Value::Object(data)
}

/// Returns an entity of a list: its kind, id and name, and its state.
pub fn of_entity(entity: &Entity) -> Value {
    let mut data = of_reference(&EntityReference::of(entity));
    for name in STATE_FIELDS {
        if let Some(value) = entity.fields.get(name).filter(|value| !value.is_null()) {
            data[name] = value.clone();
        }
    }
    data
}

pub fn of_reference(reference: &EntityReference) -> Value {
    json!({"kind": reference.kind, "id": reference.id, "name": reference.name})
}

/// Returns a change: what was done, the entities, and the relations among them.
pub fn of_change(done: &str, entities: &[Entity]) -> Value {
    let (relations, named): (Vec<&Entity>, Vec<&Entity>) =
        entities.iter().partition(|entity| entity.kind == Kind::Edge);
    let items: Vec<Value> = named.into_iter().map(of_entity).collect();
    let relations: Vec<Value> = relations.into_iter().map(|edge| of_relation(edge, |_| None)).collect();
    json!({"done": done.to_lowercase(), "items": items, "relations": relations})
}

/// Returns a relation, with the names of its ends where they are known.
pub fn of_relation(edge: &Entity, name_of: impl Fn(uuid::Uuid) -> Option<String>) -> Value {
    let end = |kind: &str, id: &str| {
        let mut end =
            Map::from_iter([("kind".to_owned(), json!(edge.kind_in(kind))), ("id".to_owned(), json!(edge.id_in(id)))]);
        end.extend(edge.id_in(id).and_then(&name_of).map(|name| ("name".to_owned(), json!(name))));
        Value::Object(end)
    };
    json!({
        "id": edge.id, "relation": edge.title(), "from": end("from_kind", "from_id"), "to": end("to_kind", "to_id")
    })
}

/// Returns an entity with its fields. A long text has the same part as in words, and `parts` says which.
pub fn of_details(entity: &Entity, offset: usize, most: usize) -> Value {
    let (mut fields, mut parts) = (json!(entity), Map::new());
    fields["kind"] = json!(entity.kind);
    fields["name"] = json!(entity.title());
    for field in entity.kind.fields().iter().filter(|field| Field::is_long(field)) {
        let Some(text) = entity.fields.get(field.name).and_then(Value::as_str) else { continue };
        let count = text.chars().count();
        let part: String = text.chars().skip(offset).take(most).collect();
        let end = offset + part.chars().count();
        if (offset, end) != (0, count) {
            parts.insert(field.name.to_owned(), json!({"from": offset, "to": end, "of": count}));
        }
        fields[field.name] = json!(part);
    }
    let mut data = json!({ "entity": fields });
    if !parts.is_empty() {
        data["parts"] = Value::Object(parts);
    }
    data
}

impl Operation {
    /// Returns the schema of the result's fields.
    pub fn output_schema(self) -> Value {
        let text = || json!({"type": "string"});
        let entity = || {
            let mut properties = json!({"kind": text(), "id": text(), "name": text()});
            for name in STATE_FIELDS {
                properties[name] = if name == "priority" { json!({"type": "integer"}) } else { text() };
            }
            json!({"type": "object", "properties": properties, "required": ["kind", "id", "name"]})
        };
        let end = || {
            let properties = json!({"kind": text(), "id": text(), "name": text()});
            json!({"type": "object", "properties": properties, "required": ["kind", "id"]})
        };
        let relation = || {
            let properties = json!({"id": text(), "relation": text(), "from": end(), "to": end()});
            json!({"type": "object", "properties": properties, "required": ["id", "relation", "from", "to"]})
        };
        let count = || json!({"type": "integer", "minimum": 0});
        let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
        let list_of = |item: Value| {
            let items = json!({"type": "array", "items": item});
            object(json!({"items": items, "next": text(), "left_out": count(), "note": text()}), &["items"])
        };
        match self {
            Self::List(_) | Self::Search(_) | Self::SearchAll | Self::ListTaskDocuments => list_of(entity()),
            Self::Relationships => list_of(relation()),
            Self::ListTemplates => {
                let properties = json!({
                    "id": text(), "name": text(), "template_key": text(), "state": text(), "description": text()
                });
                list_of(object(properties, &["id", "name", "state"]))
            }
            Self::WebSearch => {
                let properties = json!({"title": text(), "url": text(), "content": text()});
                list_of(object(properties, &["title", "url", "content"]))
            }
            Self::Details(_) => {
                let part = object(json!({"from": count(), "to": count(), "of": count()}), &["from", "to", "of"]);
                let group = object(
                    json!({
                        "kind": text(), "count": count(), "open": count(),
                        "items": {"type": "array", "items": {"type": "object"}}
                    }),
                    &["kind", "count", "items"],
                );
                let properties = json!({
                    "entity": {"type": "object", "required": ["kind", "id", "name", "version"]},
                    "parts": {"type": "object", "additionalProperties": part},
                    "contents": {"type": "array", "items": group}
                });
                object(properties, &["entity"])
            }
            Self::CreateProject
            | Self::Create(_)
            | Self::CreateTaskDocument
            | Self::Update(_)
            | Self::Delete(_)
            | Self::RequestTemplate => {
                let properties = json!({
                    "done": text(), "items": {"type": "array", "items": entity()},
                    "relations": {"type": "array", "items": relation()}, "note": text()
                });
                object(properties, &["done", "items", "relations"])
            }
            Self::SuggestTemplate | Self::FieldInfo | Self::Overview | Self::UsageGuide => {
                object(json!({"text": text()}), &["text"])
            }
        }
    }
}
