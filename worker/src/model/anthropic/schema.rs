//! Schemas of arguments. Beyond what all providers demand, this one refuses property names outside of `^[a-zA-Z0-9_.-]{1,64}$`.
//!
//! The worker checks the arguments against the original schema, so what is lost here costs at most a second try of the model.

use serde_json::{Map, Value, json};

use crate::model::tool_schema;

/// Longest name of a property.
const MAX_NAME: usize = 64;

/// Returns the schema as the provider takes it. The description of an object tells the properties whose names it refuses, so that
/// the model still can write them.
pub fn parameters(schema: &Value) -> Value {
    let mut written = tool_schema::for_provider(schema);
    describe_unnameable(&mut written);
    written
}

fn describe_unnameable(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(told) = take_unnameable(fields) {
                let own =
                    fields.get("description").and_then(Value::as_str).map(|own| format!("{own} ")).unwrap_or_default();
                fields.insert("description".to_owned(), format!("{own}{told}").into());
            }
            fields.values_mut().for_each(describe_unnameable);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(describe_unnameable),
        _ => {}
    }
}

/// Removes the properties whose names the provider refuses. Returns words about them, or `None` if there are none.
fn take_unnameable(fields: &mut Map<String, Value>) -> Option<String> {
    let properties = fields.get_mut("properties")?.as_object_mut()?;
    let names: Vec<String> = properties.keys().filter(|name| !is_taken(name)).cloned().collect();
    let taken: Map<String, Value> = names.into_iter().filter_map(|name| properties.shift_remove_entry(&name)).collect();
    if taken.is_empty() {
        return None;
    }
    let mut needed = Vec::new();
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|name| {
            let is_kept = name.as_str().is_none_or(|name| !taken.contains_key(name));
            if !is_kept {
                needed.push(name.clone());
            }
            is_kept
        });
    }
    fields.remove("additionalProperties");
    let needed = if needed.is_empty() { String::new() } else { format!(", of which it needs {}", json!(needed)) };
    Some(format!("It also takes these properties{needed}: {}", Value::Object(taken)))
}

fn is_taken(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_the_properties_whose_names_the_provider_refuses() {
        let usual = json!({"type": "object", "properties": {"a.b-c_1": {"type": "string"}}, "required": ["a.b-c_1"]});
        assert_eq!(parameters(&usual), usual);
        let query = json!({"type": "object", "description": "A query.", "additionalProperties": false,
            "properties": {"$top": {"type": "integer"}, "filter[name]": {"type": "string"}, "path": {"type": "string"}},
            "required": ["path", "$top"]});
        let told = "A query. It also takes these properties, of which it needs [\"$top\"]: {\"$top\":{\"type\":\"integer\"},\"filter[name]\":{\"type\":\"string\"}}";
        let taken = json!({"type": "object", "description": told, "properties": {"path": {"type": "string"}}, "required": ["path"]});
        assert_eq!(parameters(&query), taken);
        let nested = parameters(&json!({"type": "object", "properties": {"in": query}}));
        assert_eq!(nested["properties"]["in"], taken);
    }
}
