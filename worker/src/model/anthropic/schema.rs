//! Schemas of arguments. The provider refuses `anyOf`, `oneOf` and `allOf` at a schema's top, and a top that is no object.
//!
//! The worker checks the arguments against the original schema, so what is lost here costs at most a second try of the model.

use serde_json::{Map, Value, json};

/// Returns the schema with the choices at its top merged into one object: with the properties of all, and of the required ones
/// those that each choice requires.
pub fn without_choices_at_top(schema: &Value) -> Value {
    let mut top = schema.as_object().cloned().unwrap_or_default();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = top.remove(keyword) else { continue };
        let branches: Vec<Map<String, Value>> = branches.iter().map(|branch| resolved(branch, schema)).collect();
        let required = match keyword {
            "allOf" => branches.iter().flat_map(required_of).collect(),
            _ => required_by_each(&branches),
        };
        merge(&mut top, branches, required);
    }
    if let Some(reference) = top.remove("$ref") {
        let target = resolved(&json!({"$ref": reference}), schema);
        let required = required_of(&target);
        merge(&mut top, vec![target], required);
    }
    top.insert("type".into(), json!("object"));
    Value::Object(top)
}

/// Returns the object that a branch is, or that it refers to within the schema.
fn resolved(branch: &Value, schema: &Value) -> Map<String, Value> {
    let target = branch.get("$ref").and_then(Value::as_str).and_then(|path| schema.pointer(path.strip_prefix('#')?));
    target.unwrap_or(branch).as_object().cloned().unwrap_or_default()
}

fn merge(top: &mut Map<String, Value>, branches: Vec<Map<String, Value>>, required: Vec<String>) {
    let mut properties = top.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, property) in branches.into_iter().filter_map(|mut branch| branch.remove("properties")).flat_map(entries)
    {
        match properties.get_mut(&name) {
            None => {
                properties.insert(name, property);
            }
            Some(known) if *known != property => add_choice(known, property),
            Some(_) => {}
        }
    }
    let mut all = required_of(top);
    all.extend(required);
    all.sort();
    all.dedup();
    if !properties.is_empty() {
        top.insert("properties".into(), Value::Object(properties));
    }
    if !all.is_empty() {
        top.insert("required".into(), json!(all));
    }
}

fn entries(properties: Value) -> Map<String, Value> {
    match properties {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

/// Adds a schema to those that a property may have.
fn add_choice(known: &mut Value, other: Value) {
    match known.as_object_mut() {
        Some(only) if only.len() == 1 && only.get("anyOf").is_some_and(Value::is_array) => {
            if let Some(Value::Array(choices)) = only.get_mut("anyOf")
                && !choices.contains(&other)
            {
                choices.push(other);
            }
        }
        _ => *known = json!({"anyOf": [known.take(), other]}),
    }
}

fn required_of(schema: &Map<String, Value>) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn required_by_each(branches: &[Map<String, Value>]) -> Vec<String> {
    let Some((first, others)) = branches.split_first() else { return Vec::new() };
    let by_others = |name: &String| others.iter().all(|branch| required_of(branch).contains(name));
    required_of(first).into_iter().filter(by_others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_at_the_top_become_properties_of_one_object() {
        let check = |schema: Value, expected: Value| assert_eq!(without_choices_at_top(&schema), expected);
        let plain = json!({"type": "object", "properties": {"a": {"anyOf": [{}]}}, "required": ["a"]});
        check(plain.clone(), plain);
        check(json!({}), json!({"type": "object"}));
        let by = |name: &str| json!({"properties": {name: {"type": "string"}, "x": {}}, "required": [name, "x"]});
        check(
            json!({"properties": {"y": {}}, "required": ["y"], "oneOf": [by("a"), by("b")]}),
            json!({"type": "object", "required": ["x", "y"],
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "x": {}, "y": {}}}),
        );
        check(
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"a": {"type": "null"}}}]}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
        );
        let definitions = json!({"A": {"type": "object", "properties": {"a": {}}, "required": ["a"]}});
        check(
            json!({"anyOf": [{"$ref": "#/$defs/A"}], "$defs": definitions}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "$defs": definitions}),
        );
        check(
            json!({"$ref": "#/$defs/A", "$defs": definitions}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "$defs": definitions}),
        );
    }
}
