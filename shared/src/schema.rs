//! JSON schemas of tools' arguments: what a model, or a human who edits its call, must keep to.

use serde_json::Value;

/// Violations that one message names at most.
const NAMED: usize = 5;

/// Whether this is a schema at all.
pub fn check(schema: &Value) -> Result<(), String> {
    compile(schema).map(drop)
}

/// Refuses arguments that break the schema, naming where; a schema that is itself broken refuses nothing.
pub fn validate(schema: &Value, input: &Value) -> Result<(), String> {
    let Ok(validator) = compile(schema) else { return Ok(()) };
    let mut violations = validator.iter_errors(input);
    let named: Vec<String> = violations
        .by_ref()
        .take(NAMED)
        .map(|violation| match violation.instance_path().as_str() {
            "" => format!("at the top: {}", shorten(&violation.to_string())),
            path => format!("at {path}: {}", shorten(&violation.to_string())),
        })
        .collect();
    match (named.is_empty(), violations.count()) {
        (true, _) => Ok(()),
        (false, 0) => Err(named.join("; ")),
        (false, more) => Err(format!("{}; and {more} more", named.join("; "))),
    }
}

/// Nothing is fetched for a schema: references reach no further than the schema itself.
fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .build(schema)
        .map_err(|error| format!("it is no JSON schema: {}", shorten(&error.to_string())))
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
    fn a_schema_that_reaches_outside_is_refused_and_fetches_nothing() {
        assert!(check(&json!({"$ref": "http://127.0.0.1:9/schema.json"})).is_err());
        assert!(check(&json!({"type": "nonsense"})).is_err());
        assert!(check(&json!({"type": "object"})).is_ok());
    }
}
