//! The schema of a tool's arguments as providers take it. The worker still checks arguments against the original.
//!
//! Providers know a part of JSON Schema only: an object with `properties` at the top and no alternatives there, no references, and
//! no arrays without `items`. A schema is rewritten to say as much of the original as that part can.

use serde_json::{Map, Value, json};

/// Deepest nesting of a rewritten schema, references included. A recursive schema ends there.
const MAX_DEPTH: usize = 24;

/// Most references to one definition within each other.
const MAX_RECURSION: usize = 2;

/// Most values of a rewritten schema. Beyond, references stay unresolved and say nothing.
const MAX_VALUES: usize = 4_000;

/// Keywords without a meaning for a model, which some providers refuse.
const DROPPED: [&str; 10] = [
    "additionalItems",
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$vocabulary",
    "$dynamicAnchor",
    "$defs",
    "definitions",
    "$recursiveAnchor",
];

/// Keywords whose value is a schema.
const SCHEMAS: [&str; 9] = [
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// Keywords whose value has schemas by names.
const MAPS: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// Returns the schema as providers take it.
pub(super) fn for_provider(schema: &Value) -> Value {
    let mut writer = SchemaWriter { root: schema, references: Vec::new(), values: 0 };
    let Value::Object(written) = writer.write(schema, MAX_DEPTH) else {
        return json!({"type": "object", "properties": {}});
    };
    Value::Object(as_object(written))
}

struct SchemaWriter<'a> {
    root: &'a Value,
    /// The references that are being resolved.
    references: Vec<&'a str>,
    values: usize,
}

impl<'a> SchemaWriter<'a> {
    fn write(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.values += 1;
        let Value::Object(fields) = schema else {
            // `true` allows everything, as an empty schema does.
            return if schema == &Value::Bool(false) { json!({"not": {}}) } else { json!({}) };
        };
        if depth == 0 {
            return json!({});
        }
        let mut written = match fields.get("$ref") {
            Some(reference) => self.resolved(reference.as_str().unwrap_or_default(), depth),
            None => Map::new(),
        };
        for (name, value) in fields {
            if name == "$ref" || DROPPED.contains(&name.as_str()) {
                continue;
            }
            written.insert(name.clone(), self.field(name, value, depth));
        }
        complete(&mut written);
        Value::Object(written)
    }

    fn field(&mut self, name: &str, value: &'a Value, depth: usize) -> Value {
        match value {
            // Older drafts have a list of schemas here, one for each place.
            Value::Array(schemas) if name == "items" => {
                let written: Vec<Value> = schemas.iter().map(|schema| self.write(schema, depth - 1)).collect();
                if written.is_empty() { json!({}) } else { json!({"anyOf": written}) }
            }
            Value::Array(schemas) if LISTS.contains(&name) => {
                schemas.iter().map(|schema| self.write(schema, depth - 1)).collect()
            }
            Value::Object(schemas) if MAPS.contains(&name) => {
                schemas.iter().map(|(name, schema)| (name.clone(), self.write(schema, depth - 1))).collect()
            }
            Value::Bool(_) if name == "additionalProperties" || name == "unevaluatedProperties" => value.clone(),
            _ if SCHEMAS.contains(&name) => self.write(value, depth - 1),
            _ => {
                self.values += 1;
                value.clone()
            }
        }
    }

    /// Returns the fields of the schema that a reference names; none if it cannot be resolved within the bounds.
    fn resolved(&mut self, reference: &'a str, depth: usize) -> Map<String, Value> {
        let recursion = self.references.iter().filter(|open| **open == reference).count();
        if recursion >= MAX_RECURSION || self.values > MAX_VALUES {
            return Map::new();
        }
        let root = self.root;
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(&decoded(pointer)));
        let Some(target) = target else { return Map::new() };
        self.references.push(reference);
        let written = self.write(target, depth - 1);
        self.references.pop();
        match written {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// A reference is a fragment of a URL, whose pointer is percent-encoded.
fn decoded(pointer: &str) -> String {
    percent_encoding::percent_decode_str(pointer).decode_utf8_lossy().into_owned()
}

/// Writes the bounds of older drafts, where `exclusiveMinimum` only tells how `minimum` is meant.
fn modernize(schema: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let Some(Value::Bool(is_exclusive)) = schema.get(exclusive) else { continue };
        let number = if *is_exclusive { schema.remove(bound) } else { None };
        match number {
            Some(number) => schema.insert(exclusive.to_owned(), number),
            None => schema.remove(exclusive),
        };
    }
}

/// Adds what providers demand of each schema.
fn complete(schema: &mut Map<String, Value>) {
    modernize(schema);
    let is_of = |kind: &str| match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    };
    let (is_array, is_object) = (is_of("array"), is_of("object"));
    if is_array && !schema.contains_key("items") && !schema.contains_key("prefixItems") {
        schema.insert("items".to_owned(), json!({}));
    }
    if (is_object || schema.contains_key("properties")) && !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    if !schema.get("required").is_none_or(Value::is_array) {
        schema.remove("required");
    }
}

