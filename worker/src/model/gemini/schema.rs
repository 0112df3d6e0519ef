//! Schemas in the part of JSON Schema that Gemini takes. The worker checks the arguments against the original schema.

use serde_json::{Map, Value, json};

use super::rules::KEYWORDS;

/// Returns the schema without the keywords that Gemini does not take. Other words replace them where there are some.
pub fn taken(schema: &Value) -> Value {
    let Value::Object(schema) = schema else {
        // `true` and `false` are schemas too.
        return json!({});
    };
    // Beside a reference, only other names with a dollar are taken.
    if let Some(reference) = schema.get("$ref") {
        let mut only = Map::from_iter([("$ref".to_owned(), reference.clone())]);
        only.extend(schema.get("$defs").map(|definitions| ("$defs".to_owned(), each(definitions))));
        return Value::Object(only);
    }
    let mut written = Map::new();
    for (keyword, value) in schema {
        match keyword.as_str() {
            "const" => {
                written.insert("enum".into(), json!([value]));
            }
            "definitions" => {
                written.insert("$defs".into(), each(value));
            }
            "allOf" => merge(&mut written, value),
            "properties" | "$defs" => {
                written.insert(keyword.clone(), each(value));
            }
            "items" => {
                written.insert(keyword.clone(), taken(value));
            }
            "additionalProperties" if value.is_object() => {
                written.insert(keyword.clone(), taken(value));
            }
            "anyOf" | "oneOf" | "prefixItems" => {
                let schemas = value.as_array().into_iter().flatten().map(taken).collect();
                written.insert(keyword.clone(), Value::Array(schemas));
            }
            known if KEYWORDS.contains(&known) => {
                written.entry(keyword.clone()).or_insert_with(|| value.clone());
            }
            _ => {}
        }
    }
    Value::Object(written)
}

/// Returns the schema of a tool's parameters, which are an object.
pub fn parameters(schema: &Value) -> Value {
    let mut written = taken(schema);
    if written.get("$ref").is_none() {
        written["type"] = json!("object");
    }
    written
}

fn each(schemas: &Value) -> Value {
    let schemas = schemas.as_object().into_iter().flatten();
    Value::Object(schemas.map(|(name, schema)| (name.clone(), taken(schema))).collect())
}

/// Adds what all branches of `allOf` say.
fn merge(written: &mut Map<String, Value>, branches: &Value) {
    for branch in branches.as_array().into_iter().flatten().map(taken) {
        for (keyword, value) in branch.as_object().cloned().unwrap_or_default() {
            match (written.get_mut(&keyword), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => known.extend(more),
                (Some(_), _) => {}
                (None, value) => {
                    written.insert(keyword, value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_that_gemini_does_not_know_are_left_out_or_said_otherwise() {
        let check = |schema: Value, expected: Value| assert_eq!(taken(&schema), expected);
        check(
            json!({"$schema": "x", "type": "object", "additionalProperties": false, "patternProperties": {},
                "properties": {"const": {"const": 5}, "n": {"type": "number", "exclusiveMinimum": 0, "minimum": 0}}}),
            json!({"type": "object", "additionalProperties": false,
                "properties": {"const": {"enum": [5]}, "n": {"type": "number", "minimum": 0}}}),
        );
        check(json!({"items": true, "prefixItems": [true]}), json!({"items": {}, "prefixItems": [{}]}));
        check(
            json!({"$ref": "#/$defs/A", "description": "an A", "$defs": {"A": {"not": {}, "type": "object"}}}),
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
        );
        check(
            json!({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}),
            json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
        );
        assert_eq!(parameters(&json!(true)), json!({"type": "object"}));
    }
}
