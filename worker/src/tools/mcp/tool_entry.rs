//! Reads one tool of a server's list, and tells why a model cannot have it.
//!
//! A malformed tool costs only itself. The worker does not read fields that no model needs, such as an output schema.

use serde_json::{Map, Value};

use super::{LeftOutTool, ServerTool};

/// Most characters of a foreign name in a warning.
const NAME_CHARS: usize = 100;

/// Reads the tool at this index of its list.
pub fn read(index: usize, entry: Value) -> Result<ServerTool, LeftOutTool> {
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let shown = if name.trim().is_empty() { format!("number {}", index + 1) } else { shortened(&name) };
    let left_out = |reason: String| LeftOutTool { name: shown, reason };
    let Value::Object(mut fields) = entry else { return Err(left_out("it is no JSON object".into())) };
    if let Some(problem) = problem(&fields) {
        return Err(left_out(problem));
    }
    let description = fields.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut input_schema = fields.remove("inputSchema").unwrap_or_default();
    relax(&mut input_schema);
    Ok(ServerTool { name, description, input_schema })
}

/// Returns a foreign name, short enough for a warning.
pub fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn problem(fields: &Map<String, Value>) -> Option<String> {
    let is = |name: &str, fits: fn(&Value) -> bool| fields.get(name).is_none_or(|value| value.is_null() || fits(value));
    let has_name = fields.get("name").and_then(Value::as_str).is_some_and(|name| !name.trim().is_empty());
    let text = [("title", "its title is no text"), ("description", "its description is no text")];
    let wrong_text = text.into_iter().find(|(name, _)| !is(name, Value::is_string));
    let found = match (wrong_text, fields.get("inputSchema")) {
        _ if !has_name => "it has no name",
        (Some((_, problem)), _) => problem,
        _ if !is("icons", are_icons) => "its icons are no list of objects with a src",
        _ if !is("annotations", are_annotations) => "its annotations have a wrong type",
        _ if !is("execution", Value::is_object) => "its execution is no JSON object",
        _ if fields.get("execution").is_some_and(|execution| execution["taskSupport"] == "required") => {
            "its server executes it only as a task, which is not supported"
        }
        (_, None) => "it has no schema (inputSchema)",
        (_, Some(Value::Object(schema))) if describes_object(schema) => return None,
        (_, Some(Value::Object(_))) => "its schema does not describe a JSON object",
        (_, Some(schema)) => return Some(format!("its schema is {} and no JSON object", kind_of(schema))),
    };
    Some(found.to_owned())
}

fn are_icons(icons: &Value) -> bool {
    icons.as_array().is_some_and(|icons| icons.iter().all(|icon| icon["src"].is_string()))
}

fn are_annotations(annotations: &Value) -> bool {
    let fits = |(name, value): (&String, &Value)| match name.as_str() {
        "title" => value.is_string() || value.is_null(),
        name if name.ends_with("Hint") => value.is_boolean() || value.is_null(),
        _ => true,
    };
    annotations.as_object().is_some_and(|annotations| annotations.iter().all(fits))
}

fn describes_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Keywords of a schema with one schema, or with a list of them.
const OF_SCHEMAS: [&str; 9] =
    ["items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems", "if", "then", "else"];

/// Keywords of a schema with named schemas.
const OF_NAMED_SCHEMAS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Makes each required property optional that has a default, because many servers list it as required and do not need it.
fn relax(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for keyword in OF_SCHEMAS {
        match fields.get_mut(keyword) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(relax),
            Some(schema) => relax(schema),
            None => {}
        }
    }
    for keyword in OF_NAMED_SCHEMAS {
        let named = fields.get_mut(keyword).and_then(Value::as_object_mut);
        named.into_iter().flat_map(Map::values_mut).for_each(relax);
    }
    let Some(Value::Array(mut required)) = fields.remove("required") else { return };
    let has_default = |name: &Value| {
        let property = name.as_str().and_then(|name| fields.get("properties")?.get(name));
        property.is_some_and(|property| property.get("default").is_some())
    };
    required.retain(|name| !has_default(name));
    if !required.is_empty() {
        fields.insert("required".into(), Value::Array(required));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_malformed_tool_is_named_with_its_problem() {
        let check = |change: Value, part: &str| {
            let mut tool = json!({"name": "a", "inputSchema": {"type": "object"}});
            tool.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let left_out = read(2, tool).unwrap_err();
            assert!(left_out.reason.contains(part), "{change}: {}", left_out.reason);
            left_out.name
        };
        assert_eq!(check(json!({"inputSchema": null}), "null"), "a");
        check(json!({"inputSchema": true}), "true");
        check(json!({"inputSchema": []}), "a list");
        check(json!({"inputSchema": {"type": "string"}}), "does not describe a JSON object");
        check(json!({"title": 5}), "title");
        check(json!({"description": ["x"]}), "description");
        check(json!({"icons": "x.png"}), "icons");
        check(json!({"icons": [{"src": 1}]}), "icons");
        check(json!({"annotations": "read only"}), "annotations");
        check(json!({"annotations": {"readOnlyHint": "yes"}}), "annotations");
        check(json!({"execution": {"taskSupport": "required"}}), "as a task");
        assert_eq!(check(json!({"name": 7}), "no name"), "number 3");
        assert_eq!(check(json!({"name": ""}), "no name"), "number 3");
        assert!(check(json!({"name": "x".repeat(500), "title": 1}), "title").chars().count() <= NAME_CHARS + 1);
        assert_eq!(read(0, json!({"name": "a"})).unwrap_err().reason, "it has no schema (inputSchema)");
        assert_eq!(read(0, json!("a")).unwrap_err().reason, "it is no JSON object");
    }

    #[test]
    fn a_tool_with_every_field_is_read() {
        let tool = json!({"name": "a", "title": "A", "description": "d", "icons": [{"src": "x.png"}], "outputSchema": 1,
            "annotations": {"title": null, "readOnlyHint": true}, "execution": {"taskSupport": "optional"},
            "inputSchema": {"properties": {}}});
        let read = read(0, tool).unwrap();
        assert_eq!((read.name.as_str(), read.description.as_str()), ("a", "d"));
        assert_eq!(read.input_schema, json!({"properties": {}}));
    }

    #[test]
    fn a_required_property_with_a_default_is_optional() {
        let check = |schema: Value, expected: Value| {
            let tool = json!({"name": "a", "inputSchema": schema});
            assert_eq!(read(0, tool).unwrap().input_schema, expected);
        };
        let with = |required: Value| json!({"required": required, "properties": {"a": {"default": null}, "b": {}}});
        check(with(json!(["a", "b"])), with(json!(["b"])));
        check(with(json!(["a"])), json!({"properties": {"a": {"default": null}, "b": {}}}));
        check(
            json!({"properties": {"list": {"items": with(json!(["b", "a"]))}}}),
            json!({"properties": {"list": {"items": with(json!(["b"]))}}}),
        );
        // A value is no schema.
        let value = json!({"properties": {"a": {"enum": [{"required": ["x"], "properties": {"x": {"default": 1}}}]}}});
        check(value.clone(), value);
    }
}
