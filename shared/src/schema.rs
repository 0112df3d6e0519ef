//! JSON schemas of tools' arguments: what a model, or a human who edits its call, must keep to.

use serde_json::Value;

/// Violations that one message names at most.
const NAMED: usize = 5;

/// Refuses what is no schema, and what a stranger could make validating take for ever: without references, the work is
/// bounded by the sizes of schema and arguments.
pub fn check_untrusted(schema: &Value) -> Result<(), String> {
    match reference(schema) {
        Some(keyword) => Err(format!("{keyword} is not taken here; write the schema out")),
        None => compile(schema).map(drop),
    }
}

/// Refuses arguments that break the schema, naming where; a schema that is itself broken refuses nothing.
pub fn validate(schema: &Value, input: &Value) -> Result<(), String> {
    let Ok(validator) = compile(schema) else { return Ok(()) };
    let named: Vec<String> = validator
        .iter_errors(input)
        .take(NAMED)
        .map(|violation| match violation.instance_path().as_str() {
            "" => format!("at the top: {}", shorten(&violation.to_string())),
            path => format!("at {path}: {}", shorten(&violation.to_string())),
        })
        .collect();
    if named.is_empty() { Ok(()) } else { Err(named.join("; ")) }
}

/// Nothing is fetched for a schema: references reach no further than the schema itself. Patterns are matched in linear time.
fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(schema)
        .map_err(|error| format!("it is no JSON schema: {}", shorten(&error.to_string())))
}

/// A keyword of the schema that refers to another place.
fn reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let refers = matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") && value.is_string();
            if refers { Some(name.as_str()) } else { reference(value) }
        }),
        Value::Array(items) => items.iter().find_map(reference),
        _ => None,
    }
}

/// A violation quotes what it found, which may be long.
fn shorten(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_violation_names_the_path() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
        let check = |input: Value, part: Option<&str>| match (validate(&schema, &input), part) {
            (Ok(()), None) => {}
            (Err(problem), Some(part)) => assert!(problem.contains(part), "{problem:?} lacks {part}"),
            (result, part) => panic!("{input}: {result:?}, expected {part:?}"),
        };
        check(json!({"a": {"n": 1}}), None);
        check(json!({"a": {"n": "one"}}), Some("/a/n"));
        check(json!({}), Some("at the top"));
        check(json!("text"), Some("object"));
    }

    #[test]
    fn a_strangers_schema_is_written_out() {
        let schema = json!({"properties": {"a": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}}});
        assert!(check_untrusted(&schema).unwrap_err().contains("$ref"));
        assert!(check_untrusted(&json!({"properties": {"$ref": {"type": "string"}}})).is_ok());
    }

    #[test]
    fn a_schema_that_reaches_outside_is_refused_and_fetches_nothing() {
        assert!(compile(&json!({"$ref": "http://127.0.0.1:9/schema.json"})).is_err());
        assert!(compile(&json!({"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"})).is_ok());
        assert!(compile(&json!({"type": "nonsense"})).is_err());
    }
}