/// Returns the schema with an object and no alternatives at the top.
fn as_object(mut schema: Map<String, Value>) -> Map<String, Value> {
    let all = branches(&mut schema, "allOf");
    let alternatives = [branches(&mut schema, "anyOf"), branches(&mut schema, "oneOf")];
    for keyword in ["not", "enum", "const", "if", "then", "else"] {
        schema.remove(keyword);
    }
    for branch in all {
        merge(&mut schema, as_object(branch), Requirement::Both);
    }
    for alternatives in alternatives {
        let objects = alternatives.into_iter().filter(describes_an_object).map(as_object);
        let either = objects.reduce(|mut first, second| {
            merge(&mut first, second, Requirement::Common);
            first
        });
        if let Some(either) = either {
            merge(&mut schema, either, Requirement::Both);
        }
    }
    schema.insert("type".to_owned(), "object".into());
    complete(&mut schema);
    schema
}

fn branches(schema: &mut Map<String, Value>, keyword: &str) -> Vec<Map<String, Value>> {
    let Some(Value::Array(branches)) = schema.remove(keyword) else { return Vec::new() };
    branches
        .into_iter()
        .filter_map(|branch| match branch {
            Value::Object(fields) => Some(fields),
            _ => None,
        })
        .collect()
}

/// An alternative such as null is no object of arguments.
fn describes_an_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    }
}

/// The properties that two merged schemas require.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Requirement {
    /// Those of each.
    Both,
    /// Those that both require.
    Common,
}

/// Adds the properties of another object. A property of both may be as either says.
fn merge(schema: &mut Map<String, Value>, other: Map<String, Value>, requirement: Requirement) {
    let names = |schema: &Map<String, Value>| -> Vec<Value> {
        schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (own, others) = (names(schema), names(&other));
    let required: Vec<Value> = match requirement {
        Requirement::Both => own.iter().chain(others.iter().filter(|name| !own.contains(name))).cloned().collect(),
        Requirement::Common => own.iter().filter(|name| others.contains(name)).cloned().collect(),
    };
    schema.remove("required");
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    // One of the two allows more than both together do.
    if schema.get("additionalProperties") != other.get("additionalProperties") {
        schema.remove("additionalProperties");
    }
    for (name, value) in other {
        if matches!(name.as_str(), "required" | "type" | "additionalProperties") {
            continue;
        }
        match (schema.get_mut(&name), &value) {
            (Some(Value::Object(properties)), Value::Object(more)) if name == "properties" => {
                more.iter().for_each(|(name, property)| add_property(properties, name, property));
            }
            _ => {
                schema.entry(name).or_insert(value);
            }
        }
    }
}

fn add_property(properties: &mut Map<String, Value>, name: &str, property: &Value) {
    match properties.get_mut(name) {
        Some(own) if own == property => {}
        Some(own) => *own = either(own.take(), property.clone()),
        None => {
            properties.insert(name.to_owned(), property.clone());
        }
    }
}

fn either(first: Value, second: Value) -> Value {
    let mut alternatives = match first {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("anyOf") => {
            fields.remove("anyOf").and_then(|list| list.as_array().cloned()).unwrap_or_default()
        }
        first => vec![first],
    };
    if !alternatives.contains(&second) {
        alternatives.push(second);
    }
    json!({"anyOf": alternatives})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        assert_eq!(for_provider(&schema), expected, "{schema}");
    }

    #[test]
    fn a_schema_is_an_object_with_properties() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [
            json!({"type": "object"}),
            json!({}),
            json!(null),
            json!(true),
            json!({"type": "object", "properties": null, "required": "x"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "type": ["object", "null"]}),
        ] {
            check(schema, empty.clone());
        }
        let usual = json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"], "default": "x"}},
            "required": ["a"], "additionalProperties": false});
        check(usual.clone(), usual);
        check(
            json!({"type": "object", "properties": {"list": {"type": "array"}, "any": true, "o": {"type": "object"}}}),
            json!({"type": "object", "properties": {"list": {"type": "array", "items": {}}, "any": {},
                "o": {"type": "object", "properties": {}}}}),
        );
        // Names of properties are no keywords.
        let named = json!({"type": "object", "properties": {"$ref": {"type": "string"}, "$defs": {"type": "string"},
            "id": {"type": "string"}, "anyOf": {"type": "string"}}});
        check(named.clone(), named);
    }

    #[test]
    fn schemas_of_older_drafts_are_written_as_newer_ones() {
        check(
            json!({"type": "object", "properties": {
                "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false},
                "any": {"type": "array", "items": []},
                "above": {"type": "number", "minimum": 1, "exclusiveMinimum": true},
                "upTo": {"type": "number", "maximum": 9, "exclusiveMaximum": false}}}),
            json!({"type": "object", "properties": {
                "pair": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
                "any": {"type": "array", "items": {}},
                "above": {"type": "number", "exclusiveMinimum": 1},
                "upTo": {"type": "number", "maximum": 9}}}),
        );
    }

    #[test]
    fn references_are_resolved_and_recursion_ends() {
        check(
            json!({"type": "object", "properties": {"at": {"$ref": "#/$defs/a~1place", "description": "Where"},
                "old": {"$ref": "#/definitions/x%20y"}, "lost": {"$ref": "https://example.com/schema"}},
                "$defs": {"a/place": {"type": "string", "description": "A place"}}, "definitions": {"x y": {"type": "integer"}}}),
            json!({"type": "object", "properties": {"at": {"type": "string", "description": "Where"}, "old": {"type": "integer"},
                "lost": {}}}),
        );
        check(
            json!({"$ref": "#/$defs/Args", "$defs": {"Args": {"type": "object", "properties": {"a": {"type": "string"}}}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        );
        let tree = json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": {
            "type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}});
        let leaf = json!({"type": "object", "properties": {"children": {"type": "array", "items": {}}}});
        let node = json!({"type": "object", "properties": {"children": {"type": "array", "items": leaf}}});
        check(tree, json!({"type": "object", "properties": {"root": node}}));
        check(json!({"$ref": "#"}), json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn a_schema_that_grows_with_each_reference_is_bounded() {
        let level = |n: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            let properties: Map<String, Value> = (0..10).map(|p| (format!("p{p}"), next.clone())).collect();
            (format!("d{n}"), json!({"type": "object", "properties": properties}))
        };
        let definitions: Map<String, Value> = (0..12).map(level).collect();
        let written = for_provider(&json!({"$ref": "#/$defs/d0", "$defs": definitions}));
        assert!(written.to_string().len() < 500_000, "{}", written.to_string().len());
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "object", "properties": {"p": deep}});
        }
        assert!(for_provider(&deep).to_string().matches("properties").count() <= MAX_DEPTH);
    }

    #[test]
    fn alternatives_at_the_top_become_one_object() {
        let object = |name: &str, kind: &str| json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]});
        check(
            json!({"anyOf": [object("a", "string"), object("b", "string"), {"type": "null"}], "description": "Either"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "description": "Either"}),
        );
        check(
            json!({"oneOf": [object("a", "string"), object("a", "integer")]}),
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "required": ["a"]}),
        );
        check(
            json!({"type": "object", "properties": {"c": {}}, "required": ["c"],
                "allOf": [object("a", "string"), {"anyOf": [{"required": ["a"]}, {"required": ["c"]}]}]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "c": {}}, "required": ["c", "a"]}),
        );
        check(
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "not": {}, "enum": [{}]}),
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
        );
    }
}
